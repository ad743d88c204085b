#include <tenon/snippet/tokenize/sink_concats.hpp>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/movement.hpp>
#include <tenon/snippet/canonical/canonical_cuts_internal.hpp>

namespace tenon::snippet {
namespace {

// The parts of a Concat, along an axis counted from the back, which is the same in operands of lower rank.
struct JoinedParts {
  size_t from_back = 0;  // 1: the innermost
  std::vector<int64_t> begins, extents;
  int64_t whole = 0;
};

// The dim at position `from_back` from the end; null where the rank is too low.
const Dim* dim_of(const Value& value, size_t from_back) {
  const Shape& shape = value.type().shape();
  return static_cast<size_t>(shape.rank()) < from_back ? nullptr : &shape[shape.dims().size() - from_back];
}
bool is_ranked(const Value& value) { return value.type().is_tensor() && value.type().shape().ranked(); }

std::optional<JoinedParts> joined_parts_of(const Op& concat) {
  constexpr size_t kMostParts = 4;
  constexpr double kLeastBytes = 64;
  const Value& joined = *concat.result(0);
  if (!is_ranked(joined) || concat.operand_count() < 2 || concat.operand_count() > kMostParts) return std::nullopt;
  const Shape& shape = joined.type().shape();
  const int64_t axis = concat.attr<int64_t>("axis");
  JoinedParts parts{.from_back = static_cast<size_t>(axis < 0 ? -axis : static_cast<int64_t>(shape.rank()) - axis)};
  double inner = joined.type().element().bits() / 8.0;
  for (size_t d = shape.dims().size() - parts.from_back + 1; d < shape.dims().size(); ++d)
    if (shape[d].is_static()) inner *= static_cast<double>(shape[d].value());
  for (const Value* part : concat.operands()) {
    if (!is_ranked(*part)) return std::nullopt;
    const Dim* dim = dim_of(*part, parts.from_back);
    if (!dim || !dim->is_static() || inner * static_cast<double>(dim->value()) < kLeastBytes) return std::nullopt;
    parts.begins.push_back(parts.whole), parts.extents.push_back(dim->value());
    parts.whole += dim->value();
  }
  return parts;
}

bool is_elementwise(const Op& op) {
  const OpDef* def = op.def();
  return def && def->has(Trait::pure) && def->has(Trait::elementwise) && def->has(Trait::layout_oblivious) &&
         !def->has(Trait::random) && op.region_count() == 0 && op.result_count() == 1 && is_ranked(*op.result(0));
}

class Sinker {
 public:
  Sinker(Graph& graph, const std::function<bool(const Op&)>& accepts) : graph_(graph), accepts_(accepts) {
    for (const Op& op : graph.body()) at_.emplace(&op, at_.size());
  }

  Result<size_t> run() {
    size_t sunk = 0;
    for (Op* op : graph_.body().ops()) {
      if (!at_.contains(op) || !isa<Concat>(*op)) continue;  // it may have been removed
      first_ = at_.at(op);
      made_.clear();
      for (Op* concat = op; concat;) {
        TENON_TRY(next, sink(*concat));
        concat = next;
        sunk += next != nullptr;
      }
    }
    return sunk;
  }

 private:
  // Moves the Concat after the operator that reads it, and returns it; null: it stays.
  Result<Op*> sink(Op& concat) {
    const auto parts = joined_parts_of(concat);
    Value* const joined = concat.result(0);
    if (!parts || !joined->has_one_use()) return nullptr;
    Op& user = *joined->first_use()->user();
    if (user.parent() != concat.parent() || !may_be_cut(user, *parts)) return nullptr;
    for (const Value* operand : user.operands())
      if (operand && operand != joined && !may_be_cut(*operand, *parts)) return nullptr;
    Builder builder(graph_.body(), &user);
    builder.set_name_prefix(joined->name());
    std::vector<Value*> made;
    for (size_t part = 0; part < parts->begins.size(); ++part) {
      const auto cut = [&](Value* operand) -> Result<Value*> {
        return operand == joined ? concat.operand(part) : cut_of(builder, operand, *parts, part);
      };
      TENON_TRY(one, on_parts(builder, user, cut));
      made.push_back(one);
    }
    TENON_TRY(whole, builder.op(Concat::name(), made, {{"axis", -static_cast<int64_t>(parts->from_back)}}));
    whole->set_name(user.result(0)->name());
    whole->producer()->set_label(concat.label());
    user.result(0)->replace_all_uses_with(whole);
    erase_unread(user);
    return whole->producer();
  }

  // Whether its result has the same extent along the axis as the Concat.
  bool may_be_cut(const Op& op, const JoinedParts& parts) const {
    if (!is_elementwise(op) || !accepts_(op)) return false;
    const Dim* dim = dim_of(*op.result(0), parts.from_back);
    return dim && dim->is_static() && dim->value() == parts.whole;
  }
  static bool may_be_cut(const Value& operand, const JoinedParts& parts) {
    if (!is_ranked(operand)) return false;
    const Dim* dim = dim_of(operand, parts.from_back);
    return !dim || (dim->is_static() && (dim->value() == 1 || dim->value() == parts.whole));
  }

  template <class Cut>
  Result<Value*> on_parts(Builder& builder, const Op& op, Cut cut) {
    std::vector<Value*> operands = op.operands();
    for (Value*& operand : operands) {
      if (!operand) continue;
      TENON_TRY(part, cut(operand));
      operand = part;
    }
    TENON_TRY(made, builder.op(op.name(), operands, op.attributes()));
    made->producer()->set_label(op.label());
    return made;
  }

  // The part of an operand that part `part` needs.
  Result<Value*> cut_of(Builder& builder, Value* value, const JoinedParts& parts, size_t part, int depth = 0) {
    constexpr int kDeepest = 64;
    const Dim* dim = dim_of(*value, parts.from_back);
    if (!dim || dim->value() == 1) return value;
    const Op* maker = value->producer();
    const auto fits = [&](const Value* operand) { return !operand || may_be_cut(*operand, parts); };
    if (depth < kDeepest && maker && maker->parent() == &graph_.body() && value->has_one_use() &&
        may_be_cut(*maker, parts) && std::ranges::all_of(maker->operands(), fits))
      return on_parts(builder, *maker,
                      [&](Value* operand) { return cut_of(builder, operand, parts, part, depth + 1); });
    return crop_of(builder, value, parts, part);
  }

  Result<Value*> crop_of(Builder& builder, Value* value, const JoinedParts& parts, size_t part) {
    const DimCut cut{static_cast<size_t>(value->type().shape().rank()) - parts.from_back, parts.begins[part],
                     parts.extents[part], parts.whole};
    if (Value* found = existing_crop(*value, cut)) return found;
    const auto is_this = [&](const Made& one) { return one.of == value && one.cut == cut; };
    if (const auto found = std::ranges::find_if(made_, is_this); found != made_.end()) return found->crop;
    TENON_TRY(crop, builder.op(Slice::name(),
                               {value, builder.constant_ints({cut.begin}), builder.constant_ints({cut.begin + cut.box}),
                                builder.constant_ints({static_cast<int64_t>(cut.dim)})}));
    made_.push_back({value, cut, crop});
    return crop;
  }

  // An equal crop of the original graph that precedes the first Concat.
  Value* existing_crop(const Value& value, const DimCut& cut) const {
    for (const Use* use = value.first_use(); use; use = use->next()) {
      const Op& user = *use->user();
      const auto at = at_.find(&user);
      if (at == at_.end() || at->second > first_ || !(isa<Slice>(user) || isa<tenon::Split>(user))) continue;
      for (size_t r = 0; r < user.result_count(); ++r) {
        const auto cuts = cuts_of(user, r);
        if (cuts && cuts->size() == 1 && cuts->front() == cut) return user.result(r);
      }
    }
    return nullptr;
  }

  // Also erases what was made for it alone.
  void erase_unread(Op& op) {
    std::vector<Op*> open{&op};  // each once
    const auto is_unread = [](const Op* one) { return !one->has_uses(); };
    for (auto at = open.begin(); at != open.end(); at = std::ranges::find_if(open, is_unread)) {
      Op* const one = *at;
      open.erase(at);
      for (const Value* operand : one->operands()) {
        Op* const maker = operand ? operand->producer() : nullptr;
        if (maker && (is_elementwise(*maker) || isa<Concat>(*maker)) && std::ranges::find(open, maker) == open.end())
          open.push_back(maker);
      }
      at_.erase(one);
      one->erase();
    }
  }

  struct Made {
    const Value* of;
    DimCut cut;
    Value* crop;
  };

  Graph& graph_;
  const std::function<bool(const Op&)>& accepts_;
  std::unordered_map<const Op*, size_t> at_;  // positions of the operators of the original graph
  size_t first_ = 0;                          // of the Concat that is moved
  std::vector<Made> made_;                    // for it
};

}  // namespace

Result<size_t> sink_concats(Graph& graph, const std::function<bool(const Op& op)>& accepts) {
  return Sinker(graph, accepts).run();
}

}  // namespace tenon::snippet
