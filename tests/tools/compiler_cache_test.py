"""Builds from nothing with a filled compiler cache: the launcher of TenonOptions.cmake and precompiled headers."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

OPTIONS = Path(__file__).parents[2] / "tools/cmake/TenonOptions.cmake"
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(cached CXX)
set(CMAKE_CXX_STANDARD 20)
include({OPTIONS})
add_library(shared_header OBJECT empty.cpp)
target_include_directories(shared_header PRIVATE .)
target_precompile_headers(shared_header PRIVATE <lib.hpp>)
add_executable(program program.cpp)
target_include_directories(program PRIVATE .)
target_precompile_headers(program REUSE_FROM shared_header)
"""


class CompilerCache(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = Path(folder.name) / "source"
        self.source.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CCACHE_")}
        self.env = kept | {"CCACHE_DIR": f"{folder.name}/cache"}
        self.write("CMakeLists.txt", PROJECT)
        self.write("empty.cpp", "")

    def write(self, name, text):
        (self.source / name).write_text(text)

    def call(self, *command):
        done = subprocess.run(command, cwd=self.source, env=self.env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def build_from_nothing(self):
        self.call(os.environ["TENON_CMAKE"], "-E", "rm", "-rf", "build")
        self.call(os.environ["TENON_CMAKE"], "-S", ".", "-B", "build", "-G", "Ninja")
        self.call(os.environ["TENON_CMAKE"], "--build", "build")

    def hits(self):
        counts = dict(line.split() for line in self.call(os.environ["TENON_CCACHE"], "--print-stats").splitlines())
        return int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"])

    def test_a_comment_changed_in_a_precompiled_header(self):
        for comment, program in (("one", ""), ("a longer one", ""), ("a longer one", "int compiled_anew;\n")):
            self.write("lib.hpp", f"#pragma once\n// {comment}\nstruct Once {{\n  int value = 0;\n}};\n")
            self.write("program.cpp", f"#include <lib.hpp>\n{program}int main() {{ return Once{{}}.value; }}\n")
            self.build_from_nothing()

    def test_what_did_not_change_is_taken_from_the_cache(self):
        self.write("lib.hpp", "#pragma once\nstruct Once {\n  int value = 0;\n};\n")
        self.write("program.cpp", "#include <lib.hpp>\nint main() { return Once{}.value; }\n")
        self.build_from_nothing()
        self.assertEqual(self.hits(), 0)
        self.build_from_nothing()
        self.assertGreaterEqual(self.hits(), 3)  # the header and both sources; more where cmake's own checks count


if __name__ == "__main__":
    unittest.main()
