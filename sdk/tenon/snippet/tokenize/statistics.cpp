#include <tenon/snippet/tokenize/statistics.hpp>

#include <algorithm>
#include <unordered_set>

#include <tenon/ir/builder.hpp>
#include <tenon/snippet/canonical/canonical_cuts_internal.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/tokenize_candidates_internal.hpp>

namespace tenon::snippet {
namespace {

// Adds up bytes of values, each once.
class ByteCount {
 public:
  void add(const Value* value) {
    const Tensor* constant = value ? constant_of(value) : nullptr;
    if (!value || (constant && constant->size() == 1) || !seen_.insert(value).second) return;
    if (!value->type().is_tensor() || !value->type().shape().ranked()) {
      exact_ = false;
      return;
    }
    std::vector<Expr> factors{(value->type().element().bits() + 7) / 8};
    for (const Dim& dim : value->type().shape().dims()) {
      if (dim.known()) factors.push_back(dim.expr());
      exact_ = exact_ && dim.known();
    }
    terms_.push_back(product(factors));
  }
  // A part that is read or written; counted anew for each access.
  void add_part(const Value& part) {
    seen_.erase(&part);
    add(&part);
  }
  // Operands and results; for another operator they are counted anew.
  void add(const Op& op) {
    seen_.clear();
    for (const Value* operand : op.operands()) add(operand);
    for (size_t i = 0; i < op.result_count(); ++i) add(op.result(i));
  }
  Expr bytes() const { return sum(terms_); }
  bool exact() const { return exact_; }

 private:
  std::unordered_set<const Value*> seen_;
  std::vector<Expr> terms_;
  bool exact_ = true;
};

std::string row_text(std::string_view name, std::initializer_list<std::string> cells) {
  std::string line(name.substr(0, 32));
  line.resize(34, ' ');
  for (const std::string& cell : cells) line += std::string(cell.size() < 11 ? 11 - cell.size() : 1, ' ') + cell;
  return line + "\n";
}

// A copy of a part of operand 0, when it is a separate operator.
bool is_part(const Op& op) { return op.operand_count() > 0 && op.operand(0) && cuts_of(op, 0).has_value(); }

// The bytes read of an operand, which is `input` in the region: all of it, or the parts, where only these are read and
// they are smaller.
void add_operand(ByteCount& bytes, const Value& operand, const Value& input) {
  const auto size_of = [](const Value& value) {
    double size = 1;
    for (const Dim& dim : value.type().shape().dims()) size *= dim.is_static() ? static_cast<double>(dim.value()) : 1;
    return size;
  };
  double read = 0;
  std::vector<const Value*> parts;
  for (const Use* use = input.first_use(); use; use = use->next()) {
    const Op& user = *use->user();
    if (input.region()->is_return(user) || !is_part(user)) return bytes.add(&operand);
    for (size_t r = 0; r < user.result_count(); ++r)
      if (user.result(r)->used()) parts.push_back(user.result(r)), read += size_of(*user.result(r));
  }
  if (parts.empty() || read >= size_of(input)) return bytes.add(&operand);
  for (const Value* part : parts) bytes.add_part(*part);
}

}  // namespace

SubgraphStatistics statistics_of(const Op& subgraph) {
  SubgraphStatistics out;
  out.name = subgraph.label();
  if (out.name.empty() && subgraph.result_count() != 0) out.name = subgraph.result(0)->name();
  out.parameters = subgraph.operand_count();
  out.results = subgraph.result_count();
  ByteCount unfused, fused;
  for (const Op& op : subgraph.region(0)) {
    if (op.is("Constant")) {
      ++out.constants;
      continue;
    }
    ++out.operators;
    if (is_part(op)) {
      for (size_t r = 0; r < op.result_count(); ++r)
        for (int side = 0; op.result(r)->used() && side < 2; ++side) unfused.add_part(*op.result(r));
    } else if (!is_view(op)) {
      unfused.add(op);
    }
  }
  for (size_t i = 0; i < subgraph.operand_count(); ++i)
    if (subgraph.operand(i)) add_operand(fused, *subgraph.operand(i), *subgraph.region(0).input(i));
  for (size_t r = 0; r < subgraph.result_count(); ++r) fused.add(subgraph.result(r));
  out.bytes_unfused = unfused.bytes();
  out.bytes_fused = fused.bytes();
  out.exact = unfused.exact() && fused.exact();
  return out;
}

std::vector<SubgraphStatistics> snippet_statistics(const Graph& graph) {
  std::vector<SubgraphStatistics> all;
  for_each_op(graph.body(), [&](const Op& op) {
    if (isa<Subgraph>(op)) all.push_back(statistics_of(op));
  });
  return all;
}

std::string to_string(const std::vector<SubgraphStatistics>& statistics) {
  std::string text = row_text("snippet", {"operators", "parameters", "results", "constants", "unfused", "fused"});
  SubgraphStatistics total;
  std::vector<Expr> unfused, fused;
  for (const SubgraphStatistics& s : statistics) {
    text += row_text(s.name, {str(s.operators), str(s.parameters), str(s.results), str(s.constants),
                              s.bytes_unfused.to_string(), s.bytes_fused.to_string()});
    total.operators += s.operators;
    total.parameters += s.parameters;
    total.results += s.results;
    total.constants += s.constants;
    unfused.push_back(s.bytes_unfused);
    fused.push_back(s.bytes_fused);
  }
  return text + row_text(str(statistics.size(), " snippets"),
                         {str(total.operators), str(total.parameters), str(total.results), str(total.constants),
                          sum(unfused).to_string(), sum(fused).to_string()});
}

}  // namespace tenon::snippet
