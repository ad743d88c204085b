#include <tenon/snippet/tokenize/store_again.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/tokenize_candidates_internal.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

// An output of the body, and the views between the result and it, starting at the result.
struct Landing {
  size_t output = 0;
  std::vector<Op*> views = {};
};

std::vector<Landing> landings_of(const Value& value) {
  struct Step {
    const Value* value;
    Op* view;     // of the previous step
    size_t from;  // index of that step
  };
  std::vector<Step> steps{{&value, nullptr, 0}};
  std::vector<Landing> found;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Value& seen = *steps[i].value;
    for (const Use* use : seen.uses()) {
      Op& user = *use->user();
      if (user.parent() != value.region()) continue;
      if (user.parent()->is_return(user)) {
        Landing& landing = found.emplace_back(Landing{.output = use->index()});
        for (size_t at = i; at > 0; at = steps[at].from) landing.views.push_back(steps[at].view);
        std::ranges::reverse(landing.views);
      } else if (is_view(user) && use->index() == 0) {
        steps.push_back({user.result(), &user, i});
      }
    }
  }
  return found;
}

// All but the first of each result, which has the result's own memory.
std::vector<std::pair<size_t, Landing>> further_landings(const Op& op, const std::function<bool(const Value&)>& pays) {
  std::vector<std::pair<size_t, Landing>> further;
  for (size_t r = 0; r < op.result_count(); ++r) {
    std::vector<Landing> found = landings_of(*op.result(r));
    if (found.size() < 2 || !pays(*op.result(r))) continue;
    std::ranges::sort(found, {}, &Landing::output);
    for (size_t i = 1; i < found.size(); ++i) further.emplace_back(r, std::move(found[i]));
  }
  return further;
}

// Replaces the snippet by one with more results; result r + i equals result `of[i]`.
Op& with_results(Op& op, const std::vector<size_t>& of) {
  std::vector<Type> types;
  for (size_t r = 0; r < op.result_count(); ++r) types.push_back(op.result(r)->type());
  for (const size_t r : of) types.push_back(op.result(r)->type());
  Op& wider = op.parent()->create(op.name(), op.operands(), std::move(types), op.attributes(), &op);
  wider.set_label(op.label());
  const Region& from = op.region(0);
  Region& body = wider.add_region();
  ValueMap map;
  for (size_t i = 0; i < from.input_count(); ++i)
    map[from.input(i)] = body.add_input(from.input(i)->name(), from.input(i)->type());
  for (const Op& inner : from) clone_op(inner, body, nullptr, map);
  for (size_t r = 0; r < op.result_count(); ++r) {
    body.add_output(map.at(from.output(r)), from.output_name(r));
    wider.result(r)->set_name(op.result(r)->name());
    op.result(r)->replace_all_uses_with(wider.result(r));
  }
  for (const size_t r : of) body.add_output(map.at(from.output(r)), str("out", body.output_count()));
  op.erase();
  return wider;
}

// Makes the output a view of `value` instead of the views' operand; views that others read are kept.
void land(Region& region, const Landing& landing, Value* value) {
  for (Op* view : landing.views) {
    ValueMap map{{view->operand(0), value}};
    value = clone_op(*view, region, view, map).result();
  }
  region.set_output(landing.output, value);
  for (size_t i = landing.views.size(); i-- > 0 && !landing.views[i]->has_uses();) landing.views[i]->erase();
}

}  // namespace

void store_again(Graph& graph, const std::function<bool(const Value&)>& pays) {
  std::vector<Op*> snippets = graph.body().ops();
  std::erase_if(snippets, [](const Op* op) { return !isa<Subgraph>(*op); });
  for (Op* op : snippets) {
    const auto further = further_landings(*op, pays);
    if (further.empty()) continue;
    std::vector<size_t> of;
    for (const auto& [result, landing] : further) of.push_back(result);
    const size_t first = op->result_count();
    const Op& wider = with_results(*op, of);
    for (size_t i = 0; i < further.size(); ++i) land(graph.body(), further[i].second, wider.result(first + i));
  }
}

}  // namespace tenon::snippet
