"""Shared by the programs that check this repository: arguments, output of violations, exit codes."""
import sys
from pathlib import Path


class Checker:
    """`run()` finds `violations`. `notes` are printed to standard error, as is `summary()`."""

    def __init__(self, root):
        self.root = Path(root).resolve()
        self.violations = []
        self.notes = []

    def report(self, path, line, sentence):
        self.violations.append(f"{path.relative_to(self.root)}:{line}: {sentence}")


def main(arguments, name, usage, make, marker):
    """`make(root)` returns a repository's checker; `marker` is a path in every repository. 1: there are violations."""
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(usage, file=sys.stderr)
        return 2
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    if not (root / marker).exists():
        print(f"{name}: {root} is no checkout of Tenon: it has no {marker}", file=sys.stderr)
        return 2
    checker = make(root)
    checker.run()
    for note in checker.notes:
        print("note:", note, file=sys.stderr)
    for violation in checker.violations:
        print(violation)
    print(f"{name}: {checker.summary()}", file=sys.stderr)
    return 1 if checker.violations else 0
