// The nodes of merged sweeps: running results and results of a group, and sums that are rescaled from one value to
// another (body/moved_sums_internal.hpp).
// The rounding error of the sum of x shows in d, so it is corrected: for whole rows of columns while they are
// processed; for lanes at the end, because a group that depended on the correction of the previous one would stall for
// longer than its memory access takes.
#include <algorithm>

#include <tenon/snippet/lower/lower_plan_internal.hpp>

namespace tenon::snippet {
namespace {

// Writes one Merging, and appends its nodes to those of `body`.
class Merger {
 public:
  Merger(Body& body, const Sweep& both, bool lanes)
      : body_(body),
        lanes_(lanes),
        merging_{.sweep = both},
        append_(body, body.values[static_cast<size_t>(both.folds.front()->result)].varies, both.folds.front()->label) {}

  Merging run(const std::vector<MovedSum>& sums) {
    add_folds(sums);
    for (const MovedSum& sum : sums) add_subtracted(sum);
    for (const MovedSum& sum : sums) add_sum(sum);
    merging_.advance = append_.take();
    for (Merging::Fold& one : merging_.sums) one.next = append_.node("Add", {one.next, one.group});
    if (!lanes_)
      for (Merging::Fold& fold : merging_.folds) fold.next = put_right(fold, fold.next, &Merging::Fold::next);
    merging_.add = append_.take();
    for (Merging::Fold& fold : merging_.folds)
      fold.right = lanes_ ? put_right(fold, fold.state, &Merging::Fold::state) : fold.state;
    merging_.finish = append_.take();
    for (Merging::Fold& one : merging_.sums) settle(one);
    merging_.settle = append_.take();
    return std::move(merging_);
  }

 private:
  const BodyNode* node_of(ValueId id) const {
    const auto found = std::ranges::find(body_.nodes, id, &BodyNode::result);
    return found == body_.nodes.end() ? nullptr : &*found;
  }
  Merging::Fold carry(const BodyNode& fold) {
    const ElementType element = append_.of(fold.operands[0]);
    return {.node = fold, .state = append_.value(element), .group = append_.value(element)};
  }

  void add_folds(const std::vector<MovedSum>& sums) {
    for (const BodyNode* fold : merging_.sweep.folds) {
      Merging::Fold& one = merging_.folds.emplace_back(carry(*fold));
      one.next = append_.node(*fold_of(fold->op), {one.state, one.group});
    }
    if (std::ranges::none_of(sums, &MovedSum::squares)) return;
    const ElementType element = append_.of(sums.front().fold->result);
    Merging::Count& count = merging_.count.emplace();
    count = {.state = append_.value(element), .group = append_.value(element)};
    count.next = append_.node("Add", {count.state, count.group});
  }

  // The running value of the fold `id`.
  ValueId so_far(ValueId id) {
    for (const Merging::Fold& one : merging_.folds)
      if (one.node.result == id) return one.next;
    const BodyNode* found = node_of(id);
    if (!found || found->op == "Scalar") return id;
    if (found->op == "ReducedCount") return merging_.count->next;
    const BodyNode node = *found;  // a copy, since appending invalidates references
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) operands.push_back(so_far(operand));
    return append_.node(node.op, std::move(operands), node.attributes);
  }

  void add_subtracted(const MovedSum& sum) {
    if (std::ranges::find(merging_.subtracted, sum.by, &Merging::Subtracted::whole) != merging_.subtracted.end())
      return;
    Merging::Subtracted one{.whole = sum.by, .next = so_far(sum.by)};
    for (const Merging::Fold& fold : merging_.folds)
      if (fold.node.result == sum.by) one.is_fold = true, one.state = fold.state;
    if (!one.is_fold) one.state = append_.value(append_.of(sum.by));
    merging_.subtracted.push_back(one);
  }

  void add_sum(const MovedSum& sum) {
    for (const ValueId id : {sum.difference->result, sum.term->result})
      if (std::ranges::find(merging_.second, id) == merging_.second.end()) merging_.second.push_back(id);
    const auto by = std::ranges::find(merging_.subtracted, sum.by, &Merging::Subtracted::whole);
    Merging::Fold one = carry(*sum.fold);
    one.from = by->state, one.by = sum.by;
    if (!sum.squares) {
      one.next = move_powers(append_, one.state, by->state, by->next);
      merging_.sums.push_back(one);
      return;
    }
    BodyNode node = *sum.fold;
    node.operands = {sum.difference->result};
    node.result = append_.value(append_.of(node.operands[0]));
    Merging::Fold differences = carry(node);
    const Moments moved =
        move_moments(append_, {merging_.count->state, differences.state, one.state}, by->state, by->next);
    one.next = moved.second, differences.next = moved.first;
    one.first_moment = differences.state;
    differences.of_mean = node_of(sum.by)->operands[0];
    merging_.sums.push_back(one);
    merging_.sums.push_back(differences);
  }

  // `sum` of x, corrected by the sum of the differences from its mean (`which` of their fold) where this is finite.
  ValueId put_right(const Merging::Fold& fold, ValueId sum, ValueId Merging::Fold::*which) {
    const auto differences = std::ranges::find(merging_.sums, fold.node.result, &Merging::Fold::of_mean);
    if (differences == merging_.sums.end()) return sum;
    const ValueId lost = (*differences).*which, zero = append_.scalar(append_.of(lost), 0);
    const ValueId is_finite = append_.node("Equal", {append_.node("Sub", {lost, lost}), zero});
    return append_.node("Where", {is_finite, append_.node("Add", {sum, lost}), sum});
  }

  void settle(Merging::Fold& sum) {
    if (sum.by < 0) return;
    const auto squares = [&] {
      const Moments sums{merging_.count->state, sum.first_moment, sum.state};
      return move_moments(append_, sums, sum.from, sum.by, /*squares_alone=*/true).second;
    };
    sum.settled = sum.first_moment < 0 ? move_powers(append_, sum.state, sum.from, sum.by) : squares();
  }

  Body& body_;
  const bool lanes_;
  Merging merging_;
  Appender append_;
};

}  // namespace

Merging merging_of(Body& body, const Sweep& both, const std::vector<MovedSum>& sums, bool lanes) {
  return Merger(body, both, lanes).run(sums);
}

}  // namespace tenon::snippet
