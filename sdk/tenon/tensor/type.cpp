#include <tenon/tensor/type.hpp>

#include <tenon/expr/text.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

constexpr int kDepthLimit = 32;  // of nested seq(...) and optional(...): the parser recurses

// Splits at commas outside parentheses and quoted symbols.
std::vector<std::string_view> split_dims(std::string_view text) {
  std::vector<std::string_view> pieces;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      depth += text[i] == '(';
      depth -= text[i] == ')';
      if (text[i] != ',' || depth != 0) continue;
      pieces.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  pieces.push_back(trim(text.substr(begin)));
  return pieces;
}

Result<Dim> parse_dim(std::string_view text) {
  if (text == "?") return Dim();
  if (text.empty()) return error(Code::parse, "a dim is missing; an unknown one is written '?'");
  TENON_TRY(value, parse_expr(text), "the dim ", quote(text));
  if (value.is_constant() && value.constant() < 0)
    return error(Code::parse, "the dim ", value.constant(), " is negative; an unknown dim is written '?'");
  return Dim(std::move(value));
}

// Parses `text`, which has no brackets around it.
Result<Shape> parse_shape(std::string_view text) {
  text = trim(text);
  if (text == "*") return Shape();
  std::vector<Dim> dims;
  if (text.empty()) return Shape(std::move(dims));
  for (const std::string_view piece : split_dims(text)) {
    TENON_TRY(dim, parse_dim(piece));
    dims.push_back(std::move(dim));
  }
  return Shape(std::move(dims));
}

Result<Type> parse_tensor(std::string_view text) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']')
    return error(Code::parse, quote(text),
                 " is no type; expected an element type and a shape as in f32[2,N,?] (f32[] for a scalar), seq(type), "
                 "optional(type), or ?");
  const std::string_view name = trim(text.substr(0, open));
  const auto element = name == "?" ? ElementType() : ElementType::parse(name);
  if (!element)
    return error(Code::parse, quote(name), " is no element type; expected f32, i64, u4, bool, str or the like");
  TENON_TRY(shape, parse_shape(text.substr(open + 1, text.size() - open - 2)), "the type ", quote(text));
  return Type(*element, std::move(shape));
}

Result<Type> parse_nested(std::string_view text, int depth) {
  text = trim(text);
  if (text == "?") return Type();
  if (depth > kDepthLimit) return error(Code::resource_exhausted, "a type nests deeper than ", kDepthLimit, " levels");
  for (const bool sequence : {true, false}) {
    const std::string_view opening = sequence ? "seq(" : "optional(";
    if (!text.starts_with(opening) || !text.ends_with(')')) continue;
    const auto inside = text.substr(opening.size(), text.size() - opening.size() - 1);
    TENON_TRY(inner, parse_nested(inside, depth + 1));
    return sequence ? Type::sequence(std::move(inner)) : Type::optional(std::move(inner));
  }
  return parse_tensor(text);
}

}  // namespace

std::string TensorType::to_string() const { return str(element.valid() ? element.to_string() : "?", shape); }

Type Type::sequence(Type element) {
  Type out;
  out.kind_ = Kind::sequence;
  out.inner_ = std::make_shared<const Type>(std::move(element));
  return out;
}

Type Type::optional(Type element) {
  Type out = sequence(std::move(element));
  out.kind_ = Kind::optional;
  return out;
}

bool Type::operator==(const Type& other) const {
  if (kind_ != other.kind_) return false;
  if (kind_ == Kind::unknown) return true;
  return is_tensor() ? tensor_ == other.tensor_ : *inner_ == *other.inner_;
}

std::string Type::to_string() const {
  switch (kind_) {
    case Kind::unknown: return "?";
    case Kind::tensor: return tensor_.to_string();
    case Kind::sequence: return str("seq(", *inner_, ")");
    case Kind::optional: return str("optional(", *inner_, ")");
  }
  return "?";
}

Result<Type> parse_type(std::string_view text) { return parse_nested(text, 0); }

Result<Type> merge(const Type& a, const Type& b) {
  if (!a.known()) return b;
  if (!b.known()) return a;
  if (a.kind() != b.kind()) return error(Code::invalid_argument, "types ", a, " and ", b, " cannot be the same");
  if (!a.is_tensor()) {
    TENON_TRY(inner, merge(a.inner(), b.inner()), "merging ", a, " with ", b);
    return a.is_sequence() ? Type::sequence(std::move(inner)) : Type::optional(std::move(inner));
  }
  if (a.element().valid() && b.element().valid() && a.element() != b.element())
    return error(Code::invalid_argument, "types ", a, " and ", b, " cannot be the same: their elements are ",
                 a.element(), " and ", b.element());
  TENON_TRY(shape, merge(a.shape(), b.shape()));
  return Type(a.element().valid() ? a.element() : b.element(), std::move(shape));
}

}  // namespace tenon
