// Merges several sources into one program, because drivers spend most of the compile time on what all sources have in
// common: PoCL reads a megabyte of headers for each program.
//
//   kernel K of source 2 becomes K_2, and so do functions and structs that sources define under the same names
#pragma once
#include <span>
#include <string>

namespace tenon::opencl {

// For sources as this plugin writes them: what begins a line is a directive, the head of a function, or a struct in one
// line.
std::string batch(std::span<const std::string* const> sources);
// The suffix of names in source `number` of a batch.
std::string batch_suffix(size_t number);

}  // namespace tenon::opencl
