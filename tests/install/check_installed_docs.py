#!/usr/bin/env python3
"""Are all pages of the documentation installed, and do their links lead to what is installed, too?

    check_installed_docs.py DOCS INSTALLED        DOCS: the folder that the pages come from

Prints `file:line: sentence` for each fault; exit 1 when there is one."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_links  # noqa: E402


class InstalledDocs(check_links.Checker):
    def files(self):
        yield from sorted(self.root.rglob("*.md"))


def main(docs, installed):
    checker = InstalledDocs(installed)
    for page in sorted(Path(docs).rglob("*.md")):
        if not (checker.root / page.relative_to(docs)).is_file():
            checker.violations.append(f"{page}: is not installed")
    checker.run()
    print("\n".join(checker.violations + [checker.summary()]))
    # The pages link to headers, descriptions of targets and examples: a check that sees no link sees nothing.
    return 1 if checker.violations or checker.links == 0 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
