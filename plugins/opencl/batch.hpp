// Several sources as one, since a driver takes most of its time for what is the same in all of them: PoCL reads a
// megabyte of headers for each program.
//
//   kernel K of source 2 becomes K_2, and so do functions and structs that sources define under the same names
#pragma once
#include <span>
#include <string>

namespace tenon::opencl {

// Of sources as this plugin writes them: what begins a line is a directive, the head of a function, or a
// struct of one line.
std::string batch(std::span<const std::string* const> sources);
// What stands behind the names of source `number` of a batch.
std::string batch_suffix(size_t number);

}  // namespace tenon::opencl
