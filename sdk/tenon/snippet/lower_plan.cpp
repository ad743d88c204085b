#include <tenon/snippet/lower_plan.hpp>

#include <algorithm>
#include <bit>
#include <numeric>

namespace tenon::snippet {
namespace {

std::vector<int> dims_of(DimSet set) {
  std::vector<int> dims;
  for (int d = 0; d < kMaxDims; ++d)
    if (contains(set, d)) dims.push_back(d);
  return dims;
}

// Are the dims of `inner` the outermost ones of `all`?
bool is_prefix(DimSet inner, DimSet all) {
  if (inner == 0) return true;
  const int deepest = std::bit_width(inner) - 1;
  return (all & (~DimSet{0} >> (31 - deepest))) == inner;
}

class Planner {
 public:
  Planner(const Body& body, const LowerOptions& options)
      : body_(body), options_(options), reduced_(body.reduced_dims()), maker_(body.values.size(), nullptr) {
    for (const BodyNode& node : body.nodes) maker_[index(node.result)] = &node;
    for (const BodyPort& input : body.inputs) order_.push_back(input.value);
    for (const BodyNode& node : body.nodes) order_.push_back(node.result);
    find_costs();
  }

  LowerPlan run() {
    std::vector<Access> outputs;
    for (size_t i = 0; i < body_.outputs.size(); ++i)
      outputs.push_back({body_.outputs[i].value, static_cast<int>(body_.inputs.size() + i)});
    add_nests(std::move(outputs));
    return std::move(plan_);
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  DimSet varies(ValueId id) const { return body_.values[index(id)].varies; }
  bool swept(ValueId id) const { return (varies(id) & reduced_) != 0; }
  const BodyNode* reduction(ValueId id) const {
    const BodyNode* node = maker_[index(id)];
    return node && is_reduction(node->op) ? node : nullptr;
  }

  double cycles(const BodyNode& node) const { return options_.cycles ? options_.cycles(body_, node) : 1; }

  // Cycles to make a value in a sweep again: those of all swept values behind it.
  void find_costs() {
    cost_.assign(body_.values.size(), 0);
    for (const ValueId id : order_) {
      if (!swept(id)) continue;
      const BodyNode* node = maker_[index(id)];
      double cost = node ? cycles(*node) : 1;
      if (node)
        for (const ValueId operand : node->operands) cost += cost_[index(operand)];
      cost_[index(id)] = std::min(cost, 1e9);
    }
  }

  // --- nests ------------------------------------------------------------------------------------------------------

  DimSet kept_dims(ValueId id) const { return varies(id) & ~reduced_; }

  // Roots share loops when each is stored once in them. Nests of fewer dims come first: others may read what they make.
  void add_nests(std::vector<Access> roots) {
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

  void add_nest(Nest nest) {
    outline(nest);
    if (std::vector<Access> hoisted = find_hoisted(nest); !hoisted.empty()) {
      add_nests(std::move(hoisted));
      outline(nest);
    }
    for (size_t level = 0; level < nest.scopes.size(); ++level) plan_scope(nest, static_cast<int>(level));
    for (const Access& root : nest.roots)
      if (element_of(root.port) == body_.values[index(root.value)].element) offer(root);
    plan_.nests.push_back(std::move(nest));
  }

  ElementType element_of(int port) const {
    const size_t output = index(port) - body_.inputs.size();
    if (output < body_.outputs.size()) return body_.outputs[output].element;
    return plan_.scratch[output - body_.outputs.size()].element;
  }

  // Later nests read the value from memory, as if it were an input, when it is not cheap to make.
  void offer(Access root) {
    std::vector<double> cost(body_.values.size(), 0);
    for (const ValueId id : order_) {
      const BodyNode* node = maker_[index(id)];
      if (!node) continue;
      cost[index(id)] = is_reduction(node->op) ? kSweepCycles : cycles(*node);
      for (const ValueId operand : node->operands) cost[index(id)] += cost[index(operand)];
      cost[index(id)] = std::min(cost[index(id)], 1e9);
    }
    if (cost[index(root.value)] <= options_.recompute_cycles) return;
    offered_.push_back(root);
    maker_[index(root.value)] = nullptr;
    find_costs();
  }

  // Its loops, and what it reads of earlier nests.
  void outline(Nest& nest) {
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
  }

  void mark_needed(const Nest& nest) {
    needed_.assign(body_.values.size(), 0);
    for (const Access& root : nest.roots) needed_[index(root.value)] = 1;
    for (auto id = order_.rbegin(); id != order_.rend(); ++id)
      if (const BodyNode* node = maker_[index(*id)]; node && needed_[index(*id)])
        for (const ValueId operand : node->operands) needed_[index(operand)] = 1;
  }

  // Values that the nest would make more than once, since loops that they do not vary over lie outside of theirs, and
  // that cost more than to keep them: the last ones of their kind, in scratch buffers.
  std::vector<Access> find_hoisted(const Nest& nest) {
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
      if (!again[index(id)] || !wanted[index(id)] || cost[index(id)] <= options_.recompute_cycles) continue;
      plan_.scratch.push_back({body_.values[index(id)].element, varies(id), false});
      hoisted.push_back({id, last_scratch()});
    }
    return hoisted;
  }

  // Of each value: do loops stand around the place where it is made that it does not vary over?
  std::vector<char> made_again(const Nest& nest) const {
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
      again[index(*id)] = outside != kept_dims(*id) || (swept(*id) && used > level);
      const BodyNode* node = maker_[index(*id)];
      if (!node) continue;
      const int here = swept(*id) ? used : level;
      for (const ValueId operand : node->operands) scope[index(operand)] = std::max(scope[index(operand)], here);
    }
    return again;
  }

  // The scope that a value belongs to: that of the innermost kept loop it varies over.
  int level_of(const Nest& nest, ValueId id) const {
    const DimSet set = varies(id) & ~reduced_;
    if (nest.tiled && contains(set, nest.vector)) return static_cast<int>(nest.scopes.size()) - 1;
    for (size_t i = nest.kept.size(); i-- > 0;)
      if (contains(set, nest.kept[i])) return static_cast<int>(i) + 1;
    return 0;
  }

  // The phase of a value in the scope: how many reductions of the scope stand behind it, one behind the other.
  void find_phases(const Nest& nest, int level) {
    phase_.assign(body_.values.size(), 0);
    for (const ValueId id : order_) {
      const BodyNode* node = maker_[index(id)];
      if (!node || !needed_[index(id)] || level_of(nest, id) > level) continue;
      if (!swept(id) && level_of(nest, id) < level) continue;  // made before the scope begins
      int phase = 0;
      for (const ValueId operand : node->operands) phase = std::max(phase, phase_[index(operand)]);
      phase_[index(id)] = phase + (is_reduction(node->op) ? 1 : 0);
    }
  }

  static Phase& phase_at(Scope& scope, int phase) {
    if (scope.phases.size() <= static_cast<size_t>(phase)) scope.phases.resize(static_cast<size_t>(phase) + 1);
    return scope.phases[static_cast<size_t>(phase)];
  }

  void plan_scope(Nest& nest, int level) {
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
        add_store(phase_at(scope, phase_[index(root.value)]), root);
    fill_sweeps(nest, scope);
  }

  // Reductions of a phase share one sweep, over all reduced dims.
  void add_fold(Phase& phase, const BodyNode* node) {
    if (phase.sweeps.empty()) phase.sweeps.push_back({.loops = dims_of(reduced_)});
    phase.sweeps.front().folds.push_back(node);
  }

  static DimSet set_of(const std::vector<int>& dims) {
    DimSet set = 0;
    for (const int d : dims) set |= DimSet{1} << d;
    return set;
  }

  // A store shares a sweep in which it is done once for each element.
  void add_store(Phase& phase, Access store) {
    const DimSet dims = varies(store.value) & reduced_;
    for (Sweep& sweep : phase.sweeps) {
      if (!is_prefix(dims, set_of(sweep.loops))) continue;
      sweep.stores.push_back(store);
      return;
    }
    phase.sweeps.push_back({.loops = dims_of(dims)});
    phase.sweeps.back().stores.push_back(store);
  }

  // A value that one sweep computes and a later one wants.
  struct Kept {
    ValueId value = -1;
    size_t home = 0, last = 0;  // sweeps
    int port = -1;
  };

  void fill_sweeps(const Nest& nest, Scope& scope) {
    std::vector<Sweep*> sweeps;
    for (Phase& phase : scope.phases)
      for (Sweep& sweep : phase.sweeps) sweeps.push_back(&sweep);
    computed_in_.assign(body_.values.size(), -1);
    kept_.clear();
    for (size_t i = 0; i < sweeps.size(); ++i) fill_sweep(*sweeps[i], i);
    for (Kept& kept : kept_) place_kept(nest, kept, sweeps);
  }

  void fill_sweep(Sweep& sweep, size_t number) {
    std::vector<char> wanted(body_.values.size(), 0), read(body_.values.size(), 0);
    for (const BodyNode* fold : sweep.folds) wanted[index(fold->operands[0])] = 1;
    for (const Access& store : sweep.stores) wanted[index(store.value)] = 1;
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
      if (!wanted[index(*id)] || !swept(*id)) continue;
      if (computed_in_[index(*id)] >= 0 && cost_[index(*id)] > options_.recompute_cycles) {
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
      if (computed_in_[index(id)] < 0 && is_prefix(varies(id) & reduced_, dims))
        computed_in_[index(id)] = static_cast<int>(number);
    }
  }

  void keep(ValueId id, size_t reader) {
    const auto same = [&](const Kept& kept) { return kept.value == id; };
    auto kept = std::find_if(kept_.begin(), kept_.end(), same);
    if (kept == kept_.end()) kept = kept_.insert(kept, {id, static_cast<size_t>(computed_in_[index(id)]), 0, -1});
    kept->last = reader;
    readers_.push_back({kept->value, reader});
  }

  void place_kept(const Nest& nest, Kept& kept, const std::vector<Sweep*>& sweeps) {
    bool stored = false;
    kept.port = output_for(kept, sweeps, stored);
    if (kept.port < 0) kept.port = add_scratch(nest, kept.value);
    if (!stored) sweeps[kept.home]->stores.push_back({kept.value, kept.port});
    for (const auto& [value, reader] : readers_)
      if (value == kept.value) sweeps[reader]->reads.push_back({value, kept.port});
    std::erase_if(readers_, [&](const auto& entry) { return entry.first == kept.value; });
  }

  // An output of the scope that holds the value anyway (`stored`), or that is written no earlier than in the sweep that
  // reads the value last: there, reads come first.
  int output_for(const Kept& kept, const std::vector<Sweep*>& sweeps, bool& stored) const {
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
        if (body_.outputs[output].value != store.value) continue;  // another kept value that lies there
        if (i >= kept.last && found < 0 && !borrowed_within(store.port, kept.home, kept.last)) found = store.port;
      }
    }
    return found;
  }
  bool borrowed_within(int port, size_t home, size_t last) const {
    return std::any_of(kept_.begin(), kept_.end(), [&](const Kept& other) {
      return other.port == port && other.home <= last && home <= other.last;
    });
  }

  int add_scratch(const Nest& nest, ValueId id) {
    const bool tile = nest.tiled && contains(varies(id), nest.vector);
    plan_.scratch.push_back({body_.values[index(id)].element, varies(id) & reduced_, tile});
    return last_scratch();
  }
  int last_scratch() const {
    return static_cast<int>(body_.inputs.size() + body_.outputs.size() + plan_.scratch.size()) - 1;
  }

  // What a value costs that takes loops of its own.
  static constexpr double kSweepCycles = 1000;

  const Body& body_;
  const LowerOptions& options_;
  DimSet reduced_;
  std::vector<const BodyNode*> maker_;  // of each value; null: read from memory
  std::vector<Access> offered_;         // values in memory that earlier nests have made
  std::vector<ValueId> order_;          // operands first
  std::vector<double> cost_;
  std::vector<char> needed_;      // in the nest
  std::vector<int> phase_;        // in the scope
  std::vector<int> computed_in_;  // the first sweep of the scope that makes a value, for all its elements
  std::vector<Kept> kept_;
  std::vector<std::pair<ValueId, size_t>> readers_;
  LowerPlan plan_;
};

}  // namespace

bool is_reduction(Name op) {
  static const Name kSum("ReduceSum"), kProd("ReduceProd"), kMax("ReduceMax"), kMin("ReduceMin");
  return op == kSum || op == kProd || op == kMax || op == kMin;
}

LowerPlan plan_lowering(const Body& body, const LowerOptions& options) { return Planner(body, options).run(); }

}  // namespace tenon::snippet
