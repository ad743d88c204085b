#include <algorithm>
#include <map>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/layout.hpp>
#include <tenon/passes/layout_model.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

using Implementation = LayoutProblem::Implementation;

class Writer {
 public:
  Writer(LayoutModel& model, const LayoutAssignment& assignment) : model_(model), assignment_(assignment) {}

  LayoutReport write() {
    for (const LayoutAssignment::Step& step : assignment_.steps) {
      (step.from == step.to ? scrubs_ : reorders_).emplace(std::pair(step.tensor, step.to), step.cost);
    }
    gather_wants();
    for (size_t t = 0; t < model_.tensors.size(); ++t) {
      if (model_.problem.tensors[t].given && !model_.problem.tensors[t].free) lay_out(t);
    }
    // In the order of the nodes, so that a pin's value exists before it is read.
    for (size_t n = 0; n < model_.nodes.size(); ++n) write_node(n);
    for (Op* op : done_with_) {
      if (!op->has_uses()) op->erase();
    }
    report_.cost = assignment_.cost;
    report_.kernel_cost = assignment_.kernel_cost;
    report_.lower_bound = assignment_.lower_bound;
    report_.proven = assignment_.proven;
    return std::move(report_);
  }

 private:
  using Kind = LayoutModel::Node::Kind;
  using Key = std::pair<size_t, size_t>;  // tensor, layout

  const LayoutProblem::Node& problem_node(size_t n) const { return model_.problem.nodes[n]; }
  const Implementation& implementation(size_t n) const {
    return problem_node(n).implementations[assignment_.choice.implementations[n]];
  }
  size_t type_of(size_t tensor) const { return model_.tensors[tensor].type; }

  // Collects who needs which tensor in which layout, for the report.
  void gather_wants() {
    for (size_t n = 0; n < model_.nodes.size(); ++n) {
      const Implementation& impl = implementation(n);
      for (size_t i = 0; i < impl.operands.size(); ++i) {
        const Key key{problem_node(n).operands[i], impl.operands[i].layout};
        add_name(wants_[key], model_.nodes[n].name);
        if (impl.operands[i].needs_zero_pad || assignment_.choice.zero_operands[n])
          add_name(zero_wants_[key], model_.nodes[n].name);
      }
    }
  }
  static void add_name(std::vector<std::string>& names, const std::string& name) {
    if (names.empty() || names.back() != name) names.push_back(name);
  }

  // ---- Values ----

  std::shared_ptr<const ValueLayout> layout_of(size_t type, size_t layout, PadState pad) const {
    if (layout == LayoutTable::kRowMajor) return nullptr;
    const LayoutTable::Entry& entry = model_.table.entry(type, layout);
    const bool padded = model_.table.is_padded(type, layout);
    return std::make_shared<ValueLayout>(ValueLayout{entry.text, entry.dims, padded ? pad : PadState::none, 0, false});
  }
  // The padding after a reorder into the layout, or in a constant.
  PadState filled(size_t type, size_t layout) const {
    return model_.table.entry(type, layout).layout.fill() == uint64_t{0} ? PadState::zero : PadState::dirty;
  }

  // Sets the layout of a value that a node produces or the graph is given.
  void lay_out(size_t tensor) {
    const LayoutModel::Tensor& it = model_.tensors[tensor];
    const LayoutAssignment::Made made = assignment_.made[tensor];
    const PadState pad = made.zero_pad ? PadState::zero : PadState::dirty;
    if (!it.pin) return it.value->set_layout(layout_of(it.type, made.layout, pad));
    auto pin = std::make_shared<ValueLayout>(*it.pin);  // as the user wrote it
    if (pin->pad != PadState::value) pin->pad = model_.table.is_padded(it.type, made.layout) ? pad : PadState::none;
    it.value->set_layout(std::move(pin));
  }

  // The tensor in a layout, before `user`; created on first use.
  Value* value_in(size_t tensor, size_t layout, Op& user) {
    const LayoutModel::Tensor& it = model_.tensors[tensor];
    if (model_.problem.tensors[tensor].free) return constant_in(tensor, layout);
    const auto found = copies_.find({tensor, layout});
    if (found != copies_.end()) return found->second;
    Value* value = it.value;
    if (const auto reorder = reorders_.find({tensor, layout}); reorder != reorders_.end()) {
      value = insert(LayoutReorder::kName, *value, layout_of(it.type, layout, filled(it.type, layout)), user,
                     str(".", model_.table.name(it.type, layout)));
      const int64_t bytes =
          model_.table.bytes(it.type, assignment_.made[tensor].layout) + model_.table.bytes(it.type, layout);
      report(LayoutStep::Kind::reorder, tensor, layout, bytes, reorder->second, wants_);
    }
    if (const auto scrub = scrubs_.find({tensor, layout}); scrub != scrubs_.end()) {
      value = insert(LayoutScrub::kName, *value, layout_of(it.type, layout, PadState::zero), user, ".scrubbed");
      report(LayoutStep::Kind::scrub, tensor, layout, model_.table.pad_bytes(it.type, layout), scrub->second,
             zero_wants_);
    }
    return copies_[{tensor, layout}] = value;
  }

  Value* insert(std::string_view name, Value& from, std::shared_ptr<const ValueLayout> layout, Op& before,
                const std::string& suffix) {
    Value* const operand = &from;
    Op& op = before.parent()->create(Name(name), {&operand, 1}, {from.type()}, {}, &before);
    Value* made = op.result();
    made->set_layout(std::move(layout));
    if (!from.name().empty()) made->set_name(from.name() + suffix);
    op.set_label(made->name());
    return made;
  }

  Value* constant_in(size_t tensor, size_t layout) {
    const LayoutModel::Tensor& it = model_.tensors[tensor];
    if (layout == it.home) return it.value;
    const auto [found, added] = copies_.try_emplace({tensor, layout}, nullptr);
    if (!added) return found->second;
    Op& constant = *it.value->producer();
    if (it.pin) {
      // The constant keeps the user's layout; the reorder is done when the graph is prepared.
      found->second = insert(LayoutReorder::kName, *it.value, layout_of(it.type, layout, filled(it.type, layout)),
                             *constant.next(), str(".", model_.table.name(it.type, layout)));
      report(LayoutStep::Kind::constant, tensor, layout, model_.table.bytes(it.type, layout), 0, wants_);
      return found->second;
    }
    ValueMap map;
    Op& copy = clone_op(constant, *constant.parent(), constant.next(), map);
    copy.result()->set_layout(layout_of(it.type, layout, filled(it.type, layout)));
    done_with_.push_back(&constant);
    report(LayoutStep::Kind::constant, tensor, layout, model_.table.bytes(it.type, layout), 0, wants_);
    return found->second = copy.result();
  }

  void report(LayoutStep::Kind kind, size_t tensor, size_t layout, int64_t bytes, double cost,
              const std::map<Key, std::vector<std::string>>& wants) {
    const auto by = wants.find({tensor, layout});
    const size_t from = kind == LayoutStep::Kind::scrub ? layout : assignment_.made[tensor].layout;
    report_.steps.push_back({kind, model_.problem.tensors[tensor].name, model_.table.name(type_of(tensor), from),
                             model_.table.name(type_of(tensor), layout), bytes, cost,
                             by == wants.end() ? std::vector<std::string>() : by->second});
  }

  // ---- Nodes ----

  void write_node(size_t n) {
    const LayoutModel::Node& node = model_.nodes[n];
    const Implementation& impl = implementation(n);
    if (node.kind == Kind::pin) return write_pin(n, impl);
    for (size_t i = 0; i < impl.operands.size(); ++i) {
      Value* value = value_in(problem_node(n).operands[i], impl.operands[i].layout, *node.op);
      node.places[i].user->set_operand(node.places[i].operand, value);
    }
    for (const size_t tensor : problem_node(n).results) lay_out(tensor);
    if (node.padded[assignment_.choice.implementations[n]]) {
      node.op->set_attr(Name(kLayoutKernelAttribute), std::string(kPaddedKernel));
    }
  }

  // The operand in its layout is the pinned value: a copy, or the operand itself. Erases the operator that represented
  // it.
  void write_pin(size_t n, const Implementation& impl) {
    const size_t operand = problem_node(n).operands[0], tensor = problem_node(n).results[0];
    Op& reorder = *model_.nodes[n].op;
    Value& pinned = *reorder.result();
    Value* value = value_in(operand, impl.operands[0].layout, reorder);
    if (value != model_.tensors[operand].value || value->name().empty()) value->set_name(pinned.name());
    pinned.replace_all_uses_with(value);
    model_.tensors[tensor].value = value;
    lay_out(tensor);
    reorder.erase();
  }

  LayoutModel& model_;
  const LayoutAssignment& assignment_;
  std::map<Key, double> reorders_, scrubs_;
  std::map<Key, std::vector<std::string>> wants_, zero_wants_;
  std::map<Key, Value*> copies_;
  std::vector<Op*> done_with_;
  LayoutReport report_;
};

}  // namespace

LayoutReport write_layouts(LayoutModel& model, const LayoutAssignment& assignment) {
  return Writer(model, assignment).write();
}

}  // namespace tenon
