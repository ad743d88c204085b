#include <tenon/snippet/lower/lower_nests_internal.hpp>

#include <algorithm>
#include <bit>

#include <tenon/snippet/lower/lower_plan_internal.hpp>

namespace tenon::snippet {

namespace {

// Merged sweeps leave scratch buffers that no access uses: removes these and renumbers later ports. `first`: the port
// of the first scratch buffer.
void drop_unused_scratch(LowerPlan& plan, int first) {
  std::vector<int*> ports;  // of all accesses
  const auto add = [&](std::vector<Access>& accesses) {
    for (Access& one : accesses) ports.push_back(&one.port);
  };
  const auto add_sweep = [&](Sweep& sweep) { add(sweep.reads), add(sweep.stores); };
  for (Merging& merging : plan.mergings) add_sweep(merging.sweep);
  for (Nest& nest : plan.nests) {
    add(nest.roots), add(nest.reads), add(nest.rows);
    for (Scope& scope : nest.scopes)
      for (Phase& phase : scope.phases) std::ranges::for_each(phase.sweeps, add_sweep);
  }
  for (size_t i = plan.scratch.size(); i-- > 0;) {
    const int unused = first + static_cast<int>(i);
    if (std::ranges::any_of(ports, [&](const int* port) { return *port == unused; })) continue;
    plan.scratch.erase(plan.scratch.begin() + static_cast<std::ptrdiff_t>(i));
    for (int* port : ports) *port -= *port > unused;
  }
}

}  // namespace

std::vector<int> dims_of(DimSet set) {
  std::vector<int> dims;
  for (int d = 0; d < kMaxDims; ++d)
    if (contains(set, d)) dims.push_back(d);
  return dims;
}

bool is_prefix(DimSet inner, DimSet all) {
  if (inner == 0) return true;
  const int deepest = std::bit_width(inner) - 1;
  return (all & (~DimSet{0} >> (31 - deepest))) == inner;
}

Planner::Planner(const Body& body, const LowerOptions& options)
    : body_(body), options_(options), reduced_(body.reduced_dims()), maker_(body.values.size(), nullptr) {
  for (const BodyNode& node : body.nodes) maker_[index(node.result)] = &node;
  for (const BodyPort& input : body.inputs) order_.push_back(input.value);
  for (const BodyNode& node : body.nodes) order_.push_back(node.result);
  find_sources();
}

LowerPlan Planner::run() {
  std::vector<Access> outputs;
  for (size_t i = 0; i < body_.outputs.size(); ++i)
    outputs.push_back({body_.outputs[i].value, static_cast<int>(body_.inputs.size() + i)});
  add_nests(std::move(outputs));
  plan_.behind &= plan_.nests.size() == 1;
  if (options_.skew_rows && plan_.nests.size() == 1) plan_.skewed_with = skewed_with(plan_.nests[0]);
  walk_stretches();
  if (plan_.skewed_with && options_.skew_twice) plan_.skewed_behind = skewed_behind(plan_.nests[0].scopes.back());
  plan_.joined = joins() && plan_.nests.size() == 1 && plan_.nests[0].whole_rows;
  if (!plan_.mergings.empty()) drop_unused_scratch(plan_, static_cast<int>(body_.inputs.size() + body_.outputs.size()));
  return std::move(plan_);
}

// Roots share loops when each is stored once in them. Nests of fewer dims come first: others may read their results.
void Planner::add_nests(std::vector<Access> roots) {
  std::stable_sort(roots.begin(), roots.end(), [&](const Access& a, const Access& b) {
    return std::popcount(kept_dims(a.value)) > std::popcount(kept_dims(b.value));
  });
  std::vector<Nest> nests;
  for (const Access& root : roots) {
    const auto fits = [&](const Nest& nest) { return is_prefix(kept_dims(root.value), nest.kept_set); };
    auto nest = std::find_if(nests.begin(), nests.end(), fits);
    if (nest == nests.end()) {
      nest = nests.insert(nest, Nest());
      nest->kept_set = kept_dims(root.value);
    }
    nest->roots.push_back(root);
  }
  std::reverse(nests.begin(), nests.end());
  for (Nest& nest : nests) add_nest(std::move(nest));
}

void Planner::add_nest(Nest nest) {
  outline(nest);
  if (std::vector<Access> hoisted = find_hoisted(nest); !hoisted.empty()) {
    add_nests(std::move(hoisted));
    outline(nest);
  }
  for (size_t level = 0; level < nest.scopes.size(); ++level) plan_scope(nest, static_cast<int>(level));
  plan_.behind = options_.behind_blocks && may_go_behind(nest);  // before its roots count as read from memory
  if (options_.merge_sweeps) merge_sweeps(nest, nest.scopes.back());
  if (nest.whole_rows) plan_rows(nest);
  bool offered = false;
  for (const Access& root : nest.roots) {
    const ElementType element = element_of(root.port);  // which may not hold the whole value
    if (element == body_.values[index(root.value)].element || element == element_in_memory(root.value))
      offered |= offer(root);
  }
  if (offered) find_sources();
  plan_.nests.push_back(std::move(nest));
}

ElementType Planner::element_of(int port) const {
  const size_t output = index(port) - body_.inputs.size();
  if (output < body_.outputs.size()) return body_.outputs[output].element;
  return plan_.scratch[output - body_.outputs.size()].element;
}

// Its loops, and its reads of earlier nests' results.
void Planner::outline(Nest& nest) {
  mark_needed(nest);
  DimSet dims = nest.kept_set;
  for (const ValueId id : order_)
    if (needed_[index(id)] && (swept(id) || reduction(id))) dims |= reduced_;
  nest.vector = std::bit_width(dims) - 1;
  nest.tiled = contains(nest.kept_set, nest.vector);
  nest.kept = dims_of(nest.kept_set);
  if (nest.tiled) nest.kept.pop_back();
  nest.scopes.assign(nest.kept.size() + 1 + (nest.tiled ? 1 : 0), {});
  nest.reads.clear();
  for (const Access& offer : offered_)
    if (needed_[index(offer.value)]) nest.reads.push_back(offer);
  nest.whole_rows = walks_rows(nest);
}

void Planner::mark_needed(const Nest& nest) {
  needed_.assign(body_.values.size(), 0);
  for (const Access& root : nest.roots) needed_[index(root.value)] = 1;
  for (auto id = order_.rbegin(); id != order_.rend(); ++id)
    if (const BodyNode* node = maker_[index(*id)]; node && needed_[index(*id)])
      for (const ValueId operand : node->operands) needed_[index(operand)] = 1;
}

// The scope of a value: that of the innermost kept loop over which it varies.
int Planner::level_of(const Nest& nest, ValueId id) const {
  const DimSet set = varies(id) & ~reduced_;
  if (nest.tiled && contains(set, nest.vector)) return static_cast<int>(nest.scopes.size()) - 1;
  for (size_t i = nest.kept.size(); i-- > 0;)
    if (contains(set, nest.kept[i])) return static_cast<int>(i) + 1;
  return 0;
}

LowerPlan plan_lowering(const Body& body, const LowerOptions& options) {
  LowerPlan plan = Planner(body, options).run();
  if (options.join_rows == plan.joined && options.behind_blocks == plan.behind &&
      options.skew_rows == plan.skewed_with.has_value())
    return plan;
  LowerOptions apart = options;
  apart.join_rows = apart.behind_blocks = apart.skew_rows = false;
  return Planner(body, apart).run();
}

}  // namespace tenon::snippet
