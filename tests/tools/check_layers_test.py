"""Builds small repositories and asks tools/check_layers.py about them: each wrong include must be found, at its line."""
import unittest

import small_repository

GOOD = {
    "sdk/CMakeLists.txt": "add_subdirectory(tenon/support)\nadd_subdirectory(tenon/tensor)\nadd_subdirectory(tenon/target)\n"
                          "add_subdirectory(tenon/ir)\n# add_subdirectory(tenon/nowhere)\n",
    "sdk/tenon/support/CMakeLists.txt": "tenon_room(support LIB runtime\n  SRCS str.cpp\n  DEPS\n  LINK spdlog::spdlog)\n",
    "sdk/tenon/support/str.hpp": "#pragma once\n#include <string>\n#include <sys/types.h>\n",
    "sdk/tenon/support/str.cpp": "#include <tenon/support/str.hpp>\n#include <spdlog/spdlog.h>\n",
    "sdk/tenon/tensor/CMakeLists.txt": "tenon_room(tensor LIB runtime SRCS a.cpp DEPS support)\n",
    "sdk/tenon/tensor/a.hpp": "#include <tenon/support/str.hpp>\n",
    "sdk/tenon/target/CMakeLists.txt": "tenon_room(target LIB runtime SRCS a.cpp\n  DEPS support  # text\n  LINK yaml-cpp)\n",
    "sdk/tenon/target/a.cpp": '#include <yaml-cpp/yaml.h>\n#include "yaml_internal.hpp"\n',
    "sdk/tenon/target/yaml_internal.hpp": "#include <yaml-cpp/yaml.h>\n",
    "sdk/tenon/ir/CMakeLists.txt": "tenon_room(ir LIB compiler SRCS g.cpp\n  DEPS support\n       tensor)\n",
    "sdk/tenon/ir/g.cpp": "#include <tenon/support/str.hpp>\n#include <tenon/tensor/a.hpp>\n",
    "ir-ext/fused/conv.hpp": "#include <vector>\n#include <tenon/ir/g.hpp>\n",
    "ir-ext/fused/conv.cpp": "#include <tenon-ext/fused/conv.hpp>\n",
    "plugins/one/a.hpp": "#include <tenon-ext/fused/conv.hpp>\n#include <boost/any.hpp>\n",
    "plugins/one/a.cpp": '#include "a.hpp"\n#include <one/a.hpp>\n',
    "plugins/two/b.hpp": "#include <vector>\n",
    "tools/cases/c.hpp": "#include <tenon/support/str.hpp>\n",
    "tools/cases/d.cpp": '#include "cases/c.hpp"\n#include <vector>\n',
    "tests/lib/t.hpp": '#include "../../tools/cases/c.hpp"\n',
}


class CheckLayersTest(small_repository.Test):
    SCRIPT = "check_layers.py"
    GOOD = GOOD

    def test_accepts_a_good_tree(self):
        self.assert_accepted({})

    def test_refuses_an_include_of_a_room_above(self):
        self.assert_refused({"sdk/tenon/support/str.cpp": "\n#include <tenon/tensor/a.hpp>\n"},
                            "sdk/tenon/support/str.cpp:2", "'support'", "'tensor'", "DEPS (none)")

    def test_refuses_a_room_below_that_is_not_in_deps(self):
        self.assert_refused({"sdk/tenon/ir/g.hpp": "\n\n  #  include <tenon/target/a.hpp>\n",
                             "sdk/tenon/target/a.hpp": ""},
                            "sdk/tenon/ir/g.hpp:3", "'ir'", "'target'", "support, tensor")

    def test_refuses_a_quoted_path_out_of_the_room(self):
        self.assert_refused({"sdk/tenon/support/str.cpp": '#include "../tensor/a.hpp"\n'},
                            "sdk/tenon/support/str.cpp:1", "'tensor'")

    def test_refuses_a_header_that_is_not_there(self):
        self.assert_refused({"sdk/tenon/ir/g.cpp": "#include <tenon/tensor/gone.hpp>\n"},
                            "sdk/tenon/ir/g.cpp:1", "does not exist")

    def test_refuses_a_room_out_of_order(self):
        self.assert_refused({"sdk/CMakeLists.txt": "add_subdirectory(tenon/support)\nadd_subdirectory(tenon/target)\n"
                                                   "add_subdirectory(tenon/tensor)\nadd_subdirectory(tenon/ir)\n"},
                            "sdk/CMakeLists.txt:3", "'tensor'", "above 'target'")

    def test_refuses_deps_on_a_later_room_and_on_itself(self):
        self.assert_refused({"sdk/tenon/tensor/CMakeLists.txt": "\ntenon_room(tensor LIB runtime DEPS support ir)\n"},
                            "sdk/tenon/tensor/CMakeLists.txt:2", "'ir'", "not above it")
        self.assert_refused({"sdk/tenon/ir/CMakeLists.txt": "tenon_room(ir LIB compiler DEPS support tensor ir)\n"},
                            "sdk/tenon/ir/CMakeLists.txt:1", "'ir'", "not above it")

    def test_refuses_deps_on_a_room_that_is_not_there(self):
        self.assert_refused({"sdk/tenon/tensor/CMakeLists.txt": "tenon_room(tensor LIB runtime DEPS support tensr)\n"},
                            "sdk/tenon/tensor/CMakeLists.txt:1", "'tensr'", "adds no such room")

    def test_refuses_a_room_without_a_layer(self):
        self.assert_refused({"sdk/tenon/attic/CMakeLists.txt": "tenon_room(attic LIB runtime DEPS)\n",
                             "sdk/CMakeLists.txt": GOOD["sdk/CMakeLists.txt"] + "add_subdirectory(tenon/attic)\n"},
                            "sdk/CMakeLists.txt:6", "'attic'", "LAYERS")

    def test_leaves_alone_what_is_not_built_but_not_who_includes_it(self):
        expr = {"sdk/tenon/expr/CMakeLists.txt": "tenon_room(expr LIB runtime DEPS support)\n",
                "sdk/tenon/expr/e.hpp": "#include <yaml-cpp/yaml.h>\n"}
        self.assert_accepted(expr)
        self.assert_refused({**expr, "sdk/tenon/ir/g.cpp": "#include <tenon/expr/e.hpp>\n"},
                            "sdk/tenon/ir/g.cpp:1", "no room")
        self.assert_refused({**expr, "sdk/tenon/ir/CMakeLists.txt": "tenon_room(ir LIB compiler DEPS support tensor expr)\n"},
                            "sdk/tenon/ir/CMakeLists.txt:1", "'expr'", "adds no such room")

    def test_refuses_tools_that_include_tests(self):
        for include in ("<lib/t.hpp>", '"../../tests/lib/t.hpp"', "<tests/lib/t.hpp>"):
            with self.subTest(include=include):
                self.assert_refused({"tools/cases/d.cpp": f"\n#include {include}\n"}, "tools/cases/d.cpp:2",
                                    "tools include tests", "belongs in tools")

    def test_refuses_a_constant_with_the_name_of_one_of_a_header(self):
        header = "#pragma once\ninline constexpr double kLimit = 1;\n"
        self.assert_refused({"plugins/one/limits.hpp": header,
                             "plugins/one/deep/b.cpp": "namespace {\nconstexpr unsigned kMask = 3;\n"
                                                       "const std::vector<int> kLimit{5};\n}\n"},
                            "plugins/one/deep/b.cpp:3", "'kLimit'", "plugins/one/limits.hpp:2", "plugin 'one'")
        self.assert_refused({"sdk/tenon/tensor/a.hpp": header, "sdk/tenon/tensor/a.cpp": "constexpr int kLimit = 2;\n"},
                            "sdk/tenon/tensor/a.cpp:1", "room 'tensor'")
        # A name of another plugin, of a function, of an enumeration.
        self.assert_accepted({"plugins/one/limits.hpp": header, "plugins/two/b.cpp": "constexpr int kLimit = 2;\n"})
        self.assert_accepted({"plugins/one/limits.hpp": header,
                              "plugins/one/b.cpp": "int f() {\n  constexpr int kLimit = 2;\n  return kLimit;\n}\n"})

    def test_refuses_third_party_libraries_outside_their_room(self):
        for header, library in [("google/protobuf/message.h", "protobuf"), ("tenon_onnx.pb.h", "protobuf"),
                                ("yaml-cpp/yaml.h", "yaml-cpp"), ("boost/dll.hpp", "Boost")]:
            self.assert_refused({"sdk/tenon/ir/g.cpp": f"#include <{header}>\n"}, "sdk/tenon/ir/g.cpp:1", "'ir'", library)

    def test_refuses_third_party_libraries_in_public_headers(self):
        self.assert_refused({"sdk/tenon/target/a.hpp": "#include <yaml-cpp/yaml.h>\n"},
                            "sdk/tenon/target/a.hpp:1", "public header")
        self.assert_refused({"sdk/tenon/support/str.hpp": "#include <fmt/core.h>\n"},
                            "sdk/tenon/support/str.hpp:1", "public header")

    def test_keeps_internal_headers_in_their_room(self):
        self.assert_refused({"sdk/tenon/ir/CMakeLists.txt": "tenon_room(ir LIB compiler DEPS support tensor target)\n",
                             "sdk/tenon/ir/g.cpp": "#include <tenon/target/yaml_internal.hpp>\n"},
                            "sdk/tenon/ir/g.cpp:1", "'target' alone")
        self.assert_refused({"sdk/tenon/target/a.hpp": "#include <tenon/target/yaml_internal.hpp>\n"},
                            "sdk/tenon/target/a.hpp:1", "not installed")
        self.assert_refused({"plugins/one/a.cpp": "#include <tenon/target/yaml_internal.hpp>\n"},
                            "plugins/one/a.cpp:1", "'target' alone")

    def test_refuses_plugins_and_extensions_in_the_sdk(self):
        self.assert_refused({"sdk/tenon/ir/g.cpp": "#include <tenon-ext/fused/conv.hpp>\n"},
                            "sdk/tenon/ir/g.cpp:1", "ir-ext")
        self.assert_refused({"sdk/tenon/ir/g.cpp": "#include <plugins/one/a.hpp>\n"}, "sdk/tenon/ir/g.cpp:1", "plugins")

    def test_refuses_plugins_and_libraries_in_ir_ext(self):
        for header in ["plugins/one/a.hpp", "one/a.hpp", "boost/any.hpp"]:
            self.assert_refused({"ir-ext/fused/conv.cpp": f"#include <{header}>\n"}, "ir-ext/fused/conv.cpp:1", header)

    def test_refuses_a_plugin_in_another(self):
        for include in ['"../two/b.hpp"', "<plugins/two/b.hpp>", "<two/b.hpp>"]:
            self.assert_refused({"plugins/one/a.cpp": f"#include {include}\n"}, "plugins/one/a.cpp:1", "'one'", "'two'")

    def test_refuses_a_storey_that_includes_one_above_it(self):
        storeys = {"sdk/tenon/ir/CMakeLists.txt": "tenon_room(ir LIB compiler STOREYS data text SRCS g.cpp DEPS support tensor)\n",
                   "sdk/tenon/ir/data/g.hpp": "#include <tenon/ir/data/h.hpp>\n",
                   "sdk/tenon/ir/data/h.hpp": "",
                   "sdk/tenon/ir/text/t.hpp": "#include <tenon/ir/data/g.hpp>\n#include <tenon/tensor/a.hpp>\n"}
        self.assert_refused(storeys, "sdk/tenon/ir/g.cpp:1", "no storey of room 'ir'", "data, text")
        with_all = {**storeys, "sdk/tenon/ir/g.cpp": None}
        self.assert_accepted(with_all)
        self.assert_refused({**with_all, "sdk/tenon/ir/data/h.hpp": "\n#include <tenon/ir/text/t.hpp>\n"},
                            "sdk/tenon/ir/data/h.hpp:2", "'data'", "'text'", "above it")

    def test_refuses_a_storey_of_a_plugin_that_includes_one_above_it(self):
        storeys = {"plugins/one/CMakeLists.txt": "set(STOREYS low\n    high)  # more\n",
                   "plugins/one/low/l.hpp": "#include <one/a.hpp>\n",
                   "plugins/one/high/h.hpp": '#include "one/low/l.hpp"\n#include <one/high/i.hpp>\n',
                   "plugins/one/high/i.hpp": ""}
        self.assert_accepted(storeys)
        self.assert_refused({**storeys, "plugins/one/low/l.hpp": "#include <one/high/i.hpp>\n"},
                            "plugins/one/low/l.hpp:1", "'low'", "'high'", "plugin 'one'", "above it")

    def test_refuses_a_folder_that_is_no_checkout(self):
        self.assert_empty_folder_is_refused()


if __name__ == "__main__":
    unittest.main()
