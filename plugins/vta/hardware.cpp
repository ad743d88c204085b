#include "vta/hardware.hpp"

#include <bit>

#include "vta/instruction.hpp"

namespace tenon::vta {
namespace {

constexpr int64_t kMaxBlock = 256;
constexpr uint64_t kMaxDram = uint64_t{1} << 32;  // physical addresses have 32 bits
constexpr std::string_view kRevision = "0.0.2";

bool is_power_of_two(int64_t value) { return value > 0 && std::has_single_bit(static_cast<uint64_t>(value)); }

Result<void> read_options(const Setting& options, Hardware& hardware) {
  TENON_OK(options.allow_keys({"hardware", "inp_width", "wgt_width", "acc_width", "batch", "block", "queue_depth",
                               "double_buffer", "race_check", "trace"}));
  TENON_TRY(revision, options.text_of("hardware"));
  if (revision != kRevision)
    return options.find("hardware")
        ->fault("hardware '", revision, "' is not known; instructions of '", kRevision, "' are encoded");
  for (const auto& [key, bits] : {std::pair("inp_width", 8), std::pair("wgt_width", 8), std::pair("acc_width", 32)}) {
    TENON_TRY(stated, options.quantity_or(key, Unit::bits, static_cast<uint64_t>(bits), 1, 64));
    if (stated != static_cast<uint64_t>(bits))
      return options.find(key)->fault("'", key, "' is ", stated, " bits; ", bits, " are supported");
  }
  TENON_TRY(batch, options.integer_or("batch", 1, 1, kMaxBlock));
  TENON_TRY(block, options.integer_or("block", 16, 1, kMaxBlock));
  TENON_TRY(queue, options.integer_or("queue_depth", 512, 1, 1 << 20));
  hardware.batch = batch, hardware.block = block, hardware.queue_depth = queue;
  for (const auto& [key, value] : {std::pair("batch", batch), std::pair("block", block)})
    if (!is_power_of_two(value)) return options.find(key)->fault("'", key, "' is ", value, ", no power of two");
  return {};
}

Result<const MemorySpace*> memory_space_of(const TargetDescription& target, std::string_view name) {
  if (const MemorySpace* memory = target.memory(name)) return memory;
  return error(Code::invalid_argument, "target '", target.name, "' has no memory '", name, "'");
}

Result<void> read_depth(const TargetDescription& target, std::string_view name, Memory memory, Hardware& hardware) {
  TENON_TRY(space, memory_space_of(target, name));
  const int64_t element = hardware.element_bytes(memory);
  if (space->element_bytes != 0 && space->element_bytes != static_cast<uint64_t>(element))
    return error(Code::invalid_argument, "memory '", name, "' of target '", target.name, "' states elements of ",
                 space->element_bytes, " bytes; batch ", hardware.batch, " and block ", hardware.block, " make ",
                 element);
  const int64_t depth = static_cast<int64_t>(space->size_bytes) / element;
  if (depth * element != static_cast<int64_t>(space->size_bytes) || !is_power_of_two(depth))
    return error(Code::invalid_argument, "memory '", name, "' of target '", target.name, "' has ", space->size_bytes,
                 " bytes, which are not a power of two of elements of ", element, " bytes");
  hardware.depths[static_cast<size_t>(memory)] = depth;
  return {};
}

Result<void> read_speeds(const TargetDescription& target, Hardware& hardware) {
  TENON_TRY(dram, memory_space_of(target, "dram"));
  if (!dram->bandwidth || target.clock_hz == 0)
    return error(Code::invalid_argument, "target '", target.name, "' states no ",
                 target.clock_hz == 0 ? "clock" : "bandwidth of its memory 'dram'");
  if (dram->size_bytes > kMaxDram)
    return error(Code::invalid_argument, "memory 'dram' of target '", target.name, "' has ", dram->size_bytes,
                 " bytes; physical addresses of 32 bits reach ", kMaxDram);
  hardware.clock_hz = target.clock_hz;
  hardware.dram_bytes = dram->size_bytes;
  hardware.dram_bytes_per_cycle =
      dram->bandwidth->bytes_per_second(target.clock_hz) / static_cast<double>(target.clock_hz);
  hardware.dram_latency_cycles = static_cast<int64_t>(dram->latency_cycles);
  const auto steps = [](int64_t work, uint64_t a_cycle) {
    const auto rate = static_cast<int64_t>(a_cycle);
    return rate == 0 ? int64_t{1} : (work + rate - 1) / rate;
  };
  if (const Engine* gemm = target.engine("gemm"))
    hardware.gemm_step_cycles = steps(hardware.lanes() * hardware.block, gemm->macs_per_cycle);
  if (const Engine* alu = target.engine("alu"))
    hardware.alu_step_cycles = steps(hardware.lanes(), alu->lanes) * static_cast<int64_t>(alu->cycles_per_step);
  return {};
}

}  // namespace

std::string_view memory_name(Memory memory) {
  constexpr std::string_view kNames[] = {"UOP", "WGT", "INP", "ACC", "OUT", "ACC8"};
  return kNames[static_cast<size_t>(memory)];
}

int Hardware::log_depth(Memory memory) const { return std::countr_zero(static_cast<uint64_t>(depth(memory))); }

int64_t Hardware::element_bytes(Memory memory) const {
  switch (memory) {
    case Memory::uop: return 4;
    case Memory::wgt: return block * block;
    case Memory::acc: return 4 * lanes();
    case Memory::inp:
    case Memory::out:
    case Memory::acc8: break;
  }
  return lanes();
}

std::string Hardware::fingerprint() const {
  std::string text = str(kRevision, ", batch ", batch, ", block ", block);
  for (const Memory memory : {Memory::uop, Memory::wgt, Memory::inp, Memory::acc})
    text += str(", ", memory_name(memory), " ", depth(memory));
  return text;
}

Result<Hardware> Hardware::of(const TargetDescription& target) {
  Hardware hardware;
  hardware.name = target.name;
  TENON_OK(target.allow_names("memories", {"dram", "inp", "wgt", "acc", "out", "uop"}));
  TENON_OK(target.allow_names("engines", {"gemm", "alu"}));
  TENON_OK(read_options(target.options, hardware), "the options of target '", target.name, "'");
  for (const auto& [name, memory] : {std::pair("inp", Memory::inp), std::pair("wgt", Memory::wgt),
                                     std::pair("acc", Memory::acc), std::pair("uop", Memory::uop)})
    TENON_OK(read_depth(target, name, memory, hardware));
  hardware.depths[static_cast<size_t>(Memory::out)] = hardware.depth(Memory::acc);
  hardware.depths[static_cast<size_t>(Memory::acc8)] = hardware.depth(Memory::acc);
  TENON_OK(read_speeds(target, hardware));
  TENON_OK(check_encodable(hardware));
  return hardware;
}

}  // namespace tenon::vta
