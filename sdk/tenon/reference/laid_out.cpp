#include <tenon/reference/laid_out.hpp>

#include <algorithm>
#include <bit>
#include <limits>

#include <tenon/support/str.hpp>

namespace tenon::interpreter {
namespace {

// Writes one element's bits without changing its neighbours. 1 to 128 bits; those of `value` repeat beyond 64.
void write_bits(std::byte* bytes, int64_t at, int64_t count, uint64_t value) {
  for (int64_t i = 0; i < count;) {
    std::byte& byte = bytes[(at + i) >> 3];
    const int64_t shift = (at + i) & 7, some = std::min<int64_t>(8 - shift, count - i);
    const auto mask = static_cast<uint8_t>(((1u << some) - 1) << shift);
    const auto wanted = static_cast<uint8_t>(std::rotr(value, static_cast<int>(i & 63)) << shift);
    byte = (byte & std::byte(~mask)) | (std::byte(wanted) & std::byte(mask));
    i += some;
  }
}

bool holds_bits(const std::byte* bytes, int64_t at, int64_t count, uint64_t value) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bit = static_cast<uint64_t>(bytes[(at + i) >> 3] >> ((at + i) & 7)) & 1;
    if (bit != ((value >> (i & 63)) & 1)) return false;
  }
  return true;
}

// The position of a slot, with or without an element, relative to the first lane's word.
int64_t bit_of_slot(const Layout& layout, int64_t bank, int64_t slot) {
  const int64_t lane = slot % layout.lanes() * layout.element_bits(), word = slot / layout.lanes() * layout.word_bits();
  const int64_t within = layout.lane_msb() ? layout.word_bits() - layout.element_bits() - lane : lane;
  return bank * layout.bytes_per_bank() * 8 + word + within;
}

// Visits every z of the box.
template <class Visit>
void for_each_in(const LayoutBox& box, Visit visit) {
  for (size_t v = 0; v < box.begin.size(); ++v) {
    if (box.begin[v] >= box.end[v]) return;
  }
  Dims z = box.begin;
  for (;;) {
    visit(z);
    size_t v = z.size();
    while (v > 0 && ++z[v - 1] == box.end[v - 1]) {
      z[v - 1] = box.begin[v - 1];
      --v;
    }
    if (v == 0) return;
  }
}

// Whether the digits reach every slot; pitches leave gaps.
bool digits_fill_slots(const Layout& layout) {
  if (!layout.has_digits() || layout.is_ragged() || layout.is_view()) return false;
  int64_t reached = 1;
  for (size_t v = 0; v < layout.variables().size(); ++v) reached *= layout.padded_extent(static_cast<int>(v));
  return reached == layout.physical_elements();
}

Result<std::pair<ReorderPlan, ReorderPlan>> plans_between(const Layout& row_major, const Layout& layout) {
  TENON_TRY(pack, plan_reorder(row_major, layout));
  TENON_TRY(unpack, plan_reorder(layout, row_major));
  return std::pair(std::move(pack), std::move(unpack));
}

}  // namespace

std::span<std::byte> bytes_of(Tensor& tensor) { return {tensor.mutable_data(), tensor.bytes()}; }
std::span<const std::byte> bytes_of(const Tensor& tensor) { return {tensor.data(), tensor.bytes()}; }

Result<Tensor> allocate_physical(const LaidOut& laid_out) {
  TENON_TRY(made, Tensor::allocate(kU8, {static_cast<int64_t>(laid_out.bytes())}));
  return made;
}

Result<LaidOutPointer> LaidOut::make(const ValueLayout& value_layout, ElementType element, const Dims& dims) {
  if (element.is_string()) {
    return error(Code::invalid_argument, "strings have no layout, ", quote(value_layout.text), " is given");
  }
  TENON_TRY(layout, resolve_layout(value_layout, dims, element.bits()));
  if (!layout.injective()) {
    return error(Code::invalid_argument, "several elements share one slot of ", quote(value_layout.text), " for ",
                 dims);
  }
  TENON_TRY(row_major, Layout::row_major(dims, element.bits()));
  TENON_TRY(plans, plans_between(row_major, layout));
  return std::make_shared<const LaidOut>(value_layout, element, std::move(layout), std::move(plans.first),
                                         std::move(plans.second));
}

LaidOut::LaidOut(const ValueLayout& value_layout, ElementType element, Layout layout, ReorderPlan pack,
                 ReorderPlan unpack)
    : value_layout_(value_layout),
      element_(element),
      layout_(std::move(layout)),
      pack_(std::move(pack)),
      unpack_(std::move(unpack)) {}

Result<void> LaidOut::pack(const Tensor& logical, std::span<std::byte> physical, Poison poison,
                           ParallelFor& parallel) const {
  if (pack_.kind() == ReorderKind::no_op) {
    std::copy_n(logical.data(), std::min(logical.bytes(), physical.size()), physical.data());
  } else {
    TENON_OK(pack_.run(bytes_of(logical), physical, parallel));
  }
  settle_padding(physical, poison);
  return {};
}

Result<Tensor> LaidOut::unpack(std::span<const std::byte> physical, ParallelFor& parallel) const {
  TENON_TRY(logical, Tensor::allocate(element_, dims()));
  if (unpack_.kind() == ReorderKind::no_op) {
    std::copy_n(physical.data(), std::min(logical.bytes(), physical.size()), logical.mutable_data());
  } else {
    TENON_OK(unpack_.run(physical, bytes_of(logical), parallel));
  }
  return logical;
}

// ---- Padding ----

std::optional<uint64_t> LaidOut::promised() const {
  if (value_layout_.pad == PadState::zero) return 0;
  if (value_layout_.pad == PadState::value)
    return element_.is_bool() ? value_layout_.pad_bits & 1 : value_layout_.pad_bits;
  return std::nullopt;
}

// Booleans are 0 or 1 even in padding, because C++ allows no other values.
uint64_t LaidOut::poison_bits(Poison poison) const {
  if (element_.is_bool()) return 1;
  if (poison == Poison::ones || !element_.is_float() || element_.bits() > 64) return ~uint64_t{0};
  Tensor nan = *Tensor::zeros(element_, {1});
  nan.set_double(0, std::numeric_limits<double>::quiet_NaN());
  uint64_t bits = 0;
  std::copy_n(nan.data(), nan.bytes(), reinterpret_cast<std::byte*>(&bits));
  return bits;
}

void LaidOut::settle_padding(std::span<std::byte> physical, Poison poison) const {
  std::optional<uint64_t> wanted = promised();
  if (!wanted && poison != Poison::none) wanted = poison_bits(poison);
  if (!wanted && element_.is_bool()) wanted = layout_.fill().value_or(0) & 1;
  if (wanted && wanted != layout_.fill()) fill_padding(physical, *wanted);
}

Result<void> LaidOut::check_padding(std::span<std::byte> physical, Poison poison) const {
  if (poison == Poison::none) return {};
  const std::optional<uint64_t> wanted = promised();
  if (!wanted) {
    fill_padding(physical, poison_bits(poison));
    return {};
  }
  const int64_t width = layout_.element_bits();
  for (const Slots& slots : padding()) {
    for (int64_t bit = slots.first_bit; bit < slots.first_bit + slots.count * width; bit += width) {
      if (holds_bits(physical.data(), bit, width, *wanted)) continue;
      return error(Code::internal, describe_slot(bit), " of ", quote(value_layout_.text), " does not hold the padding ",
                   pad_state_name(value_layout_.pad), " that was promised");
    }
  }
  return {};
}

void LaidOut::fill_padding(std::span<std::byte> physical, uint64_t bits) const {
  const int64_t width = layout_.element_bits();
  if (element_.is_bool()) bits &= 1;
  for (const Slots& slots : padding()) {
    for (int64_t i = 0; i < slots.count; ++i) write_bits(physical.data(), slots.first_bit + i * width, width, bits);
  }
}

const std::vector<LaidOut::Slots>& LaidOut::padding() const {
  std::call_once(padding_found_, [&] { padding_ = find_padding(); });
  return padding_;
}

std::vector<LaidOut::Slots> LaidOut::find_padding() const {
  std::vector<Slots> found;
  if (layout_.is_view()) return found;  // they belong to others
  std::vector<int64_t> bits;
  if (digits_fill_slots(layout_)) {
    for (const LayoutBox& box : layout_.pad_boxes()) {
      for_each_in(box, [&](const Dims& z) {
        const LayoutPosition at = layout_.apply_padded(z);
        bits.push_back(at.bank * layout_.bytes_per_bank() * 8 + at.bit);
      });
    }
    std::ranges::sort(bits);
    bits.erase(std::unique(bits.begin(), bits.end()), bits.end());
  } else if (layout_.padding() > 0) {
    Dims index(dims().size());
    const int64_t slots = layout_.physical_elements() / layout_.banks();
    for (int64_t bank = 0; bank < layout_.banks(); ++bank) {
      for (int64_t slot = 0; slot < slots; ++slot) {
        if (!layout_.inverse(bank, slot, index)) bits.push_back(bit_of_slot(layout_, bank, slot));
      }
    }
  }
  for (const int64_t bit : bits) {
    if (!found.empty() && bit == found.back().first_bit + found.back().count * layout_.element_bits()) {
      ++found.back().count;
    } else {
      found.push_back({bit, 1});
    }
  }
  return found;
}

// "index [0,17,2,3]" if the digits reach the slot, else "the slot at bit 640".
std::string LaidOut::describe_slot(int64_t bit) const {
  std::string out = str("the slot at bit ", bit);
  if (!digits_fill_slots(layout_)) return out;
  for (const LayoutBox& box : layout_.pad_boxes()) {
    for_each_in(box, [&](const Dims& z) {
      const LayoutPosition at = layout_.apply_padded(z);
      if (at.bank * layout_.bytes_per_bank() * 8 + at.bit == bit) out = str("index ", z);
    });
  }
  return out;
}

// ---- Other views of the same bytes ----

bool LaidOut::is_flat() const {
  if (layout_.is_ragged() || layout_.is_view()) return false;
  if (layout_.lanes() * layout_.element_bits() != layout_.word_bits()) return false;
  return layout_.banks() == 1 || layout_.bytes_per_bank() * 8 == layout_.words_per_bank() * layout_.word_bits();
}

bool LaidOut::same_slots(const LaidOut& other) const {
  const Layout &a = layout_, &b = other.layout_;
  if (a.shape() != b.shape() || a.physical_elements() != b.physical_elements() || a.lanes() != b.lanes()) return false;
  if (!a.has_digits() || !b.has_digits()) return a == b;
  return a.digits() == b.digits() && a.variables() == b.variables() && a.lane_msb() == b.lane_msb();
}

const std::optional<LaidOut::Box>& LaidOut::box() const {
  std::call_once(box_found_, [&] { box_ = make_box(); });
  return box_;
}

std::optional<LaidOut::Box> LaidOut::make_box() const {
  if (!layout_.has_digits() || layout_.is_ragged() || layout_.is_view()) return std::nullopt;
  Layout::Parts parts = layout_.parts();
  for (size_t v = 0; v < parts.variables.size(); ++v) {
    const LayoutVariable& variable = parts.variables[v];
    if (variable.dims.size() != 1 || variable.offset != 0 || variable.fold != 0) return std::nullopt;
    parts.shape[static_cast<size_t>(variable.dims[0])] = layout_.padded_extent(static_cast<int>(v));
  }
  parts.pitched = true;
  const auto padded = Layout::make(parts);
  if (!padded.ok() || padded->bytes() != layout_.bytes()) return std::nullopt;
  const auto row_major = Layout::row_major(padded->shape(), element_.bits());
  if (!row_major.ok()) return std::nullopt;
  auto plans = plans_between(*row_major, *padded);
  if (!plans.ok()) return std::nullopt;
  return Box{*padded, std::move(plans->first), std::move(plans->second)};
}

}  // namespace tenon::interpreter
