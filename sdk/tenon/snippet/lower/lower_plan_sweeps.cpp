// The sweeps of one scope: which reductions and stores share one, what each computes, and what it keeps for a later
// one.
#include <algorithm>

#include <tenon/snippet/lower/lower_plan_internal.hpp>

namespace tenon::snippet {

namespace {

Phase& phase_at(Scope& scope, int phase) {
  if (scope.phases.size() <= static_cast<size_t>(phase)) scope.phases.resize(static_cast<size_t>(phase) + 1);
  return scope.phases[static_cast<size_t>(phase)];
}

DimSet set_of(const std::vector<int>& dims) {
  DimSet set = 0;
  for (const int d : dims) set |= DimSet{1} << d;
  return set;
}

}  // namespace

// The phase of a value in the scope: the number of reductions of the scope on the longest chain to it.
void Planner::find_phases(const Nest& nest, int level) {
  phase_.assign(body_.values.size(), 0);
  for (const ValueId id : order_) {
    const BodyNode* node = maker_[index(id)];
    if (!node || !needed_[index(id)] || level_of(nest, id) > level) continue;
    if (!swept(id) && level_of(nest, id) < level) continue;  // computed before the scope begins
    int phase = 0;
    for (const ValueId operand : node->operands) phase = std::max(phase, phase_[index(operand)]);
    phase_[index(id)] = phase + (is_reduction(node->op) ? 1 : 0);
  }
}

void Planner::plan_scope(Nest& nest, int level) {
  find_phases(nest, level);
  Scope& scope = nest.scopes[static_cast<size_t>(level)];
  for (const ValueId id : order_) {
    if (!needed_[index(id)] || level_of(nest, id) != level) continue;
    if (const BodyNode* node = reduction(id))
      add_fold(phase_at(scope, phase_[index(node->operands[0])]), node);
    else if (!swept(id))
      phase_at(scope, phase_[index(id)]).values.push_back(id);
  }
  for (const Access& root : nest.roots)
    if (swept(root.value) && level_of(nest, root.value) == level)
      add_store(nest, phase_at(scope, phase_[index(root.value)]), root);
  fill_sweeps(nest, scope);
}

// Reductions of a phase share one sweep, over all reduced dims.
void Planner::add_fold(Phase& phase, const BodyNode* node) {
  if (phase.sweeps.empty()) phase.sweeps.push_back({.loops = dims_of(reduced_)});
  phase.sweeps.front().folds.push_back(node);
}

// Whether a sweep over `loops` computes a value that varies over `dims` of the reduced dims once for each of its
// elements. Sweeps along whole rows do everything in their last loop: not at all, where a dim over which the value does
// not vary is empty.
bool Planner::makes_once(const Nest& nest, DimSet dims, DimSet loops) {
  return nest.whole_rows ? dims == loops : is_prefix(dims, loops);
}

// A store shares a sweep in which it is executed once for each element.
void Planner::add_store(const Nest& nest, Phase& phase, Access store) {
  const DimSet dims = varies(store.value) & reduced_;
  for (Sweep& sweep : phase.sweeps) {
    if (!makes_once(nest, dims, set_of(sweep.loops))) continue;
    sweep.stores.push_back(store);
    return;
  }
  phase.sweeps.push_back({.loops = dims_of(dims)});
  phase.sweeps.back().stores.push_back(store);
}

void Planner::fill_sweeps(const Nest& nest, Scope& scope) {
  std::vector<Sweep*> sweeps;
  for (Phase& phase : scope.phases)
    for (Sweep& sweep : phase.sweeps) sweeps.push_back(&sweep);
  computed_in_.assign(body_.values.size(), -1);
  stored_.assign(body_.values.size(), 0);
  for (const Sweep* sweep : sweeps)
    for (const Access& store : sweep->stores) stored_[index(store.value)] = is_stored_as_it_is(store);
  kept_.clear();
  for (size_t i = 0; i < sweeps.size(); ++i) {
    const bool last = i + 1 == sweeps.size();
    fill_sweep(nest, *sweeps[i], i, last && options_.behind_blocks ? 0 : options_.resweep_cycles, last);
  }
  if (options_.skew_rows) {
    keep_rows_late(sweeps);
    read_kept_rows(sweeps);
  }
  for (Kept& kept : kept_) place_kept(nest, kept, sweeps);
}

void Planner::fill_sweep(const Nest& nest, Sweep& sweep, size_t number, double resweep_cycles, bool last) {
  std::vector<char> wanted(body_.values.size(), 0), read(body_.values.size(), 0);
  for (const BodyNode* fold : sweep.folds) wanted[index(fold->operands[0])] = 1;
  for (const Access& store : sweep.stores) wanted[index(store.value)] = 1;
  for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
    if (!wanted[index(*id)] || !swept(*id)) continue;
    if (computed_in_[index(*id)] >= 0 &&
        (costs_more_again(*id, resweep_cycles) || has_many_sources(*id) || (last && is_of_row(*id)) ||
         (options_.reread_outputs && stored_[index(*id)] && reads_several(*id)))) {
      read[index(*id)] = 1;
    } else if (const BodyNode* node = maker_[index(*id)]) {
      for (const ValueId operand : node->operands) wanted[index(operand)] = 1;
    }
  }
  const DimSet dims = set_of(sweep.loops);
  for (const ValueId id : order_) {
    if (!wanted[index(id)] || !swept(id)) continue;
    if (read[index(id)]) {
      keep(id, number);
      continue;
    }
    sweep.values.push_back(id);
    if (computed_in_[index(id)] < 0 && makes_once(nest, varies(id) & reduced_, dims))
      computed_in_[index(id)] = static_cast<int>(number);
  }
}

// Whether a later sweep would read more bytes to recompute it than it has.
bool Planner::has_many_sources(ValueId id) const {
  return !sources_.empty() && sources_[index(id)].size() == 1 && sources_[index(id)][0] == id && maker_[index(id)];
}

bool Planner::is_stored_as_it_is(const Access& store) const {
  const size_t output = static_cast<size_t>(store.port) - body_.inputs.size();
  return output < body_.outputs.size() && body_.outputs[output].element == body_.values[index(store.value)].element;
}

// For skewed rows: whether it is a value of a tensor that another row has displaced from the caches before the last
// sweep.
bool Planner::is_of_row(ValueId id) const {
  return options_.skew_rows && !maker_[index(id)] && (varies(id) & ~reduced_) != 0;
}

// The last sweep runs together with one other, which alone may keep what it reads: where that is not the first to read
// a tensor, it keeps the tensor's row as well, beside the values computed from it, as in softmax(x) + x.
void Planner::keep_rows_late(const std::vector<Sweep*>& sweeps) {
  size_t home = 0;
  for (const Kept& kept : kept_)
    if (kept.last + 1 == sweeps.size()) home = std::max(home, kept.home);
  for (Kept& kept : kept_) {
    const auto reads_before = [&](const auto& reader) { return reader.first == kept.value && reader.second <= home; };
    const bool walked = std::ranges::find(sweeps[home]->values, kept.value) != sweeps[home]->values.end();
    if (!maker_[index(kept.value)] && walked && kept.home < home && std::ranges::none_of(readers_, reads_before))
      kept.home = home;
  }
}

// A tensor kept in a scratch row for the last sweep is read from there by the sweeps between, too: the next row evicts
// the tensor's own from the caches.
void Planner::read_kept_rows(const std::vector<Sweep*>& sweeps) {
  for (const Kept& kept : kept_)
    for (size_t i = kept.home + 1; i < kept.last; ++i)
      if (!maker_[index(kept.value)] && std::erase(sweeps[i]->values, kept.value) > 0)
        readers_.push_back({kept.value, i});
}

void Planner::keep(ValueId id, size_t reader) {
  const auto same = [&](const Kept& kept) { return kept.value == id; };
  auto kept = std::find_if(kept_.begin(), kept_.end(), same);
  if (kept == kept_.end()) kept = kept_.insert(kept, {id, static_cast<size_t>(computed_in_[index(id)]), 0, -1});
  kept->last = reader;
  readers_.push_back({kept->value, reader});
}

void Planner::place_kept(const Nest& nest, Kept& kept, const std::vector<Sweep*>& sweeps) {
  bool stored = false;
  kept.port =
      options_.behind_blocks || options_.keep_near || options_.skew_rows ? -1 : output_for(kept, sweeps, stored);
  if (kept.port < 0) kept.port = add_scratch(nest, kept.value);
  if (!stored) sweeps[kept.home]->stores.push_back({kept.value, kept.port});
  for (const auto& [value, reader] : readers_)
    if (value == kept.value) sweeps[reader]->reads.push_back({value, kept.port});
  std::erase_if(readers_, [&](const auto& entry) { return entry.first == kept.value; });
}

// An output of the scope that holds the value anyway (`stored`), or that is written no earlier than in the sweep that
// reads the value last: there, reads come first.
int Planner::output_for(const Kept& kept, const std::vector<Sweep*>& sweeps, bool& stored) const {
  int found = -1;
  for (size_t i = 0; i < sweeps.size(); ++i) {
    for (const Access& store : sweeps[i]->stores) {
      const size_t output = static_cast<size_t>(store.port) - body_.inputs.size();
      if (output >= body_.outputs.size()) continue;
      if (body_.outputs[output].element != body_.values[index(kept.value)].element) continue;
      if (varies(store.value) != varies(kept.value)) continue;
      if (store.value == kept.value && i == kept.home && !borrowed_within(store.port, kept.home, kept.last)) {
        stored = true;
        return store.port;
      }
      if (body_.outputs[output].value != store.value) continue;  // another kept value is stored there
      if (i >= kept.last && found < 0 && !borrowed_within(store.port, kept.home, kept.last)) found = store.port;
    }
  }
  return found;
}

bool Planner::borrowed_within(int port, size_t home, size_t last) const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [&](const Kept& other) { return other.port == port && other.home <= last && home <= other.last; });
}

int Planner::add_scratch(const Nest& nest, ValueId id) {
  const bool lanes = nest.tiled && contains(varies(id), nest.vector);
  const DimSet row = lanes && nest.whole_rows ? DimSet{1} << nest.vector : 0;
  plan_.scratch.push_back({body_.values[index(id)].element, (varies(id) & reduced_) | row, lanes && row == 0});
  return last_scratch();
}

}  // namespace tenon::snippet
