#include <tenon/compile/partition.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/constant.hpp>

namespace tenon {
namespace {

// Values from outside that `op` reads, itself or in its regions.
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

class Partitioner {
 public:
  Partitioner(const Graph& graph, const std::vector<const TargetBackend*>& backends)
      : graph_(graph), body_(graph.body()), backends_(backends) {}

  Result<Partition> run() {
    for (size_t i = 0; i < body_.input_count(); ++i) slots_[body_.input(i)] = out_.slots++;
    TENON_OK(place());
    for (const auto& [key, ops] : groups_) TENON_OK(cut(key.second, ops));
    for (size_t i = 0; i < body_.output_count(); ++i) {
      Value* value = body_.output(i);
      if (value && !slots_.contains(value)) {
        // Only a constant has no slot by now: no part makes it.
        const Tensor* tensor = constant_of(value);
        if (!tensor) return error(Code::internal, "output '", body_.output_name(i), "' is made by no part");
        slots_[value] = out_.slots++;
        out_.constants.emplace_back(slots_[value], *tensor);
      }
      out_.output_slots.push_back(slots_.at(value));
    }
    return std::move(out_);
  }

 private:
  using Key = std::pair<size_t, size_t>;  // depth, target: every edge between two keys goes to a greater depth

  Result<void> place() {
    std::unordered_map<const Op*, Key> key_of;
    for (Op& op : body_) {
      if (isa<Constant>(op)) continue;
      TENON_TRY(target, choose(op));
      size_t depth = 0;
      for_each_read(op, [&](Value* value) {
        const auto found = key_of.find(value->producer());
        if (found != key_of.end()) depth = std::max(depth, found->second.first + (found->second.second != target));
      });
      key_of[&op] = {depth, target};
      groups_[{depth, target}].push_back(&op);
    }
    return {};
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

  // Is `value` read outside of `ops`?
  bool leaves(const Value& value, const std::set<const Op*>& ops) const {
    for (const Use* use = value.first_use(); use; use = use->next()) {
      const Op* user = use->user();
      while (user->parent() != &body_) user = user->parent()->parent();
      if (!ops.contains(user)) return true;
    }
    return false;
  }

  Result<void> cut(size_t target, const std::vector<Op*>& ops) {
    const std::set<const Op*> inside(ops.begin(), ops.end());
    GraphPart part{target, std::make_unique<Graph>(str(graph_.name(), "@", backends_[target]->name())), {}, {}};
    part.graph->properties() = graph_.properties();
    Region& body = part.graph->body();
    ValueMap map;
    std::set<std::string> names;
    // Names are kept where they are there and free, so that reports speak of the model's values.
    const auto name_of = [&](const Value& value, size_t slot) {
      std::string name = value.name();
      if (name.empty() || !names.insert(name).second) names.insert(name = str("slot", slot));
      return name;
    };
    for (Op* op : ops) {
      for_each_read(*op, [&](Value* value) {
        const Op* producer = value->producer();
        if (map.contains(value) || value->region() != &body_ || (producer && inside.contains(producer))) return;
        if (producer && isa<Constant>(*producer)) {
          clone_op(*producer, body, nullptr, map);
          return;
        }
        const size_t slot = slots_.at(value);
        part.inputs.push_back(slot);
        map[value] = body.add_input(name_of(*value, slot), value->type());
        map[value]->set_layout(value->shared_layout());
      });
    }
    for (Op* op : ops) clone_op(*op, body, nullptr, map);
    for (Op* op : ops) {
      for (size_t i = 0; i < op->result_count(); ++i) {
        Value* value = op->result(i);
        if (!leaves(*value, inside)) continue;
        slots_[value] = out_.slots;
        part.outputs.push_back(out_.slots);
        body.add_output(map.at(value), name_of(*value, out_.slots));
        ++out_.slots;
      }
    }
    out_.parts.push_back(std::move(part));
    return {};
  }

  const Graph& graph_;
  const Region& body_;
  const std::vector<const TargetBackend*>& backends_;
  std::unordered_map<const Value*, size_t> slots_;
  std::map<Key, std::vector<Op*>> groups_;
  Partition out_;
};

}  // namespace

Result<Partition> partition(const Graph& graph, const std::vector<const TargetBackend*>& backends) {
  return Partitioner(graph, backends).run();
}

}  // namespace tenon
