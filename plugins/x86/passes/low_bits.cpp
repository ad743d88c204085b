// Demanded bits: integers of which only low bits are read. Drops Wraps that change no demanded bit, and converts
// clamped floats with a single instruction (ConvertInRange).
#include <map>

#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

constexpr int kAllBits = 32;

float number_of(const Instruction& scalar) {
  return std::bit_cast<float>(static_cast<uint32_t>(*scalar.attributes.find("bits")->get_if<int64_t>()));
}

}  // namespace

bool has_32_bits(const LinearKernel& kernel, RegisterId id) {
  const ElementType element = kernel.registers[static_cast<size_t>(id)].element;
  return element.is_int() && element.bits() == 32;
}

bool is_byte(ElementType element) { return element.is_int() && element.bits() == 8; }

bool is_of_bytes(const snippet::Body& body) {
  const auto in_lanes = [&](const snippet::BodyValue& value) { return (value.varies >> (body.rank() - 1) & 1) != 0; };
  const auto in_bytes = [&](const snippet::BodyPort& port) {
    return is_byte(port.element) || !in_lanes(body.values[static_cast<size_t>(port.value)]);
  };
  const auto narrow = [&](const snippet::BodyValue& value) {
    return !in_lanes(value) || value.element.is_bool() || (value.element.is_int() && value.element.bits() == 32);
  };
  return body.rank() > 0 && !body.reduces() && std::ranges::all_of(body.values, narrow) &&
         std::ranges::all_of(body.inputs, in_bytes) && std::ranges::all_of(body.outputs, in_bytes);
}

bool has_bytes(const snippet::Body& body) {
  const auto in_lanes = [&](const snippet::BodyValue& value) { return (value.varies >> (body.rank() - 1) & 1) != 0; };
  const auto is_one = [&](const snippet::BodyPort& port) {
    return is_byte(port.element) && in_lanes(body.values[static_cast<size_t>(port.value)]);
  };
  const auto has_32_bit_lanes = [](const snippet::BodyValue& value) { return value.element.bits() <= 32; };
  const auto makes_one = [&](const snippet::BodyNode& node) {
    static const Name kTo("to");
    if (node.op != kWrap || !in_lanes(body.values[static_cast<size_t>(node.result)])) return false;
    const std::string* const to = node.attributes.find(kTo)->get_if<std::string>();
    return to && is_byte(ElementType::parse(*to).value_or(ElementType{}));
  };
  return body.rank() > 0 && !body.reduces() && std::ranges::all_of(body.values, has_32_bit_lanes) &&
         (std::ranges::any_of(body.inputs, is_one) || std::ranges::any_of(body.outputs, is_one) ||
          std::ranges::any_of(body.nodes, makes_one));
}

bool is_modular(Name op) {
  static const Name kNames[] = {"Add", "Sub", "Mul", "Neg", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"};
  return std::find(std::begin(kNames), std::end(kNames), op) != std::end(kNames);
}

bool is_renaming(const LinearKernel& kernel, const Instruction& one) {
  return one.op == kConvert && has_32_bits(kernel, one.in[0]) && has_32_bits(kernel, one.out[0]);
}

ElementType wrapped_to(const Instruction& wrap) {
  static const Name kTo("to");
  const Attribute* const to = wrap.attributes.find(kTo);
  const std::string* const text = to ? to->get_if<std::string>() : nullptr;
  return text ? ElementType::parse(*text).value_or(ElementType{}) : ElementType{};
}

LowBits::LowBits(const LinearKernel& kernel, const Uses& uses) : bits_(kernel.registers.size()) {
  // Loop-carried registers are read before they are written: all of their bits count.
  for (size_t id = 0; id < bits_.size(); ++id)
    if (!uses.once(static_cast<RegisterId>(id))) bits_[id] = kAllBits;
  for (auto one = kernel.body.rbegin(); one != kernel.body.rend(); ++one)
    for (size_t i = 0; i < one->in.size(); ++i) {
      int& wanted = bits_[static_cast<size_t>(one->in[i])];
      wanted = std::max(wanted, of_operand(kernel, *one, i));
    }
}

int LowBits::of_operand(const LinearKernel& kernel, const Instruction& one, size_t i) const {
  static const Name kStore("Store"), kWhere("Where");
  if (one.op == kStore && i == 0 && has_32_bits(kernel, one.in[0])) return one.memory->element.bits();
  if (one.op == kWrap) return std::min(wrapped_to(one).bits(), of(one.out[0]));
  if (one.memory || one.out.size() != 1) return kAllBits;
  const bool passes = is_modular(one.op) || is_renaming(kernel, one) || (one.op == kWhere && i > 0);
  return passes && has_32_bits(kernel, one.out[0]) ? of(one.out[0]) : kAllBits;
}

namespace {

void convert_in_range(LinearKernel& kernel, const Uses& uses, const LowBits& wanted) {
  const auto maker = [&](RegisterId id) {
    const auto made = uses.maker(id);
    return made ? &kernel.body[*made] : nullptr;
  };
  for (Instruction& one : kernel.body) {
    if (one.op != kConvert || kernel.registers[static_cast<size_t>(one.in[0])].element != kF32 ||
        !has_32_bits(kernel, one.out[0]))
      continue;
    const Instruction* const high = maker(one.in[0]);
    Instruction* const low = high && high->op == kClampHigh && !high->memory ? maker(high->in[0]) : nullptr;
    if (!low || low->op != kClampLow || low->memory) continue;
    const Instruction *const least = maker(low->in[1]), *const most = maker(high->in[1]);
    if (!least || !most || least->op != kScalar || most->op != kScalar) continue;
    if (!(number_of(*least) >= -0x1p31f) || !(number_of(*most) < 0x1p31f)) continue;
    if (wanted.of(one.out[0]) < kAllBits) {
      one.op = kConvertInRange;
    } else if (std::bit_cast<uint32_t>(number_of(*least)) == 0 && number_of(*most) >= 0 &&
               uses.is_for_one(low->out[0]) && uses.is_for_one(high->out[0])) {
      low->op = "ClampLowOfNaN";
      one.op = kConvertInRange;
    }
  }
}

void drop_wraps(LinearKernel& kernel, const Uses& uses, const LowBits& wanted) {
  std::map<RegisterId, RegisterId> same;
  std::erase_if(kernel.body, [&](Instruction& one) {
    for (RegisterId& id : one.in)
      if (const auto found = same.find(id); found != same.end()) id = found->second;
    if (one.op != kWrap || !uses.once(one.out[0]) || !uses.once(one.in[0]) ||
        wanted.of(one.out[0]) > wrapped_to(one).bits())
      return false;
    same[one.out[0]] = one.in[0];
    return true;
  });
}

}  // namespace

// One analysis serves both: neither changes how many bits are read of what the other one inspects.
void use_low_bits(LinearKernel& kernel) {
  const bool wraps = has_any(kernel, {kWrap}), converts = has_any(kernel, {kConvert});
  if (!wraps && !converts) return;
  const Uses uses(kernel);
  const LowBits wanted(kernel, uses);
  if (converts) convert_in_range(kernel, uses, wanted);
  if (wraps) drop_wraps(kernel, uses, wanted);
}

}  // namespace tenon::x86
