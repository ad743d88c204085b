// Comparisons, and lanes of booleans: -1 or 0 in an int each.
#include "opencl/emitters/emitters.hpp"
#include "opencl/emitters/pattern.hpp"

namespace tenon::opencl {
namespace {

using namespace codegen;

constexpr Pattern kLogicPatterns[] = {
    {"Equal", kNumberLanes, "$C($0 == $1)"},
    {"NotEqual", kNumberLanes, "$C($0 != $1)"},
    {"Less", kNumberLanes, "$C($0 < $1)"},
    {"LessOrEqual", kNumberLanes, "$C($0 <= $1)"},
    {"Greater", kNumberLanes, "$C($0 > $1)"},
    {"GreaterOrEqual", kNumberLanes, "$C($0 >= $1)"},
    {"And", kBoolLanes, "$0 & $1"},
    {"Or", kBoolLanes, "$0 | $1"},
    {"Xor", kBoolLanes, "$0 ^ $1"},
    {"Not", kBoolLanes, "~$0"},
    {"Where", kNumberLanes, "select($2, $1, $L($0))"},
    {"Where", kBoolLanes, "select($2, $1, $0)"},
};

}  // namespace

Result<void> add_logic_rows(JitterTable& table) { return add_patterns<kLogicPatterns>(table); }

}  // namespace tenon::opencl
