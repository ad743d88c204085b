#include "nvdla/hardware.hpp"

#include <tenon/target/quantity.hpp>

namespace tenon::nvdla {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 32;  // addresses have 32 bits

Error fault(const TargetDescription& description, std::string sentence) {
  return error(Code::invalid_argument, sentence, " in target '", description.name, "'");
}

Result<const MemorySpace*> memory_of(const TargetDescription& description, std::string_view name) {
  if (const MemorySpace* memory = description.memory(name)) return memory;
  return fault(description, str("memory '", name, "' is not stated"));
}

Result<void> read_memories(const TargetDescription& description, Hardware& h) {
  TENON_TRY(dram, memory_of(description, "dram"));
  TENON_TRY(cbuf, memory_of(description, "cbuf"));
  if (dram->size_bytes > static_cast<uint64_t>(kMostBytes))
    return fault(description, str("dram of ", dram->size_bytes, " bytes is beyond addresses of 32 bits"));
  h.dram_bytes = static_cast<int64_t>(dram->size_bytes);
  h.dram_alignment = static_cast<int64_t>(dram->alignment_bytes);
  if (dram->bandwidth && description.clock_hz != 0)
    h.dram_bytes_per_cycle =
        dram->bandwidth->bytes_per_second(description.clock_hz) / static_cast<double>(description.clock_hz);
  h.banks = static_cast<int64_t>(cbuf->banks), h.entry_bytes = static_cast<int64_t>(cbuf->element_bytes);
  const auto size = static_cast<int64_t>(cbuf->size_bytes);
  if (h.entry_bytes == 0 || size % (h.banks * h.entry_bytes) != 0)
    return fault(description, str("cbuf of ", size, " bytes is not ", h.banks, " banks of whole entries of ",
                                  h.entry_bytes, " bytes"));
  h.bank_entries = size / (h.banks * h.entry_bytes);
  return {};
}

Result<void> read_engines(const TargetDescription& description, Hardware& h) {
  const Engine* conv = description.engine("conv");
  if (!conv || conv->types.size() < 2)
    return fault(description, "engine 'conv' with the types of its operands is not stated");
  if (conv->types[0] != conv->types[1] || (conv->types[0] != "f16" && conv->types[0] != "i8"))
    return fault(description, str("engine 'conv' multiplies ", conv->types[0], " by ", conv->types[1],
                                  "; f16 by f16 and i8 by i8 are known"));
  h.element = conv->types[0] == "f16" ? kF16 : kI8;
  h.element_bytes = h.half() ? 2 : 1;
  if (static_cast<int64_t>(conv->macs_per_cycle) != h.atomic_c * h.atomic_k)
    return fault(description, str("engine 'conv' does ", conv->macs_per_cycle,
                                  " products a cycle, atomic_c * atomic_k is ", h.atomic_c * h.atomic_k));
  const auto lanes = [&](std::string_view name) {
    const Engine* engine = description.engine(name);
    return engine ? static_cast<int64_t>(engine->lanes) : 0;
  };
  h.clock_hz = description.clock_of(*conv);
  h.sdp_lanes = lanes("sdp"), h.pdp_lanes = lanes("pdp");
  return {};
}

Result<void> read_fusions(const Setting& options, Hardware& h) {
  if (!options.find("fusions")) return {};
  TENON_TRY(list, options.list("fusions"));
  for (const Setting& chain : list->items()) {
    TENON_OK(chain.expect(Setting::Kind::list));
    std::vector<std::string> names;
    for (const Setting& item : chain.items()) {
      TENON_TRY(name, item.as_text());
      names.push_back(name);
    }
    h.fusions.push_back(std::move(names));
  }
  return {};
}

Result<void> read_options(const Setting& options, Hardware& h) {
  TENON_OK(options.allow_keys({"feature_atom", "weight_atom", "atomic_c", "atomic_k", "fusions"}));
  TENON_TRY(feature, options.quantity("feature_atom", Unit::bytes, 1, 4096));
  TENON_TRY(weight, options.quantity("weight_atom", Unit::bytes, 1, 4096));
  TENON_TRY(atomic_c, options.integer("atomic_c", 1, 1024));
  TENON_TRY(atomic_k, options.integer("atomic_k", 1, 1024));
  h.atom_bytes = static_cast<int64_t>(feature), h.weight_atom_bytes = static_cast<int64_t>(weight);
  h.atomic_c = atomic_c, h.atomic_k = atomic_k;
  return read_fusions(options, h);
}

// The layout must be one of surfaces: the channels of a pixel are contiguous, then pixels, then lines.
Result<void> check_activation_layout(const TargetDescription& description, const Hardware& h) {
  TENON_TRY(layout, activation_layout({1, 2 * h.atom_channels, 3, 5}, h));
  const int64_t atom = h.atom_bytes * 8, last = h.atom_channels - 1;
  const bool atoms = layout.apply(Dims{0, last, 0, 0}).bit == last * h.element_bytes * 8 &&
                     layout.apply(Dims{0, 0, 0, 4}).bit == 4 * atom &&
                     layout.apply(Dims{0, h.atom_channels, 0, 0}).bit >= 15 * atom;
  if (atoms) return {};
  return fault(description, str("layout ", quote(h.activation_layout), " of 'activation' is not of atoms of ",
                                h.atom_bytes, " bytes, one for each pixel of a surface"));
}

// A group of kernels must be stored as CONV reads it: blocks of atomic_c channels, each of taps, of kernels, of
// channels.
Result<void> check_weight_layout(const TargetDescription& description, const Hardware& h) {
  const int64_t kernels = h.atomic_k, rest = 3, channels = h.atomic_c + rest, element = h.element_bytes * 8;
  TENON_TRY(layout, Layout::parse(h.weight_layout, "KCRS", {kernels, channels, 2, 2}, element));
  const auto at = [&](Dims index) { return layout.apply(index).bit / element; };
  const bool blocks = at({1, 0, 0, 0}) == h.atomic_c && at({0, 0, 0, 1}) == kernels * h.atomic_c &&
                      at({0, h.atomic_c, 0, 0}) == 4 * kernels * h.atomic_c &&
                      at({kernels - 1, channels - 1, 1, 1}) == kernels * channels * 4 - 1;
  if (blocks && layout.bytes() == round_up(kernels * channels * 4 * h.element_bytes, h.weight_atom_bytes)) return {};
  return fault(description, str("layout ", quote(h.weight_layout), " of 'weight' is not of ragged blocks of ", kernels,
                                " kernels and ", h.atomic_c, " channels that end at whole atoms of ",
                                h.weight_atom_bytes, " bytes"));
}

Result<void> read_layouts(const TargetDescription& description, Hardware& h) {
  const auto layout = [&](const char* role) -> Result<std::string> {
    const auto found = description.layouts.find(role);
    if (found != description.layouts.end()) return found->second;
    return fault(description, str("the layout of '", role, "' is not stated"));
  };
  TENON_TRY(activation, layout("activation"));
  TENON_TRY(weight, layout("weight"));
  h.activation_layout = activation, h.weight_layout = weight;
  TENON_OK(check_activation_layout(description, h));
  return check_weight_layout(description, h);
}

}  // namespace

Result<Hardware> Hardware::of(const TargetDescription& description) {
  Hardware h;
  h.name = description.name;
  TENON_OK(description.allow_names("memories", {"dram", "cbuf"}));
  TENON_OK(description.allow_names("engines", {"conv", "sdp", "pdp"}));
  TENON_OK(description.allow_names("layouts", {"activation", "weight"}));
  TENON_OK(read_memories(description, h));
  TENON_OK(read_options(description.options, h));
  TENON_OK(read_engines(description, h));
  h.atom_channels = h.atom_bytes / h.element_bytes;
  if (h.atom_bytes % h.element_bytes != 0 || h.entry_bytes % h.atom_bytes != 0)
    return fault(description, str("feature_atom ", h.atom_bytes, " is no whole part of an entry of ", h.entry_bytes,
                                  " bytes, or no whole number of elements"));
  if (h.weight_atom_bytes % h.entry_bytes != 0)
    return fault(description, str("weight_atom ", h.weight_atom_bytes, " is no whole number of entries of ",
                                  h.entry_bytes, " bytes"));
  TENON_OK(read_layouts(description, h));
  return h;
}

Result<Dims> image_dims(const Dims& dims, const Hardware& hardware) {
  if (dims.size() != 2 && dims.size() != 4)
    return error(Code::unsupported, "rank ", dims.size(), " is neither 2 nor 4 on target ", hardware.name);
  if (dims[0] != 1) return error(Code::unsupported, "batch ", dims[0], " is not 1 on target ", hardware.name);
  for (const int64_t dim : dims)
    if (dim < 1) return error(Code::unsupported, "a tensor without elements is not for target ", hardware.name);
  return dims.size() == 4 ? dims : Dims{1, dims[1], 1, 1};
}

Result<Layout> activation_layout(const Dims& dims, const Hardware& hardware) {
  TENON_TRY(image, image_dims(dims, hardware));
  return Layout::parse(hardware.activation_layout, "NCHW", image, hardware.element_bytes * 8);
}

Result<Image> Image::of(const Dims& dims, const Hardware& hardware) {
  TENON_TRY(extents, image_dims(dims, hardware));
  TENON_TRY(layout, activation_layout(dims, hardware));
  Image image{.channels = extents[1], .height = extents[2], .width = extents[3]};
  image.surfaces = ceil_div(image.channels, hardware.atom_channels);
  const auto at = [&](Dims index) { return layout.apply(index).bit / 8; };
  image.line_bytes =
      image.height > 1 ? at({0, 0, 1, 0}) : round_up(image.width * hardware.atom_bytes, hardware.dram_alignment);
  image.surface_bytes = image.surfaces > 1 ? at({0, hardware.atom_channels, 0, 0}) : image.height * image.line_bytes;
  image.bytes = round_up(layout.bytes(), hardware.dram_alignment);
  return image;
}

}  // namespace tenon::nvdla
