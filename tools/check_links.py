#!/usr/bin/env python3
"""Checks the links of the documentation. Prints `file:line: sentence` for each broken link; exits with 1 if there is
any.

    tools/check_links.py [ROOT]        ROOT: the repository, by default the one that contains this file

- In README.md and the other Markdown files: the file of a relative link must exist, and its `#anchor` must be a heading
  of that file (anchors as GitHub derives them from headings). Links to other sites are not followed.
- In sources and build files: each `docs/....md` that a comment names must exist.
"""
import re
import sys

import repository_check

FOLDERS = ["docs", "sdk", "plugins", "targets", "ir-ext", "examples", "tests", "tools"]
SOURCES = {".cpp", ".hpp", ".h", ".py", ".cmake", ".txt", ".sh", ".yaml"}
LINK = re.compile(r"\]\(([^)\s]+)\)")
OTHER_SITE = re.compile(r"[a-z][a-z0-9+.-]*:")
PAGE = re.compile(r"\bdocs/[\w/-]+\.md")
# The comment of a line: in C++ the text after `//`, elsewhere lines that consist of a comment.
CPP_COMMENT = re.compile(r"//(.*)")
LINE_COMMENT = re.compile(r"\s*#(.*)")


def prose(text):
    """The lines of Markdown with their numbers, without blocks of code."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


def anchors(text):
    """The anchors that links may name: one for each heading, numbered from the second equal one on."""
    seen = {}
    for _, line in prose(text):
        heading = re.match(r"#+\s+(.*)", line)
        if not heading:
            continue
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1].strip())
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        times = seen[anchor] = seen.get(anchor, -1) + 1
        yield f"{anchor}-{times}" if times else anchor


class Checker(repository_check.Checker):
    def __init__(self, root):
        super().__init__(root)
        self.links = 0

    def files(self):
        yield from sorted(self.root.glob("*.md"))
        for folder in FOLDERS:
            yield from sorted(p for p in (self.root / folder).rglob("*") if p.is_file())

    def check_markdown(self, path):
        for number, line in prose(path.read_text(encoding="utf-8")):
            for found in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
                link = found[1]
                if OTHER_SITE.match(link):
                    continue
                self.links += 1
                name, _, anchor = link.partition("#")
                target = path.parent / name if name else path
                if not target.exists():
                    self.report(path, number, f"link to {link}: there is no such file")
                elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
                    self.report(path, number, f"link to {link}: {name or 'this page'} has no heading '#{anchor}'")

    def check_source(self, path):
        find = CPP_COMMENT.search if path.suffix in (".cpp", ".hpp", ".h") else LINE_COMMENT.match
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            comment = find(line)
            for found in PAGE.finditer(comment[1]) if comment else ():
                self.links += 1
                if not (self.root / found[0]).is_file():
                    self.report(path, number, f"names {found[0]}, which does not exist")

    def run(self):
        for path in self.files():
            if path.suffix == ".md":
                self.check_markdown(path)
            elif path.suffix in SOURCES:
                self.check_source(path)

    def summary(self):
        return f"{self.links} links, {len(self.violations)} lead nowhere"


if __name__ == "__main__":
    sys.exit(repository_check.main(sys.argv[1:], "check_links", __doc__, Checker, "docs"))
