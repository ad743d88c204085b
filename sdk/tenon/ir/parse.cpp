// Parses graphs from text: recursive descent, one character of lookahead.
#include <deque>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/text_internal.hpp>

namespace tenon {
namespace {

using text::Cursor;

// `%name` as written, with one spelling per value, and the name that the value gets.
struct ValueToken {
  std::string_view key;
  std::string name;
  size_t offset = 0;
};

// The values that are visible at a place, by key.
class Scope {
 public:
  struct Entry {
    Value* value;
    size_t offset;
  };
  const Entry* find(std::string_view key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }
  void define(std::string_view key, Value* value, size_t offset) {
    entries_.emplace(key, Entry{value, offset});
    order_.push_back(key);
  }
  size_t mark() const { return order_.size(); }
  void forget_since(size_t mark) {
    for (; order_.size() > mark; order_.pop_back()) entries_.erase(order_.back());
  }

 private:
  std::unordered_map<std::string_view, Entry> entries_;
  std::vector<std::string_view> order_;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view where) : cursor_(text, where) {}

  Result<std::unique_ptr<Graph>> graph() {
    if (!cursor_.eat_word("graph")) return cursor_.fail("expected 'graph', found ", cursor_.found());
    auto graph = std::make_unique<Graph>();
    if (cursor_.eat("@")) {
      TENON_TRY(name, cursor_.name("the graph's name behind '@'"));
      graph->set_name(std::move(name));
    }
    TENON_OK(region(graph->body(), 0));
    if (cursor_.eat_word("properties")) TENON_OK(properties(*graph));
    if (!cursor_.at_end()) return cursor_.fail("expected the end of the text, found ", cursor_.found());
    return graph;
  }

 private:
  Result<void> properties(Graph& graph) {
    TENON_OK(cursor_.expect("{", "before the properties"));
    while (!cursor_.eat("}")) {
      cursor_.skip();
      const size_t begin = cursor_.offset();
      TENON_TRY(key, cursor_.name("a property's name or '}'"));
      TENON_OK(cursor_.expect("=", "behind a property's name"));
      cursor_.skip();
      TENON_TRY(value, cursor_.quoted());
      if (!graph.properties().emplace(key, std::move(value)).second) {
        return cursor_.fail_at(begin, "property ", quote(key), " stands twice");
      }
    }
    return {};
  }

  // %name, %"any name", %0, each with an optional tick.
  Result<ValueToken> value_token() {
    TENON_OK(cursor_.expect("%", "before a value's name"));
    ValueToken token;
    token.offset = cursor_.offset() - 1;
    if (cursor_.rest().starts_with("\"")) {
      TENON_TRY(name, cursor_.quoted());
      token.name = std::move(name);
      // %"y" is %y; bare digits mean a value without a name, so %"0" is not %0.
      const bool plain = text::is_plain_name(token.name) && !text::is_all_digits(token.name);
      token.key = keys_.emplace_back(str(plain ? token.name : quote(token.name), read_tick()));
    } else {
      const size_t begin = cursor_.offset();
      if (cursor_.rest().empty() || !text::is_name_char(cursor_.rest()[0])) {
        return cursor_.fail_at(token.offset, "expected a name right behind '%'");
      }
      const std::string_view bare = cursor_.bare_name();
      if (!text::is_all_digits(bare)) token.name = bare;
      read_tick();
      token.key = cursor_.since(begin);
    }
    return token;
  }

  std::string_view read_tick() {
    const std::string_view rest = cursor_.rest();
    if (!rest.starts_with("'")) return {};
    size_t length = 1;
    while (length < rest.size() && text::is_digit(rest[length])) ++length;
    cursor_.advance(length);
    return rest.substr(0, length);
  }

  Result<void> define(const ValueToken& token, Value* value) {
    if (const auto* before = scope_.find(token.key)) {
      return cursor_.fail_at(token.offset, "value %", token.key, " is defined twice, first at ",
                             cursor_.position(before->offset));
    }
    value->set_name(token.name);
    scope_.define(token.key, value, token.offset);
    return {};
  }

  // Parses the use of an earlier value; null for '_'.
  Result<Value*> use() {
    if (cursor_.peek() == '_') {
      const size_t begin = cursor_.offset();
      if (cursor_.bare_name() != "_") return cursor_.fail_at(begin, "expected a value such as %x, or '_' for none");
      return nullptr;
    }
    TENON_TRY(token, value_token());
    const auto* entry = scope_.find(token.key);
    if (!entry) return cursor_.fail_at(token.offset, "value %", token.key, " is used before it is defined");
    return entry->value;
  }

  // Outputs are written before the operators that produce them.
  struct Output {
    std::optional<std::string> name;
    size_t offset;
  };

  // (inputs) -> outputs { operators }
  Result<void> region(Region& region, int depth) {
    if (depth > text::kMaxRegionDepth) {
      return cursor_.fail("regions nest deeper than ", text::kMaxRegionDepth, " levels");
    }
    const size_t outer = scope_.mark();
    TENON_OK(cursor_.expect("(", "before a region's inputs"));
    for (bool first = true; !cursor_.eat(")"); first = false) {
      if (!first) TENON_OK(cursor_.expect(",", "or ')' behind an input"));
      TENON_TRY(token, value_token());
      TENON_OK(cursor_.expect(":", "and a type behind an input; an unknown type is '?'"));
      TENON_TRY(type, cursor_.type());
      TENON_TRY(layout, text::read_layout(cursor_, type));
      Value* input = region.add_input("", std::move(type));
      input->set_layout(std::move(layout));
      TENON_OK(define(token, input));
    }
    TENON_OK(cursor_.expect("->", "and the outputs behind a region's inputs"));
    TENON_TRY(outputs, output_list());
    TENON_OK(cursor_.expect("{", "before a region's operators"));
    while (!cursor_.eat("}")) {
      if (cursor_.at_end()) return cursor_.fail("expected an operator or '}', found ", cursor_.found());
      TENON_OK(op(region, depth));
    }
    TENON_OK(set_outputs(region, outputs));
    scope_.forget_since(outer);
    return {};
  }

  Result<std::vector<Output>> output_list() {
    std::vector<Output> outputs;
    if (!cursor_.eat("(")) {
      TENON_OK(output(outputs));
      return outputs;
    }
    while (!cursor_.eat(")")) {
      if (!outputs.empty()) TENON_OK(cursor_.expect(",", "or ')' behind an output"));
      TENON_OK(output(outputs));
    }
    return outputs;
  }

  // [name ':'] value. The value is looked up later, at the stored offset.
  Result<void> output(std::vector<Output>& outputs) {
    Output out{std::nullopt, 0};
    if (!at_value()) {
      TENON_TRY(name, cursor_.name("an output: a value, or name: value"));
      TENON_OK(cursor_.expect(":", "between an output's name and its value"));
      out.name = std::move(name);
    }
    cursor_.skip();
    out.offset = cursor_.offset();
    outputs.push_back(std::move(out));
    if (cursor_.eat_word("_")) return {};
    TENON_OK(value_token());
    return {};
  }

  // A '_' before ':' is a name.
  bool at_value() {
    if (cursor_.peek() == '%') return true;
    const size_t begin = cursor_.offset();
    const bool absent = cursor_.eat_word("_") && cursor_.peek() != ':';
    cursor_.move_to(begin);
    return absent;
  }

  Result<void> set_outputs(Region& region, std::vector<Output>& outputs) {
    const size_t behind = cursor_.offset();
    std::vector<Value*> values;
    std::vector<std::string> names;
    for (Output& output : outputs) {
      cursor_.move_to(output.offset);
      TENON_TRY(value, use());
      values.push_back(value);
      names.push_back(output.name ? *std::move(output.name) : value ? value->name() : std::string());
    }
    cursor_.move_to(behind);
    region.set_outputs(values, std::move(names));
    return {};
  }

  // [results '='] name [operands] ["label"] [{attributes}] [(regions)] [: types, each with its layout]
  Result<void> op(Region& region, int depth) {
    std::vector<ValueToken> results;
    if (cursor_.peek() == '%') {
      do {
        TENON_TRY(token, value_token());
        results.push_back(std::move(token));
      } while (cursor_.eat(","));
      TENON_OK(cursor_.expect("=", "behind the results of an operator"));
    }
    cursor_.skip();
    const size_t begin = cursor_.offset();
    TENON_TRY(name, op_name());
    TENON_TRY(values, operands());
    Op& made = region.create(name, values, std::vector<Type>(results.size()));
    if (cursor_.peek() == '"') {
      TENON_TRY(label, cursor_.quoted());
      made.set_label(std::move(label));
    }
    if (cursor_.eat("{")) TENON_OK(attributes(made));
    if (cursor_.eat("(")) {
      do {
        TENON_OK(this->region(made.add_region(), depth + 1));
      } while (cursor_.eat(","));
      TENON_OK(cursor_.expect(")", "behind the regions of an operator"));
    }
    for (size_t i = 0; i < results.size(); ++i) TENON_OK(define(results[i], made.result(i)));
    if (cursor_.eat(":")) return types(made, begin);
    return infer(made, begin);
  }

  Result<Name> op_name() {
    if (cursor_.eat("@")) {
      TENON_TRY(quoted, cursor_.quoted());
      return Name(quoted);
    }
    const std::string_view bare = cursor_.bare_name();
    if (bare.empty()) return cursor_.fail("expected an operator's name, found ", cursor_.found());
    return Name(bare);
  }

  // They begin on the line of the operator's name: a '%' at the beginning of the next line starts the next operator's
  // results.
  Result<std::vector<Value*>> operands() {
    std::vector<Value*> values;
    if (!cursor_.more_on_line()) return values;
    const std::string_view rest = cursor_.rest();
    const bool absent = rest[0] == '_' && (rest.size() == 1 || !text::is_name_char(rest[1]));
    if (rest[0] != '%' && !absent) return values;
    do {
      TENON_TRY(value, use());
      values.push_back(value);
    } while (cursor_.eat(","));
    return values;
  }

  // After '{'.
  Result<void> attributes(Op& op) {
    for (bool first = true; !cursor_.eat("}"); first = false) {
      if (!first) TENON_OK(cursor_.expect(",", "or '}' behind an attribute"));
      cursor_.skip();
      const size_t begin = cursor_.offset();
      TENON_TRY(key, cursor_.name("an attribute's name"));
      TENON_OK(cursor_.expect("=", str("behind attribute ", quote(key))));
      TENON_TRY(value, text::read_attribute(cursor_));
      const Name name(key);
      if (op.attributes().has(name)) return cursor_.fail_at(begin, "attribute ", quote(key), " stands twice");
      op.set_attr(name, std::move(value));
    }
    return {};
  }

  // After ':'.
  Result<void> types(Op& op, size_t begin) {
    size_t count = 0;
    do {
      TENON_TRY(type, cursor_.type());
      TENON_TRY(layout, text::read_layout(cursor_, type));
      if (count < op.result_count()) {
        op.result(count)->set_type(std::move(type));
        op.result(count)->set_layout(std::move(layout));
      }
      ++count;
    } while (cursor_.eat(","));
    if (count == op.result_count()) return {};
    return cursor_.fail_at(begin, op.describe(), " has ", op.result_count(), " results and ", count, " types");
  }

  Result<void> infer(Op& op, size_t begin) {
    if (op.result_count() == 0) return {};
    if (!op.def()) {
      return cursor_.fail_at(begin, "no operator '", op.name(), "' is defined, so the types of its results cannot be ",
                             "inferred: write them behind ':', or load the plugin that defines it");
    }
    auto inferred = infer_result_types(op);
    if (!inferred.ok()) return cursor_.placed(begin, inferred.error());
    return {};
  }

  Cursor cursor_;
  Scope scope_;
  std::deque<std::string> keys_;  // of quoted names; the scope borrows them
};

}  // namespace

Result<std::unique_ptr<Graph>> parse_graph(std::string_view text, std::string_view where) {
  return Parser(text, where).graph();
}

}  // namespace tenon
