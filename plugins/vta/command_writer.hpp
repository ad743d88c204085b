// CommandWriter: encodes commands as instructions and micro-ops; the context of the jitter table's emitters.
//
//   CommandWriter writer(hardware, 3);
//   for (const Command& command : commands) TENON_OK(writer.write(command));
//   TENON_OK(writer.end());
//   Stream stream = writer.take_stream();
//
// Each command is a task of its unit that reads and writes slots, from which tokens follow (stream.hpp). Micro-ops of a
// command that are not placed yet are placed, and their page is loaded before the command.
#pragma once
#include <vector>

#include <tenon/codegen/emitter.hpp>
#include <tenon/tensor/type.hpp>

#include "vta/commands.hpp"
#include "vta/micro_op_pages.hpp"
#include "vta/stream.hpp"

namespace tenon::vta {

inline constexpr std::string_view kCommandKind = "vta";

// The contents of a register.
struct Held {
  Memory memory = Memory::inp;
  int64_t slot = kResident, at = 0;
  TileShape shape;
};

class CommandWriter final : public codegen::EmitContext {
 public:
  // Segments: the operands of the kernel, then its output, then the micro-ops that the writer places.
  CommandWriter(const Hardware& hardware, size_t operands);

  std::string_view kind() const override { return kCommandKind; }
  // Begins an operator and resets the information about the previous one's micro-ops.
  void mark(std::string_view label, std::string_view instruction) override;
  const Hardware& hardware() const { return hardware_; }

  Result<void> write(const Command& command);
  // Ends the stream: FINISH after the last store, tokens for all tasks.
  Result<void> end();
  // The stream after end().
  Stream take_stream() { return std::move(stream_); }

  // Loads UOP as required by commands whose micro-ops are placed.
  void load_micro_ops(Segment segment, const Part& part, int64_t at);
  Segment output() const { return static_cast<Segment>(operands_); }

  // Types of segments, for emitters, which see neither shapes nor 8-bit elements in registers.
  void set_tensors(std::vector<TensorType> tensors);
  const Dims& tensor(Segment segment) const { return dims_[segment]; }
  ElementType element(Segment segment) const { return elements_[segment]; }
  Result<const Held*> held(Register r) const;

  // For the operator since mark(): the places of its micro-ops, and the page that it is the first to need, if any.
  const MicroOpRanges& micro_op_ranges() const { return ranges_; }
  std::optional<size_t> page_needed() const { return page_needed_; }
  const MicroOpPages& pages() const { return pages_; }

 private:
  Result<void> add(const Load& load);
  Result<void> add(const Zero& zero);
  Result<void> add(const Gemm& gemm);
  Result<void> add(const Alu& alu);
  Result<void> add(const Max& max);
  Result<void> add(const Narrow& narrow);
  Result<void> add(const Store& store);
  Result<void> steps(Instruction instruction, std::span<const MicroOp> ops, const MicroOpRanges& placed);
  void define(Register r, const Held& held);
  static Resource resource(const Held& held);

  const Hardware hardware_;
  const size_t operands_;
  std::vector<Dims> dims_;
  std::vector<ElementType> elements_;
  StreamBuilder out_;
  Stream stream_;
  std::vector<std::optional<Held>> held_;
  MicroOpPages pages_;
  std::vector<std::pair<size_t, size_t>> page_loads_;  // entry, page
  std::optional<size_t> resident_page_, page_needed_;
  MicroOpRanges ranges_;
  std::vector<MicroOp> ops_;  // of the current command
};

// The stream of commands whose micro-ops are not placed yet.
Result<Stream> stream_of(std::vector<Command> commands, size_t operands, const Hardware& hardware);

}  // namespace tenon::vta
