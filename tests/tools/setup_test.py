"""Runs tools/setup on a machine made of small stand-ins for dpkg-query, apt-get and sudo. Nothing is installed."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "setup"

# Each program prints its arguments, so that the test can read them back; dpkg-query knows the packages of $INSTALLED.
DPKG_QUERY = """#!/bin/bash
for last; do :; done
if [[ " $INSTALLED " == *" $last "* || $INSTALLED == ALL ]]; then echo -n installed; exit 0; fi
if [[ $last == cmake ]]; then echo -n config-files; exit 0; fi
exit 1
"""
APT_GET = """#!/bin/bash
echo "apt-get[$DEBIAN_FRONTEND] $*"
for word; do [[ " $APT_FAILS " == *" $word "* ]] && exit 100; done
if read -r -t 5; then echo "apt-get was given input"; exit 1; fi
exit 0
"""
SUDO = """#!/bin/bash
exec "$@"
"""


class SetupTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.bin = Path(self.folder.name)
        for name, text in {"dpkg-query": DPKG_QUERY, "apt-get": APT_GET, "sudo": SUDO}.items():
            (self.bin / name).write_text(text, encoding="utf-8")
            (self.bin / name).chmod(0o755)
        for tool in ["bash", "env", "sed"]:
            (self.bin / tool).symlink_to(shutil.which(tool))

    def setup(self, *arguments, installed="", apt_fails=""):
        environment = {"PATH": str(self.bin), "INSTALLED": installed, "APT_FAILS": apt_fails}
        done = subprocess.run([shutil.which("bash"), str(SCRIPT), *arguments], env=environment, input="y\n",
                              capture_output=True, text=True, check=False, cwd=os.sep)
        return done.returncode, done.stdout + done.stderr

    def test_does_nothing_when_all_is_there(self):
        status, output = self.setup(installed="ALL")
        self.assertEqual(status, 0, output)
        self.assertNotIn("apt-get", output)
        self.assertIn("packages are installed", output)

    def test_installs_what_is_missing_and_only_that(self):
        status, output = self.setup(installed="g++ git python3")
        self.assertEqual(status, 0, output)
        self.assertIn("apt-get[noninteractive] -qq update", output)
        install = next(line for line in output.splitlines() if " install " in line).split()
        for package in ["cmake", "ninja-build", "libprotobuf-dev", "libonnx-testdata"]:
            self.assertIn(package, install)
        for package in ["g++", "git", "python3"]:
            self.assertNotIn(package, install)

    def test_check_names_what_is_missing_and_installs_nothing(self):
        status, output = self.setup("--check", installed="g++ git")
        self.assertEqual(status, 1, output)
        self.assertNotIn("apt-get", output)
        self.assertIn("ninja-build", output)
        self.assertNotIn("g++", output)
        self.assertEqual(self.setup("--check", installed="ALL")[0], 0)

    def test_fails_when_apt_cannot_install(self):
        status, output = self.setup(installed="g++", apt_fails="install")
        self.assertEqual(status, 1, output)
        self.assertIn("could not install: cmake", output)

    def test_lives_with_package_lists_that_cannot_be_renewed(self):
        status, output = self.setup(installed="g++", apt_fails="update")
        self.assertEqual(status, 0, output)
        self.assertIn("update failed", output)

    def test_says_what_to_install_where_there_is_no_dpkg(self):
        (self.bin / "dpkg-query").unlink()
        status, output = self.setup()
        self.assertEqual(status, 1)
        self.assertIn("libyaml-cpp-dev", output)

    def test_refuses_unknown_arguments(self):
        status, output = self.setup("--chek")
        self.assertEqual(status, 2)
        self.assertIn("'--chek'", output)


if __name__ == "__main__":
    unittest.main()
