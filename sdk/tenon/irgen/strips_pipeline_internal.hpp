// Inside the room: a chain as a pipeline, and the pipeline as a program.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tenon/irgen/chains.hpp>
#include <tenon/irgen/strips_stage_internal.hpp>
#include <tenon/program/ir/program.hpp>

namespace tenon::irgen {

// How the operators of a chain are called.
struct ChainShape {
  std::map<const Value*, Type> types;       // of all values, static
  std::vector<const Value*> inputs;         // values from outside, each once
  std::vector<std::vector<size_t>> passed;  // by operator: its present operands
  static ChainShape of(const Chain& chain, const TypeSource& types);
  Dims dims_of(const Value& value) const { return *types.at(&value).shape().static_dims(); }
};

using NameOf = std::function<std::string(const Value&)>;

// The program of the chain. Its declared buffers are the inputs, then the last result, all named by `names`, with
// reversed dims and minima 0. Stage i calls kernels[i].
Result<program::Program> chain_program(const Chain& chain, const ChainShape& shape, const NameOf& names,
                                       const std::vector<program::KernelHandle>& kernels, int64_t workers);

// The calls of a run of the chain, recorded by a run without data.
struct ChainTrace {
  std::vector<std::vector<StageCall>> calls;  // by operator, each box once
  int64_t peak_bytes = 0;                     // of values defined within
};
Result<ChainTrace> trace_chain(const Chain& chain, const ChainShape& shape, int64_t workers);

}  // namespace tenon::irgen
