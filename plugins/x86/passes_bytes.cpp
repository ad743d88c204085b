// Arithmetic of bytes. Lanes of narrow integers have 32 bits: four vectors of them, side by side, go as one vector of
// bytes where nothing but their low bytes counts, or where they are known to be bytes.
//
//   %1..%4 = Load u8 [...], [... + 16] ...      %1 = LoadBytes [...]
//   %5..%8 = Add %1..%4, %0                     %5 = AddBytes %1, %9         %9 = SpreadByte %0, before the loop
//   Store u8 [...], %5 ...                      StoreBytes [...], %5
#include <array>
#include <map>
#include <optional>

#include "x86/passes_internal.hpp"

namespace tenon::x86 {
namespace {

constexpr int kParts = 4;
const Name kLoad("Load"), kStore("Store"), kWrap("Wrap"), kWhere("Where"), kAbs("Abs"), kMul("Mul");

template <size_t kCount>
bool is_one_of(Name op, const Name (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), op) != std::end(names);
}
bool is_bitwise(Name op) {
  static const Name kNames[] = {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"};
  return is_one_of(op, kNames);
}
bool is_compare(Name op) {
  static const Name kNames[] = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
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

// Four instructions that do the same to four vectors which lie side by side.
struct Bundle {
  size_t first = 0;  // of the four
  bool bytes = false;
  std::optional<ElementType> exact;  // the lanes are values of this type
  RegisterId made = -1;              // the vector of bytes
};

class Joiner {
 public:
  Joiner(LinearKernel& kernel, Isa isa) : kernel_(kernel), isa_(isa), demand_(kernel) {}

  void run() {
    find_bundles();
    for (Bundle& bundle : bundles_) bundle.exact = exact_of(bundle);
    for (Bundle& bundle : bundles_) bundle.bytes = may_be_bytes(bundle);
    while (std::ranges::any_of(bundles_, [&](Bundle& bundle) {
      const bool stays = !bundle.bytes || operands_suit(bundle);
      return stays ? false : (bundle.bytes = false, true);
    })) {}
    if (gain() > 0) rewrite();
  }

 private:
  const Instruction& at(const Bundle& bundle, int part = 0) const {
    return kernel_.body[bundle.first + static_cast<size_t>(part)];
  }
  bool is_store(const Bundle& bundle) const { return at(bundle).op == kStore; }

  // ---- Bundles ----

  void find_bundles() {
    bundle_of_.assign(kernel_.registers.size(), -1);
    region_of_.resize(kernel_.body.size());
    int region = 0;
    for (size_t i = 0; i < kernel_.body.size(); ++i) region_of_[i] = is_border(kernel_.body[i].op) ? ++region : region;
    for (size_t i = 0; i + kParts <= kernel_.body.size();) {
      if (!alike(i)) {
        ++i;
        continue;
      }
      for (int part = 0; part < kParts; ++part)
        for (const RegisterId id : kernel_.body[i + static_cast<size_t>(part)].out)
          bundle_of_[static_cast<size_t>(id)] = static_cast<int>(bundles_.size());
      bundles_.push_back({.first = i});
      i += kParts;
    }
  }

  bool alike(size_t first) const {
    const Instruction& one = kernel_.body[first];
    if (is_border(one.op) || one.touched != Lanes::full || one.in.size() > 3 || one.out.size() > 1) return false;
    for (int part = 1; part < kParts; ++part) {
      const Instruction& other = kernel_.body[first + static_cast<size_t>(part)];
      if (other.op != one.op || !(other.attributes == one.attributes) || other.touched != one.touched ||
          other.in.size() != one.in.size() || other.out.size() != one.out.size() || !follows(one, other, part))
        return false;
    }
    for (size_t i = 0; i < one.in.size(); ++i)
      if (!is_uniform(first, i) && !is_bundle(first, i)) return false;
    for (int part = 0; part < kParts && !one.out.empty(); ++part)
      if (!demand_.once(kernel_.body[first + static_cast<size_t>(part)].out[0])) return false;
    return true;
  }
  bool follows(const Instruction& one, const Instruction& other, int part) const {
    if (one.memory.has_value() != other.memory.has_value()) return false;
    if (!one.memory) return true;
    const int64_t bytes = int64_t{part} * kernel_.lanes * (one.memory->element.bits() / 8);
    return one.memory->base == other.memory->base && one.memory->index == other.memory->index &&
           one.memory->element == other.memory->element &&
           one.memory->displacement_bytes + bytes == other.memory->displacement_bytes;
  }
  RegisterId operand(size_t first, int part, size_t i) const {
    return kernel_.body[first + static_cast<size_t>(part)].in[i];
  }
  bool is_uniform(size_t first, size_t i) const {
    for (int part = 1; part < kParts; ++part)
      if (operand(first, part, i) != operand(first, 0, i)) return false;
    return demand_.once(operand(first, 0, i));
  }
  // The four results of one bundle of the same stretch of code, in order.
  bool is_bundle(size_t first, size_t i) const {
    const int found = bundle_of_[static_cast<size_t>(operand(first, 0, i))];
    if (found < 0 || region_of_[bundles_[static_cast<size_t>(found)].first] != region_of_[first]) return false;
    for (int part = 0; part < kParts; ++part)
      if (at(bundles_[static_cast<size_t>(found)], part).out[0] != operand(first, part, i)) return false;
    return true;
  }
  Bundle* operand_bundle(const Bundle& bundle, size_t i) {
    return is_uniform(bundle.first, i)
               ? nullptr
               : &bundles_[static_cast<size_t>(bundle_of_[static_cast<size_t>(operand(bundle.first, 0, i))])];
  }

  // ---- What may be bytes ----

  // What is alike in all lanes: is it a value of this type?
  bool uniform_is(RegisterId id, ElementType type) const {
    static const Name kScalar("Scalar"), kBroadcast("BroadcastLoad");
    for (const Instruction& one : kernel_.body) {
      if (one.out.empty() || one.out[0] != id) continue;
      if (one.op == kBroadcast) return one.memory->element == type;
      if (one.op == kWrap) return wrapped_to(one) == type;
      if (one.op != kScalar) return false;
      const auto bits = static_cast<int32_t>(*one.attributes.find("bits")->get_if<int64_t>());
      return type == kU8 ? bits >= 0 && bits <= 255 : bits >= -128 && bits <= 127;
    }
    return false;
  }

  // The type that all operands from `first` on are values of.
  std::optional<ElementType> common(const Bundle& bundle, size_t first) {
    std::optional<ElementType> type;
    for (size_t i = first; i < at(bundle).in.size(); ++i) {
      const Bundle* const other = operand_bundle(bundle, i);
      if (!other) continue;
      if (!other->exact || (type && *type != *other->exact)) return std::nullopt;
      type = other->exact;
    }
    for (size_t i = first; type && i < at(bundle).in.size(); ++i)
      if (!operand_bundle(bundle, i) && !uniform_is(at(bundle).in[i], *type)) return std::nullopt;
    return type;
  }

  std::optional<ElementType> exact_of(const Bundle& bundle) {
    const Instruction& one = at(bundle);
    if (one.out.empty() || !has_32_bits(kernel_, one.out[0])) return std::nullopt;
    if (one.op == kLoad) return is_byte(one.memory->element) ? std::optional(one.memory->element) : std::nullopt;
    if (one.op == kWrap) return is_byte(wrapped_to(one)) ? std::optional(wrapped_to(one)) : std::nullopt;
    if (one.memory) return std::nullopt;
    if (is_renaming(kernel_, one)) return common(bundle, 0) == kU8 ? std::optional(kU8) : std::nullopt;
    if (is_order(one.op) || (is_bitwise(one.op) && one.in.size() == 2)) return common(bundle, 0);
    return one.op == kWhere ? common(bundle, 1) : std::nullopt;
  }

  bool low_byte_counts(const Bundle& bundle) const {
    for (int part = 0; part < kParts; ++part)
      if (demand_.of(at(bundle, part).out[0]) > 8) return false;
    return true;
  }

  bool may_be_bytes(const Bundle& bundle) {
    const Instruction& one = at(bundle);
    if (is_store(bundle))
      return is_byte(one.memory->element) && has_32_bits(kernel_, one.in[0]) && operand_bundle(bundle, 0);
    if (one.op == kLoad || one.op == kWrap) return bundle.exact.has_value();
    if (one.memory || one.out.empty()) return false;
    if (is_logic(one.op)) return element_of(kernel_, one.out[0]).is_bool();
    if (is_compare(one.op)) return common(bundle, 0).has_value();
    if (!has_32_bits(kernel_, one.out[0])) return false;
    if (is_order(one.op)) return bundle.exact.has_value();
    if (one.op == kAbs) return low_byte_counts(bundle) && common(bundle, 0) == kI8;
    return (is_modular(one.op) || is_renaming(kernel_, one) || one.op == kWhere) &&
           (bundle.exact || low_byte_counts(bundle));
  }

  // Booleans stay among bytes.
  bool operands_suit(const Bundle& bundle) {
    const Instruction& one = at(bundle);
    for (size_t i = 0; i < one.in.size(); ++i) {
      if (!element_of(kernel_, one.in[i]).is_bool()) continue;
      const Bundle* const other = operand_bundle(bundle, i);
      if (!other || !other->bytes) return false;
    }
    return one.out.empty() || !element_of(kernel_, one.out[0]).is_bool() || !read_elsewhere(bundle);
  }

  // By an instruction that is not of a bundle of bytes.
  bool read_elsewhere(const Bundle& bundle) const {
    std::vector<char> of_bytes(kernel_.body.size(), 0);
    for (const Bundle& other : bundles_)
      if (other.bytes) std::fill_n(of_bytes.begin() + static_cast<std::ptrdiff_t>(other.first), kParts, 1);
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      if (of_bytes[i]) continue;
      for (int part = 0; part < kParts; ++part)
        if (std::ranges::count(kernel_.body[i].in, at(bundle, part).out[0])) return true;
    }
    return false;
  }

  // ---- Is it worth it? Instructions, as the machine counts them ----

  int gain() {
    constexpr int kPack = 9, kUnpack = 7;
    const int store = isa_ == Isa::avx512 ? 2 : 4;
    int gained = 0;
    std::vector<const Bundle*> packed;
    for (const Bundle& bundle : bundles_) {
      if (!bundle.bytes) continue;
      const Instruction& one = at(bundle);
      gained += is_store(bundle) ? kParts * store - 1 : one.op == kWrap ? 2 * kParts : one.op == kMul ? 2 : kParts - 1;
      for (size_t i = 0; i < one.in.size(); ++i) {
        const Bundle* const other = operand_bundle(bundle, i);
        if (!other || other->bytes || std::ranges::count(packed, other)) continue;
        packed.push_back(other);
        gained -= kPack;
      }
      if (!one.out.empty() && read_elsewhere(bundle)) gained -= kUnpack;
    }
    return gained;
  }

  // ---- The code ----

  void rewrite() {
    const std::vector<Instruction> body = kernel_.body;
    std::vector<Instruction> made;
    std::vector<char> unpacked(bundles_.size(), 0);
    for (size_t b = 0; b < bundles_.size(); ++b)
      unpacked[b] = bundles_[b].bytes && !at(bundles_[b]).out.empty() && read_elsewhere(bundles_[b]);
    size_t next = 0;
    for (size_t i = 0; i < body.size();) {
      while (next < bundles_.size() && bundles_[next].first < i) ++next;
      if (next < bundles_.size() && bundles_[next].first == i && bundles_[next].bytes) {
        write(bundles_[next], made);
        if (unpacked[next]) unpack(bundles_[next], made);
        i += kParts;
        continue;
      }
      made.push_back(body[i++]);
    }
    kernel_.body = std::move(made);
    for (const auto& [id, spread] : spread_) {
      const auto defines = [id](const Instruction& one) { return !one.out.empty() && one.out[0] == id; };
      const auto definition = std::ranges::find_if(kernel_.body, defines);
      kernel_.body.insert(definition + 1, {.op = "SpreadByte", .in = {id}, .out = {spread}});
    }
  }

  RegisterId vector_of_bytes() { return kernel_.add_lanes(kI32); }

  RegisterId bytes_of(const Bundle& bundle, size_t i, std::vector<Instruction>& made) {
    Bundle* const other = operand_bundle(bundle, i);
    if (!other) {
      auto [spread, is_new] = spread_.try_emplace(operand(bundle.first, 0, i), -1);
      if (is_new) spread->second = vector_of_bytes();
      return spread->second;
    }
    if (other->made >= 0) return other->made;
    other->made = vector_of_bytes();
    Instruction pack{.op = "PackBytes", .out = {other->made}, .label = at(*other).label};
    for (int part = 0; part < kParts; ++part) pack.in.push_back(operand(bundle.first, part, i));
    made.push_back(std::move(pack));
    return other->made;
  }

  void write(Bundle& bundle, std::vector<Instruction>& made) {
    Instruction one = at(bundle);
    const std::optional<ElementType> compared = is_compare(one.op) ? common(bundle, 0) : bundle.exact;
    for (size_t i = 0; i < one.in.size(); ++i) one.in[i] = bytes_of(bundle, i, made);
    if (one.op == kWrap || is_renaming(kernel_, at(bundle))) {
      bundle.made = one.in[0];
      return;
    }
    if (!is_logic(one.op) && !is_bitwise(one.op)) one.op = one.op.str() + "Bytes";
    if (compared) one.attributes.set("signed", compared == kI8 ? 1 : 0);
    if (!one.out.empty()) {
      bundle.made = element_of(kernel_, one.out[0]).is_bool() ? kernel_.add_lanes(kBool) : vector_of_bytes();
      one.out[0] = bundle.made;
    }
    made.push_back(std::move(one));
  }

  void unpack(const Bundle& bundle, std::vector<Instruction>& made) const {
    for (int part = 0; part < kParts; ++part) {
      Instruction one{.op = "UnpackBytes" + std::to_string(part),
                      .in = {bundle.made},
                      .out = {at(bundle, part).out[0]},
                      .label = at(bundle).label};
      one.attributes.set("signed", bundle.exact == kI8 ? 1 : 0);
      made.push_back(std::move(one));
    }
  }

  LinearKernel& kernel_;
  const Isa isa_;
  const LowBits demand_;
  std::vector<Bundle> bundles_;
  std::vector<int> bundle_of_, region_of_;
  std::map<RegisterId, RegisterId> spread_;
};

}  // namespace

void join_bytes(LinearKernel& kernel, Isa isa) {
  if (kernel.lanes * 32 == vector_bits(isa)) Joiner(kernel, isa).run();
}

}  // namespace tenon::x86
