#include <map>
#include <unordered_map>

#include <tenon-ext/dma/operators.hpp>
#include <tenon/ir/value_layout.hpp>

#include "vta/device_op_internal.hpp"
#include "vta/pack.hpp"
#include "vta/passes/walk.hpp"

namespace tenon::vta {
namespace {

// A kernel with constants in the machine's blocks: operands are activations, then weights by term, then the bias.
class PackedKernel {
 public:
  PackedKernel(Kernel kernel, const Hardware& hardware)
      : old_(kernel), hardware_(hardware), constants_(*kernel->parent(), &kernel.op()) {}

  Result<void> make() {
    TENON_OK(pack_constants());
    Kernel packed = new_kernel(old_, operands_);
    copy_body(packed);
    const std::vector<Value*> before = old_->operands();
    finish_kernel(packed, values_.at(old_.body().output(0)), old_);
    erase_unused(before);
    return {};
  }

 private:
  Value* operand_of(const Value* input) const { return old_->operand(input->index()); }
  std::string name_of(std::string_view suffix) const { return str(old_.result()->name(), ".", suffix); }

  Result<void> pack_constants() {
    std::vector<Op*> ops;
    for (Op& op : old_.body()) ops.push_back(&op);
    std::map<const Value*, size_t> activations;
    for (Op* op : ops)
      for (const Value* x : {op->is(GemmOp::name()) || op->is(MaxOp::name()) ? op->operand(1) : nullptr})
        if (x) activations.try_emplace(x, x->index());
    operands_.resize(activations.size());
    for (const auto& [input, index] : activations) operands_[index] = operand_of(input);
    for (Op* op : ops)
      if (auto gemm = dyn_cast<GemmOp>(op)) TENON_OK(pack_term(gemm));
    return pack_offsets(ops);
  }

  Result<void> pack_term(const GemmOp& gemm) {
    Attributes attributes = gemm->attributes();
    attributes.erase(names().group), attributes.erase(names().scale);
    if (!gemm.w()) {
      TENON_TRY(element, diagonal_element(static_cast<int8_t>(gemm.attr<int64_t>(names().scale, 1)), hardware_));
      attributes.set(names().form, "uniform");
      add_constant(gemm.op(), std::move(element), "unit");
    } else {
      const Tensor& w = *constant_of(operand_of(gemm.w()));
      const int64_t group = gemm.attr<int64_t>(names().group, 1);
      const GroupBlocks blocks = GroupBlocks::of(w.dim(1) * group, w.dim(0), group, hardware_);
      TENON_TRY(packed, pack_weights(w, group, blocks, hardware_));
      attributes.set(names().form, blocks.diagonal ? "diagonal" : "dense");
      if (blocks.groups != 1) attributes.set(names().groups, blocks.groups);
      add_constant(gemm.op(), std::move(packed), "w");
    }
    attributes_[&gemm.op()] = std::move(attributes);
    return {};
  }

  // The rounding term is added to the bias, a vector over channels; without a bias it stays an immediate where it fits.
  Result<void> pack_offsets(const std::vector<Op*>& ops) {
    Op *vector = nullptr, *rounding = nullptr;
    for (Op* op : ops) {
      if (op->name() != Name(AluOpView::kName) || op->attr<std::string>(names().op) != "add") continue;
      (op->operand(1) ? vector : rounding) = op;
    }
    const int64_t offset = rounding ? rounding->attr<int64_t>(names().immediate, 0) : 0;
    if (!vector && offset <= kMostImmediate) return {};
    const Tensor* bias = vector ? constant_of(operand_of(vector->operand(1))) : nullptr;
    const int64_t channels = (*old_.result()->type().shape().static_dims())[1];
    TENON_TRY(packed, pack_bias(bias ? *bias : Tensor(), channels, offset, hardware_));
    Op* add = vector ? vector : rounding;
    if (vector) dropped_ = rounding;
    add_constant(*add, std::move(packed), "bias");
    Attributes attributes = add->attributes();
    attributes.erase(names().immediate);
    attributes_[add] = std::move(attributes);
    return {};
  }

  void add_constant(const Op& user, Tensor tensor, std::string_view suffix) {
    constant_of_[&user] = operands_.size();
    operands_.push_back(constants_.constant(std::move(tensor), name_of(suffix)));
  }

  // Copies the operators, with packed constants as their last operand.
  void copy_body(const Kernel& packed) {
    for (Op& op : old_.body()) {
      if (&op == dropped_) {
        values_[op.result()] = values_.at(op.operand(0));
        continue;
      }
      std::vector<Value*> operands;
      const auto constant = constant_of_.find(&op);
      const size_t kept = constant == constant_of_.end() ? op.operand_count() : op.is(GemmOp::name()) ? 2 : 1;
      for (size_t i = 0; i < kept; ++i) operands.push_back(copy_of(op.operand(i), packed));
      if (constant != constant_of_.end()) operands.push_back(packed.body().input(constant->second));
      const auto changed = attributes_.find(&op);
      Op& copy = packed.body().create(op.name(), operands, {op.result()->type()},
                                      changed == attributes_.end() ? op.attributes() : changed->second);
      values_[op.result()] = copy.result();
    }
  }
  Value* copy_of(Value* value, const Kernel& packed) const {
    return value->producer() ? values_.at(value) : packed.body().input(value->index());
  }

  Kernel old_;
  const Hardware& hardware_;
  Builder constants_;
  std::vector<Value*> operands_;
  std::unordered_map<const Op*, size_t> constant_of_;  // by operator: the kernel's operand for its constant
  std::unordered_map<const Op*, Attributes> attributes_;
  std::unordered_map<const Value*, Value*> values_;
  const Op* dropped_ = nullptr;
};

// ---- Activations ----

// Blocks in the order [N][C][H][W][n][c], also where H and W are missing.
class Layouts {
 public:
  explicit Layouts(const Hardware& hardware) : hardware_(hardware) {}
  void put(Value& value) {
    const auto rank = static_cast<size_t>(value.type().shape().rank());
    std::shared_ptr<const ValueLayout>& layout = by_rank_[rank];
    if (!layout) {
      const std::string dims = rank == 2 ? "NC" : rank == 3 ? "NCW" : "NCHW";
      layout = std::make_shared<ValueLayout>(
          ValueLayout{.text = str(dims, "{", hardware_.batch, "n", hardware_.block, "c}"), .dims = dims});
    }
    value.set_layout(layout);
  }

 private:
  const Hardware& hardware_;
  std::map<size_t, std::shared_ptr<const ValueLayout>> by_rank_;
};

// Transfers between host and DRAM for values that are exchanged with other operators than kernels.
class Borders {
 public:
  Borders(Graph& graph, const Hardware& hardware) : body_(graph.body()), layouts_(hardware) {}

  Change make() {
    for (Kernel kernel : kernels_of(body_.graph())) {
      for (size_t i = 0; i < kernel->operand_count(); ++i)
        if (is_activation(kernel, i)) kernel->set_operand(i, in_dram(kernel->operand(i), &kernel.op()));
      layouts_.put(*kernel.result());
    }
    for (Kernel kernel : kernels_of(body_.graph())) store(*kernel.result());
    // Graph outputs that are inputs or constants, with no kernel in between.
    for (size_t i = 0; i < body_.output_count(); ++i) {
      const Value* root = behind_views(body_.output(i));
      if (root && (!root->producer() || isa<Constant>(root->producer())) && root->type().element() == kI8)
        store(*in_dram(body_.output(i), nullptr), &body_.return_op(), i);
    }
    return change_;
  }

 private:
  static bool is_activation(const Kernel& kernel, size_t i) {
    for (const Use* use : kernel.body().input(i)->uses())
      if (use->index() == 1 && (isa<GemmOp>(use->user()) || isa<MaxOp>(use->user()))) return true;
    return false;
  }
  static Attributes between(std::string_view from, std::string_view to) {
    return {{names().from, from}, {names().to, to}};
  }

  Value* in_dram(Value* value, Op* before) {
    if (isa<Kernel>(value->producer()) || isa<dma::Load>(value->producer())) return value;
    Value*& loaded = loaded_[value];
    if (loaded) return loaded;
    Op* at = before;
    Op& load = body_.create(dma::Load::name(), std::span(&value, 1), {value->type()}, between("host", "dram"), at);
    load.result()->set_name(str(value->name(), ".dram"));
    layouts_.put(*load.result());
    change_ = Change::yes;
    return loaded = load.result();
  }

  // Stores a value for users other than kernels.
  void store(Value& value) {
    std::vector<Use*> uses;
    for (Use* use : value.uses())
      if (!isa<Kernel>(use->user())) uses.push_back(use);
    if (uses.empty()) return;
    Value* const stored = make_store(value);
    for (Use* use : uses) use->user()->set_operand(use->index(), stored);
  }
  void store(Value& value, const Op*, size_t output) { body_.set_output(output, make_store(value)); }
  Value* make_store(Value& value) {
    Value* const from = &value;
    Op* behind = value.producer()->next();
    if (behind && body_.is_return(*behind)) behind = nullptr;
    Op& op = body_.create(dma::Store::name(), std::span(&from, 1), {value.type()}, between("dram", "host"), behind);
    op.result()->set_name(str(value.name(), ".host"));
    change_ = Change::yes;
    return op.result();
  }

  Region& body_;
  Layouts layouts_;
  std::unordered_map<const Value*, Value*> loaded_;
  Change change_ = Change::no;
};

Result<Change> pack_for(Graph& graph, const Hardware& hardware) {
  for (Kernel kernel : kernels_of(graph)) TENON_OK(PackedKernel(kernel, hardware).make(), kernel->describe());
  return Borders(graph, hardware).make();
}

}  // namespace

Pass vta_pack(const PassContext& context) {
  return {
      .name = "vta-pack",
      .contract = "Needs vta-select. Leaves constants in blocks, layouts on activations, dma between host and DRAM.",
      .run = [hardware = context.hardware](Graph& graph) { return pack_for(graph, hardware); }};
}

}  // namespace tenon::vta
