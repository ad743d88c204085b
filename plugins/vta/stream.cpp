#include "vta/stream.hpp"

#include <algorithm>

namespace tenon::vta {
namespace {

// A page is loaded by one instruction.
int64_t page_elements(const Hardware& hardware) { return std::min(hardware.depth(Memory::uop), kMostTransfer); }

// Tasks by number + 1 that are known to be done, for each unit; 0: none.
using Known = std::array<size_t, kUnits>;

// Who used a resource last.
struct Users {
  size_t writer = 0;  // task + 1
  Known readers{};    // since it was written
};

size_t index(UnitId unit) { return static_cast<size_t>(unit); }

// The token that `from` gives to `to`. Units are neighbours: one of them is the compute unit.
void mark_push(Instruction& instruction, UnitId from, UnitId to) {
  (index(to) > index(from) ? instruction.push_next : instruction.push_prev) = true;
}
void mark_pop(Instruction& instruction, UnitId from, UnitId to) {
  (index(from) < index(to) ? instruction.pop_prev : instruction.pop_next) = true;
}

}  // namespace

Result<std::vector<Instruction>> Stream::bound(std::span<const uint64_t> addresses, const Hardware& hardware) const {
  std::vector<Instruction> bound;
  bound.reserve(commands.size());
  for (const Command& command : commands) {
    Instruction instruction = command.instruction;
    if (instruction.opcode == Opcode::load || instruction.opcode == Opcode::store) {
      const auto bytes = static_cast<uint64_t>(hardware.element_bytes(instruction.transfer.memory));
      TENON_CHECK(command.segment < addresses.size(), "segment ", command.segment, " of a stream has no address");
      const uint64_t address = addresses[command.segment];
      if (address % bytes != 0)
        return error(Code::invalid_argument, print(instruction), ": its segment begins at byte ", address,
                     ", which is no multiple of an element's ", bytes);
      instruction.transfer.dram_base += static_cast<uint32_t>(address / bytes);
    }
    bound.push_back(instruction);
  }
  return bound;
}

Steps loops(int64_t out, int64_t in, Factors dst, Factors src, Factors wgt) {
  Steps steps{.iter_out = u32(out), .iter_in = u32(in)};
  if (out > 1)
    steps.dst_factor_out = u32(dst.out), steps.src_factor_out = u32(src.out), steps.wgt_factor_out = u32(wgt.out);
  if (in > 1) steps.dst_factor_in = u32(dst.in), steps.src_factor_in = u32(src.in), steps.wgt_factor_in = u32(wgt.in);
  return steps;
}

void StreamBuilder::task(UnitId unit, std::vector<Resource> reads, std::vector<Resource> writes) {
  if (!tasks_.empty()) tasks_.back().end = stream_.commands.size();
  const size_t at = stream_.commands.size();
  tasks_.push_back({unit, std::move(reads), std::move(writes), at, at});
}

void StreamBuilder::transfer_of(Opcode opcode, const Transfer& transfer, Segment segment) {
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.transfer = transfer;
  stream_.commands.push_back({instruction, segment});
}

Result<StreamBuilder::Place> StreamBuilder::place(const std::vector<MicroOp>& ops) {
  std::vector<uint32_t> words;
  words.reserve(ops.size());
  for (const MicroOp& op : ops) {
    TENON_TRY(word, encode(op, hardware_));
    words.push_back(word);
  }
  const auto found = kernels_.find(words);
  if (found != kernels_.end()) return found->second;
  const auto size = static_cast<uint32_t>(words.size());
  const int64_t room = page_elements(hardware_);
  if (size > room) return error(Code::resource_exhausted, size, " micro-ops at once; the buffer takes ", room);
  if (page_sizes_.empty() || page_sizes_.back() + size > room) page_sizes_.push_back(0);
  const Place place{page_sizes_.size() - 1, page_sizes_.back(), page_sizes_.back() + size};
  page_sizes_.back() += size;
  stream_.micro_ops.resize(place.page * static_cast<size_t>(room) + place.begin);
  stream_.micro_ops.insert(stream_.micro_ops.end(), words.begin(), words.end());
  kernels_.emplace(std::move(words), place);
  return place;
}

// How many elements of the page there will be is known at the end: finish() fills them in.
void StreamBuilder::make_resident(size_t page) {
  if (resident_ == page) return;
  resident_ = page;
  page_loads_.emplace_back(stream_.commands.size(), page);
  const auto at = static_cast<uint32_t>(static_cast<int64_t>(page) * page_elements(hardware_));
  load({.memory = Memory::uop, .dram_base = at, .y_size = 1}, kMicroOpSegment);
}

Result<void> StreamBuilder::steps_of(Instruction instruction, const std::vector<MicroOp>& ops) {
  TENON_TRY(place, this->place(ops));
  make_resident(place.page);
  instruction.steps.uop_begin = place.begin;
  instruction.steps.uop_end = place.end;
  stream_.commands.push_back({instruction, kMicroOpSegment});
  return {};
}

Result<void> StreamBuilder::gemm(const std::vector<MicroOp>& ops, Steps steps) {
  Instruction instruction;
  instruction.opcode = Opcode::gemm;
  instruction.steps = steps;
  return steps_of(instruction, ops);
}

Result<void> StreamBuilder::alu(AluOp op, const std::vector<MicroOp>& ops, Steps steps, std::optional<int64_t> imm) {
  Instruction instruction;
  instruction.opcode = Opcode::alu;
  instruction.steps = steps;
  instruction.alu = op;
  instruction.use_imm = imm.has_value();
  instruction.imm = static_cast<int32_t>(imm.value_or(0));
  return steps_of(instruction, ops);
}

// Each task waits for the last tasks of other units that touched what it writes, or wrote what it reads. What a token
// says of its giver's own waiting counts, too.
void StreamBuilder::order_tasks() {
  std::vector<Users> users(1);
  for (const Task& task : tasks_)
    for (const auto* list : {&task.reads, &task.writes})
      for (const Resource r : *list) users.resize(std::max<size_t>(users.size(), r + 1));
  std::array<Known, kUnits> known{};
  std::vector<Known> done(tasks_.size());
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const Task& task = tasks_[t];
    Known needed{};
    const auto need = [&](size_t other) {
      if (other != 0) needed[index(tasks_[other - 1].unit)] = std::max(needed[index(tasks_[other - 1].unit)], other);
    };
    for (const Resource r : task.reads) need(users[r].writer);
    for (const Resource r : task.writes) {
      need(users[r].writer);
      for (const size_t reader : users[r].readers) need(reader);
    }
    Known& mine = known[index(task.unit)];
    for (const UnitId unit : {UnitId::load, UnitId::compute, UnitId::store}) {
      if (unit == task.unit || needed[index(unit)] <= mine[index(unit)]) continue;
      TENON_CHECK(unit == UnitId::compute || task.unit == UnitId::compute,
                  "the load and the store unit share a resource");
      const Task& giver = tasks_[needed[index(unit)] - 1];
      mark_push(stream_.commands[giver.end - 1].instruction, unit, task.unit);
      mark_pop(stream_.commands[task.first].instruction, unit, task.unit);
      const Known& told = done[needed[index(unit)] - 1];
      for (size_t u = 0; u < kUnits; ++u) mine[u] = std::max(mine[u], told[u]);
    }
    mine[index(task.unit)] = t + 1;
    done[t] = mine;
    for (const Resource r : task.reads) users[r].readers[index(task.unit)] = t + 1;
    for (const Resource r : task.writes) users[r] = Users{.writer = t + 1, .readers = {}};
  }
}

Result<Stream> StreamBuilder::finish(Resource last) {
  task(UnitId::compute, {last}, {});
  stream_.commands.push_back({Instruction{}, kMicroOpSegment});
  tasks_.back().end = stream_.commands.size();
  std::erase_if(tasks_, [](const Task& task) { return task.first == task.end; });
  for (const auto& [command, page] : page_loads_) {
    Transfer& transfer = stream_.commands[command].instruction.transfer;
    transfer.x_size = transfer.x_stride = page_sizes_[page];
  }
  order_tasks();
  return std::move(stream_);
}

void store_planes(StreamBuilder& out, const Image& image, int64_t batch, const Range& blocks, const Range& rows,
                  const Range& cols, int64_t sram) {
  const int64_t pixels = rows.size() * cols.size();
  Transfer t{.memory = Memory::out, .sram_base = u32(sram)};
  t.dram_base = u32((batch * image.blocks + blocks.begin) * image.plane() + rows.begin * image.width + cols.begin);
  // Whole rows are one piece of each block.
  if (cols.size() == image.width && std::max(image.plane(), pixels) <= kMostTransfer) {
    t.y_size = u32(blocks.size()), t.x_size = u32(pixels), t.x_stride = u32(image.plane());
    return out.store(t, kOutputSegment);
  }
  t.y_size = u32(rows.size()), t.x_size = u32(cols.size()), t.x_stride = u32(image.width);
  for (int64_t b = 0; b < blocks.size(); ++b) {
    out.store(t, kOutputSegment);
    t.sram_base += u32(pixels);
    t.dram_base += u32(image.plane());
  }
}

}  // namespace tenon::vta
