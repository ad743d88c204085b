#include <unordered_map>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/value_layout.hpp>

namespace tenon {
namespace {

class Comparer {
 public:
  Comparer(const EqualOptions& options, std::string* difference) : options_(options), difference_(difference) {}

  bool same(const Region& a, const Region& b) {
    if (a.input_count() != b.input_count()) return differ(str(a.input_count(), " inputs against ", b.input_count()));
    for (size_t i = 0; i < a.input_count(); ++i) {
      if (a.input(i)->name() != b.input(i)->name()) {
        return differ(str("input ", i, " is '", a.input(i)->name(), "' against '", b.input(i)->name(), "'"));
      }
      if (!same(*a.input(i), *b.input(i), str("input '", a.input(i)->name(), "'"))) return false;
    }
    if (a.op_count() != b.op_count()) return differ(str(a.op_count(), " operators against ", b.op_count()));
    for (auto i = a.begin(), j = b.begin(); i != a.end(); ++i, ++j) {
      if (!same(*i, *j)) return false;
    }
    if (a.output_count() != b.output_count())
      return differ(str(a.output_count(), " outputs against ", b.output_count()));
    for (size_t i = 0; i < a.output_count(); ++i) {
      if (a.output_name(i) != b.output_name(i)) {
        return differ(str("output ", i, " is '", a.output_name(i), "' against '", b.output_name(i), "'"));
      }
      if (!matches(a.output(i), b.output(i)))
        return differ(str("output '", a.output_name(i), "' is fed by another value"));
    }
    return true;
  }

 private:
  bool same(const Op& a, const Op& b) {
    const auto place = [&] { return a.describe(); };
    if (a.name() != b.name()) return differ(str(place(), " against ", b.describe()));
    if (options_.names && a.label() != b.label()) return differ(str(place(), " against ", b.describe()));
    if (a.operand_count() != b.operand_count() || a.result_count() != b.result_count() ||
        a.region_count() != b.region_count()) {
      return differ(str(place(), ": other counts of operands, results or regions"));
    }
    for (size_t i = 0; i < a.operand_count(); ++i) {
      if (!matches(a.operand(i), b.operand(i))) return differ(str(place(), ": operand ", i, " is another value"));
    }
    if (a.attributes() != b.attributes()) return differ(str(place(), ": other attributes"));
    for (size_t i = 0; i < a.region_count(); ++i) {
      if (!same(a.region(i), b.region(i))) return false;
    }
    for (size_t i = 0; i < a.result_count(); ++i) {
      if (!same(*a.result(i), *b.result(i), place())) return false;
    }
    return true;
  }

  bool same(const Value& a, const Value& b, const std::string& place) {
    if (options_.types && a.type() != b.type()) {
      return differ(str(place, ": type ", a.type(), " against ", b.type()));
    }
    if (!same_layout(a.layout(), b.layout())) return differ(str(place, ": other layouts"));
    if (options_.names && a.name() != b.name())
      return differ(str(place, ": '", a.name(), "' against '", b.name(), "'"));
    map_[&a] = &b;
    return true;
  }

  static bool same_layout(const ValueLayout* a, const ValueLayout* b) { return a && b ? *a == *b : a == b; }

  bool matches(const Value* a, const Value* b) const {
    if (!a || !b) return a == b;
    const auto found = map_.find(a);
    return found != map_.end() && found->second == b;
  }

  bool differ(std::string text) {
    if (difference_) *difference_ = std::move(text);
    return false;
  }

  const EqualOptions& options_;
  std::string* difference_;
  std::unordered_map<const Value*, const Value*> map_;
};

}  // namespace

bool same_graph(const Graph& a, const Graph& b, const EqualOptions& options, std::string* difference) {
  return Comparer(options, difference).same(a.body(), b.body());
}

}  // namespace tenon
