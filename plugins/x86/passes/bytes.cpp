// Arithmetic in byte lanes. Narrow integers have lanes of 32 bits. Four adjacent vectors of them are packed into one
// vector of bytes where only their low bytes matter, or where they are known to be bytes.
//
//   %1..%4 = Load u8 [...], [... + 16] ...      %1 = LoadBytes [...]
//   %5..%8 = Add %1..%4, %0                     %5 = AddBytes %1, %9         %9 = SpreadByte %0, before the loop
//   Store u8 [...], %5 ...                      StoreBytes [...], %5
//
// Floats that are clamped to the range of a byte and then converted are packed by saturating instructions:
//
//   %5..%8 = ClampLow %1..%4, 0
//   %9..%12 = ClampHigh %5..%8, 255             %9..%12 = ClampHigh %1..%4, 255
//   %13..%16 = ConvertInRange %9..%12           %13..%16 = ConvertInRange %9..%12
//                                               %17 = PackBytes %13, %14, %15, %16 {u8 = 1}
//
// A choice between bytes may depend on a comparison in other lanes: PackMask packs its booleans into byte masks.
//
// Right because: low bytes of modular operators depend only on low bytes (is_modular), and lanes known to be bytes
// are represented exactly. Pays where packing and unpacking at the borders take fewer instructions than are saved.
#include <bit>
#include <map>
#include <optional>
#include <utility>

#include "x86/names.hpp"
#include "x86/passes/bundles.hpp"
#include "x86/passes/byte_factor.hpp"

namespace tenon::x86 {
namespace {

constexpr int kParts = Bundle::kParts;

template <size_t kCount>
bool is_one_of(Name op, const Name (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), op) != std::end(names);
}
bool is_bitwise(Name op) {
  static const Name kNames[] = {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"};
  return is_one_of(op, kNames);
}
bool is_compare(Name op) {
  static const Name kNames[] = {"Equal", "NotEqual", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
  return is_one_of(op, kNames);
}
bool is_logic(Name op) {
  static const Name kNames[] = {"And", "Or", "Xor", "Not"};
  return is_one_of(op, kNames);
}
bool is_order(Name op) {
  static const Name kNames[] = {"Max", "Min"};
  return is_one_of(op, kNames);
}

ElementType element_of(const LinearKernel& kernel, RegisterId id) {
  return kernel.registers[static_cast<size_t>(id)].element;
}

class Joiner {
 public:
  Joiner(LinearKernel& kernel, Isa isa)
      : kernel_(kernel), isa_(isa), uses_(kernel), demand_(kernel, uses_), bundles_(kernel, uses_) {}

  void run() {
    const size_t count = bundles_.all().size();
    exact_.resize(count);
    bytes_.resize(count);
    made_.assign(count, -1);
    for (size_t b = 0; b < count; ++b) exact_[b] = exact_of(b);
    for (size_t b = 0; b < count; ++b) bytes_[b] = may_be_bytes(b);
    const std::vector<char> possible = bytes_;
    const int gained = drop_unsuited();
    std::vector<char> without = std::exchange(bytes_, possible);
    packs_masks_ = true;
    if (drop_unsuited() <= gained) {
      bytes_ = std::move(without);
      packs_masks_ = false;
    }
    if (gain() <= 0) return;
    rewrite();
    if (!unbounded_.empty()) drop_bounds();
  }

 private:
  const Bundle& bundle(size_t b) const { return bundles_.all()[b]; }
  const Instruction& at(size_t b, int part = 0) const { return bundles_.at(bundle(b), part); }
  bool is_store(size_t b) const { return at(b).op == kStore; }
  // The bundle that computes an operand; none: the operand is uniform.
  std::optional<size_t> maker(size_t b, size_t i) const {
    const int made_by = bundle(b).operands[i];
    return made_by < 0 ? std::nullopt : std::optional(static_cast<size_t>(made_by));
  }

  // ---- What may be computed in bytes ----

  std::optional<int32_t> constant_of(RegisterId id) const {
    const auto made = uses_.maker(id);
    if (!made || kernel_.body[*made].op != kScalar) return std::nullopt;
    return static_cast<int32_t>(*kernel_.body[*made].attributes.find("bits")->get_if<int64_t>());
  }

  // Whether a uniform register holds a value of this type. Longer chains of instructions are not followed.
  bool uniform_is(RegisterId id, ElementType type, int steps = 4) const {
    static const Name kBroadcast("BroadcastLoad");
    const auto made = uses_.maker(id);
    if (!made) return false;
    const Instruction& one = kernel_.body[*made];
    if (one.op == kBroadcast) return one.memory->element == type;
    if (one.op == kWrap) return wrapped_to(one) == type;
    if ((is_order(one.op) || one.op == kWhere || (is_bitwise(one.op) && one.in.size() == 2)) && !one.memory) {
      const auto is_of_type = [&](RegisterId operand) { return uniform_is(operand, type, steps - 1); };
      return steps > 0 && std::all_of(one.in.begin() + (one.op == kWhere ? 1 : 0), one.in.end(), is_of_type);
    }
    if (one.op != kScalar) return false;
    const auto bits = static_cast<int32_t>(*one.attributes.find("bits")->get_if<int64_t>());
    return type == kU8 ? bits >= 0 && bits <= 255 : bits >= -128 && bits <= 127;
  }

  // The type that all operands from `first` on are values of, if there is one.
  std::optional<ElementType> common(size_t b, size_t first) const {
    std::optional<ElementType> type;
    for (size_t i = first; i < at(b).in.size(); ++i) {
      const auto other = maker(b, i);
      if (!other) continue;
      if (!exact_[*other] || (type && *type != *exact_[*other])) return std::nullopt;
      type = exact_[*other];
    }
    // A uniform register is interpreted as its lane type: numbers of the type all have a sign or none has.
    if (!type && !has_32_bits(kernel_, at(b).in[first])) return std::nullopt;
    if (!type) type = element_of(kernel_, at(b).in[first]).is_signed_int() ? kI8 : kU8;
    for (size_t i = first; i < at(b).in.size(); ++i)
      if (!maker(b, i) && !uniform_is(at(b).in[i], *type)) return std::nullopt;
    return type;
  }

  // The type that all lanes are values of, derived from earlier bundles.
  std::optional<ElementType> exact_of(size_t b) const {
    const Instruction& one = at(b);
    if (one.out.empty() || !has_32_bits(kernel_, one.out[0])) return std::nullopt;
    if (one.op == kLoad) return is_byte(one.memory->element) ? std::optional(one.memory->element) : std::nullopt;
    if (one.op == kWrap) return is_byte(wrapped_to(one)) ? std::optional(wrapped_to(one)) : std::nullopt;
    if (one.op == kByteTable) return wrapped_to(one);
    if (one.memory) return std::nullopt;
    if (is_renaming(kernel_, one)) return common(b, 0) == kU8 ? std::optional(kU8) : std::nullopt;
    if (is_order(one.op) || (is_bitwise(one.op) && one.in.size() == 2)) return common(b, 0);
    return one.op == kWhere ? common(b, 1) : std::nullopt;
  }

  bool low_byte_counts(size_t b) const {
    constexpr int kByte = 8;
    for (int part = 0; part < kParts; ++part)
      if (demand_.of(at(b, part).out[0]) > kByte) return false;
    return true;
  }

  bool may_be_bytes(size_t b) const {
    const Instruction& one = at(b);
    if (is_store(b)) return is_byte(one.memory->element) && has_32_bits(kernel_, one.in[0]);
    if (one.op == kLoad || one.op == kWrap || one.op == kByteTable) return exact_[b].has_value();
    if (one.memory || one.out.empty()) return false;
    if (is_logic(one.op)) return element_of(kernel_, one.out[0]).is_bool();
    if (is_compare(one.op)) return common(b, 0).has_value();
    if (!has_32_bits(kernel_, one.out[0])) return false;
    if (is_order(one.op)) return exact_[b].has_value();
    if (one.op == kAbs) return low_byte_counts(b) && common(b, 0) == kI8;
    return (is_modular(one.op) || is_renaming(kernel_, one) || one.op == kWhere) && (exact_[b] || low_byte_counts(b));
  }

  // Drops bundles that cannot be bytes. A boolean that is read or made by an instruction outside cannot be a byte mask,
  // unless it is uniform, and then its neighbours cannot be bytes either. With packs_masks_, choices may read other
  // booleans. Returns what is gained.
  int drop_unsuited() {
    std::vector<size_t> open;
    for (size_t b = 0; b < bytes_.size(); ++b) open.push_back(b);
    while (!open.empty()) {
      const size_t b = open.back();
      open.pop_back();
      if (!bytes_[b] || suits(b)) continue;
      bytes_[b] = false;
      for (const int reader : bundle(b).readers) open.push_back(static_cast<size_t>(reader));
      for (size_t i = 0; i < bundle(b).operands.size(); ++i)
        if (const auto other = maker(b, i)) open.push_back(*other);
    }
    return gain();
  }
  bool suits(size_t b) const {
    const Instruction& one = at(b);
    for (size_t i = 0; i < one.in.size(); ++i) {
      if (!element_of(kernel_, one.in[i]).is_bool() || (packs_masks_ && one.op == kWhere)) continue;
      const auto other = maker(b, i);
      if (other && !bytes_[*other]) return false;
    }
    return one.out.empty() || !element_of(kernel_, one.out[0]).is_bool() || !read_elsewhere(b);
  }

  // Whether an instruction reads it that is not in a bundle of bytes.
  bool read_elsewhere(size_t b) const {
    return bundle(b).read_apart ||
           std::ranges::any_of(bundle(b).readers, [&](int reader) { return !bytes_[static_cast<size_t>(reader)]; });
  }

  // ---- Floats that are converted to bytes ----

  struct Clamped {
    size_t low = 0, high = 0;  // ClampLow and ClampHigh
    ElementType type;          // kU8 or kI8, which contains the whole range
    bool from_least = false;   // the range begins at the least value of the type
    bool is_number = false;    // never NaN
  };
  // The clamps before a conversion to integers, if there are any.
  std::optional<Clamped> clamped(size_t b) const {
    static const Name kInRange("ConvertInRange"), kToNearest("RoundInRange"), kLow("ClampLow"), kHigh("ClampHigh");
    if (at(b).op != kInRange && at(b).op != kToNearest) return std::nullopt;
    const auto made_by = [&](std::optional<size_t> reader, Name op) {
      const auto made = reader ? maker(*reader, 0) : std::nullopt;
      return made && at(*made).op == op && !at(*made).memory ? made : std::nullopt;
    };
    const auto high = made_by(b, kHigh), low = made_by(high, kLow);
    if (!low || element_of(kernel_, at(*low).out[0]) != kF32) return std::nullopt;
    const auto least_bits = constant_of(at(*low).in[1]), most_bits = constant_of(at(*high).in[1]);
    if (!least_bits || !most_bits) return std::nullopt;
    const auto least = std::bit_cast<float>(*least_bits), most = std::bit_cast<float>(*most_bits);
    const bool is_number = at(b).attributes.has("number");
    if (least >= 0 && most <= 255) return Clamped{*low, *high, kU8, least == 0, is_number};
    if (least >= -128 && most <= 127) return Clamped{*low, *high, kI8, least == -128, is_number};
    return std::nullopt;
  }
  bool is_for_one(size_t b) const { return bundle(b).readers.size() == 1 && !bundle(b).read_apart; }
  // Packing enforces the lower bound by saturation. For i8 the conversion gives that bound for NaN, too.
  bool needs_no_low(size_t b, const Clamped& by) const {
    return by.from_least && (by.type == kU8 || by.is_number) && !read_elsewhere(b) && is_for_one(by.high);
  }

  // ---- Whether it pays: machine instructions ----

  int gain_of(const Instruction& one) const {
    // A table of lanes of 32 bits takes about as long for one vector as one of bytes.
    constexpr int kTable = 7 * (kParts - 1);
    const int store = isa_ == Isa::avx512 ? 2 : 4;
    if (one.op == kStore) return kParts * store - 1;
    if (one.op == kByteTable) return kTable;
    return one.op == kWrap ? 2 * kParts : one.op == kMul ? 2 : kParts - 1;
  }
  int gain() const {
    constexpr int kUnpack = 7;
    int gained = 0;
    std::vector<char> packed(bytes_.size(), 0);
    for (size_t b = 0; b < bytes_.size(); ++b) {
      if (!bytes_[b]) continue;
      const Instruction& one = at(b);
      gained += gain_of(one);
      for (size_t i = 0; i < one.in.size(); ++i) {
        const auto other = maker(b, i);
        if (!other || bytes_[*other] || packed[*other]) continue;
        packed[*other] = 1;
        gained -= pack_instructions(*other);
      }
      if (!one.out.empty() && read_elsewhere(b)) gained -= kUnpack;
    }
    return gained;
  }

  // Minus the instructions that packing makes superfluous.
  int pack_instructions(size_t b) const {
    constexpr int kAny = 9, kSaturating = 5, kMasked = 7;
    if (element_of(kernel_, at(b).out[0]).is_bool()) return isa_ == Isa::avx512 ? 3 : kSaturating;
    const auto by = clamped(b);
    if (!by) return kAny;
    if (by->type == kI8 && !by->is_number) return kMasked;
    return needs_no_low(b, *by) ? kSaturating - kParts : kSaturating;
  }

  // ---- The code ----

  // The kernel's body must not change until everything is written, because bundles are positions in it.
  void rewrite() {
    std::vector<Instruction> made;
    size_t next = 0;
    for (size_t i = 0; i < kernel_.body.size();) {
      while (next < bytes_.size() && bundle(next).first < i) ++next;
      if (next == bytes_.size() || bundle(next).first != i || !bytes_[next]) {
        made.push_back(kernel_.body[i++]);
        continue;
      }
      write(next, made);
      if (!at(next).out.empty() && read_elsewhere(next)) unpack(next, made);
      i += kParts;
    }
    kernel_.body.clear();
    for (Instruction& one : made) {
      const auto spread = one.out.empty() ? spread_.end() : spread_.find(one.out[0]);
      kernel_.body.push_back(std::move(one));
      if (spread != spread_.end())
        kernel_.body.push_back({.op = element_of(kernel_, spread->first).is_bool() ? "SpreadMask" : "SpreadByte",
                                .in = {spread->first},
                                .out = {spread->second}});
    }
  }

  RegisterId vector_of_bytes() { return kernel_.add_lanes(kI32); }

  RegisterId bytes_of(size_t b, size_t i, std::vector<Instruction>& made) {
    const auto other = maker(b, i);
    if (!other) {
      auto [spread, is_new] = spread_.try_emplace(at(b).in[i], -1);
      if (is_new)
        spread->second = element_of(kernel_, spread->first).is_bool() ? kernel_.add_lanes(kBool) : vector_of_bytes();
      return spread->second;
    }
    if (made_[*other] >= 0) return made_[*other];
    const bool is_mask = element_of(kernel_, at(b).in[i]).is_bool();
    made_[*other] = is_mask ? kernel_.add_lanes(kBool) : vector_of_bytes();
    Instruction pack{.op = is_mask ? "PackMask" : "PackBytes", .out = {made_[*other]}, .label = at(*other).label};
    for (int part = 0; part < kParts; ++part) pack.in.push_back(at(b, part).in[i]);
    if (const auto by = clamped(*other)) {
      pack.attributes.set(by->type == kU8 ? "u8" : "i8", 1);
      if (by->is_number) pack.attributes.set("number", 1);
      for (int part = 0; part < kParts && needs_no_low(*other, *by); ++part)
        unbounded_[at(by->high, part).out[0]] = at(by->low, part).in[0];
    }
    made.push_back(std::move(pack));
    return made_[*other];
  }

  void drop_bounds() {
    for (Instruction& one : kernel_.body)
      if (const auto x = one.out.empty() ? unbounded_.end() : unbounded_.find(one.out[0]); x != unbounded_.end())
        one.in[0] = x->second;
    drop_unread(kernel_, uses_);
  }

  void write(size_t b, std::vector<Instruction>& made) {
    Instruction one = at(b);
    if (one.op == kMul) return write_product(b, made);
    const std::optional<ElementType> compared = is_compare(one.op) ? common(b, 0) : exact_[b];
    for (size_t i = 0; i < one.in.size(); ++i) one.in[i] = bytes_of(b, i, made);
    if (one.op == kWrap || is_renaming(kernel_, at(b))) {
      made_[b] = one.in[0];
      return;
    }
    if (!is_logic(one.op) && !is_bitwise(one.op)) one.op = one.op.str() + "Bytes";
    if (compared) one.attributes.set("signed", compared == kI8 ? 1 : 0);
    if (!one.out.empty()) {
      made_[b] = element_of(kernel_, one.out[0]).is_bool() ? kernel_.add_lanes(kBool) : vector_of_bytes();
      one.out[0] = made_[b];
    }
    made.push_back(std::move(one));
  }

  // There are only 16-bit products; for some constants, sums take fewer instructions.
  void write_product(size_t b, std::vector<Instruction>& made) {
    Instruction one = at(b);
    const size_t factor = maker(b, 0) ? 1 : 0;
    const bool alike = !maker(b, factor);
    const RegisterId x = bytes_of(b, 1 - factor, made);
    const auto constant = alike ? constant_of(one.in[factor]) : std::nullopt;
    const auto product = constant ? multiply_bytes(kernel_, x, *constant, one.label, made) : std::nullopt;
    if (product) {
      made_[b] = *product;
      return;
    }
    one.op = "MulBytes";
    one.in = {x, bytes_of(b, factor, made)};
    if (alike) one.attributes.set("alike", 1);
    one.out[0] = made_[b] = vector_of_bytes();
    made.push_back(std::move(one));
  }

  void unpack(size_t b, std::vector<Instruction>& made) const {
    for (int part = 0; part < kParts; ++part) {
      Instruction one{.op = "UnpackBytes" + std::to_string(part),
                      .in = {made_[b]},
                      .out = {at(b, part).out[0]},
                      .label = at(b).label};
      one.attributes.set("signed", exact_[b] == kI8 ? 1 : 0);
      made.push_back(std::move(one));
    }
  }

  LinearKernel& kernel_;
  const Isa isa_;
  const Uses uses_;
  const LowBits demand_;
  const Bundles bundles_;
  // For each bundle of bytes: the type that its lanes are values of, and the vector of bytes that it computes.
  std::vector<std::optional<ElementType>> exact_;
  std::vector<char> bytes_;
  bool packs_masks_ = false;
  std::vector<RegisterId> made_;
  std::map<RegisterId, RegisterId> spread_;
  std::map<RegisterId, RegisterId> unbounded_;  // results of ClampHigh, and their values without the ClampLow
};

}  // namespace

bool has_lanes_of_bytes(const LinearKernel& kernel) {
  return std::ranges::any_of(kernel.body, [](const Instruction& one) { return one.op.str().ends_with("Bytes"); });
}

void join_bytes(LinearKernel& kernel, Isa isa) {
  const auto has_bytes = [](const Instruction& one) {
    return one.op == kWrap || one.op == kByteTable || (one.memory && is_byte(one.memory->element));
  };
  if (kernel.lanes * 32 == vector_bits(isa) && std::ranges::any_of(kernel.body, has_bytes)) Joiner(kernel, isa).run();
}

}  // namespace tenon::x86
