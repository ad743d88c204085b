// Functions of one byte as tables of their 256 results.
#pragma once
#include <functional>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// The cycles of one vector of a node, by its row of the emitter table.
using NodeCycles = std::function<double(const snippet::Body& body, const snippet::BodyNode& node)>;

// Integers that follow from one element of an 8-bit input and from constants alone, and have 256 results that a byte
// holds, as those of an activation between DequantizeLinear and QuantizeLinear: by ByteTable (emitters/byte_tables.hpp),
// where the operators that nothing else reads take more cycles than the tables. Results are those of the reference's
// evaluators operator by operator (snippet::evaluate_lanes), so they lie within the operators' bounds.
snippet::Body with_byte_tables(const snippet::Body& body, const NodeCycles& cycles);

}  // namespace tenon::x86
