// The cost of values, and which of them are hoisted out of loops that would recompute them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <unordered_set>

#include <tenon/snippet/lower/lower_plan_internal.hpp>

namespace tenon::snippet {

bool goes_apart(const Body& body, ValueId id, int lanes) {
  constexpr int64_t kVectors = 64;  // of the longest row
  const DimSet varies = body.values[static_cast<size_t>(id)].varies;
  if (body.reduces() || varies == 0) return false;
  const auto deepest = static_cast<size_t>(std::bit_width(varies)) - 1;
  const auto known = [&](size_t d) { return body.dims[d].extent.is_constant(); };
  if (deepest + 1 == body.rank() || !known(deepest) || body.dims[deepest].extent.constant() < lanes) return false;
  int64_t row = 1;
  for (size_t d = deepest + 1; d < body.rank(); ++d) {
    if (!known(d)) return false;
    row *= body.dims[d].extent.constant();
    if (row > kVectors * lanes) return false;
  }
  return true;
}

// A value whose sources have more bytes than the value itself counts as a source from then on: it will be kept.
void Planner::find_sources() {
  if (!options_.keep_joined && !options_.skew_rows) return;
  sources_.assign(body_.values.size(), {});
  std::vector<int> bits(body_.values.size(), 0);
  for (const ValueId id : order_) bits[index(id)] = body_.values[index(id)].element.bits();
  for (const BodyPort& input : body_.inputs) bits[index(input.value)] = input.element.bits();
  for (const ValueId id : order_) {
    if (!swept(id)) continue;
    std::vector<ValueId>& sources = sources_[index(id)];
    if (const BodyNode* node = maker_[index(id)])
      for (const ValueId operand : node->operands)
        for (const ValueId source : sources_[index(operand)])
          if (std::ranges::find(sources, source) == sources.end()) sources.push_back(source);
    int read = 0;
    for (const ValueId source : sources) read += bits[index(source)];
    const bool lies_in_memory = !maker_[index(id)];
    if (lies_in_memory || read > bits[index(id)]) sources = {id};
  }
}

// Makes the value readable from memory for later nests, like an input, when it is expensive to compute; always for
// values hoisted out of their loops.
bool Planner::offer(Access root) {
  const bool is_output = index(root.port) < body_.inputs.size() + body_.outputs.size();
  if (is_output && !costs_more(root.value, options_.recompute_cycles)) return false;
  offered_.push_back(root);
  maker_[index(root.value)] = nullptr;
  return true;
}

// Whether all nodes that lead to a value, up to those in memory, take more than `enough` cycles. Examines only as many
// of them as necessary.
bool Planner::costs_more(ValueId id, double enough) const {
  return costs_more(id, enough, [&](ValueId made) -> std::optional<double> {
    const BodyNode* node = maker_[index(made)];
    return node ? is_reduction(node->op) ? kSweepCycles : cycles(*node) : 0;
  });
}

// The same for recomputing a value in a sweep, which reads what is in memory, and where values that are not swept are
// available.
bool Planner::costs_more_again(ValueId id, double enough) const {
  return costs_more(id, enough, [&](ValueId made) -> std::optional<double> {
    if (!swept(made)) return std::nullopt;
    const BodyNode* node = maker_[index(made)];
    return node ? cycles(*node) : 1;
  });
}

// Whether a sweep would read more than one tensor to recompute it.
bool Planner::reads_several(ValueId id) const {
  return costs_more(id, 1, [&](ValueId made) -> std::optional<double> {
    if (!swept(made)) return std::nullopt;
    return maker_[index(made)] ? 0 : 1;
  });
}

template <class Cost>
bool Planner::costs_more(ValueId id, double enough, Cost cost_of) const {
  std::unordered_set<ValueId> seen{id};
  std::vector<ValueId> open{id};
  double cost = 0;
  while (!open.empty() && cost <= enough) {
    const ValueId made = open.back();
    open.pop_back();
    const std::optional<double> own = cost_of(made);
    cost += own.value_or(0);
    if (const BodyNode* node = maker_[index(made)]; node && own)
      for (const ValueId operand : node->operands)
        if (seen.insert(operand).second) open.push_back(operand);
  }
  return cost > enough;
}

// Values that the nest would compute repeatedly, since it has outer loops over which they do not vary, or one by one
// where they may be separate, and that are more expensive to recompute than to keep: the last ones of each chain, in
// scratch buffers.
std::vector<Access> Planner::find_hoisted(const Nest& nest) {
  const std::vector<char> again = made_again(nest);
  std::vector<double> cost(body_.values.size(), 0);
  std::vector<char> wanted(body_.values.size(), 0);
  for (const ValueId id : order_) {
    const BodyNode* node = maker_[index(id)];
    if (!needed_[index(id)] || !node) continue;
    if (again[index(id)]) cost[index(id)] = is_reduction(node->op) ? kSweepCycles : cycles(*node);
    for (const ValueId operand : node->operands) {
      if (!again[index(id)])
        wanted[index(operand)] = 1;
      else if (again[index(operand)])
        cost[index(id)] = std::min(cost[index(id)] + cost[index(operand)], 1e9);
    }
  }
  for (const Access& root : nest.roots) wanted[index(root.value)] = 0;
  std::vector<Access> hoisted;
  for (const ValueId id : order_) {
    if (!again[index(id)] || !wanted[index(id)]) continue;
    if (cost[index(id)] <= (is_apart(nest, id) ? options_.apart_cycles : options_.recompute_cycles)) continue;
    plan_.scratch.push_back({element_in_memory(id), varies(id), false});
    hoisted.push_back({id, last_scratch()});
  }
  return hoisted;
}

// Narrow integers have their own number of bits, other values that of their lane.
ElementType Planner::element_in_memory(ValueId id) const {
  static const Name kWrap("Wrap"), kTo("to");
  const BodyNode* const made = maker_[index(id)];
  const ElementType lane = body_.values[index(id)].element;
  const Attribute* const to = made && made->op == kWrap ? made->attributes.find(kTo) : nullptr;
  return to ? ElementType::parse(*to->get_if<std::string>()).value_or(lane) : lane;
}

bool Planner::is_apart(const Nest& nest, ValueId id) const {
  return std::isfinite(options_.apart_cycles) && !contains(varies(id), nest.vector) &&
         goes_apart(body_, id, options_.lanes);
}

// Per value: whether loops over which it does not vary enclose the place where it is computed, or it may be separate.
std::vector<char> Planner::made_again(const Nest& nest) const {
  std::vector<int> scope(body_.values.size(), -1);  // the innermost one whose sweeps use it
  std::vector<char> again(body_.values.size(), 0);
  for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
    if (!needed_[index(*id)]) continue;
    const int level = level_of(nest, *id);
    DimSet outside = 0;
    for (int i = 0; i < level && i < static_cast<int>(nest.kept.size()); ++i)
      outside |= DimSet{1} << nest.kept[static_cast<size_t>(i)];
    if (nest.tiled && level + 1 == static_cast<int>(nest.scopes.size())) outside = nest.kept_set;
    int& used = scope[index(*id)];
    used = std::max(used, level);
    again[index(*id)] =
        outside != kept_dims(*id) || (swept(*id) && used > level) || (maker_[index(*id)] && is_apart(nest, *id));
    const BodyNode* node = maker_[index(*id)];
    if (!node) continue;
    const int here = swept(*id) ? used : level;
    for (const ValueId operand : node->operands) scope[index(operand)] = std::max(scope[index(operand)], here);
  }
  return again;
}

}  // namespace tenon::snippet
