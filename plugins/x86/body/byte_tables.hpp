// Replaces functions of one byte by tables of their 256 results.
#pragma once
#include <functional>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// The cycles of a node for one vector, from its row of the emitter table.
using NodeCycles = std::function<double(const snippet::Body& body, const snippet::BodyNode& node)>;

// Replaces integers that depend on one element of an 8-bit input, and otherwise on constants alone, by ByteTable
// (emitters/byte_tables.hpp). Their 256 results must fit a byte, as those of an activation between DequantizeLinear and
// QuantizeLinear do. Done where the operators that nothing else reads take more cycles than the lookups. Results are
// those of the reference's evaluators, operator by operator (snippet::evaluate_lanes), so they are within the error
// bounds of the operators.
snippet::Body with_byte_tables(const snippet::Body& body, const NodeCycles& cycles);

}  // namespace tenon::x86
