#include <tenon/snippet/canonical/canonical.hpp>

#include <algorithm>
#include <bit>
#include <iterator>

#include <tenon/ir/builder.hpp>
#include <tenon/snippet/canonical/canonical_cuts_internal.hpp>
#include <tenon/snippet/canonical/rebuild_internal.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>

namespace tenon::snippet {
namespace {

//  // ---- Result ----

struct Member {
  const Op* op = nullptr;
  const DecomposeRow* row = nullptr;
  Space space;  // empty once it is joined
  bool folds = false;
};

// A value that is read, and its position in the operand of the operator of which it is all or a part.
struct Input {
  const Value* value = nullptr;
  size_t operand = 0;
  std::vector<DimCut> cuts = {};
};

struct Output {
  const Value* value = nullptr;
  std::vector<DimCut> cuts = {};
};

// The operators, their common space, and their inputs and outputs.
struct Parts {
  std::vector<Member> members;
  Space space;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
};

bool is_constant_op(const Op& op) { return op.is("Constant"); }
bool is_scalar(const Value* value) {
  const Tensor* constant = constant_of(value);
  return constant && constant->size() == 1;
}

Result<Member> member_of(const Op& op) {
  const DecomposeRow* row = find_decomposition(op.name());
  if (!row) return error(Code::unsupported, op.describe(), " has no form in the dialect of snippets");
  const auto has_lanes = [](const Value* value) {
    return value->type().is_tensor() && codegen::lane_type(value->type().element()).valid();
  };
  for (size_t i = 0; i < op.result_count(); ++i) {
    if (!has_lanes(op.result(i)))
      return error(Code::unsupported, "result ", i, " of ", op.describe(), " is of type ", op.result(i)->type());
  }
  TENON_TRY(space, row->space(op), op.describe());
  for (size_t i = 0; i < op.result_count(); ++i) {
    if (!space.find(*op.result(i)))
      return error(Code::internal, "result ", i, " of ", op.describe(), " has no place in its iteration space");
  }
  for (const Value* operand : op.operands()) {
    if (operand && space.find(*operand) && !has_lanes(operand))
      return error(Code::unsupported, "%", operand->name(), " of ", op.describe(), " is of type ", operand->type());
  }
  Member member{&op, row, std::move(space)};
  member.folds = member.space.folds();
  return member;
}

// Joins two members that can be joined, and returns the joined one; null: there are none.
Member* join_any(std::vector<Member*>& pending) {
  for (Member* member : pending) {
    const auto other = std::find_if(pending.begin(), pending.end(), [&](Member* candidate) {
      return candidate != member && member->space.merge(std::move(candidate->space));
    });
    if (other == pending.end()) continue;
    pending.erase(other);
    return member;
  }
  return nullptr;
}

// Joins operators that share values with those joined so far, starting with the largest space, which finally contains
// all others; forwards and backwards until nothing more fits. Operators that fit only in combination are joined first.
Result<void> join(Parts& parts) {
  std::vector<Member*> pending;
  for (Member& member : parts.members) pending.push_back(&member);
  const auto smaller = [](const Member* a, const Member* b) {
    return a->space.order().size() < b->space.order().size();
  };
  const auto largest = std::max_element(pending.begin(), pending.end(), smaller);
  parts.space = std::move((*largest)->space);
  pending.erase(largest);
  std::string why;
  while (!pending.empty()) {
    const size_t before = pending.size();
    std::erase_if(pending, [&](Member* member) { return parts.space.merge(std::move(member->space), &why); });
    std::reverse(pending.begin(), pending.end());
    if (pending.size() < before || join_any(pending)) continue;
    return error(Code::unsupported, pending[0]->op->describe(),
                 " does not fit the iteration space of the others: ", why);
  }
  return {};
}

// Adds the parts of a subgraph's operand that `inner`, in its region, takes; false: it is another operator.
bool add_parts(const Op& inner, std::vector<Input>& parts) {
  const Value* whole = inner.operand(0);
  if (!whole || whole->producer() != nullptr) return false;
  std::vector<Input> made;
  for (size_t r = 0; r < inner.result_count(); ++r) {
    auto cuts = cuts_of(inner, r);
    if (!cuts) return false;
    made.push_back({inner.result(r), whole->index(), *std::move(cuts)});
  }
  std::ranges::move(made, std::back_inserter(parts));
  return true;
}

Result<Parts> parts_of(const Op& op) {
  Parts parts;
  std::vector<Input> cut;
  const bool is_subgraph = isa<Subgraph>(op);
  if (is_subgraph) {
    for (const Op& inner : op.region(0)) {
      if (is_constant_op(inner) || add_parts(inner, cut)) continue;
      TENON_TRY(member, member_of(inner));
      parts.members.push_back(std::move(member));
    }
    for (size_t i = 0; i < op.region(0).output_count(); ++i) parts.outputs.push_back({op.region(0).output(i)});
  } else {
    TENON_TRY(member, member_of(op));
    parts.members.push_back(std::move(member));
    for (size_t i = 0; i < op.result_count(); ++i) parts.outputs.push_back({op.result(i)});
  }
  if (parts.members.empty()) return error(Code::unsupported, op.describe(), " holds no operator");
  TENON_OK(join(parts), op.describe());
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Value* input = is_subgraph ? op.region(0).input(i) : op.operand(i);
    if (!input || !parts.space.find(*input) || (!is_subgraph && is_scalar(input))) continue;
    if (std::ranges::find(parts.inputs, input, &Input::value) != parts.inputs.end()) continue;
    parts.inputs.push_back({input, i});
  }
  for (Input& part : cut)
    if (parts.space.find(*part.value)) parts.inputs.push_back(std::move(part));
  return parts;
}

// ---- Dims ----

bool holds(const ValueAxes& axes, AxisId id) {
  return std::any_of(axes.begin(), axes.end(),
                     [id](const AxisList& list) { return std::find(list.begin(), list.end(), id) != list.end(); });
}

// Adjacent axes that no value distinguishes, and between which there is no gap.
std::vector<AxisList> joined_axes(const Parts& parts) {
  const Space& space = parts.space;
  std::vector<AxisId> behind_gaps;
  const auto note = [&](const auto& port) {
    for (const DimCut& cut : port.cuts) behind_gaps.push_back(axis_from(*space.find(*port.value), cut.dim));
  };
  std::ranges::for_each(parts.inputs, note);
  std::ranges::for_each(parts.outputs, note);
  std::vector<AxisList> dims;
  for (const AxisId id : space.order()) {
    bool joins = !dims.empty() && space.axis(dims.back().back()).folded == space.axis(id).folded &&
                 std::ranges::find(behind_gaps, id) == behind_gaps.end();
    for (auto value = space.values().begin(); joins && value != space.values().end(); ++value)
      joins = holds(value->second, dims.back().back()) == holds(value->second, id);
    if (joins)
      dims.back().push_back(id);
    else
      dims.push_back({id});
  }
  return dims;
}

// Finds where a run reads the extents of axes: a minimal number of ports' dims that determine them.
class ExtentFinder {
 public:
  ExtentFinder(const Parts& parts) : space_(parts.space) {
    const auto add = [&](const auto& port) {
      ports_.push_back({space_.find(*port.value), {}});
      for (const DimCut& cut : port.cuts) ports_.back().cut.push_back(cut.dim);
    };
    std::ranges::for_each(parts.inputs, add);
    std::ranges::for_each(parts.outputs, add);
  }

  Result<BodyDim> dim_of(const AxisList& axes) const {
    BodyDim dim{1};
    for (const AxisId id : axes) {
      dim.extent = dim.extent * space_.axis(id).extent;
      dim.reduced = space_.axis(id).folded;
    }
    for (size_t i = 0; i < axes.size();) {
      const Expr& extent = space_.axis(axes[i]).extent;
      if (extent.is_constant()) {
        dim.factor *= extent.constant();
        ++i;
        continue;
      }
      const size_t found = add_whole(dim, std::span(axes).subspan(i));
      if (found == 0 && !add_part(dim, axes[i]))
        return error(Code::unsupported, "no input or output tells the extent ", extent);
      i += std::max<size_t>(found, 1);
    }
    return dim;
  }

 private:
  // A dim of a port that consists of the first of `axes`; returns how many.
  size_t add_whole(BodyDim& dim, std::span<const AxisId> axes) const {
    ExtentSource best;
    size_t covered = 0;
    for_each_dim([&](ExtentSource source, const AxisList& list) {
      if (list.size() <= covered || list.size() > axes.size() || !std::equal(list.begin(), list.end(), axes.begin()))
        return;
      best = source;
      covered = list.size();
    });
    if (covered != 0) dim.sources.push_back(best);
    return covered;
  }

  // A dim of a port in which every axis but this one is known.
  bool add_part(BodyDim& dim, AxisId id) const {
    bool found = false;
    for_each_dim([&](ExtentSource source, const AxisList& list) {
      if (found || std::find(list.begin(), list.end(), id) == list.end()) return;
      int64_t others = 1;
      for (const AxisId other : list) {
        if (other == id) continue;
        if (!space_.axis(other).extent.is_constant()) return;
        others *= space_.axis(other).extent.constant();
      }
      found = true;
      dim.sources.push_back(source);
      dim.divisor *= others;
    });
    return found;
  }

  template <class Visit>
  void for_each_dim(Visit visit) const {
    for (size_t port = 0; port < ports_.size(); ++port) {
      const auto& [axes, cut] = ports_[port];
      for (size_t d = 0; axes && d < axes->size(); ++d)
        if (std::ranges::find(cut, d) == cut.end()) visit(ExtentSource{port, static_cast<int>(d)}, (*axes)[d]);
    }
  }

  struct Port {
    const ValueAxes* axes;
    std::vector<size_t> cut;  // dims that do not determine it
  };
  const Space& space_;
  std::vector<Port> ports_;
};

uint64_t constant_bits(const Tensor& tensor) {
  const ElementType lane = codegen::lane_type(tensor.element());
  if (lane.is_float()) return lane_bits(lane, tensor.double_at(0));
  const auto bits = static_cast<uint64_t>(tensor.int_at(0));
  return lane.bits() == 64 ? bits : bits & 0xffffffff;
}

}  // namespace

// ---- The body ----

class BodyBuilder {
 public:
  explicit BodyBuilder(const Parts& parts) : parts_(parts) {}

  Result<Body> build(std::string name) {
    body_.name = std::move(name);
    TENON_OK(add_dims());
    for (const Input& input : parts_.inputs) {
      const ElementType element = input.value->type().element();
      const DimSet set = varies(*input.value);
      lanes_[input.value] = static_cast<ValueId>(body_.values.size());
      body_.values.push_back({codegen::lane_type(element), set});
      TENON_TRY(cuts, port_cuts(*input.value, input.cuts, set));
      body_.inputs.push_back({lanes_[input.value], element, std::move(cuts)});
    }
    for (const Member& member : parts_.members) TENON_OK(add(member), member.op->describe());
    for (const auto& [output, wanted] : parts_.outputs) {
      const auto lane = lanes_.find(output);
      if (lane == lanes_.end()) return error(Code::unsupported, "output %", output->name(), " is no lane");
      TENON_TRY(cuts, port_cuts(*output, wanted, varies(*output)));
      body_.outputs.push_back({lane->second, output->type().element(), std::move(cuts)});
    }
    drop_unused();
    TENON_OK(verify(body_));
    return std::move(body_);
  }

 private:
  // Removes values that no output needs, such as the axes of a reduction in 64-bit lanes: the widest lane type
  // determines the number of lanes.
  void drop_unused() {
    std::vector<ValueId> places(body_.values.size(), -1);
    const auto place = [&](ValueId id) -> ValueId& { return places[static_cast<size_t>(id)]; };
    for (const BodyPort& input : body_.inputs) place(input.value) = 0;
    for (const BodyPort& output : body_.outputs) place(output.value) = 0;
    for (auto node = body_.nodes.rbegin(); node != body_.nodes.rend(); ++node) {
      if (place(node->result) < 0) continue;
      for (const ValueId operand : node->operands) place(operand) = 0;
    }
    std::erase_if(body_.nodes, [&](const BodyNode& node) { return place(node.result) < 0; });
    ValueId next = 0;
    for (size_t id = 0; id < places.size(); ++id) {
      if (places[id] < 0) continue;
      body_.values[static_cast<size_t>(next)] = body_.values[id];
      places[id] = next++;
    }
    body_.values.resize(static_cast<size_t>(next));
    for (BodyPort& input : body_.inputs) input.value = place(input.value);
    for (BodyPort& output : body_.outputs) output.value = place(output.value);
    for (BodyNode& node : body_.nodes) {
      node.result = place(node.result);
      for (ValueId& operand : node.operands) operand = place(operand);
    }
  }

  Result<void> add_dims() {
    const std::vector<AxisList> dims = joined_axes(parts_);
    if (dims.size() > kMaxDims)
      return error(Code::unsupported, "the iteration space has ", dims.size(), " dims, at most ", kMaxDims,
                   " are possible");
    const ExtentFinder extents(parts_);
    for (size_t d = 0; d < dims.size(); ++d) {
      TENON_TRY(dim, extents.dim_of(dims[d]));
      body_.dims.push_back(std::move(dim));
      for (const AxisId id : dims[d]) dim_of_[id] = d;
    }
    return {};
  }

  Result<std::vector<PortCut>> port_cuts(const Value& value, const std::vector<DimCut>& cuts, DimSet set) const {
    std::vector<PortCut> made;
    for (const DimCut& cut : cuts) {
      const AxisId axis = axis_from(*parts_.space.find(value), cut.dim);
      const size_t dim = axis < 0 ? body_.rank() : dim_of_.at(axis);
      made.push_back({static_cast<int>(dim), cut.begin, cut.box, cut.whole});
    }
    if (!lanes_follow(made, set))
      return error(Code::unsupported, "%", value.name(), " is cut so that no two elements lie side by side");
    return made;
  }

  DimSet varies(const Value& value) const {
    DimSet set = 0;
    for (const AxisList& list : *parts_.space.find(value)) {
      for (const AxisId id : list) set |= DimSet{1} << dim_of_.at(id);
    }
    return set;
  }

  Result<void> add(const Member& member) {
    const Op& op = *member.op;
    Rebuild rebuild(op, *member.row, body_, scalars_);
    rebuild.folds_ = member.folds;
    const size_t first = body_.nodes.size();
    for (const Value* operand : op.operands()) rebuild.inputs_.push_back(operand ? lane_of(rebuild, *operand) : -1);
    TENON_TRY(made, result_of(rebuild));
    rebuild.set(0, member.row->exact ? made : rebuild.fit(made, rebuild.out()));
    for (const auto& [i, lane] : rebuild.results_) {
      const Value& result = *op.result(i);
      const bool right =
          rebuild.lane(lane) == codegen::lane_type(result.type().element()) && rebuild.varies(lane) == varies(result);
      if (!right) return error(Code::unsupported, "result ", i, " does not vary over all of its dims");
      lanes_[&result] = lane;
    }
    for (size_t i = first; i < body_.nodes.size(); ++i)
      body_.nodes[i].label = op.label().empty() ? op.name().str() : str(op.name(), " ", op.label());
    return {};
  }

  ValueId lane_of(Rebuild& rebuild, const Value& value) const {
    const auto known = lanes_.find(&value);
    if (known != lanes_.end()) return known->second;
    if (!is_scalar(&value) || !codegen::lane_type(value.type().element()).valid()) return -1;
    const Tensor& tensor = *constant_of(&value);
    return rebuild.scalar_bits(codegen::lane_type(tensor.element()), constant_bits(tensor));
  }

  static Result<ValueId> result_of(Rebuild& rebuild) {
    const DecomposeRow& row = rebuild.row();
    for (size_t i = 0; i < rebuild.inputs_.size(); ++i) {
      const bool needed = !row.rebuild && rebuild.has(i);
      if (needed && rebuild.in(i) == -1) return error(Code::unsupported, "operand ", i, " is a constant tensor");
    }
    if (row.rebuild) return row.rebuild(rebuild);
    const Name name = row.dialect.empty() ? rebuild.op().name() : Name(row.dialect);
    return rebuild.node_of(codegen::lane_type(rebuild.out()), name, rebuild.inputs_);
  }

  const Parts& parts_;
  Body body_;
  ScalarNodes scalars_;
  std::unordered_map<AxisId, size_t> dim_of_;
  std::unordered_map<const Value*, ValueId> lanes_;
};

Result<Body> make_body(const Op& op, const ResultCuts& results) {
  TENON_TRY(parts, parts_of(op));
  for (size_t i = 0; i < results.size(); ++i) parts.outputs[i].cuts = results[i];
  std::string name = op.label();
  if (name.empty() && op.result_count() != 0) name = op.result(0)->name();
  return BodyBuilder(parts).build(std::move(name));
}

std::vector<size_t> body_operands(const Op& op) {
  auto parts = parts_of(op);
  std::vector<size_t> operands;
  if (parts.ok()) std::ranges::transform(parts->inputs, std::back_inserter(operands), &Input::operand);
  return operands;
}

}  // namespace tenon::snippet
