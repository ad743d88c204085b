"""Small repositories that a program which checks this one is asked about."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"


class Test(unittest.TestCase):
    SCRIPT = None  # name of the program in tools
    GOOD = {}      # a tree that it accepts: texts by path

    def check(self, changes):
        """(exit status, lines of standard output) for the good tree with `changes` written over it; None: no such file."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**self.GOOD, **changes}.items():
                if text is None:
                    continue
                path = Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = self.run_on(root)
            self.assertNotIn("Traceback", done.stderr)
            return done.returncode, done.stdout.splitlines()

    def run_on(self, root):
        command = [sys.executable, str(TOOLS / self.SCRIPT), root]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def assert_accepted(self, changes):
        self.assertEqual(self.check(changes), (0, []))

    def assert_refused(self, changes, place, *words):
        status, lines = self.check(changes)
        self.assertEqual(status, 1, lines)
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(place + ": "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])

    def assert_empty_folder_is_refused(self):
        with tempfile.TemporaryDirectory() as root:
            done = self.run_on(root)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no checkout", done.stderr)
