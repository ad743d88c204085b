"""Builds small repositories and asks tools/check_links.py about them: each link to nowhere must be found, at its line."""
import unittest

import small_repository

GOOD = {
    "README.md": "# One\n[b](docs/b.md), [its part](docs/b.md#a-part-of-b), [out](https://example.org/x.md), [here](#one)\n",
    "docs/b.md": "# A part, of `b`\n## Twice\n## Twice\n[second](#twice-1), [a](sub/c.md) `[no](link.md)`\n"
                 "```\n[no](link.md)\n# no heading\n```\n",
    "docs/sub/c.md": "## [A link](../b.md) as heading\n[up](../../README.md), [itself](#a-link-as-heading)\n",
    "sdk/a.cpp": "// As docs/sub/c.md says.\n",
}


class CheckLinksTest(small_repository.Test):
    SCRIPT = "check_links.py"
    GOOD = GOOD

    def test_accepts_a_good_tree(self):
        self.assert_accepted({})

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
        self.assert_empty_folder_is_refused()


if __name__ == "__main__":
    unittest.main()
