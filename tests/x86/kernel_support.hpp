// Linear kernels that tests write instruction by instruction.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include <tenon/codegen/jitter_table.hpp>
#include <tenon/snippet/linear/linear.hpp>

#include "x86/code/jit_memory.hpp"
#include "x86/emitters/emitters.hpp"
#include "x86/forms/assembly.hpp"
#include "x86/structure/structure.hpp"

namespace tenon::x86::testing {

// Kernels of tests are not cached, since their files would evict those of users.
inline const int kNoCodeFiles = setenv("TENON_CACHE_DIR", "", /*overwrite=*/1);

inline TargetDescription target_of(Isa isa) {
  TargetDescription target;
  target.name = str("x86-", isa_name(isa));
  target.features = {"avx", "avx2", "fma", "f16c", "bmi2"};
  if (isa == Isa::avx512)
    target.features.insert(target.features.end(), {"avx512f", "avx512bw", "avx512dq", "avx512vl"});
  return target;
}

// target_of() with further features that this machine has.
inline TargetDescription target_of_machine(Isa isa) {
  TargetDescription target = target_of(isa);
  if (isa == Isa::avx512 && machine_has_vbmi()) target.features.emplace_back(kVbmi);
  return target;
}

inline const codegen::JitterTable& structure_table() {
  static const codegen::JitterTable* table = [] {
    auto* made = new codegen::JitterTable("x86");
    EXPECT_TRUE(add_structure_rows(*made).ok());
    return made;
  }();
  return *table;
}

// structure_table() with the elementwise operators.
inline const codegen::JitterTable& full_table() {
  static const codegen::JitterTable* table = [] {
    auto* made = new codegen::JitterTable("x86");
    EXPECT_TRUE(add_structure_rows(*made).ok());
    EXPECT_TRUE(add_elementwise_rows(*made).ok());
    return made;
  }();
  return *table;
}

// A linear kernel whose registers are numbered in order of creation.
class KernelBuilder {
 public:
  KernelBuilder(Isa isa, int lanes) : isa_(isa), target_(target_of(isa)) { kernel.lanes = lanes, kernel.name = "test"; }

  snippet::RegisterId general() { return place(kernel.add_general(), codegen::RegisterFile::general); }
  snippet::RegisterId lanes(ElementType element) {
    return place(kernel.add_lanes(element), element.is_bool() && isa_ == Isa::avx512 ? codegen::RegisterFile::mask
                                                                                     : codegen::RegisterFile::vector);
  }
  snippet::Instruction& add(const char* op, std::vector<snippet::RegisterId> in, std::vector<snippet::RegisterId> out,
                            Attributes attributes = {}) {
    return kernel.body.emplace_back(snippet::Instruction{op, std::move(attributes), std::move(in), std::move(out)});
  }
  snippet::RegisterId parameter(int number) {
    const snippet::RegisterId out = general();
    add("Parameter", {}, {out}).number = number;
    return out;
  }
  // A loop over whole vectors, then the tail; `body(lanes, tail operands, index)` writes the content of both. Params
  // `limit` and `limit + 1` are the last counter of the loop and the end of the tail.
  template <class Body>
  void over_row(int limit, Body body) {
    const snippet::RegisterId counter = general(), mask = lanes(kBool), count = general();
    kernel.loops.push_back(
        {.kind = snippet::Loop::Kind::vector, .counter = counter, .increment = kernel.lanes, .limit = limit});
    kernel.loops.push_back({.kind = snippet::Loop::Kind::tail, .counter = counter, .limit = limit + 1});
    add("Zero", {}, {counter});
    add("LoopBegin", {counter}, {}).number = 0;
    body(codegen::Lanes::full, std::vector<snippet::RegisterId>{}, counter);
    add("LoopEnd", {counter}, {}).number = 0;
    add("TailBegin", {counter}, {mask, count}).number = 1;
    body(codegen::Lanes::partial, std::vector<snippet::RegisterId>{mask, count}, counter);
    add("TailEnd", {}, {}).number = 1;
  }
  static snippet::Instruction& at(snippet::Instruction& instruction, snippet::Memory memory, codegen::Lanes touched) {
    instruction.memory = memory;
    instruction.touched = touched;
    return instruction;
  }

  std::shared_ptr<const JitCode> code() {
    for (snippet::Instruction& instruction : kernel.body) give_scratch(instruction);
    declare_params();
    auto object = assemble(kernel, structure_table(), target_);
    EXPECT_TRUE(object.ok()) << (object.ok() ? "" : object.error().to_string());
    if (!object.ok()) return nullptr;
    auto placed = JitMemory::shared().add(std::make_shared<CodeObject>(*std::move(object)));
    EXPECT_TRUE(placed.ok()) << (placed.ok() ? "" : placed.error().to_string());
    return placed.ok() ? *placed : nullptr;
  }

  snippet::LinearKernel kernel;

 private:
  int next(codegen::RegisterFile file) {
    const auto pool = register_pool(isa_);
    const size_t index = used_[file]++;
    TENON_CHECK(index < pool.of(file).size(), "a test's kernel wants too many registers");
    // The last registers first, because these have longer encodings or must be saved.
    return pool.of(file)[pool.of(file).size() - 1 - index];
  }
  snippet::RegisterId place(snippet::RegisterId id, codegen::RegisterFile file) {
    kernel.places.resize(static_cast<size_t>(id) + 1);
    kernel.places.back() = {file, next(file)};
    return id;
  }
  std::vector<ElementType> types(const snippet::RegisterIds& ids) const {
    std::vector<ElementType> types;
    for (const auto id : ids) types.push_back(kernel.registers[static_cast<size_t>(id)].element);
    return types;
  }
  // Declares all params that the kernel uses; tests fill the words of a call themselves.
  void declare_params() {
    int last = -1;
    for (const snippet::Loop& loop : kernel.loops) last = std::max(last, loop.limit);
    for (const snippet::Instruction& one : kernel.body)
      if (one.op == "Parameter" || one.op == "AddParameter") last = std::max(last, static_cast<int>(one.number));
    kernel.params.resize(std::max(kernel.params.size(), static_cast<size_t>(last + 1)));
  }
  // Assigns scratch registers to an instruction; they are free again for the next one.
  void give_scratch(snippet::Instruction& instruction) {
    const auto in = types(instruction.in), out = types(instruction.out);
    const codegen::JitterRow* row = structure_table().find({instruction.op, in, out, instruction.attributes}, target_);
    ASSERT_NE(row, nullptr) << instruction.op.str();
    const auto used = used_;
    const auto fill = [&](auto& numbers, int count, codegen::RegisterFile file) {
      while (static_cast<int>(numbers.size()) < count) numbers.push_back(next(file));
    };
    fill(instruction.vectors, row->scratch.vectors, codegen::RegisterFile::vector);
    fill(instruction.masks, row->scratch.masks, codegen::RegisterFile::mask);
    fill(instruction.generals, row->scratch.generals, codegen::RegisterFile::general);
    used_ = used;
  }

  Isa isa_;
  TargetDescription target_;
  std::map<codegen::RegisterFile, size_t> used_;
};

// Both instruction sets, and both numbers of lanes of each.
struct Machine {
  Isa isa;
  int lanes;
};
inline std::vector<Machine> machines() { return {{Isa::avx2, 8}, {Isa::avx2, 4}, {Isa::avx512, 16}, {Isa::avx512, 8}}; }
inline std::string machine_name(const ::testing::TestParamInfo<Machine>& info) {
  return str(isa_name(info.param.isa), "_", info.param.lanes);
}
inline std::vector<int64_t> widths(int lanes) { return {0, 1, lanes - 1, lanes, lanes + 1, 2 * lanes + 3}; }

class MachineTest : public ::testing::TestWithParam<Machine> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam().isa)) GTEST_SKIP() << "this machine does not run " << isa_name(GetParam().isa);
  }
};
#define TENON_ON_ALL_MACHINES(Suite) INSTANTIATE_TEST_SUITE_P(, Suite, ::testing::ValuesIn(machines()), machine_name)

}  // namespace tenon::x86::testing
