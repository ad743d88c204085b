#include <tenon/ir/value_layout.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include <tenon/ir/graph.hpp>
#include <tenon/support/str.hpp>

namespace tenon {

std::string_view pad_state_name(PadState state) {
  static constexpr std::array<std::string_view, 4> kNames = {"none", "zero", "value", "dirty"};
  return kNames[static_cast<size_t>(state)];
}

std::string_view layout_name_text(LayoutName name) {
  static constexpr std::array<std::string_view, 20> kTexts = {
      "NC",        "CN",        "NCW",   "NWC",   "NCHW", "NHWC", "CHWN", "NCHW{4c}",   "NCHW{8c}",     "NCHW{16c}",
      "NCHW{32c}", "NCDHW",     "NDHWC", "OIHW",  "OHWI", "HWIO", "OIHW{8i8o}", "OIHW{16i16o}", "OIDHW", "DHWIO"};
  return kTexts[static_cast<size_t>(name)];
}

// ---- Names of dims ----

namespace {

// The usual letters of dims, most common first. Without {K, N}, which are a weight's dims in either order.
constexpr std::array<std::string_view, 26> kUsualDims = {
    "",    "NC",  "OI",  "MK",  "MN",  "RC",   "HW",    "AB",                     // rank 2
    "NCW", "OIW", "NCL", "CHW", "RSC", "ABC",                                     // 3
    "NCHW", "OIHW", "KCRS", "ABCD", "NCDHW", "OIDHW", "GOIHW", "KCDRS", "ABCDE",  // 4, 5
    "GOIDHW", "NCTDHW", "ABCDEF"};

std::set<char> upper_letters(std::string_view text) {
  std::set<char> out;
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c))) out.insert(static_cast<char>(std::toupper(c)));
  }
  return out;
}

// The dims that the digits of a short text refer to; a fused name stands for several.
std::set<char> letters_of(std::string_view text) {
  std::set<char> letters = upper_letters(text.substr(0, text.find(';')));
  constexpr std::string_view kFuse = "fuse(";
  for (size_t at = text.find(kFuse); at != text.npos; at = text.find(kFuse, at + 1)) {
    const std::string_view key = text.substr(at + kFuse.size());
    const std::string_view dims = key.substr(0, key.find(';'));
    const size_t equals = dims.find('=');
    if (equals == dims.npos) continue;
    for (const char fused : upper_letters(dims.substr(0, equals))) letters.erase(fused);
    letters.merge(upper_letters(dims.substr(equals)));
  }
  return letters;
}

// The index of "(n, c) -> (c, n)".
std::optional<std::string> dims_of_map(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == text.npos || text[begin] != '(') return std::nullopt;
  std::string out;
  for (const char c : text.substr(begin, text.find(')') - begin)) {
    if (std::isalpha(static_cast<unsigned char>(c))) out += static_cast<char>(std::toupper(c));
  }
  return out;
}

Error ask_for_dims(std::string_view text, size_t rank) {
  return error(Code::invalid_argument, "the layout ", quote(text), " for a tensor of rank ", rank,
               " does not tell which letter is which dim; name the dims, outermost first");
}

}  // namespace

Result<std::string> default_layout_dims(std::string_view text, size_t rank) {
  if (auto named = dims_of_map(text)) {
    if (named->size() != rank) return ask_for_dims(text, rank);
    return *std::move(named);
  }
  const std::set<char> letters = letters_of(text);
  if (rank == 1 && letters.size() <= 1) return std::string(1, letters.empty() ? 'C' : *letters.begin());
  for (const std::string_view dims : kUsualDims) {
    const auto is_dim = [&](char letter) { return dims.find(letter) != dims.npos; };
    if (dims.size() == rank && std::ranges::all_of(letters, is_dim)) return std::string(dims);
  }
  return ask_for_dims(text, rank);
}

// ---- Resolving ----

Result<Layout> resolve_layout(const ValueLayout& layout, const Dims& shape, int64_t element_bits) {
  std::string dims = layout.dims;
  if (dims.empty()) {
    TENON_TRY(usual, default_layout_dims(layout.text, shape.size()));
    dims = std::move(usual);
  }
  return Layout::parse(layout.text, dims, shape, element_bits);
}

namespace {

std::string name_of(const Value& value) {
  if (!value.name().empty()) return str("value '", value.name(), "'");
  if (value.producer()) return str("result ", value.index(), " of ", value.producer()->describe());
  return str("input ", value.index());
}

Result<Dims> shape_to_lay_out(const Value& value) {
  const Type& type = value.type();
  if (!type.is_tensor() || !type.element().valid() || type.element().is_string()) {
    return error(Code::invalid_argument, name_of(value), " has the type ", type,
                 "; only tensors of numbers have a layout");
  }
  auto dims = type.shape().static_dims();
  if (!dims) {
    return error(Code::invalid_argument, "the shape of ", name_of(value), " is not known: ", type);
  }
  return *std::move(dims);
}

// Checks a text for a shape that is not known yet: only its rank and the grammar.
Result<void> check_open_layout(const Value& value, const ValueLayout& layout) {
  const Shape& shape = value.type().shape();
  if (!shape.ranked()) return {};
  std::string dims = layout.dims;
  if (dims.empty()) {
    TENON_TRY(usual, default_layout_dims(layout.text, static_cast<size_t>(shape.rank())), name_of(value));
    dims = std::move(usual);
  }
  if (dims.size() != static_cast<size_t>(shape.rank())) {
    return error(Code::invalid_argument, name_of(value), " of type ", value.type(), " has a layout of the dims ",
                 quote(dims), ": ", shape.rank(), " are needed");
  }
  // An index map can only be checked with numbers.
  if (dims_of_map(layout.text)) return {};
  std::vector<Expr> extents;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Dim& dim = shape[d];
    extents.push_back(dim.is_static() ? Expr(dim.value()) : Expr::symbol(str("extent", d)));
  }
  TENON_TRY(symbolic, SymbolicLayout::parse(layout.text, dims, extents, value.type().element().bits()), name_of(value));
  return {};
}

Result<void> check_layout(const Value& value, const ValueLayout& layout) {
  const Type& type = value.type();
  if (!type.known()) return {};
  const bool open =
      type.is_tensor() && type.element().valid() && !type.element().is_string() && !type.shape().is_static();
  if (open) return check_open_layout(value, layout);
  TENON_TRY(shape, shape_to_lay_out(value));
  TENON_TRY(resolved, resolve_layout(layout, shape, type.element().bits()), name_of(value), " of type ", type);
  if (resolved.injective()) return {};
  return error(Code::invalid_argument, name_of(value), " of type ", type, " cannot lie in ", quote(layout.text),
               ", where several elements share one slot");
}

}  // namespace

Result<Layout> resolve_layout(const Value& value) {
  TENON_TRY(shape, shape_to_lay_out(value));
  const int64_t bits = value.type().element().bits();
  if (!value.layout()) return Layout::row_major(shape, bits);
  TENON_TRY(layout, resolve_layout(*value.layout(), shape, bits), name_of(value));
  return layout;
}

Result<void> check_layout(const Value& value) {
  if (!value.layout()) return {};
  return check_layout(value, *value.layout());
}

// ---- By name ----

namespace {

using SharedLayout = std::shared_ptr<const ValueLayout>;

Result<SharedLayout> make_layout(const Value& value, std::string_view text, std::string_view dims) {
  ValueLayout layout{std::string(text), std::string(dims), PadState::dirty, 0, /*pinned=*/true};
  const Type& type = value.type();
  if (layout.dims.empty() && type.is_tensor() && type.shape().ranked()) {
    TENON_TRY(usual, default_layout_dims(text, static_cast<size_t>(type.shape().rank())), name_of(value));
    layout.dims = std::move(usual);
  }
  TENON_OK(check_layout(value, layout));
  return std::make_shared<const ValueLayout>(std::move(layout));
}

std::vector<Value*> all_values(Region& region) {
  std::vector<Value*> out;
  for (size_t i = 0; i < region.input_count(); ++i) out.push_back(region.input(i));
  for (Op& op : region) {
    for (size_t i = 0; i < op.region_count(); ++i) {
      const auto inner = all_values(op.region(i));
      out.insert(out.end(), inner.begin(), inner.end());
    }
    for (size_t i = 0; i < op.result_count(); ++i) out.push_back(op.result(i));
  }
  return out;
}

Error no_such_value(std::string_view name, std::vector<std::string> names) {
  constexpr size_t kShown = 3;
  std::string near;
  for (size_t i = 0; i < kShown; ++i) {
    const std::string found = nearest(name, names);
    if (found.empty()) break;
    near += str(near.empty() ? "; did you mean '" : "', '", found);
    std::erase(names, found);
  }
  if (!near.empty()) near += "'?";
  return error(Code::not_found, "no value of the graph is called '", name, "'", near);
}

Result<std::vector<Value*>> values_called(Graph& graph, std::string_view name) {
  std::vector<Value*> found;
  std::vector<std::string> names;
  for (Value* value : all_values(graph.body())) {
    if (value->name() == name && !name.empty()) found.push_back(value);
    if (!value->name().empty()) names.push_back(value->name());
  }
  const Region& body = graph.body();
  for (size_t i = 0; i < body.output_count(); ++i) {
    names.push_back(body.output_name(i));
    Value* value = body.output(i);
    if (value && body.output_name(i) == name && !std::ranges::count(found, value)) found.push_back(value);
  }
  if (found.empty()) return no_such_value(name, std::move(names));
  return found;
}

template <class Make>
Result<void> set_layouts(Graph& graph, std::string_view name, Make make) {
  TENON_TRY(values, values_called(graph, name));
  std::vector<SharedLayout> made;
  for (const Value* value : values) {
    TENON_TRY(layout, make(*value));
    made.push_back(std::move(layout));
  }
  for (size_t i = 0; i < values.size(); ++i) values[i]->set_layout(std::move(made[i]));
  return {};
}

}  // namespace

Result<void> set_layout(Value& value, std::string_view text, std::string_view dims) {
  TENON_TRY(layout, make_layout(value, text, dims));
  value.set_layout(std::move(layout));
  return {};
}

Result<void> set_layout(Graph& graph, std::string_view name, std::string_view text, std::string_view dims) {
  return set_layouts(graph, name, [&](const Value& value) { return make_layout(value, text, dims); });
}

Result<void> set_layout(Graph& graph, std::string_view name, LayoutName layout) {
  return set_layout(graph, name, layout_name_text(layout));
}

Result<void> set_layout(Graph& graph, std::string_view name, size_t parameters, const Layout::MapFunction& map) {
  return set_layouts(graph, name, [&](const Value& value) -> Result<SharedLayout> {
    TENON_TRY(shape, shape_to_lay_out(value));
    if (shape.size() != parameters) {
      return detail::map_arity_error(parameters, shape.size()).with_frame(name_of(value));
    }
    TENON_TRY(dims, default_layout_dims("", shape.size()), name_of(value));
    TENON_TRY(layout, Layout::from_function(dims, shape, value.type().element().bits(), map), name_of(value));
    return make_layout(value, layout.to_string(), dims);
  });
}

}  // namespace tenon
