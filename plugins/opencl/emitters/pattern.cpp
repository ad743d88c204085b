#include "opencl/emitters/pattern.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <vector>

#include <tenon/support/str.hpp>

#include "opencl/emitters/functions.hpp"

namespace tenon::opencl {
namespace {

using codegen::Emission;
using codegen::JitterRow;
using codegen::LaneTypes;

ElementType integers_like(ElementType element, bool with_sign) {
  if (element.bits() == 64) return with_sign ? kI64 : kU64;
  return with_sign ? kI32 : kU32;
}

// By its bits, because a decimal text may be read back as another number.
std::string literal(float value) { return str("as_float(", std::bit_cast<uint32_t>(value), "u)"); }

class Expander {
 public:
  Expander(SourceContext& context, std::string_view text, const Fill& fill, std::string_view own_name)
      : context_(context), text_(text), fill_(fill), own_name_(own_name) {}

  Result<std::string> run() {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '$') {
        TENON_OK(hole());
      } else if (c == '@') {
        TENON_OK(call());
      } else {
        out_ += c;
      }
    }
    return std::move(out_);
  }

 private:
  bool wide() const { return fill_.element.bits() == 64; }
  std::string type(ElementType element) const { return lanes_name(element, fill_.lanes); }

  Result<std::string> operand(char digit) const {
    const auto index = static_cast<size_t>(digit - '0');
    if (index < fill_.operands.size()) return fill_.operands[index];
    return error(Code::internal, "operand ", index, " of ", fill_.operands.size());
  }

  Result<void> hole() {
    const char kind = at_ < text_.size() ? text_[at_++] : '\0';
    switch (kind) {
      case 'T': out_ += type(fill_.element); return {};
      case 'S': out_ += scalar_name(fill_.element); return {};
      case 'N': append_text(out_, fill_.lanes); return {};
      case 'I': out_ += type(integers_like(fill_.element, true)); return {};
      case 'U': out_ += type(integers_like(fill_.element, false)); return {};
      case 'D': out_ += type(kF64); return {};
      case 'b': append_text(out_, fill_.element.bits() - 1); return {};
      case 'C': out_ += wide() ? str("convert_int", fill_.lanes) : std::string(); return {};
      case 'L': out_ += wide() ? str("convert_long", fill_.lanes) : std::string(); return {};
      case 'a': return alpha();
      case 'u': return unsigned_operand();
      default: break;
    }
    TENON_TRY(text, operand(kind));
    out_ += text;
    return {};
  }

  Result<void> unsigned_operand() {
    TENON_TRY(text, operand(at_ < text_.size() ? text_[at_++] : '\0'));
    out_ += str("as_", type(integers_like(fill_.element, false)), "(", text, ")");
    return {};
  }

  Result<void> alpha() {
    const Attribute* attribute = fill_.attributes ? fill_.attributes->find("alpha") : nullptr;
    const float* value = attribute ? attribute->get_if<float>() : nullptr;
    out_ += literal(value ? *value : 1.0f);
    return {};
  }

  // "@(": the function itself.
  Result<void> call() {
    Fill fill{fill_.element, fill_.lanes};
    if (at_ < text_.size() && text_[at_] == '@') {
      fill.element = kF64;
      ++at_;
    }
    std::string name;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      name += text_[at_++];
    if (name.empty()) {
      out_ += own_name_;
      return {};
    }
    const std::string_view text = function_text(name, fill.element);
    if (text.empty()) return error(Code::internal, "there is no function ", name, " of ", fill.element);
    const std::string full = str("tenon_", name, "_", type(fill.element));
    TENON_TRY(function, Expander(context_, text, fill, full).run());
    context_.define(function);
    out_ += full;
    return {};
  }

  SourceContext& context_;
  std::string_view text_;
  const Fill& fill_;
  std::string_view own_name_;
  size_t at_ = 0;
  std::string out_;
};

// The lane type of a row.
ElementType lanes_of(const Emission& e) {
  for (const codegen::EmitValue& value : e.in)
    if (!value.element.is_bool()) return value.element;
  return e.out[0].element;
}

LaneTypes without_f64(LaneTypes types) {
  LaneTypes made;
  for (const ElementType type : {kF32, kI32, kU32, kI64, kU64, kBool})
    if (types.contains(type)) made = made | LaneTypes{type};
  return made;
}

}  // namespace

Result<std::string> expand(SourceContext& context, std::string_view text, const Fill& fill) {
  return Expander(context, text, fill, {}).run();
}

Result<void> PatternEmitter::emit_code(codegen::EmitContext& to, const Emission& e) const {
  SourceContext& context = source_context(to);
  std::vector<std::string> operands;
  for (const codegen::EmitValue& value : e.in) operands.push_back(context.name(value));
  TENON_TRY(text, expand(context, pattern_.text, {lanes_of(e), context.lanes(), operands, &e.attributes}));
  context.assign(e.out[0], text);
  return {};
}

Result<void> add_row(codegen::JitterTable& table, JitterRow row) {
  if (!row.types.contains(kF64) || row.feature == kFp64) return table.add(std::move(row));
  JitterRow wide = row;
  row.types = without_f64(row.types);
  // A row has only one feature; with doubles, results are correctly rounded without the other one.
  wide.feature = kFp64;
  if (row.types != LaneTypes{}) TENON_OK(table.add(std::move(row)));
  return table.add(std::move(wide));
}

}  // namespace tenon::opencl
