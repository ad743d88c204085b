#include <tenon/passes/walk_slots.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/layout_kernel.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/layout.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

Error no_slots(const Layout& layout, std::string_view why) {
  return error(Code::unsupported, "the slots of ", quote(layout.to_string()), " are no row-major tensor: ", why);
}

// A property that digits alone do not express; empty: none.
std::string_view obstacle(const Layout& layout) {
  if (!layout.has_digits()) return "it is an index map";
  if (layout.is_view()) return "it is a view";
  if (layout.is_ragged()) return "its blocks are ragged";
  if (layout.lanes() != 1 || layout.word_bits() != layout.element_bits()) return "its words are not one element each";
  if (layout.banks() != 1) return "it has banks";
  if (layout.valid_elements() == 0) return "it has no elements";
  for (const LayoutVariable& variable : layout.variables()) {
    if (variable.dims.size() != 1) return "it fuses dims";
    if (variable.offset != 0 || variable.fold != 0) return "it has an offset or a ring";
  }
  int64_t inside = 1;
  for (size_t i = layout.digits().size(); i-- > 0;) {
    const LayoutDigit& digit = layout.digits()[i];
    if (digit.xor_variable >= 0) return "it is swizzled";
    if (digit.extent > 1 && digit.stride != inside) return "it has gaps";
    inside *= digit.extent;
  }
  return inside == layout.physical_elements() ? "" : "it has gaps";
}

}  // namespace

Dims SlotView::slots() const {
  Dims all, out;
  for (const Dims& of_dim : digits) all.insert(all.end(), of_dim.begin(), of_dim.end());
  for (const size_t digit : order) out.push_back(all[digit]);
  return out;
}

Result<SlotView> slot_view(const Layout& layout) {
  if (const std::string_view why = obstacle(layout); !why.empty()) return no_slots(layout, why);
  SlotView view{layout.shape(), layout.shape(), {}, std::vector<size_t>(layout.digits().size())};
  size_t number = 0;
  for (size_t dim = 0; dim < layout.shape().size(); ++dim) {
    const auto holds = [&](const LayoutVariable& v) { return v.dims[0] == static_cast<int>(dim); };
    const auto variable = std::ranges::find_if(layout.variables(), holds) - layout.variables().begin();
    std::vector<size_t> of_dim;
    for (size_t i = 0; i < layout.digits().size(); ++i) {
      if (layout.digits()[i].variable == variable) of_dim.push_back(i);
    }
    std::ranges::stable_sort(of_dim, std::greater(),
                             [&](size_t i) { return std::pair(layout.digits()[i].place, layout.digits()[i].extent); });
    Dims& extents = view.digits.emplace_back();
    view.padded[dim] = 1;
    for (const size_t i : of_dim) {
      extents.push_back(layout.digits()[i].extent);
      view.padded[dim] *= extents.back();
      view.order[i] = number++;
    }
    int64_t place = view.padded[dim];
    for (const size_t i : of_dim) {
      place /= layout.digits()[i].extent;
      if (layout.digits()[i].extent > 1 && layout.digits()[i].place != place)
        return no_slots(layout, "its blocks overlap");
    }
  }
  return view;
}

namespace {

// All bits 1, or a NaN if the type has one.
Tensor pad_scalar(ElementType element, PoisonPadding poison) {
  Tensor out = Tensor::zeros(element, {}).value();
  if (poison == PoisonPadding::none) return out;
  if (element.is_bool()) {
    out.set_int(0, 1);
  } else if (element.is_float() && poison == PoisonPadding::nan) {
    out.set_double(0, std::numeric_limits<double>::quiet_NaN());
  } else {
    std::memset(out.mutable_data(), 0xff, out.bytes());
  }
  return out;
}

bool is_one(const Dims& dims) {
  return std::ranges::all_of(dims, [](int64_t extent) { return extent == 1; });
}

// Builds conversions to slots and back, before one operator.
class SlotBuilder {
 public:
  SlotBuilder(Op& before, PoisonPadding poison) : b_(*before.parent(), &before), poison_(poison) {}

  // `value` has the dims of the view or only the last ones of them, and extent 1 where it is broadcast. A single
  // element is left unchanged.
  Result<Value*> to_slots(Value* value, const SlotView& view) {
    const Dims given = *value->type().shape().static_dims();
    if (is_one(given)) return value;
    const size_t rank = view.shape.size(), missing = rank - given.size();
    Dims shape(rank, 1), cut;
    std::vector<int64_t> pads(2 * rank, 0);
    for (size_t d = 0; d < rank; ++d) {
      if (d >= missing) shape[d] = given[d - missing];
      const bool broadcast = shape[d] != view.shape[d];
      if (!broadcast) pads[rank + d] = view.padded[d] - view.shape[d];
      for (const int64_t extent : view.digits[d]) cut.push_back(broadcast ? 1 : extent);
    }
    if (shape != given) {
      TENON_TRY(same_rank, b_.op("Reshape", {value, b_.constant_ints(shape)}));
      value = same_rank;
    }
    if (std::ranges::any_of(pads, [](int64_t pad) { return pad != 0; })) {
      Value* fill = b_.constant(pad_scalar(value->type().element(), poison_));
      TENON_TRY(padded, b_.op("Pad", {value, b_.constant_ints(pads), fill}));
      value = padded;
    }
    TENON_TRY(digits, b_.op("Reshape", {value, b_.constant_ints(cut)}));
    return transposed(digits, {view.order.begin(), view.order.end()});
  }

  Result<Value*> from_slots(Value* value, const SlotView& view) {
    std::vector<int64_t> back(view.order.size());
    for (size_t i = 0; i < back.size(); ++i) back[view.order[i]] = static_cast<int64_t>(i);
    TENON_TRY(digits, transposed(value, back));
    TENON_TRY(padded, b_.op("Reshape", {digits, b_.constant_ints(view.padded)}));
    if (view.padded == view.shape) return padded;
    return b_.op("Slice",
                 {padded, b_.constant_ints(std::vector<int64_t>(view.shape.size(), 0)), b_.constant_ints(view.shape)});
  }

 private:
  Result<Value*> transposed(Value* value, const std::vector<int64_t>& order) {
    if (std::ranges::is_sorted(order)) return value;
    return b_.op("Transpose", {value}, {{"perm", Attribute::Integers(order.begin(), order.end())}});
  }

  Builder b_;
  PoisonPadding poison_;
};

class SlotWalker {
 public:
  SlotWalker(Graph& graph, const WalkSlotsOptions& options) : region_(graph.body()), options_(options) {}

  Result<WalkSlotsReport> walk() {
    for (Op* op : region_.ops()) {
      if (is_move(*op) || isa<Constant>(*op)) continue;
      const Value* lies = wanted(*op);
      if (!lies && !reads_layout(*op)) continue;
      TENON_TRY(view, view_of(*op, lies));
      if (view) TENON_OK(take(*op, *view), op->describe());
    }
    for (size_t i = taken_.size(); i-- > 0;) TENON_OK(leave(taken_[i]), taken_[i].op->describe());
    const std::vector<Op*> ops = region_.ops();
    for (size_t i = ops.size(); i-- > 0;) {
      if (is_move(*ops[i]) && !ops[i]->has_uses()) ops[i]->erase();
    }
    return std::move(report_);
  }

 private:
  struct Taken {
    Op* op;
    SlotView view;
    Value* slots;
  };

  // Whether it keeps the elements and moves them.
  static bool is_move(const Op& op) { return isa<LayoutReorder>(op) || isa<LayoutScrub>(op); }

  static bool reads_layout(const Op& op) {
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (op.operand(i) && op.operand(i)->layout()) return true;
    }
    return false;
  }

  // The value whose layout the result is to have: the result itself, or what it is converted to for its users. Null:
  // the result is row-major.
  static const Value* wanted(const Op& op) {
    if (op.result_count() == 0) return nullptr;
    if (op.result()->layout()) return op.result();
    for (const Use* use = op.result()->first_use(); use; use = use->next()) {
      if (isa<LayoutReorder>(*use->user()) && use->user()->result()->layout()) return use->user()->result();
    }
    return nullptr;
  }

  // Nothing: not rewritten; the report gives the reason.
  Result<std::optional<SlotView>> view_of(const Op& op, const Value* lies) {
    const auto refuse = [&](std::string_view why) -> std::optional<SlotView> {
      report_.refused.push_back(str(op.describe(), ": ", why));
      return std::nullopt;
    };
    if (!op.def() || !op.def()->has(Trait::elementwise)) return refuse("not element by element");
    if (op.def()->has(Trait::random) || op.region_count() > 0)
      return refuse("what an element gets depends on its index");
    if (op.result_count() != 1) return refuse("several results");
    if (!lies) return refuse("its result is row-major");
    const auto layout = resolve_layout(*lies);
    if (!layout.ok()) return refuse(layout.error().message());
    auto view = slot_view(*layout);
    if (!view.ok()) return refuse(view.error().message());
    if (is_one(view->shape)) return refuse("one element");
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (op.operand(i) && !broadcasts(*op.operand(i), view->shape)) {
        return refuse(str("operand ", i, " has other extents than the result"));
      }
    }
    return std::optional(*std::move(view));
  }

  static bool broadcasts(const Value& value, const Dims& shape) {
    const auto dims = value.type().is_tensor() ? value.type().shape().static_dims() : std::nullopt;
    if (!dims || dims->size() > shape.size()) return false;
    const size_t missing = shape.size() - dims->size();
    for (size_t d = 0; d < dims->size(); ++d) {
      if (dims->at(d) != 1 && dims->at(d) != shape[d + missing]) return false;
    }
    return true;
  }

  Result<void> take(Op& op, const SlotView& view) {
    std::vector<Value*> operands;
    for (Value* operand : op.operands()) {
      Value* slots = nullptr;
      if (operand) {
        TENON_TRY(made, slots_of(*operand, view, op));
        slots = made;
      }
      operands.push_back(slots);
    }
    Attributes attributes = op.attributes();
    attributes.erase(kLayoutKernelAttribute);
    Builder b(region_, &op);
    TENON_TRY(slots, b.op(op.name(), operands, std::move(attributes)));
    const auto dims = slots->type().shape().static_dims();
    if (dims != view.slots()) {
      return error(Code::internal, "over slots it makes ", slots->type(), ", of extents ", view.slots(), " wanted");
    }
    slots->producer()->set_label(op.label());
    if (!op.result()->name().empty()) slots->set_name(op.result()->name() + ".slots");
    made_[{op.result(), key(view)}] = slots;
    taken_.push_back({&op, view, slots});
    ++report_.operators;
    return {};
  }

  // A number per distinct view.
  size_t key(const SlotView& view) {
    const auto found = std::ranges::find(views_, view);
    if (found == views_.end()) views_.push_back(view);
    return static_cast<size_t>(std::ranges::find(views_, view) - views_.begin());
  }

  Result<Value*> slots_of(Value& value, const SlotView& view, Op& user) {
    const auto known = made_.find({&value, key(view)});
    if (known != made_.end()) return known->second;
    // The same elements; values between them are not visible.
    const Op* producer = value.producer();
    if (producer && is_move(*producer)) return slots_of(*producer->operand(0), view, user);
    TENON_TRY(slots, SlotBuilder(user, options_.poison).to_slots(logical_of(value, user), view));
    return made_[{&value, key(view)}] = slots;
  }

  // The value in row-major form: itself, or converted from an existing form.
  Value* logical_of(Value& value, Op& user) {
    if (!value.layout()) return &value;
    if (const Tensor* constant = constant_of(&value)) return Builder(region_, &user).constant(*constant, value.name());
    return reordered(value, nullptr, user);
  }

  Value* reordered(Value& value, std::shared_ptr<const ValueLayout> layout, Op& before) {
    Value* const operand = &value;
    Op& op = region_.create(Name(LayoutReorder::kName), {&operand, 1}, {value.type()}, {}, &before);
    op.result()->set_layout(std::move(layout));
    op.set_label(value.name());
    return op.result();
  }

  // Erases the operator; remaining users of its result get it from the slots.
  Result<void> leave(const Taken& taken) {
    Value& result = *taken.op->result();
    erase_unused(result);
    if (result.used()) {
      TENON_TRY(logical, SlotBuilder(*taken.op, options_.poison).from_slots(taken.slots, taken.view));
      logical->set_name(result.name());
      give(result, *logical);
      if (result.used()) result.replace_all_uses_with(result.layout() ? in_layout(result, *logical) : logical);
    }
    taken.op->erase();
    return {};
  }

  // Erases moves without users.
  static void erase_unused(Value& value) {
    for (const Use* use : value.uses()) {
      Op& user = *use->user();
      if (!is_move(user)) continue;
      erase_unused(*user.result());
      if (!user.has_uses()) user.erase();
    }
  }

  // Gives `logical` to all users for which the value was converted to row-major.
  static void give(Value& value, Value& logical) {
    for (const Use* use : value.uses()) {
      Op& user = *use->user();
      if (!is_move(user)) continue;
      if (user.result()->layout()) {
        give(*user.result(), logical);
      } else {
        user.result()->replace_all_uses_with(&logical);
      }
      if (!user.has_uses()) user.erase();
    }
  }

  Value* in_layout(const Value& result, Value& logical) {
    Value* again = reordered(logical, result.shared_layout(), *result.producer());
    again->set_name(result.name());
    return again->layout()->pad == PadState::zero ? scrubbed(*again, *result.producer()) : again;
  }

  // A fill that is not 0 would remain in padding that must be 0.
  Value* scrubbed(Value& value, Op& before) {
    const auto layout = resolve_layout(value);
    if (layout.ok() && layout->fill() == uint64_t{0}) return &value;
    Value* const operand = &value;
    Op& op = region_.create(Name(LayoutScrub::kName), {&operand, 1}, {value.type()}, {}, &before);
    op.result()->set_layout(value.shared_layout());
    op.set_label(value.name());
    return op.result();
  }

  Region& region_;
  const WalkSlotsOptions& options_;
  WalkSlotsReport report_;
  std::vector<SlotView> views_;
  std::map<std::pair<const Value*, size_t>, Value*> made_;
  std::vector<Taken> taken_;
};

}  // namespace

Result<WalkSlotsReport> walk_slots(Graph& graph, const WalkSlotsOptions& options) {
  return SlotWalker(graph, options).walk();
}

}  // namespace tenon
