// Lookups in tables of 256 bytes. With VBMI, a table is four vectors of 64 bytes, and vpermi2b looks up in two of them
// at once by the low seven bits of the index. Without VBMI, byte lanes look up in each of 16 vectors of 16 entries
// (vpshufb) by the low four bits. The high four bits then select among the 16 results, one bit at a time: 16, 8, 4, 2,
// 1. Lanes of 32 bits use a gather.
#include "x86/emitters/byte_tables.hpp"

#include <algorithm>
#include <array>

#include "x86/emitters/emitters.hpp"
#include "x86/emitters/rows.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using namespace codegen;

bool has_signed_entries(const Attributes& attributes) { return *attributes.find("to")->get_if<std::string>() == "i8"; }

constexpr int kHighBits = 4;  // of an index; they select among vectors of 16 entries

class ByteTables {
 public:
  explicit ByteTables(VectorCode& c) : c_(c), words_(words_of_table(c.emission().attributes)) {}

  // Looks up all bytes of the register; serves lanes of 32 bits as well as byte lanes.
  void permute() {
    const Vec x = full(c_.in(0)), low = full(c_.temp()), high = full(c_.temp()), half = full(c_.temp());
    const Xbyak::Opmask is_high = VectorCode::opmask(c_.mask_temp());
    c_->vpmovb2m(is_high, x);
    look_up_in_two(low, x, half, 0);
    look_up_in_two(high, x, half, 2);
    c_->vpblendmb(full(c_.out()) | is_high, low, high);
  }

  void shuffle() {
    low_bits_ = c_.temp();
    c_->vandps(low_bits_, c_.in(0), c_.u32(0x0f0f0f0f));
    for (int bit = 0; bit < kHighBits; ++bit) find_bit(bit);
    c_.move(c_.out(), chosen(kHighBits, 0));
  }

  void gather() {
    const Vec x = c_.temp(), found = c_.temp();
    const auto entries = padded();
    c_->vandps(x, c_.in(0), c_.u32(0xff));
    c_->lea(X86Context::scratch(), c_.context().table(entries));
    c_.set_u32(found, 0);
    const Mask all = c_.mask_temp();
    if (c_.avx512()) {
      c_->kxnorw(c_.opmask(all), c_.opmask(all), c_.opmask(all));
      c_->vpgatherdd(found | c_.opmask(all), c_->ptr[X86Context::scratch() + x]);
    } else {
      c_.set_u32(c_.vector(all), ~uint32_t{0});
      c_->vpgatherdd(found, c_->ptr[X86Context::scratch() + x], c_.vector(all));
    }
    extend(found);
  }

  // Extends the low bytes of 32-bit lanes to values of the table's type.
  void extend(const Vec& from) {
    if (!has_signed_entries(c_.emission().attributes)) return c_->vandps(c_.out(), from, c_.u32(0xff));
    c_->vpslld(c_.out(), from, 24);
    c_->vpsrad(c_.out(), c_.out(), 24);
  }

 private:
  static constexpr size_t kWordsOfVector = 16, kBytesOfRow = 16;

  Vec full(const Vec& register_) const { return VectorCode::at(register_, 512); }

  // The table, padded by what a gather of its last entry reads beyond it.
  std::array<uint32_t, std::tuple_size_v<TableWords> + 1> padded() const {
    std::array<uint32_t, std::tuple_size_v<TableWords> + 1> entries{};
    std::ranges::copy(words_, entries.begin());
    return entries;
  }

  ConstantOperand vector(size_t number) {
    return c_.context().kept_table(std::span(words_).subspan(number * kWordsOfVector, kWordsOfVector));
  }
  void look_up_in_two(const Vec& out, const Vec& x, const Vec& scratch, size_t first) {
    c_.move(out, x);
    const ConstantOperand lower = vector(first), upper = vector(first + 1);
    const Xbyak::Operand& at = lower;
    if (at.isMEM()) c_->vmovups(scratch, at);
    c_->vpermi2b(out, at.isMEM() ? scratch : Vec(X86Context::zmm(at.getIdx())), upper);
  }

  // Finds the bytes whose index has bit 4 + `bit` set, by moving it to the highest bit of each byte.
  void find_bit(int bit) {
    const auto places = static_cast<uint8_t>(kHighBits - 1 - bit);
    const Vec moved = places ? c_.temp() : c_.in(0);
    if (places) c_->vpsllw(moved, c_.in(0), places);
    shifted_[static_cast<size_t>(bit)] = moved;
    if (!c_.avx512()) return;
    bits_[static_cast<size_t>(bit)] = c_.mask_temp();
    c_->vpmovb2m(c_.opmask(bits_[static_cast<size_t>(bit)]), moved);
  }

  // The result of the lookups in 2^bits vectors from `first` on.
  Vec chosen(int bits, size_t first) {
    if (bits == 0) {
      const Vec row = c_.temp();
      const Xbyak::Address at = c_.context().table(words_, first * kBytesOfRow);
      c_.avx512() ? c_->vbroadcasti32x4(Xbyak::Zmm(row.getIdx()), at) : c_->vbroadcasti128(Xbyak::Ymm(row.getIdx()), at);
      c_->vpshufb(row, row, low_bits_);
      return row;
    }
    const Vec no = chosen(bits - 1, first);
    const VectorCode::Scope scope(c_);
    const Vec yes = chosen(bits - 1, first + (size_t{1} << (bits - 1)));
    const auto bit = static_cast<size_t>(bits - 1);
    c_.avx512() ? c_->vpblendmb(no | c_.opmask(bits_[bit]), no, yes) : c_->vpblendvb(no, no, yes, shifted_[bit]);
    return no;
  }

  VectorCode& c_;
  const TableWords words_;
  Vec low_bits_;
  std::array<Mask, kHighBits> bits_{};
  std::array<Vec, kHighBits> shifted_;
};

void permute_bytes(VectorCode& c) { ByteTables(c).permute(); }
void permute_lanes(VectorCode& c) {
  ByteTables tables(c);
  tables.permute();
  tables.extend(c.out());
}
void shuffle_bytes(VectorCode& c) { ByteTables(c).shuffle(); }
void gather_lanes(VectorCode& c) { ByteTables(c).gather(); }

// ---- Rows ----

constexpr RowPair kTableRows[] = {
    {"ByteTable",
     kInt32,
     {.vectors = 3, .cycles = 12},
     {.vectors = 2, .masks = 1, .cycles = 12},
     0,
     algorithm<gather_lanes>},
    {"ByteTableBytes",
     kInt32,
     {.vectors = 9, .cycles = 26},
     {.vectors = 9, .masks = 4, .cycles = 26},
     0,
     algorithm<shuffle_bytes>},
};

}  // namespace

Attributes byte_table(std::span<const uint64_t> entries, bool is_signed) {
  Attribute::Integers words(std::tuple_size_v<TableWords>, 0);
  for (size_t i = 0; i < kTableEntries; ++i) words[i / 4] |= static_cast<int64_t>(entries[i] & 255) << 8 * (i % 4);
  return {{"table", std::move(words)}, {"to", is_signed ? "i8" : "u8"}};
}

TableWords words_of_table(const Attributes& attributes) {
  TableWords words{};
  std::ranges::transform(*attributes.find("table")->get_if<Attribute::Integers>(), words.begin(),
                         [](int64_t word) { return static_cast<uint32_t>(word); });
  return words;
}

std::pair<int32_t, int32_t> range_of_table(const Attributes& attributes) {
  const bool is_signed = has_signed_entries(attributes);
  std::pair<int32_t, int32_t> range{255, -128};
  for (const uint32_t word : words_of_table(attributes)) {
    for (int i = 0; i < 4; ++i) {
      const auto entry = static_cast<uint8_t>(word >> 8 * i);
      const int32_t value = is_signed ? static_cast<int8_t>(entry) : int32_t{entry};
      range = {std::min(range.first, value), std::max(range.second, value)};
    }
  }
  return range;
}

Result<void> add_byte_table_rows(JitterTable& table) {
  const codegen::ScratchNeeds scratch{.vectors = 3, .masks = 1};
  TENON_OK(table.add({.op = "ByteTable",
                      .types = kInt32,
                      .feature = "avx512vbmi",
                      .scratch = scratch,
                      .cycles = 6,
                      .make = algorithm<permute_lanes>}));
  TENON_OK(table.add({.op = "ByteTableBytes",
                      .types = kInt32,
                      .feature = "avx512vbmi",
                      .scratch = scratch,
                      .cycles = 5,
                      .make = algorithm<permute_bytes>}));
  return add_pairs(table, kTableRows);
}

}  // namespace tenon::x86
