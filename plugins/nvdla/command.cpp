#include "nvdla/command.hpp"

#include <tenon/support/str.hpp>

namespace tenon::nvdla {
namespace {

constexpr std::string_view kNames[kKinds] = {"begin", "load_data", "load_weights", "convolve", "elementwise", "pool"};

constexpr uint32_t kinds() { return 0; }
template <class... More>
constexpr uint32_t kinds(Kind first, More... more) {
  return uint32_t{1} << static_cast<uint32_t>(first) | kinds(more...);
}
constexpr uint32_t kData = kinds(Kind::load_data), kWeights = kinds(Kind::load_weights);
constexpr uint32_t kConv = kinds(Kind::convolve), kSdp = kinds(Kind::elementwise), kPool = kinds(Kind::pool);
constexpr uint32_t kFromDram = kData | kSdp | kPool, kMakes = kConv | kSdp | kPool;

#define TENON_NVDLA_REGISTER(name, kinds) \
  Register { #name, &Command::name, kinds }
constexpr Register kRegisters[] = {
    TENON_NVDLA_REGISTER(src_address, kFromDram),
    TENON_NVDLA_REGISTER(src_line, kFromDram),
    TENON_NVDLA_REGISTER(src_surface, kFromDram),
    TENON_NVDLA_REGISTER(width, kFromDram | kConv),
    TENON_NVDLA_REGISTER(height, kFromDram | kConv),
    TENON_NVDLA_REGISTER(surfaces, kFromDram | kConv),
    TENON_NVDLA_REGISTER(first_row, kData | kConv),
    TENON_NVDLA_REGISTER(rows, kData | kConv),
    TENON_NVDLA_REGISTER(data_entry, kData | kConv),
    TENON_NVDLA_REGISTER(row_entries, kData | kConv),
    TENON_NVDLA_REGISTER(weight_address, kWeights),
    TENON_NVDLA_REGISTER(weight_bytes, kWeights),
    TENON_NVDLA_REGISTER(weight_entry, kWeights | kConv),
    TENON_NVDLA_REGISTER(group_entries, kConv),
    TENON_NVDLA_REGISTER(channels, kConv),
    TENON_NVDLA_REGISTER(kernels, kConv),
    TENON_NVDLA_REGISTER(first_kernel, kConv),
    TENON_NVDLA_REGISTER(kernel_height, kConv),
    TENON_NVDLA_REGISTER(kernel_width, kConv),
    TENON_NVDLA_REGISTER(stride_y, kConv),
    TENON_NVDLA_REGISTER(stride_x, kConv),
    TENON_NVDLA_REGISTER(dilation_y, kConv),
    TENON_NVDLA_REGISTER(dilation_x, kConv),
    TENON_NVDLA_REGISTER(pad_top, kConv),
    TENON_NVDLA_REGISTER(pad_left, kConv),
    TENON_NVDLA_REGISTER(out_first, kConv),
    TENON_NVDLA_REGISTER(out_rows, kConv),
    TENON_NVDLA_REGISTER(out_height, kConv),
    TENON_NVDLA_REGISTER(out_width, kConv),
    TENON_NVDLA_REGISTER(bias, kConv),
    TENON_NVDLA_REGISTER(bias_address, kConv),
    TENON_NVDLA_REGISTER(operand_address, kConv | kSdp),
    TENON_NVDLA_REGISTER(operand_line, kConv | kSdp),
    TENON_NVDLA_REGISTER(operand_surface, kConv | kSdp),
    TENON_NVDLA_REGISTER(operand_shift, kConv | kSdp),
    TENON_NVDLA_REGISTER(src_shift, kSdp),
    TENON_NVDLA_REGISTER(shift, kMakes),
    TENON_NVDLA_REGISTER(low, kMakes),
    TENON_NVDLA_REGISTER(high, kMakes),
    TENON_NVDLA_REGISTER(pool_kernel_height, kConv | kPool),
    TENON_NVDLA_REGISTER(pool_kernel_width, kConv | kPool),
    TENON_NVDLA_REGISTER(pool_stride_y, kConv | kPool),
    TENON_NVDLA_REGISTER(pool_stride_x, kConv | kPool),
    TENON_NVDLA_REGISTER(pool_pad_top, kConv | kPool),
    TENON_NVDLA_REGISTER(pool_pad_left, kConv | kPool),
    TENON_NVDLA_REGISTER(pool_first, kConv | kPool),
    TENON_NVDLA_REGISTER(pool_rows, kConv | kPool),
    TENON_NVDLA_REGISTER(pool_width, kConv | kPool),
    TENON_NVDLA_REGISTER(average, kPool),
    TENON_NVDLA_REGISTER(multiplier, kPool),
    TENON_NVDLA_REGISTER(dst_address, kMakes),
    TENON_NVDLA_REGISTER(dst_line, kMakes),
    TENON_NVDLA_REGISTER(dst_surface, kMakes),
};
#undef TENON_NVDLA_REGISTER
static_assert(std::size(kRegisters) < kCommandWords);

bool has(const Register& r, Kind kind) { return (r.kinds >> static_cast<uint32_t>(kind) & 1) != 0; }

}  // namespace

std::string_view kind_name(Kind kind) { return kNames[static_cast<size_t>(kind)]; }
std::span<const Register> registers() { return kRegisters; }

Words encode(const Command& command) {
  Words words{};
  words[0] = static_cast<uint32_t>(command.kind);
  for (size_t i = 0; i < std::size(kRegisters); ++i)
    if (has(kRegisters[i], command.kind)) words[i + 1] = command.*kRegisters[i].value;
  return words;
}

Result<Command> decode(std::span<const uint32_t> words) {
  if (words.size() != kCommandWords)
    return error(Code::invalid_argument, "a command of ", words.size(), " words, one has ", kCommandWords);
  if (words[0] >= kKinds) return error(Code::invalid_argument, "a command of kind ", words[0], ", there are ", kKinds);
  Command command{.kind = static_cast<Kind>(words[0])};
  for (size_t i = 1; i < kCommandWords; ++i) {
    const bool there = i <= std::size(kRegisters) && has(kRegisters[i - 1], command.kind);
    if (there) command.*kRegisters[i - 1].value = words[i];
    if (!there && words[i] != 0)
      return error(Code::invalid_argument, "word ", i, " of a command '", kind_name(command.kind), "' is ", words[i],
                   ", where it has no register");
  }
  return command;
}

std::string print(const Command& command) {
  std::string text(kind_name(command.kind));
  for (const Register& r : kRegisters)
    if (has(r, command.kind) && command.*r.value != 0) text += str(" ", r.name, "=", command.*r.value);
  return text;
}

}  // namespace tenon::nvdla
