#include <tenon/snippet/body/body.hpp>

#include <algorithm>
#include <bit>
#include <unordered_map>

#include <tenon/codegen/register.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

std::string dims_text(const Body& body, DimSet set) {
  std::string text;
  for (size_t d = 0; d < body.rank(); ++d)
    if (set >> d & 1) text += str(text.empty() ? "" : " ", "d", d);
  return text.empty() ? "nothing" : text;
}

Result<void> check_node(const Body& body, const BodyNode& node, std::vector<char>& made) {
  const auto known = [&](ValueId id) { return id >= 0 && static_cast<size_t>(id) < body.values.size(); };
  for (const ValueId operand : node.operands) {
    if (known(operand) && made[static_cast<size_t>(operand)]) continue;
    return error(Code::internal, node.op, " (", node.label, ") uses %", operand, " before it is made");
  }
  if (!known(node.result) || made[static_cast<size_t>(node.result)])
    return error(Code::internal, node.op, " (", node.label, ") makes %", node.result,
                 ", which is no value, or made twice");
  DimSet from = 0;
  for (const ValueId operand : node.operands) from |= body.values[static_cast<size_t>(operand)].varies;
  if (is_reduction(node.op)) from &= ~body.reduced_dims();
  const DimSet varies = body.values[static_cast<size_t>(node.result)].varies;
  const bool spreads = node.op == kSpread && node.operands.size() == 1 && (from & ~varies) == 0 &&
                       body.values[static_cast<size_t>(node.operands[0])].element ==
                           body.values[static_cast<size_t>(node.result)].element;
  if (varies != from && !spreads) {
    return error(Code::internal, "%", node.result, " = ", node.op, " (", node.label, ") varies over ",
                 dims_text(body, varies), ", its operands over ", dims_text(body, from));
  }
  made[static_cast<size_t>(node.result)] = 1;
  return {};
}

Result<void> check_cuts(const Body& body, const BodyPort& port, std::string_view kind) {
  int inner = static_cast<int>(body.rank());
  for (const PortCut& cut : port.cuts) {
    const bool within = lanes_follow(port.cuts, body.values[static_cast<size_t>(port.value)].varies) &&
                        cut.begin >= 0 && cut.box > 0 && cut.begin <= cut.whole - cut.box;
    if (!within || cut.dim < 0 || cut.dim > inner)
      return error(Code::internal, kind, " %", port.value, " of body '", body.name, "' is cut to [", cut.begin, ":",
                   cut.begin + cut.box, "] of ", cut.whole, " from dim ", cut.dim, " on");
    inner = cut.dim;
  }
  return {};
}

}  // namespace

std::optional<Name> fold_of(Name op) {
  static const std::unordered_map<Name, Name> kFolds{
      {"ReduceSum", "Add"}, {"ReduceProd", "Mul"}, {"ReduceMax", "Max"}, {"ReduceMin", "Min"}};
  const auto found = kFolds.find(op);
  return found == kFolds.end() ? std::nullopt : std::optional(found->second);
}

uint64_t lane_bits(ElementType lane, double number) {
  if (lane == kF32) return std::bit_cast<uint32_t>(static_cast<float>(number));
  if (lane == kF64) return std::bit_cast<uint64_t>(number);
  // A number outside i64 is the end of the range.
  if (number >= 0x1p63) return lane == kU64 ? ~uint64_t{0} : static_cast<uint64_t>(INT64_MAX);
  const auto integer = static_cast<uint64_t>(static_cast<int64_t>(number));
  return lane == kI64 || lane == kU64 ? integer : integer & 0xffffffff;
}

DimSet Body::reduced_dims() const {
  DimSet set = 0;
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d].reduced) set |= DimSet{1} << d;
  return set;
}

bool lanes_follow(const std::vector<PortCut>& cuts, DimSet set) {
  return set == 0 || cuts.empty() || cuts.front().dim < static_cast<int>(std::bit_width(set));
}

size_t Body::first_of_row() const {
  size_t first = rank();
  while (first > 0 && dims[first - 1].reduced) --first;
  return first == rank() && first > 0 ? first - 1 : first;
}

bool Body::has_cuts() const {
  const auto is_cut = [](const BodyPort& port) { return !port.cuts.empty(); };
  return std::ranges::any_of(inputs, is_cut) || std::ranges::any_of(outputs, is_cut);
}

ValueId Body::add_value(BodyValue like) {
  values.push_back(like);
  return static_cast<ValueId>(values.size()) - 1;
}

BodyNode Body::make_scalar(ElementType lane, uint64_t bits, std::string label) {
  static const Name kScalar("Scalar"), kBits("bits");
  BodyNode node{.op = kScalar, .result = add_value({.element = lane}), .label = std::move(label)};
  node.attributes.set(kBits, static_cast<int64_t>(bits));
  return node;
}

ValueId Body::append(BodyNode node, BodyValue like, std::vector<BodyNode>& into) {
  node.result = add_value(like);
  into.push_back(std::move(node));
  return into.back().result;
}

std::string Body::to_string() const {
  std::string text = str("body @", name, " (");
  for (size_t d = 0; d < rank(); ++d)
    text += str(d ? ", " : "", "d", d, " = ", dims[d].extent, dims[d].reduced ? " reduced" : "");
  text += ") {\n";
  const auto typed = [&](ValueId id) {
    const BodyValue& value = values[static_cast<size_t>(id)];
    return str("%", id, ": ", value.element, " over ", dims_text(*this, value.varies));
  };
  const auto cuts_text = [](const BodyPort& port) {
    std::string cuts;
    for (const PortCut& cut : port.cuts)
      cuts += str(" [", cut.begin, ":", cut.begin + cut.box, " of ", cut.whole, " from d", cut.dim, " on]");
    return cuts;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    text += str("  ", typed(inputs[i].value), " = input ", i, " ", inputs[i].element, cuts_text(inputs[i]), "\n");
  for (const BodyNode& node : nodes) {
    text += str("  ", typed(node.result), " = ", node.op);
    for (size_t i = 0; i < node.operands.size(); ++i) text += str(i ? ", " : " ", "%", node.operands[i]);
    if (const Attribute* bits = node.attributes.find("bits")) text += str(" bits ", *bits->get_if<int64_t>());
    if (const Attribute* to = node.attributes.find("to"); to && to->get_if<std::string>())
      text += str(" to ", *to->get_if<std::string>());
    text += "\n";
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    text += str("  output ", i, " ", outputs[i].element, cuts_text(outputs[i]), " = %", outputs[i].value, "\n");
  return text + "}\n";
}

Result<void> verify(const Body& body) {
  if (body.dims.size() > kMaxDims)
    return error(Code::internal, "body '", body.name, "' has ", body.dims.size(), " dims, at most ", kMaxDims,
                 " are possible");
  std::vector<char> made(body.values.size(), 0);
  for (const BodyPort& input : body.inputs) {
    if (input.value < 0 || static_cast<size_t>(input.value) >= made.size())
      return error(Code::internal, "an input of body '", body.name, "' is no value");
    made[static_cast<size_t>(input.value)] = 1;
    TENON_OK(check_cuts(body, input, "input"));
  }
  for (const BodyValue& value : body.values) {
    if (codegen::lane_type(value.element) != value.element || (value.varies & ~body.all_dims()) != 0)
      return error(Code::internal, "a value of body '", body.name, "' is ", value.element,
                   " over dims that are not there, or no lane type");
  }
  for (const BodyNode& node : body.nodes) TENON_OK(check_node(body, node, made), "body '", body.name, "'");
  for (const BodyPort& output : body.outputs) {
    if (output.value < 0 || static_cast<size_t>(output.value) >= made.size() ||
        !made[static_cast<size_t>(output.value)])
      return error(Code::internal, "an output of body '", body.name, "' is never made");
    TENON_OK(check_cuts(body, output, "output"));
  }
  return {};
}

}  // namespace tenon::snippet
