"""What tests of the command-line program share. TENON names the program."""
import json
import os
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

TENON = os.environ["TENON"]
DONE, FAILED, USAGE = 0, 1, 2


def npy(path, shape, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % "".join(f"{d}," for d in shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    Path(path).write_bytes(data + struct.pack(f"<{len(values)}f", *values))


class Test(unittest.TestCase):
    """Runs the program in a folder of its own for files."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return str(Path(self.folder.name) / name)

    def run_tenon(self, *words, expect=DONE, stdin="", **env):
        done = subprocess.run([TENON, *map(str, words)], input=stdin, capture_output=True, text=True, timeout=120,
                              env={**os.environ, **env})
        self.assertEqual(done.returncode, expect, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def json(self, *words, expect=DONE, **env):
        done = self.run_tenon(*words, "--json", expect=expect, **env)
        return json.loads(done.stdout)  # fails when standard output holds anything else
