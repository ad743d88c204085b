#include "vta/command_writer.hpp"

#include "vta/ranges.hpp"
#include "vta/tiling.hpp"

namespace tenon::vta {
namespace {

// The output rows or columns for which tap k reads an existing input.
Range outputs_of_tap(const WindowAxis& axis, int64_t k, int64_t outputs, int64_t inputs) {
  const int64_t shift = axis.pad - k * axis.dilation;
  const int64_t last = inputs - 1 + shift;  // times the stride
  const int64_t end = last < 0 ? 0 : last / axis.stride + 1;
  return {shift <= 0 ? 0 : ceil_div(shift, axis.stride), std::min(outputs, end)};
}

// One ALU step for each element.
Steps each_element(const TileShape& shape) {
  return {.iter_out = 1, .iter_in = u32(shape.elements()), .dst_factor_in = 1, .src_factor_in = 1};
}

Instruction alu(AluOp op, const Steps& steps, std::optional<int64_t> immediate = {}) {
  Instruction instruction;
  instruction.opcode = Opcode::alu;
  instruction.steps = steps;
  instruction.alu = op;
  instruction.use_imm = immediate.has_value();
  instruction.imm = static_cast<int32_t>(immediate.value_or(0));
  return instruction;
}

// Micro-ops over blocks, and over taps or positions; the instruction's loops are over the other of the two.
class Products {
 public:
  Products(const Gemm& gemm, const Held& acc, const Held& x, const Held& w, std::vector<MicroOp>& ops)
      : gemm_(gemm), acc_(acc), x_(x), w_(w), ops_(ops) {}

  Instruction make() {
    for (int64_t b = 0; b < acc_.shape.blocks; ++b) {
      if (gemm_.diagonal) {
        add(b, b, b);
        continue;
      }
      for (int64_t i = 0; i < gemm_.blocks; ++i) add(b, gemm_.x_block + i, b * w_.shape.rows + gemm_.w_block + i);
    }
    Instruction instruction;
    instruction.opcode = Opcode::gemm;
    instruction.steps =
        taps_loop_ ? loops(gemm_.rows.kernel, gemm_.cols.kernel, {0, 0}, {tap_row_, tap_col_},
                           {weight_ * gemm_.cols.kernel, weight_})
                   : loops(acc_.shape.rows, acc_.shape.cols, {acc_.shape.cols, 1}, {row_step_, col_step_}, {0, 0});
    return instruction;
  }

 private:
  void add(int64_t block, int64_t x_block, int64_t w_block) {
    const int64_t dst = acc_.at + block * acc_.shape.rows * acc_.shape.cols;
    const int64_t src = x_.at + x_block * x_.shape.rows * x_.shape.cols;
    const int64_t wgt = w_.at + weight_ * w_block * gemm_.rows.kernel * gemm_.cols.kernel;
    if (taps_loop_) {
      for (int64_t y = 0; y < acc_.shape.rows; ++y)
        for (int64_t x = 0; x < acc_.shape.cols; ++x)
          ops_.push_back({u32(dst + y * acc_.shape.cols + x), u32(src + y * row_step_ + x * col_step_), u32(wgt)});
      return;
    }
    for (int64_t y = 0; y < gemm_.rows.kernel; ++y)
      for (int64_t x = 0; x < gemm_.cols.kernel; ++x)
        ops_.push_back(
            {u32(dst), u32(src + y * tap_row_ + x * tap_col_), u32(wgt + weight_ * (y * gemm_.cols.kernel + x))});
  }

  const Gemm& gemm_;
  const Held &acc_, &x_, &w_;
  std::vector<MicroOp>& ops_;
  const int64_t weight_ = gemm_.one_weight ? 0 : 1;
  const int64_t row_step_ = gemm_.rows.stride * x_.shape.cols, col_step_ = gemm_.cols.stride;
  const int64_t tap_row_ = gemm_.rows.dilation * x_.shape.cols, tap_col_ = gemm_.cols.dilation;
  const bool taps_loop_ = loops_over_taps(gemm_.rows.kernel * gemm_.cols.kernel, acc_.shape.rows* acc_.shape.cols);
};

codegen::ConstantPool& no_constants() {
  static codegen::ConstantPool none;
  return none;
}

}  // namespace

// Micro-ops are in UOP, not in a constant pool: emitters request no constants.
CommandWriter::CommandWriter(const Hardware& hardware, size_t operands)
    : EmitContext(no_constants()), hardware_(hardware), operands_(operands), pages_(hardware_) {}

void CommandWriter::mark(std::string_view, std::string_view) {
  ranges_.clear();
  page_needed_.reset();
}

Result<void> CommandWriter::write(const Command& command) {
  return std::visit([&](const auto& c) { return add(c); }, command);
}

void CommandWriter::set_tensors(std::vector<TensorType> tensors) {
  for (TensorType& tensor : tensors) {
    dims_.push_back(tensor.shape.static_dims().value_or(Dims{}));
    elements_.push_back(tensor.element);
  }
}

// ---- Registers ----

Result<const Held*> CommandWriter::held(Register r) const {
  if (r < held_.size() && held_[r]) return &*held_[r];
  return error(Code::internal, "register ", r, " holds nothing yet");
}

void CommandWriter::define(Register r, const Held& held) {
  if (r >= held_.size()) held_.resize(r + 1);
  held_[r] = held;
}

// Resources: resident tiles of INP, WGT and ACC are 0 to 2; the output in DRAM is 3; then their slots, alternating.
Resource CommandWriter::resource(const Held& held) {
  const Resource memory = held.memory == Memory::inp ? 0 : held.memory == Memory::wgt ? 1 : 2;
  return static_cast<Resource>(held.slot + 1) * 4 + memory;
}
constexpr Resource kOutput = 3;

// ---- Transfers ----

Result<void> CommandWriter::add(const Load& load) {
  const Memory where = load.memory == Memory::acc8 ? Memory::acc : load.memory;
  const Held made{where, load.slot, load.at, load.part.shape()};
  const UnitId unit = where == Memory::acc ? UnitId::compute : UnitId::load;
  out_.task(unit, {}, resource(made));
  for (const Transfer& transfer : transfers_of(load.part, load.memory, load.at))
    out_.transfer(Opcode::load, transfer, load.from);
  define(load.to, made);
  return {};
}

void CommandWriter::load_micro_ops(Segment segment, const Part& part, int64_t at) {
  out_.task(UnitId::compute, {}, kNoResource);
  for (const Transfer& transfer : transfers_of(part, Memory::uop, at)) out_.transfer(Opcode::load, transfer, segment);
}

Result<void> CommandWriter::add(const Store& store) {
  TENON_TRY(from, held(store.from));
  out_.task(UnitId::store, {resource(*from)}, kOutput);
  for (const Transfer& transfer : transfers_of(store.part, Memory::out, from->at))
    out_.transfer(Opcode::store, transfer, output());
  return {};
}

// ---- Steps ----

// The size of the current page is known only at the end: finish() fills it in.
Result<void> CommandWriter::steps(Instruction instruction, std::span<const MicroOp> ops, const MicroOpRanges& placed) {
  MicroOpRange range;
  if (placed.empty()) {
    TENON_TRY(place, pages_.place(ops));
    range = place.range;
    if (resident_page_ != place.page) {
      resident_page_ = page_needed_ = place.page;
      page_loads_.emplace_back(out_.size(), place.page);
      const auto at = u32(static_cast<int64_t>(place.page) * pages_.room());
      out_.transfer(Opcode::load, {.memory = Memory::uop, .dram_base = at, .y_size = 1}, output() + 1);
    }
  } else if (ranges_.size() < placed.size()) {
    range = placed[ranges_.size()];
  } else {
    return error(Code::invalid_argument, "a command of more instructions than its ", placed.size(),
                 " ranges of micro-ops");
  }
  ranges_.push_back(range);
  instruction.steps.uop_begin = range.begin, instruction.steps.uop_end = range.end;
  out_.steps(instruction);
  return {};
}

Result<void> CommandWriter::add(const Zero& zero) {
  const Held made{Memory::acc, zero.slot, zero.at, zero.part.shape()};
  define(zero.to, made);
  out_.task(UnitId::compute, {}, resource(made));
  Instruction instruction;
  instruction.opcode = Opcode::gemm;
  instruction.steps = each_element(made.shape);
  instruction.steps.reset = true, instruction.steps.src_factor_in = 0;
  const MicroOp op{u32(zero.at), 0, 0};
  return steps(instruction, std::span(&op, 1), zero.uops);
}

Result<void> CommandWriter::add(const Gemm& gemm) {
  TENON_TRY(acc, held(gemm.acc));
  TENON_TRY(x, held(gemm.x));
  TENON_TRY(w, held(gemm.w));
  out_.task(UnitId::compute, {resource(*x), resource(*w)}, resource(*acc));
  ops_.clear();
  const Instruction instruction = Products(gemm, *acc, *x, *w, ops_).make();
  return steps(instruction, ops_, gemm.uops);
}

Result<void> CommandWriter::add(const Alu& command) {
  TENON_TRY(acc, held(command.acc));
  if (command.immediate) {
    out_.task(UnitId::compute, {}, resource(*acc));
    const MicroOp op{u32(acc->at), u32(acc->at), 0};
    return steps(alu(command.op, each_element(acc->shape), *command.immediate), std::span(&op, 1), command.uops);
  }
  TENON_TRY(vector, held(command.vector));
  out_.task(UnitId::compute, {resource(*vector)}, resource(*acc));
  const int64_t pixels = acc->shape.rows * acc->shape.cols;
  const MicroOp op{u32(acc->at), u32(vector->at + command.vector_block), 0};
  return steps(alu(command.op, loops(acc->shape.blocks, pixels, {pixels, 1}, {1, 0})), std::span(&op, 1), command.uops);
}

Result<void> CommandWriter::add(const Narrow& narrow) {
  TENON_TRY(acc, held(narrow.acc));
  out_.task(UnitId::compute, {}, resource(*acc));
  const MicroOp op{u32(acc->at), u32(acc->at), 0};
  const Steps all = each_element(acc->shape);
  if (narrow.shift > 0) TENON_OK(steps(alu(AluOp::shr, all, narrow.shift), std::span(&op, 1), narrow.uops));
  TENON_OK(steps(alu(AluOp::max, all, narrow.min), std::span(&op, 1), narrow.uops));
  return steps(alu(AluOp::min, all, narrow.max), std::span(&op, 1), narrow.uops);
}

// For each tap: acc = max(acc, the tap's input), for each window that has one.
Result<void> CommandWriter::add(const Max& max) {
  TENON_TRY(acc, held(max.acc));
  TENON_TRY(x, held(max.x));
  out_.task(UnitId::compute, {resource(*x)}, resource(*acc));
  for (int64_t ky = 0; ky < max.rows.kernel; ++ky)
    for (int64_t kx = 0; kx < max.cols.kernel; ++kx) {
      const Range rows = outputs_of_tap(max.rows, ky, acc->shape.rows, x->shape.rows);
      const Range cols = outputs_of_tap(max.cols, kx, acc->shape.cols, x->shape.cols);
      if (rows.size() <= 0 || cols.size() <= 0) continue;
      const int64_t row = rows.begin * max.rows.stride - max.rows.pad + ky * max.rows.dilation;
      const int64_t col = cols.begin * max.cols.stride - max.cols.pad + kx * max.cols.dilation;
      ops_.clear();
      for (int64_t b = 0; b < acc->shape.blocks; ++b) {
        const int64_t dst = acc->at + (b * acc->shape.rows + rows.begin) * acc->shape.cols + cols.begin;
        ops_.push_back({u32(dst), u32(x->at + (b * x->shape.rows + row) * x->shape.cols + col), 0});
      }
      TENON_OK(steps(alu(AluOp::max, loops(rows.size(), cols.size(), {acc->shape.cols, 1},
                                           {max.rows.stride * x->shape.cols, max.cols.stride})),
                     ops_, max.uops));
    }
  return {};
}

// ---- The end ----

Result<void> CommandWriter::end() {
  for (const auto& [entry, page] : page_loads_) {
    Transfer& transfer = out_.at(entry).transfer;
    transfer.x_size = transfer.x_stride = pages_.size(page);
  }
  stream_ = out_.finish(kOutput);
  stream_.micro_ops = pages_.words();
  stream_.micro_op_segment = output() + 1;
  return {};
}

Result<Stream> stream_of(std::vector<Command> commands, size_t operands, const Hardware& hardware) {
  TENON_OK(place_tiles(commands, hardware));
  CommandWriter writer(hardware, operands);
  for (const Command& command : commands) {
    writer.mark({}, {});
    TENON_OK(writer.write(command));
  }
  TENON_OK(writer.end());
  return writer.take_stream();
}

}  // namespace tenon::vta
