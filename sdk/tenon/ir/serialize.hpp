// A graph as bytes: its text, followed by the bytes of large tensors. For compiled artefacts.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// Blocks start at multiples of 64 bytes from the first byte of the result.
TENON_API std::string serialize(const Graph& graph);
// `owner` keeps `bytes` alive and aligned to 64 bytes: tensors share it instead of being copied. Damaged bytes are
// Code::parse; the graph is not verified.
TENON_API Result<std::unique_ptr<Graph>> deserialize(std::span<const std::byte> bytes, std::shared_ptr<void> owner);

}  // namespace tenon
