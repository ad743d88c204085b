// CommandWriter: commands as instructions and micro-ops; the context of the jitter table's emitters.
//
//   CommandWriter writer(hardware, 3);
//   for (const Command& command : commands) TENON_OK(writer.write(command));
//   TENON_OK(writer.end());
//   Stream stream = writer.take_stream();
//
// Each command is a task of its unit that reads and writes slots; tokens follow from that (stream.hpp). Micro-ops of a
// command that has no place for them yet are placed, and their page is loaded before it.
#pragma once
#include <vector>

#include <tenon/codegen/emitter.hpp>
#include <tenon/tensor/type.hpp>

#include "vta/commands.hpp"
#include "vta/micro_op_pages.hpp"
#include "vta/stream.hpp"

namespace tenon::vta {

inline constexpr std::string_view kCommandKind = "vta";

// What a register holds.
struct Held {
  Memory memory = Memory::inp;
  int64_t slot = kResident, at = 0;
  TileShape shape;
};

class CommandWriter final : public codegen::EmitContext {
 public:
  // Segments: operands of the kernel, its output behind them. Micro-ops that the writer places are in the one behind
  // that.
  CommandWriter(const Hardware& hardware, size_t operands);

  std::string_view kind() const override { return kCommandKind; }
  // An operator begins: what was said of the last one's micro-ops is forgotten.
  void mark(std::string_view label, std::string_view instruction) override;
  const Hardware& hardware() const { return hardware_; }

  Result<void> write(const Command& command);
  // The end: FINISH behind the last store, tokens for all tasks.
  Result<void> end();
  // What end() left.
  Stream take_stream() { return std::move(stream_); }

  // UOP as the micro-ops of commands that have their places need it.
  void load_micro_ops(Segment segment, const Part& part, int64_t at);
  Segment output() const { return static_cast<Segment>(operands_); }

  // Of segments, for emitters, which see neither shapes nor 8-bit elements in registers.
  void set_tensors(std::vector<TensorType> tensors);
  const Dims& tensor(Segment segment) const { return dims_[segment]; }
  ElementType element(Segment segment) const { return elements_[segment]; }
  Result<const Held*> held(Register r) const;

  // Of the operator since mark(): where its micro-ops are, and the page that it is the first to need, if any.
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
  std::vector<MicroOp> ops_;  // of the command that is written
};

// The stream of commands that have no places yet.
Result<Stream> stream_of(std::vector<Command> commands, size_t operands, const Hardware& hardware);

}  // namespace tenon::vta
