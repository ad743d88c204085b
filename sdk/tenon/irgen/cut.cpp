#include <tenon/irgen/cut.hpp>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include <tenon/ops/constant.hpp>

namespace tenon::irgen {
namespace {

// Values of the body that `op` reads, directly or in its regions.
template <class Visit>
void for_each_read(const Op& op, const Region& body, const Visit& visit) {
  const std::function<void(const Op&)> look = [&](const Op& reader) {
    for (size_t i = 0; i < reader.operand_count(); ++i) {
      const Value* value = reader.operand(i);
      if (value && value->region() == &body) visit(*value);
    }
    for (size_t r = 0; r < reader.region_count(); ++r) {
      for (const Op& inner : reader.region(r)) look(inner);
      look(reader.region(r).return_op());
    }
  };
  look(op);
}

bool is_constant(const Value& value) { return value.producer() && isa<Constant>(*value.producer()); }

PartKind kind_of(const OpPlan& plan) {
  if (plan.form == OpForm::late) return PartKind::late;
  return plan.in_program() ? PartKind::program : PartKind::host;
}

class Cutter {
 public:
  Cutter(const Graph& graph, const OpPlans& plans) : body_(graph.body()), name_(graph.name()), plans_(plans) {}

  std::vector<CutPart> run() {
    for (const Op& op : body_)
      if (!isa<Constant>(op)) place(op);
    std::vector<CutPart> parts;
    for (const auto& [key, ops] : groups_) {
      if (key.second != PartKind::late) {
        parts.push_back(make(key, ops, parts.size()));
        continue;
      }
      for (const Op* op : ops) parts.push_back(make(key, {op}, parts.size()));
    }
    return parts;
  }

 private:
  using Key = std::pair<size_t, PartKind>;  // depth, kind: every edge between two keys goes to a greater depth

  void place(const Op& op) {
    const PartKind kind = kind_of(plans_.at(&op));
    size_t depth = 0;
    for_each_read(op, body_, [&](const Value& value) {
      const auto found = key_of_.find(value.producer());
      if (found == key_of_.end()) return;
      const auto [before, other] = found->second;
      depth = std::max(depth, before + (other != kind || kind == PartKind::late));
    });
    key_of_[&op] = {depth, kind};
    groups_[{depth, kind}].push_back(&op);
  }

  bool leaves(const Value& value, const Key& key) const {
    for (const Use* use = value.first_use(); use; use = use->next()) {
      const Op* user = use->user();
      while (user->parent() != &body_) user = user->parent()->parent();
      const auto found = key_of_.find(user);
      if (found == key_of_.end() || found->second != key) return true;  // the graph's outputs have no key
    }
    return false;
  }

  CutPart make(const Key& key, const std::vector<const Op*>& ops, size_t number) const {
    CutPart made{.kind = key.second, .part = {.name = str(name_, "_", number), .ops = ops}};
    GraphPart& part = made.part;
    std::unordered_set<const Value*> seen;
    for (const Op* op : ops) {
      for_each_read(*op, body_, [&](const Value& value) {
        const auto maker = key_of_.find(value.producer());
        const bool inside = maker != key_of_.end() && maker->second == key;
        if (inside || is_constant(value) || !seen.insert(&value).second) return;
        part.inputs.push_back(&value);
        part.input_names.push_back(value.name());
      });
      for (size_t i = 0; i < op->result_count(); ++i) {
        if (!leaves(*op->result(i), key)) continue;
        part.outputs.push_back(op->result(i));
        part.output_names.push_back(op->result(i)->name());
      }
    }
    return made;
  }

  const Region& body_;
  const std::string& name_;
  const OpPlans& plans_;
  std::unordered_map<const Op*, Key> key_of_;
  std::map<Key, std::vector<const Op*>> groups_;
};

bool is_whole(const Graph& graph, const GraphTypes& types, const OpPlans& plans, PartKind kind) {
  const Region& body = graph.body();
  const bool program = kind == PartKind::program;
  const auto fits = [&](const Value* value) { return value && (!program || fits_buffer(types.type_of(*value))); };
  for (const Op& op : body)
    if (!isa<Constant>(op) && kind_of(plans.at(&op)) != kind) return false;
  for (size_t i = 0; i < body.input_count(); ++i)
    if (!fits(body.input(i))) return false;
  for (size_t i = 0; i < body.output_count(); ++i)
    if (!fits(body.output(i))) return false;
  return true;
}

}  // namespace

std::vector<CutPart> cut(const Graph& graph, const GraphTypes& types, const OpPlans& plans) {
  for (const PartKind kind : {PartKind::program, PartKind::host}) {
    if (!is_whole(graph, types, plans, kind)) continue;
    std::vector<CutPart> parts;
    parts.push_back({.kind = kind, .part = whole_graph(graph)});
    return parts;
  }
  return Cutter(graph, plans).run();
}

std::unique_ptr<Graph> extract(const Graph& graph, const GraphPart& part, const GraphTypes& types) {
  auto made = std::make_unique<Graph>(graph.name());
  made->properties() = graph.properties();
  Region& body = made->body();
  ValueMap map;
  for (size_t i = 0; i < part.inputs.size(); ++i) {
    const Value& value = *part.inputs[i];
    const Type& trusted = types.type_of(value);
    Type type = trusted.known() ? trusted : value.type();
    if (type.is_tensor() && !(type.shape().ranked() && type.shape().is_static())) type = Type(type.element(), Shape());
    map[&value] = body.add_input(part.input_names[i], type);
    map[&value]->set_layout(value.shared_layout());
  }
  const auto take_constant = [&](const Value& value) {
    if (is_constant(value) && !map.contains(&value)) clone_op(*value.producer(), body, nullptr, map);
  };
  for (const Op* op : part.ops) for_each_read(*op, graph.body(), take_constant);
  for (const Op* op : part.ops) clone_op(*op, body, nullptr, map);
  for (size_t i = 0; i < part.outputs.size(); ++i) {
    take_constant(*part.outputs[i]);
    body.add_output(map.at(part.outputs[i]), part.output_names[i]);
  }
  return made;
}

}  // namespace tenon::irgen
