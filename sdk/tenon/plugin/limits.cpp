#include <tenon/plugin/limits.hpp>

#include <algorithm>
#include <cmath>

#include <tenon/ir/op_def.hpp>
#include <tenon/ir/op_view.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/window.hpp>

namespace tenon {
namespace {

using Integers = Attribute::Integers;
// The numbers that a word denotes for one operator. An error: the operator has no such property, or only a run knows
// it.
using Numbers = Result<Integers>;

Error unknown(const Op& op) { return error(Code::unsupported, " of ", op.describe(), " is known only to a run"); }
Error no_meaning(const Op& op) { return error(Code::unsupported, " has no meaning for ", op.describe()); }

Numbers listed(const Op& op, Name name, int64_t fallback) {
  Integers values = op.attr<Integers>(name);
  return values.empty() ? Integers{fallback} : values;
}

// Extents `begin` to `end` (at most all) of a tensor.
Numbers extents(const Op& op, const Value* value, size_t begin, size_t end) {
  if (!value || !value->type().is_tensor()) return no_meaning(op);
  const Shape& shape = value->type().shape();
  if (!shape.ranked()) return unknown(op);
  Integers out;
  for (size_t i = begin; i < std::min(end, shape.dims().size()); ++i) {
    if (!shape[i].is_static()) return unknown(op);
    out.push_back(shape[i].value());
  }
  return out;
}

Numbers of_first_values(const Op& op, size_t begin, size_t end) {
  TENON_TRY(out, extents(op, op.operand(0), begin, end));
  TENON_TRY(result, extents(op, op.result_count() > 0 ? op.result(0) : nullptr, begin, end));
  out.insert(out.end(), result.begin(), result.end());
  return out;
}

std::optional<size_t> weights_of(const OpDef& def) {
  const auto& operands = def.operands();
  const auto found = std::ranges::find_if(
      operands, [](const OperandDef& each) { return each.name == "W" || each.name == "w" || each.name == "weight"; });
  return found == operands.end() ? std::nullopt : std::optional(static_cast<size_t>(found - operands.begin()));
}

Numbers kernel_of(const Op& op) {
  if (Integers given = op.attr<Integers>("kernel_shape"); !given.empty()) return given;
  const auto weights = weights_of(*op.def());
  return extents(op, weights ? op.operand(*weights) : nullptr, 2, SIZE_MAX);
}

// The padding that auto_pad SAME_* results in: begins, then ends.
Numbers same_pads(const Op& op) {
  if (isa<ConvTranspose>(op)) return unknown(op);  // there it depends on the output
  TENON_TRY(kernel, kernel_of(op));
  TENON_TRY(in, extents(op, op.operand(0), 2, SIZE_MAX));
  if (in.size() != kernel.size()) return unknown(op);
  TENON_TRY(window, Window::of(op, kernel.size(), std::vector<Dim>(kernel.begin(), kernel.end())));
  // An odd one is at the end (UPPER) or at the beginning (LOWER): the end of one is the beginning of the other.
  Window turned = window;
  turned.auto_pad = window.auto_pad == AutoPad::same_upper ? AutoPad::same_lower : AutoPad::same_upper;
  Integers pads;
  for (size_t i = 0; i < in.size(); ++i) pads.push_back(window.pad_begin(i, in[i]));
  for (size_t i = 0; i < in.size(); ++i) pads.push_back(turned.pad_begin(i, in[i]));
  return pads;
}

Numbers pads_of(const Op& op) {
  const auto automatic = op.attr<std::string>("auto_pad", "NOTSET");
  if (automatic == "VALID") return Integers{0};
  return automatic == "NOTSET" ? listed(op, "pads", 0) : same_pads(op);
}

bool takes_tensor(const OpDef& def) {
  if (def.operands().empty()) return false;
  const auto set = def.type_vars().find(def.operands()[0].type_var);
  if (set == def.type_vars().end()) return true;  // an element type
  // Where sequences or optionals are allowed besides tensors, any tensor is.
  const bool takes_others =
      set->second.contains(Type::sequence(Type())) || set->second.contains(Type::optional(Type()));
  return !takes_others || set->second.contains(Type(kF32, Shape()));
}

struct Word {
  std::string_view text;
  bool (*has_meaning)(const OpDef&);
  Numbers (*numbers)(const Op&);  // of an operator whose definition has the property
};
constexpr Word kWords[] = {
    {"kernel", [](const OpDef& def) { return def.attribute("kernel_shape") || weights_of(def); }, kernel_of},
    {"stride", [](const OpDef& def) { return def.attribute("strides") != nullptr; },
     [](const Op& op) { return listed(op, "strides", 1); }},
    {"dilation", [](const OpDef& def) { return def.attribute("dilations") != nullptr; },
     [](const Op& op) { return listed(op, "dilations", 1); }},
    {"pad", [](const OpDef& def) { return def.attribute("pads") != nullptr; }, pads_of},
    {"groups", [](const OpDef& def) { return def.attribute("group") != nullptr; },
     [](const Op& op) { return Numbers(Integers{op.attr<int64_t>("group", 1)}); }},
    {"batch", takes_tensor, [](const Op& op) { return extents(op, op.operand(0), 0, 1); }},
    {"channels", takes_tensor, [](const Op& op) { return of_first_values(op, 1, 2); }},
    {"dims", takes_tensor, [](const Op& op) { return of_first_values(op, 0, SIZE_MAX); }},
};

// The limits that are possible for operators of this definition: its attributes, and the words with a meaning for it.
std::vector<std::string> words_for(const OpDef& def) {
  std::vector<std::string> words;
  for (const Word& word : kWords) {
    if (word.has_meaning(def)) words.emplace_back(word.text);
  }
  for (const AttributeDef& attribute : def.attributes()) words.push_back(attribute.name.str());
  return words;
}

// An operator, and the name under which its limits are stated.
struct Stated {
  const Op& op;
  std::string name;
  bool is_own_name() const { return op.name().view() == name; }
};

Result<void> check_attribute(const TargetDescription& target, const Stated& stated, const std::string& word,
                             const AttributeDef& def) {
  const Op& op = stated.op;
  const Attribute* value = op.attributes().find(def.name);
  if (!value && def.fallback) value = &*def.fallback;
  if (!value) return {};  // absent, so there is nothing to limit
  const std::string& name = stated.name;
  if (const auto* number = value->get_if<int64_t>()) return target.check(name, word, *number);
  if (const auto* numbers = value->get_if<Integers>()) return target.check(name, word, *numbers);
  if (const auto* text = value->get_if<std::string>()) return target.check(name, word, std::string_view(*text));
  const auto* real = value->get_if<float>();
  if (real && *real == std::floor(*real) && std::abs(*real) < 1e9f)
    return target.check(name, word, static_cast<int64_t>(*real));
  return error(Code::unsupported, word, " of ", op.describe(),
               " is neither a whole number nor a word, as its limit on target ", target.name, " is");
}

bool allows_anything(const Constraint& limit) {
  return !limit.min && !limit.max && !limit.multiple_of && limit.one_of.empty();
}

Result<void> check_limit(const TargetDescription& target, const Stated& stated, const Constraint& limit) {
  const Op& op = stated.op;
  if (allows_anything(limit)) return {};
  const AttributeDef* def = op.def() ? op.def()->attribute(Name(limit.name)) : nullptr;
  if (def) return check_attribute(target, stated, limit.name, *def);
  const auto word = std::ranges::find(kWords, limit.name, &Word::text);
  const bool has_meaning = word != std::end(kWords) && op.def() && word->has_meaning(*op.def());
  const Numbers numbers = has_meaning ? word->numbers(op) : Numbers(no_meaning(op));
  if (numbers.ok()) return target.check(stated.name, limit.name, *numbers);
  return error(Code::unsupported, limit.name, numbers.error().message(), ", and target ", target.name, " limits it");
}

Result<void> check_types(const TargetDescription& target, const Stated& stated) {
  const Op& op = stated.op;
  const auto check = [&](const Value* value) -> Result<void> {
    if (!value || !value->type().is_tensor()) return {};
    return target.check_type(stated.name, value->type().element().to_string());
  };
  const size_t operands = stated.is_own_name() ? op.operand_count() : 1;
  for (size_t i = 0; i < operands; ++i) TENON_OK(check(op.operand(i)));
  for (size_t i = 0; i < op.result_count(); ++i) TENON_OK(check(op.result(i)));
  return {};
}

Result<void> check_stated(const TargetDescription& target, const Stated& stated) {
  const OperatorLimits* limits = target.limits(stated.name);
  if (!limits) return {};
  TENON_OK(target.check(stated.name));
  if (!limits->types.empty()) TENON_OK(check_types(target, stated));
  for (const Constraint& limit : limits->attributes) TENON_OK(check_limit(target, stated, limit));
  return {};
}

Result<void> check_op(const TargetDescription& target, const Op& op) {
  TENON_OK(check_stated(target, {op, op.name().str()}));
  for (size_t i = 0; i < op.region_count(); ++i) {
    for (const Op& inner : op.region(i)) TENON_OK(check_op(target, inner));
  }
  return {};
}

std::string hint(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? "" : str("; did you mean '", near, "'?");
}

std::optional<Refusal> as_refusal(const Result<void>& checked) {
  return checked.ok() ? std::nullopt : std::optional(Refusal{checked.error().message()});
}

}  // namespace

std::optional<Refusal> limits_refuse(const TargetDescription& description, const Op& op) {
  return as_refusal(check_op(description, op));
}

std::optional<Refusal> limits_refuse(const TargetDescription& description, const Op& op, std::string_view stated_as) {
  return as_refusal(check_stated(description, {op, std::string(stated_as)}));
}

Result<void> check_limits(const TargetDescription& description) {
  for (const OperatorLimits& limits : description.operators) {
    const OpDef* def = find_op(Name(limits.name));
    if (!def) {
      std::vector<std::string> names;
      for (const OpDef* known : all_ops()) names.push_back(known->name().str());
      return error(Code::invalid_argument, description.place_of({"operators", limits.name}),
                   "neither Tenon nor plugin '", description.plugin, "' defines an operator '", limits.name, "'",
                   hint(limits.name, names));
    }
    const std::vector<std::string> words = words_for(*def);
    for (const Constraint& limit : limits.attributes) {
      if (std::ranges::find(words, limit.name) != words.end()) continue;
      return error(Code::invalid_argument, description.place_of({"operators", limits.name, limit.name}), "'",
                   limit.name, "' means nothing for ", limits.name, ", where ", words, " can be limited",
                   hint(limit.name, words));
    }
  }
  return {};
}

}  // namespace tenon
