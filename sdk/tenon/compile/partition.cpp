#include <tenon/compile/partition.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <ranges>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/constant.hpp>

namespace tenon {
namespace {

// Values from outside that `op` reads, directly or in its regions.
void for_each_read(const Op& op, const std::function<void(Value*)>& visit) {
  const std::function<void(const Op&)> look = [&](const Op& reader) {
    for (size_t i = 0; i < reader.operand_count(); ++i) {
      if (Value* value = reader.operand(i)) visit(value);
    }
    for (size_t r = 0; r < reader.region_count(); ++r) {
      for (const Op& inner : reader.region(r)) look(inner);
      look(reader.region(r).return_op());
    }
  };
  look(op);
}

// The operator of `body` that `op` is, or that contains it.
const Op* outermost(const Region& body, const Op& op) {
  const Op* at = &op;
  while (at->parent() != &body) at = at->parent()->parent();
  return at;
}

// Whether `value` of `body` is read outside of `ops`.
bool leaves(const Region& body, const Value& value, const std::unordered_set<const Op*>& ops) {
  for (const Use* use = value.first_use(); use; use = use->next()) {
    if (!ops.contains(outermost(body, *use->user()))) return true;
  }
  return false;
}

class Partitioner {
 public:
  Partitioner(const Graph& graph, const std::vector<const TargetBackend*>& backends)
      : graph_(graph), body_(graph.body()), backends_(backends) {}

  Result<Partition> run() {
    for (size_t i = 0; i < body_.input_count(); ++i) slots_[body_.input(i)] = out_.slots++;
    TENON_OK(place());
    for (const auto& [key, ops] : groups_) cut(key.second, ops);
    for (size_t i = 0; i < body_.output_count(); ++i) {
      Value* value = body_.output(i);
      if (value && !slots_.contains(value)) {
        // Only a constant has no slot at this point: no part computes it.
        const Tensor* tensor = constant_of(value);
        if (!tensor) return error(Code::internal, "output '", body_.output_name(i), "' is made by no part");
        slots_[value] = out_.slots++;
        out_.constants.emplace_back(slots_[value], *tensor);
      }
      const auto own = own_slots_.find(i);
      out_.output_slots.push_back(own != own_slots_.end() ? own->second : slots_.at(value));
    }
    return std::move(out_);
  }

 private:
  using Key = std::pair<size_t, size_t>;  // depth, target: every edge between two keys goes to a greater depth

  Result<void> place() {
    std::vector<Op*> ops;
    std::unordered_set<const Op*> of_constants;  // that depend on constants only
    for (Op& op : body_) {
      if (isa<Constant>(op)) continue;
      TENON_TRY(target, choose(op));
      size_t depth = 0;
      bool reads_a_run = false;
      for_each_read(op, [&](Value* value) {
        const auto found = key_of_.find(value->producer());
        if (found != key_of_.end()) depth = std::max(depth, found->second.first + (found->second.second != target));
        const Op* producer = value->producer();
        reads_a_run |= !producer || !(isa<Constant>(*producer) || of_constants.contains(producer));
      });
      key_of_[&op] = {depth, target};
      keys_.insert({depth, target});
      if (!reads_a_run) of_constants.insert(&op);
      ops.push_back(&op);
    }
    // Values that depend only on constants can be computed late, and then need not be kept until they are used: weights
    // converted to f32 in the first part would all be live at the same time.
    for (Op* op : std::views::reverse(ops)) {
      if (of_constants.contains(op)) put_late(*op);
    }
    for (Op* op : ops) groups_[key_of_.at(op)].push_back(op);
    return {};
  }

  // Moves it to the last group of its target that does not follow its users. Users were placed before.
  void put_late(const Op& op) {
    Key& key = key_of_.at(&op);
    constexpr size_t kNobody = std::numeric_limits<size_t>::max();
    size_t latest = kNobody;
    for (size_t i = 0; i < op.result_count(); ++i) {
      for (const Use* use = op.result(i)->first_use(); use; use = use->next()) {
        const auto user = key_of_.find(outermost(body_, *use->user()));
        if (user == key_of_.end()) continue;  // an output of the graph
        latest = std::min(latest, user->second.first - (user->second.second != key.second));
      }
    }
    if (latest == kNobody) return;
    for (size_t depth = latest; depth > key.first; --depth) {
      if (!keys_.contains({depth, key.second})) continue;
      key.first = depth;
      return;
    }
  }

  Result<size_t> choose(const Op& op) {
    PlacementEntry entry{op.name().str(), op.label(), "", {}};
    for (size_t i = 0; i < backends_.size(); ++i) {
      const auto refusal = backends_[i]->refuses(op);
      if (!refusal) {
        entry.target = backends_[i]->name();
        out_.placement.entries.push_back(std::move(entry));
        return i;
      }
      entry.refusals.emplace_back(backends_[i]->name(), refusal->reason);
    }
    std::string reasons;
    for (const auto& [target, reason] : entry.refusals) reasons += str("\n  ", target, ": ", reason);
    return error(Code::unsupported, "no target takes ", op.describe(), ":", reasons);
  }

  void cut(size_t target, const std::vector<Op*>& ops) {
    const auto slot_of = [&](const Value& value) {
      const auto [at, made] = slots_.emplace(&value, out_.slots);
      out_.slots += made;
      return at->second;
    };
    CutGraph piece = cut_graph(graph_, str(graph_.name(), "@", backends_[target]->name()), ops, slot_of);
    repeat_outputs(*backends_[target], ops, piece);
    out_.parts.push_back({target, std::move(piece.graph), std::move(piece.inputs), std::move(piece.outputs)});
  }

  // Repeats an output of the piece for each output of the whole graph that it is, where the target stores it again.
  void repeat_outputs(const TargetBackend& backend, std::span<Op* const> ops, CutGraph& piece) {
    Region& body = piece.graph->body();
    std::unordered_map<size_t, Value*> value_of;  // by slot
    std::unordered_set<std::string> names;
    for (const Op* op : ops) {
      for (size_t r = 0; r < op->result_count(); ++r) {
        const std::vector<size_t> outputs = outputs_of(*op->result(r));
        if (outputs.size() < 2 || !backend.stores_again(*op)) continue;
        for (size_t i = names.size(); i < body.output_count(); ++i) {
          value_of.emplace(piece.outputs[i], body.output(i));
          names.insert(body.output_name(i));
        }
        for (const size_t output : outputs | std::views::drop(1)) {
          std::string name = body_.output_name(output);
          while (!names.insert(name).second) name += "_again";
          body.add_output(value_of.at(slots_.at(op->result(r))), std::move(name));
          piece.outputs.push_back(own_slots_[output] = out_.slots++);
        }
      }
    }
  }
  // Outputs of the whole graph that are `value`, ascending.
  std::vector<size_t> outputs_of(const Value& value) const {
    std::vector<size_t> outputs;
    for (const Use* use = value.first_use(); use; use = use->next())
      if (body_.is_return(*use->user())) outputs.push_back(use->index());
    std::ranges::sort(outputs);
    return outputs;
  }

  const Graph& graph_;
  const Region& body_;
  const std::vector<const TargetBackend*>& backends_;
  std::unordered_map<const Value*, size_t> slots_;
  std::unordered_map<size_t, size_t> own_slots_;  // of outputs that are stored in addition to the first of their value
  std::unordered_map<const Op*, Key> key_of_;
  std::set<Key> keys_;
  std::map<Key, std::vector<Op*>> groups_;
  Partition out_;
};

}  // namespace

CutGraph cut_graph(const Graph& graph, std::string name, std::span<Op* const> ops,
                   const std::function<size_t(const Value&)>& number_of) {
  const std::unordered_set<const Op*> inside(ops.begin(), ops.end());
  CutGraph piece{std::make_unique<Graph>(std::move(name)), {}, {}};
  piece.graph->properties() = graph.properties();
  Region& body = piece.graph->body();
  ValueMap map;
  std::set<std::string> names;
  // Names are kept where they exist and are free, so that reports refer to the model's values.
  const auto name_of = [&](const Value& value, size_t number) {
    std::string name = value.name();
    if (name.empty() || !names.insert(name).second) names.insert(name = str("slot", number));
    return name;
  };
  for (Op* op : ops) {
    for_each_read(*op, [&](Value* value) {
      const Op* producer = value->producer();
      if (map.contains(value) || value->region() != &graph.body() || (producer && inside.contains(producer))) return;
      if (producer && isa<Constant>(*producer)) {
        clone_op(*producer, body, nullptr, map);
        return;
      }
      piece.inputs.push_back(number_of(*value));
      map[value] = body.add_input(name_of(*value, piece.inputs.back()), value->type());
      map[value]->set_layout(value->shared_layout());
    });
  }
  for (Op* op : ops) clone_op(*op, body, nullptr, map);
  for (Op* op : ops) {
    for (size_t i = 0; i < op->result_count(); ++i) {
      Value* value = op->result(i);
      if (!leaves(graph.body(), *value, inside)) continue;
      piece.outputs.push_back(number_of(*value));
      body.add_output(map.at(value), name_of(*value, piece.outputs.back()));
    }
  }
  return piece;
}

Result<Partition> partition(const Graph& graph, const std::vector<const TargetBackend*>& backends) {
  return Partitioner(graph, backends).run();
}

}  // namespace tenon
