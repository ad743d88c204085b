// Layouts set by a user.
#pragma once
#include <tenon/ir/graph.hpp>
#include <tenon/ir/value_layout.hpp>

namespace tenon::detail {

inline bool is_pinned(const Value& value) { return value.layout() && value.layout()->pinned; }

}  // namespace tenon::detail
