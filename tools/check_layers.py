#!/usr/bin/env python3
"""Checks the include rules. Prints `file:line: sentence` for each violation; exits with 1 if there is any.

    tools/check_layers.py [ROOT]       ROOT: the repository, by default the one that contains this file

The rules of the architecture (docs/architecture.md):
- A room of sdk/tenon includes only itself and the DEPS of its tenon_room(). sdk/CMakeLists.txt adds the rooms in the
  order of LAYERS, and DEPS name rooms added before.
- A room that names STOREYS has its files in these folders, bottom up: each includes only itself and those before it.
- A header named *_internal.hpp is included only by its own room, and is not installed. Other headers of the sdk are
  public, and include only Tenon and the standard library.
- A third-party library with an owner in OWNERS is included only by that room.
- Folders that sdk/CMakeLists.txt does not add are not built and not checked; a note on standard error names them.
- ir-ext includes the sdk, itself and the standard library. A plugin never includes another plugin. If its
  CMakeLists.txt has set(STOREYS ...), its folders include only themselves and those before them.
- Tools include nothing of tests: files that both need are in tools.
- A constant of a source file must not have the name of a constant in a header of its room or plugin: where several
  files are compiled as one, it would silently replace that one in all of them.
"""
import re
import sys

import repository_check

LAYERS = ["support", "expr", "tensor", "target", "runtime", "ir", "ops", "reference", "passes", "onnx", "codegen",
          "snippet", "program", "irgen", "plugin", "model", "compile"]
# The include paths of a library, and the only room of the sdk that may use it.
OWNERS = [(re.compile(r"google/protobuf/|.*\.pb\.h$"), "protobuf", "onnx"),
          (re.compile(r"yaml-cpp/"), "yaml-cpp", "target"),
          (re.compile(r"boost/"), "Boost", "plugin")]
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
# A constant at namespace scope: the first name that a line declares.
CONSTANT = re.compile(r"(?:inline |static )?(?:constexpr|const)\s(?:[\w:<>,*&]+\s+)*?\*?(k[A-Z]\w*)\s*[=\[{(,]")
SOURCES = {".cpp", ".hpp", ".h", ".c", ".cc", ".inc"}


def without_comments(cmake):
    """The same text with `# ...` blanked, so that offsets still give line numbers."""
    return re.sub(r"#[^\n]*", lambda found: " " * len(found[0]), cmake)


class Storeys:
    """The layers of `folder`, one folder each, bottom up; a flat room has none. `whose` names the owner in messages."""

    def __init__(self, whose, folder, names):
        self.whose, self.folder, self.names = whose, folder, names

    def of(self, path):
        """The number of the storey that contains `path`, or None."""
        parts = path.relative_to(self.folder).parts
        return self.names.index(parts[0]) if len(parts) > 1 and parts[0] in self.names else None


class Room:
    def __init__(self, name, folder, line, deps, storeys, cmake):
        self.name, self.folder, self.line, self.deps, self.cmake = name, folder, line, deps, cmake
        self.storeys = Storeys(f"room '{name}'", folder, storeys)


class Checker(repository_check.Checker):
    def __init__(self, root):
        super().__init__(root)
        self.sdk = self.root / "sdk"
        self.files_checked = 0
        self.rooms = {room.name: room for room in self.read_rooms()}
        self.order = self.check_order()
        for name in self.rooms.keys() - set(self.order):
            del self.rooms[name]

    # The rooms -------------------------------------------------------------------------------------------------

    def read_rooms(self):
        for cmake in sorted(self.sdk.glob("tenon/**/CMakeLists.txt")):
            text = without_comments(cmake.read_text(encoding="utf-8"))
            for call in re.finditer(r"\btenon_room\s*\(([^)]*)\)", text):
                words = call[1].split()
                line = text.count("\n", 0, call.start()) + 1
                if not words:
                    self.report(cmake, line, "this tenon_room() has no name")
                    continue
                yield Room(words[0], cmake.parent, line, self.keyword_values(words, "DEPS"),
                           self.keyword_values(words, "STOREYS"), cmake)

    @staticmethod
    def keyword_values(words, keyword):
        values, on = [], False
        for word in words[1:]:
            if word in ("LIB", "STOREYS", "SRCS", "DEPS", "LINK"):
                on = word == keyword
            elif on:
                values.append(word)
        return values

    def check_order(self):
        """The names of the rooms that sdk/CMakeLists.txt adds, in that order."""
        list_file = self.sdk / "CMakeLists.txt"
        text = without_comments(list_file.read_text(encoding="utf-8"))
        order = []
        for call in re.finditer(r"\badd_subdirectory\s*\(\s*tenon/([\w/]+)\s*\)", text):
            line = text.count("\n", 0, call.start()) + 1
            name = next((r.name for r in self.rooms.values() if r.folder == self.sdk / "tenon" / call[1]), None)
            if name is None:
                self.report(list_file, line, f"tenon/{call[1]} has no tenon_room() in its CMakeLists.txt")
                continue
            above = [LAYERS.index(o) for o in order if o in LAYERS]
            if call[1].split("/")[0] not in LAYERS:
                self.report(list_file, line, f"room '{name}' has no place in LAYERS of tools/check_layers.py")
            elif name in LAYERS and above and LAYERS.index(name) < max(above):
                self.report(list_file, line, f"room '{name}' belongs above '{LAYERS[max(above)]}': the rooms stand in "
                                             "the order of the layers")
            order.append(name)
        return order

    def check_deps(self):
        for room in self.rooms.values():
            above = self.order[:self.order.index(room.name)]
            for dep in room.deps:
                if dep not in self.rooms:
                    self.report(room.cmake, room.line, f"room '{room.name}' names '{dep}' in DEPS, and sdk/CMakeLists.txt "
                                                       "adds no such room")
                elif dep not in above:
                    self.report(room.cmake, room.line, f"room '{room.name}' names '{dep}' in DEPS, which is not above it "
                                                       "in sdk/CMakeLists.txt")

    def check_storeys(self):
        for room in (r for r in self.rooms.values() if r.storeys.names):
            for path in sorted(p for p in room.folder.rglob("*") if p.suffix in SOURCES and self.room_of(p) is room):
                if room.storeys.of(path) is None:
                    self.report(path, 1, f"lies in no storey of {room.storeys.whose} ({', '.join(room.storeys.names)})")

    def check_storey_include(self, path, line, text, storeys, target):
        including, included = storeys.of(path), storeys.of(target)
        if including is not None and included is not None and included > including:
            self.report(path, line, f"storey '{storeys.names[including]}' of {storeys.whose} includes "
                                    f"'{storeys.names[included]}' (<{text}>), which is above it")

    def room_of(self, path):
        """The room whose folder contains `path`; if several do, the innermost."""
        holders = [r for r in self.rooms.values() if path.is_relative_to(r.folder)]
        return max(holders, key=lambda r: len(r.folder.parts), default=None)

    # The includes ----------------------------------------------------------------------------------------------

    def includes(self, folder):
        """(file, line, include text, the included file of the repository or None) for each include."""
        for path in sorted(p for p in folder.rglob("*") if p.suffix in SOURCES and p.is_file()):
            self.files_checked += 1
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                found = INCLUDE.match(line)
                if found:
                    yield path, number, found[2], self.resolve(path, found[1] == '"', found[2])

    def resolve(self, path, quoted, text):
        if text.startswith("tenon/"):
            return self.sdk / text
        if text.startswith("tenon-ext/"):
            return self.root / "ir-ext" / text.removeprefix("tenon-ext/")
        places = [path.parent] if quoted else []
        for place in [*places, self.root, self.root / "plugins", self.sdk, self.root / "ir-ext"]:
            if (place / text).is_file():
                return (place / text).resolve()
        return None

    @staticmethod
    def is_standard(text):
        """C++, C and POSIX headers: <vector>, <dlfcn.h>, <sys/mman.h>; third-party headers have a folder or a .hpp."""
        return text.startswith(("sys/", "linux/", "asm/")) or ("/" not in text and not text.endswith((".hpp", ".pb.h")))

    def check_internal(self, path, line, text, room, target):
        if target is not None and target.stem.endswith("_internal") and target.is_relative_to(self.sdk):
            owner = self.room_of(target)
            if owner is not None and owner is not room:
                self.report(path, line, f"<{text}> belongs to room '{owner.name}' alone: include its public headers")

    def note_what_is_not_built(self):
        # A note, not a violation: headers may be written before their code, and rooms before those that they need.
        for folder in sorted({p.parent for p in self.sdk.rglob("*.?pp") if self.room_of(p) is None}):
            self.notes.append(f"{folder.relative_to(self.root)} belongs to no room of sdk/CMakeLists.txt: not checked")

    def check_sdk(self):
        for path, line, text, target in self.includes(self.sdk):
            room = self.room_of(path)
            if room is None:
                continue
            if target is not None:
                self.check_sdk_include(path, line, text, room, target)
                continue
            if path.suffix in (".hpp", ".h") and not path.stem.endswith("_internal") and not self.is_standard(text):
                self.report(path, line, f"public header includes third-party <{text}>: use it in a .cpp or in a header "
                                        "named *_internal.hpp")
            for pattern, library, owner in OWNERS:
                if pattern.match(text) and room.name != owner:
                    self.report(path, line, f"room '{room.name}' includes {library} <{text}>; only room '{owner}' may")

    def check_sdk_include(self, path, line, text, room, target):
        if not target.is_relative_to(self.sdk):
            place = target.relative_to(self.root).parts[0]
            self.report(path, line, f"room '{room.name}' includes {place}: <{text}>; the sdk knows nothing of {place}")
            return
        other = self.room_of(target)
        if other is None:
            self.report(path, line, f"<{text}> lies in no room")
        elif other is not room and other.name not in room.deps:
            self.report(path, line, f"room '{room.name}' includes room '{other.name}' (<{text}>), which is not in its DEPS "
                                    f"({', '.join(room.deps) or 'none'})")
        if other is room:
            self.check_storey_include(path, line, text, room.storeys, target)
        self.check_internal(path, line, text, room, target)
        if not target.is_file():
            self.report(path, line, f"<{text}> does not exist")
        elif path.suffix in (".hpp", ".h") and not path.stem.endswith("_internal") and target.stem.endswith("_internal"):
            self.report(path, line, f"public header includes <{text}>, which is not installed")

    def check_ir_ext(self):
        ir_ext = self.root / "ir-ext"
        for path, line, text, target in self.includes(ir_ext):
            inside = target is not None and (target.is_relative_to(ir_ext) or target.is_relative_to(self.sdk))
            if not inside and not (target is None and self.is_standard(text)):
                self.report(path, line, f"ir-ext includes <{text}>: it may use the sdk, ir-ext and the standard library")
            self.check_internal(path, line, text, None, target)

    def check_plugins(self):
        plugins = self.root / "plugins"
        for folder in sorted(p for p in plugins.glob("*") if p.is_dir()):
            storeys = self.storeys_of_plugin(folder)
            for path, line, text, target in self.includes(folder):
                if target is not None and target.is_relative_to(folder):
                    self.check_storey_include(path, line, text, storeys, target)
                elif target is not None and target.is_relative_to(plugins):
                    other = target.relative_to(plugins).parts[0]
                    self.report(path, line, f"plugin '{folder.name}' includes plugin '{other}' (<{text}>): what two "
                                            "plugins share belongs in ir-ext or the sdk")
                self.check_internal(path, line, text, None, target)

    def check_tools(self):
        for path, line, text, target in self.includes(self.root / "tools"):
            # The include path of tests also contains the folder tests.
            if target is None and (self.root / "tests" / text).is_file():
                target = self.root / "tests" / text
            if target is not None and target.is_relative_to(self.root / "tests"):
                self.report(path, line, f"tools include tests: <{text}>; what both need belongs in tools")

    def check_constants(self, folder, whose):
        """Reports constants of .cpp files that have the name of a constant in a header."""
        of_headers = {}
        for path in sorted(folder.rglob("*.hpp")):
            for line, name in self.constants(path):
                of_headers.setdefault(name, f"{path.relative_to(self.root)}:{line}")
        for path in sorted(folder.rglob("*.cpp")):
            for line, name in self.constants(path):
                if name in of_headers:
                    self.report(path, line, f"'{name}' is a constant of {of_headers[name]}, too: compiled as one with "
                                            f"other files of {whose}, this one takes its place there; name it otherwise")

    @staticmethod
    def constants(path):
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if found := CONSTANT.match(text):
                yield line, found[1]

    @staticmethod
    def storeys_of_plugin(folder):
        cmake = folder / "CMakeLists.txt"
        text = without_comments(cmake.read_text(encoding="utf-8")) if cmake.is_file() else ""
        found = re.search(r"\bset\s*\(\s*STOREYS\s([^)]*)\)", text)
        return Storeys(f"plugin '{folder.name}'", folder, found[1].split() if found else [])

    def run(self):
        self.check_deps()
        self.check_storeys()
        self.note_what_is_not_built()
        self.check_sdk()
        self.check_ir_ext()
        self.check_plugins()
        self.check_tools()
        for room in self.rooms.values():
            self.check_constants(room.folder, f"room '{room.name}'")
        for folder in sorted(p for p in (self.root / "plugins").glob("*") if p.is_dir()):
            self.check_constants(folder, f"plugin '{folder.name}'")

    def summary(self):
        return f"{len(self.rooms)} rooms, {self.files_checked} files, {len(self.violations)} violations"


if __name__ == "__main__":
    sys.exit(repository_check.main(sys.argv[1:], "check_layers", __doc__, Checker, "sdk/CMakeLists.txt"))
