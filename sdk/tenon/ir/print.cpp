// Prints graphs as text.
#include <tenon/ir/text_internal.hpp>

namespace tenon {
namespace {

// The spelling of each value: distinct among all values that are visible at the same place.
class ValueNames {
 public:
  // Names everything in `region`, in the order of the text.
  void define_all(const Region& region) {
    const size_t outer = visible_.size();
    for (size_t i = 0; i < region.input_count(); ++i) define(*region.input(i));
    for (const Op& op : region) {
      // Results before nested regions: they must be distinct from values inside.
      define_results(op);
      for (size_t i = 0; i < op.region_count(); ++i) define_all(op.region(i));
    }
    for (; visible_.size() > outer; visible_.pop_back()) --ticks_[visible_.back()];
  }

  void define_results(const Op& op) {
    for (size_t i = 0; i < op.result_count(); ++i) define(*op.result(i));
  }

  const std::string& of(const Value& value) {
    const auto found = written_.find(&value);
    return found != written_.end() ? found->second : define(value);  // defined outside of what is printed
  }

 private:
  const std::string& define(const Value& value) {
    std::string text = "%";
    if (value.name().empty()) {
      append_text(text, unnamed_++);
    } else {
      // Bare digits mean a value without a name.
      if (text::is_all_digits(value.name()))
        text += quote(value.name());
      else
        text::append_name(text, value.name());
      const size_t others = ticks_[value.name()]++;
      visible_.push_back(value.name());
      if (others > 0) text += str("'", others);
    }
    return written_.insert_or_assign(&value, std::move(text)).first->second;
  }

  std::unordered_map<const Value*, std::string> written_;
  std::unordered_map<std::string_view, size_t> ticks_;  // visible values by name
  std::vector<std::string_view> visible_;
  size_t unnamed_ = 0;
};

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  std::string graph(const Graph& graph) {
    names_.define_all(graph.body());
    out_ = "graph ";
    if (!graph.name().empty()) {
      out_ += '@';
      text::append_name(out_, graph.name());
    }
    region(graph.body(), 0);
    out_ += '\n';
    if (!graph.properties().empty()) properties(graph);
    return std::move(out_);
  }

  std::string op(const Op& op) {
    for (const Value* operand : op.operands()) {
      if (operand) names_.of(*operand);
    }
    names_.define_results(op);
    for (size_t i = 0; i < op.region_count(); ++i) names_.define_all(op.region(i));
    line(op, 0);
    return std::move(out_);
  }

 private:
  void properties(const Graph& graph) {
    out_ += "properties {\n";
    for (const auto& [key, value] : graph.properties()) {
      out_ += "  ";
      text::append_name(out_, key);
      out_ += " = " + quote(value) + "\n";
    }
    out_ += "}\n";
  }

  void value(const Value* value) { out_ += value ? names_.of(*value) : "_"; }

  template <class Item>
  void list(size_t count, Item item) {
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) out_ += ", ";
      item(i);
    }
  }

  // (%x: f32[2]) -> %y { ... }
  void region(const Region& region, size_t indent) {
    out_ += '(';
    list(region.input_count(), [&](size_t i) {
      value(region.input(i));
      out_ += ": ";
      append_text(out_, region.input(i)->type());
      text::append_layout(out_, *region.input(i), options_);
    });
    out_ += ") -> ";
    const bool one = region.output_count() == 1;
    if (!one) out_ += '(';
    list(region.output_count(), [&](size_t i) { output(region, i); });
    if (!one) out_ += ')';
    out_ += " {";
    for (const Op& op : region) {
      out_ += '\n';
      line(op, indent + 2);
    }
    if (!region.empty()) {
      out_ += '\n';
      out_.append(indent, ' ');
    }
    out_ += '}';
  }

  void output(const Region& region, size_t i) {
    const Value* source = region.output(i);
    const std::string& name = region.output_name(i);
    if (name != (source ? source->name() : std::string())) {
      text::append_name(out_, name);
      out_ += ": ";
    }
    value(source);
  }

  void line(const Op& op, size_t indent) {
    out_.append(indent, ' ');
    if (op.result_count() > 0) {
      list(op.result_count(), [&](size_t i) { value(op.result(i)); });
      out_ += " = ";
    }
    name(op.name());
    if (op.operand_count() > 0) out_ += ' ';
    list(op.operand_count(), [&](size_t i) { value(op.operand(i)); });
    if (!op.label().empty()) out_ += ' ' + quote(op.label());
    if (!op.attributes().empty()) attributes(op.attributes());
    if (op.region_count() > 0) {
      out_ += " (";
      list(op.region_count(), [&](size_t i) { region(op.region(i), indent); });
      out_ += ')';
    }
    if (!options_.types || op.result_count() == 0) return;
    out_ += " : ";
    list(op.result_count(), [&](size_t i) {
      append_text(out_, op.result(i)->type());
      text::append_layout(out_, *op.result(i), options_);
    });
  }

  // A single '_' would be parsed as an absent operand.
  void name(Name name) {
    if (text::is_plain_name(name.view()) && name.view() != "_")
      out_ += name.view();
    else
      out_ += '@' + quote(name.view());
  }

  void attributes(const Attributes& attributes) {
    out_ += " {";
    auto entry = attributes.begin();
    list(attributes.size(), [&](size_t) {
      text::append_name(out_, entry->first.view());
      out_ += " = ";
      text::append_attribute(out_, entry->second, options_);
      ++entry;
    });
    out_ += '}';
  }

  const PrintOptions& options_;
  ValueNames names_;
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) { return Printer(options).graph(graph); }
std::string print(const Op& op, const PrintOptions& options) { return Printer(options).op(op); }
std::string print(const Attribute& attribute, const PrintOptions& options) {
  std::string out;
  text::append_attribute(out, attribute, options);
  return out;
}

}  // namespace tenon
