"""Builds small repositories and asks tools/check_links.py about them: each link to nowhere must be found, at its line."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_links.py"

GOOD = {
    "README.md": "# One\n[b](docs/b.md), [its part](docs/b.md#a-part-of-b), [out](https://example.org/x.md), [here](#one)\n",
    "docs/b.md": "# A part, of `b`\n## Twice\n## Twice\n[second](#twice-1), [a](sub/c.md) `[no](link.md)`\n"
                 "```\n[no](link.md)\n# no heading\n```\n",
    "docs/sub/c.md": "## [A link](../b.md) as heading\n[up](../../README.md), [itself](#a-link-as-heading)\n",
    "sdk/a.cpp": "// As docs/sub/c.md says.\n",
}


class CheckLinksTest(unittest.TestCase):
    def check(self, changes):
        """(exit status, lines of standard output) for the good tree with `changes` written over it."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**GOOD, **changes}.items():
                path = Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, str(SCRIPT), root], capture_output=True, text=True, check=False)
            self.assertNotIn("Traceback", done.stderr)
            return done.returncode, done.stdout.splitlines()

    def assert_refused(self, changes, place, *words):
        status, lines = self.check(changes)
        self.assertEqual(status, 1, lines)
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(place + ": "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])

    def test_accepts_a_good_tree(self):
        self.assertEqual(self.check({}), (0, []))

    def test_refuses_a_file_that_is_not_there(self):
        self.assert_refused({"docs/sub/c.md": "\n[b](b.md)\n"}, "docs/sub/c.md:2", "b.md", "no such file")

    def test_refuses_a_heading_that_is_not_there(self):
        self.assert_refused({"README.md": "[b](docs/b.md#a-part)\n"}, "README.md:1", "docs/b.md", "'#a-part'")
        self.assert_refused({"README.md": "# One\n\n[here](#two)\n"}, "README.md:3", "this page", "'#two'")

    def test_headings_of_the_same_words_are_numbered(self):
        self.assert_refused({"README.md": "[b](docs/b.md#twice-2)\n"}, "README.md:1", "'#twice-2'")

    def test_what_stands_in_code_is_no_heading(self):
        self.assert_refused({"README.md": "[b](docs/b.md#no-heading)\n"}, "README.md:1", "'#no-heading'")

    def test_refuses_a_page_that_a_comment_names_and_that_is_not_there(self):
        self.assert_refused({"sdk/a.cpp": "\n\n// docs/sub/d.md has more.\n"}, "sdk/a.cpp:3", "docs/sub/d.md")

    def test_refuses_a_folder_that_is_no_checkout(self):
        with tempfile.TemporaryDirectory() as root:
            done = subprocess.run([sys.executable, str(SCRIPT), root], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no checkout", done.stderr)


if __name__ == "__main__":
    unittest.main()
