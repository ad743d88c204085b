#include <tenon/passes/rewrite.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/passes/change.hpp>

namespace tenon {

// ---- Patterns ----

Pattern Pattern::as(std::string name) && { return name_ = std::move(name), std::move(*this); }
Pattern Pattern::optional() && { return optional_ = true, std::move(*this); }
Pattern Pattern::shared() && { return shared_ = true, std::move(*this); }
Pattern Pattern::in_any_order() && { return order_ = Order::either, std::move(*this); }
Pattern Pattern::in_order() && { return order_ = Order::fixed, std::move(*this); }
Pattern Pattern::and_more() && { return and_more_ = true, std::move(*this); }
Pattern Pattern::result(size_t i) && { return result_ = i, std::move(*this); }
Pattern Pattern::where(Test test) && { return tests_.push_back(std::move(test)), std::move(*this); }

struct PatternMaker {
  static Pattern make(Pattern::Kind kind, std::string name, std::vector<Name> ops, std::vector<Pattern> parts) {
    Pattern made;
    made.kind_ = kind;
    made.name_ = std::move(name);
    made.ops_ = std::move(ops);
    made.parts_ = std::move(parts);
    return made;
  }
  static Pattern any(std::string name) { return make(Pattern::Kind::any, std::move(name), {}, {}); }
  static Pattern constant(std::string name) { return make(Pattern::Kind::constant, std::move(name), {}, {}); }
  static Pattern op(std::vector<Name> names, std::vector<Pattern> operands) {
    return make(Pattern::Kind::op, "", std::move(names), std::move(operands));
  }
  static Pattern one_of(std::vector<Pattern> parts) { return make(Pattern::Kind::one_of, "", {}, std::move(parts)); }
};

namespace pattern {
Pattern any(std::string name) { return PatternMaker::any(std::move(name)); }
Pattern constant(std::string name) { return PatternMaker::constant(std::move(name)); }
Pattern op(Name name, std::vector<Pattern> operands) { return PatternMaker::op({name}, std::move(operands)); }
Pattern op(std::initializer_list<Name> names, std::vector<Pattern> operands) {
  return PatternMaker::op(names, std::move(operands));
}
Pattern op_among(std::vector<Name> names, std::vector<Pattern> operands) {
  return PatternMaker::op(std::move(names), std::move(operands));
}
Pattern one_of(std::vector<Pattern> alternatives) { return PatternMaker::one_of(std::move(alternatives)); }
}  // namespace pattern

// ---- Matches ----

bool Match::has(std::string_view name) const {
  return std::any_of(bound_.begin(), bound_.end(), [&](const auto& b) { return b.first == name && b.second; });
}

Value* Match::value(std::string_view name) const {
  for (const auto& [bound, value] : bound_) {
    if (bound == name) return value;
  }
  TENON_CHECK(false, "the pattern at ", root_->describe(), " has nothing named '", name, "'");
}

Op& Match::op(std::string_view name) const {
  Value* made = value(name);
  TENON_CHECK(made && made->producer(), "'", name, "' of the pattern at ", root_->describe(),
              " is made by no operator");
  return *made->producer();
}

const Tensor& Match::constant(std::string_view name) const {
  const Tensor* tensor = constant_of(value(name));
  TENON_CHECK(tensor, "'", name, "' of the pattern at ", root_->describe(), " is no constant");
  return *tensor;
}

std::string Match::joined_label() const {
  std::string joined;
  for (size_t i = ops_.size(); i-- > 0;) {
    const std::string& label = ops_[i]->label();
    if (!label.empty()) joined += str(joined.empty() ? "" : "+", label);
  }
  return joined;
}

// Searches for a match at a root, by backtracking over alternatives and operand orders.
class Matcher {
 public:
  Matcher(const Rewrite& rewrite, Op& root) : rewrite_(rewrite) { match_.root_ = &root; }

  const Match* find() {
    const Goal goal{&rewrite_.root_, match_.root_->result(), nullptr};
    return fits_op(goal, true) ? &match_ : nullptr;
  }

 private:
  // The list of remaining goals, on the stack of the search.
  struct Goal {
    const Pattern* pattern;
    Value* value;
    const Goal* next;
  };

  bool solve(const Goal* goal) {
    if (!goal) {
      const auto& tests = rewrite_.tests_;
      return std::all_of(tests.begin(), tests.end(), [&](const auto& test) { return test(match_); });
    }
    const Pattern& pattern = *goal->pattern;
    if (!goal->value) return pattern.optional_ && bind(*goal);
    switch (pattern.kind_) {
      case Pattern::Kind::any: return passes_tests(*goal) && bind(*goal);
      case Pattern::Kind::constant: return constant_of(goal->value) && passes_tests(*goal) && bind(*goal);
      case Pattern::Kind::op: return fits_op(*goal, false);
      case Pattern::Kind::one_of:
        return passes_tests(*goal) &&
               std::any_of(pattern.parts_.begin(), pattern.parts_.end(), [&](const Pattern& part) {
                 const Goal alternative{&part, goal->value, goal->next};
                 return solve(&alternative);
               });
    }
    return false;
  }

  static bool passes_tests(const Goal& goal) {
    const auto& tests = goal.pattern->tests_;
    return std::all_of(tests.begin(), tests.end(), [&](const auto& test) { return test(*goal.value); });
  }

  // Binds the goal's value and continues; unbinds it if the rest does not match.
  bool bind(const Goal& goal) {
    const std::string& name = goal.pattern->name_;
    if (name.empty()) return solve(goal.next);
    for (const auto& [bound, value] : match_.bound_) {
      if (bound == name) return value == goal.value && solve(goal.next);
    }
    match_.bound_.emplace_back(name, goal.value);
    if (solve(goal.next)) return true;
    match_.bound_.pop_back();
    return false;
  }

  bool fits_op(const Goal& goal, bool is_root) {
    const Pattern& pattern = *goal.pattern;
    Op* op = goal.value->producer();
    if (!op || std::find(pattern.ops_.begin(), pattern.ops_.end(), op->name()) == pattern.ops_.end()) return false;
    if (!is_root && (op->parent() != match_.root_->parent() || goal.value->index() != pattern.result_)) return false;
    if (!is_root && !pattern.shared_ && !used_once(*op, pattern.result_)) return false;
    const size_t wanted = pattern.parts_.size();
    for (size_t i = wanted; i < op->operand_count() && !pattern.and_more_; ++i) {
      if (op->operand(i)) return false;
    }
    if (!passes_tests(goal)) return false;
    match_.ops_.push_back(op);
    if (fits_operands(goal, *op, false) || (swaps(pattern, *op) && fits_operands(goal, *op, true))) return true;
    match_.ops_.pop_back();
    return false;
  }

  static bool used_once(const Op& op, size_t result) {
    for (size_t i = 0; i < op.result_count(); ++i) {
      if (i == result ? !op.result(i)->has_one_use() : op.result(i)->used()) return false;
    }
    return true;
  }

  static bool swaps(const Pattern& pattern, const Op& op) {
    if (pattern.parts_.size() != 2 || op.operand_count() != 2 || pattern.order_ == Pattern::Order::fixed) return false;
    return pattern.order_ == Pattern::Order::either || (op.def() && op.def()->has(Trait::commutative));
  }

  // First the operands, then the operator's own name, then the goals after it.
  bool fits_operands(const Goal& goal, Op& op, bool swapped) {
    const std::vector<Pattern>& parts = goal.pattern->parts_;
    const Goal named{&named_any(*goal.pattern), goal.value, goal.next};
    std::vector<Goal> goals(parts.size());
    const Goal* next = goal.pattern->name_.empty() ? goal.next : &named;
    for (size_t i = parts.size(); i-- > 0;) {
      goals[i] = Goal{&parts[i], op.operand(swapped ? 1 - i : i), next};
      next = &goals[i];
    }
    return solve(next);
  }

  // Binds an operator's value without matching its operands again.
  const Pattern& named_any(const Pattern& pattern) {
    for (const Pattern& made : names_) {
      if (made.name_ == pattern.name_) return made;
    }
    return names_.emplace_back(pattern::any(pattern.name_));
  }

  const Rewrite& rewrite_;
  Match match_;
  std::deque<Pattern> names_;
};

// ---- Rewrites ----

Rewrite& Rewrite::match(Pattern root) {
  TENON_CHECK(root.kind_ == Pattern::Kind::op, "the pattern of rewrite '", name_, "' must begin with an operator");
  return root_ = std::move(root), *this;
}

Rewrite& Rewrite::when(std::function<bool(const Match&)> test) { return tests_.push_back(std::move(test)), *this; }

Rewrite& Rewrite::with_all(BuildAllFn build) { return build_ = std::move(build), *this; }

Rewrite& Rewrite::with(BuildFn build) {
  return with_all([build = std::move(build)](Builder& builder, const Match& match) -> Result<std::vector<Value*>> {
    TENON_TRY(value, build(builder, match));
    return value ? std::vector<Value*>{value} : std::vector<Value*>();
  });
}

Rewrite& Rewrite::into(Name target, std::vector<std::string> operands,
                       std::function<Attributes(const Match&)> attributes) {
  return with_all([=](Builder& builder, const Match& match) -> Result<std::vector<Value*>> {
    std::vector<Value*> values;
    for (const std::string& name : operands) values.push_back(match.value(name));
    while (!values.empty() && !values.back()) values.pop_back();
    return builder.ops(target, values, match.root().result_count(), attributes ? attributes(match) : Attributes());
  });
}

// ---- The driver ----

class Rewriter {
 public:
  Rewriter(Graph& graph, const std::vector<Rewrite>& rewrites) : graph_(graph), rewrites_(rewrites) {
    for (const Rewrite& rewrite : rewrites) {
      for (const Name& op : rewrite.root_.ops_) by_root_[op].push_back(&rewrite);
      levels_ = std::max(levels_, levels(rewrite.root_));
    }
  }

  Result<Change> run() {
    size_t ops = 0;
    queued_.reserve(graph_.body().op_count());
    for_each_op(graph_.body(), [&](Op& op) {
      ++ops;
      queue(op);
    });
    // A pattern matches a few operators and produces a few; a sequence longer than this does not terminate.
    most_ = 1000 + 32 * ops;
    while (!stack_.empty()) {
      Op* op = stack_.back();
      stack_.pop_back();
      if (queued_.erase(op)) TENON_OK(visit(*op));
    }
    return Change{done_ > 0};
  }

 private:
  // The depth of the pattern in operators.
  static size_t levels(const Pattern& pattern) {
    size_t deepest = 0;
    for (const Pattern& part : pattern.parts_) deepest = std::max(deepest, levels(part));
    return deepest + (pattern.kind_ == Pattern::Kind::op ? 1 : 0);
  }

  void queue(Op& op) {
    if (by_root_.contains(op.name()) && queued_.insert(&op).second) stack_.push_back(&op);
  }
  void queue_with_regions(Op& op) {
    for (size_t i = 0; i < op.region_count(); ++i) for_each_op(op.region(i), [&](Op& inner) { queue(inner); });
    queue(op);
  }
  // Queues operators whose patterns may extend down to `value`.
  void queue_users(const Value& value, size_t levels) {
    if (levels == 0) return;
    for (const Use* use = value.first_use(); use; use = use->next()) {
      Op& user = *use->user();
      queue(user);
      for (size_t i = 0; i < user.result_count(); ++i) queue_users(*user.result(i), levels - 1);
    }
  }
  void forget(Op& op) {
    queued_.erase(&op);
    gone_.insert(&op);
    for (size_t i = 0; i < op.region_count(); ++i) {
      for_each_op(op.region(i), [&](Op& inner) { queued_.erase(&inner); });
    }
  }

  Result<void> visit(Op& op) {
    if (!op.has_uses()) return {};
    for (const Rewrite* rewrite : by_root_[op.name()]) {
      Matcher matcher(*rewrite, op);
      const Match* match = matcher.find();
      if (!match || std::ranges::any_of(match->ops(), [](const Op* matched) { return contradicts(*matched); }))
        continue;
      TENON_TRY(applied, apply(*rewrite, *match), "rewrite '", rewrite->name(), "' at ", op.describe());
      if (applied) return {};
    }
    return {};
  }

  Result<bool> apply(const Rewrite& rewrite, const Match& match) {
    Op& root = match.root();
    Op* before = root.previous();
    const auto first_built = [&] { return before ? before->next() : root.parent()->first(); };
    Builder builder(*root.parent(), &root);
    builder.set_name_prefix(match.joined_label());
    auto built = rewrite.build_(builder, match);
    if (built.ok() && !built->empty()) {
      if (auto checked = check(root, first_built(), *built); !checked.ok()) built = std::move(checked).error();
    }
    if (!built.ok() || built->empty()) {
      while (root.previous() != before) root.previous()->erase();
      TENON_OK(built);
      return false;
    }
    TENON_OK(count(rewrite));
    for (Op* made = first_built(); made != &root; made = made->next()) queue_with_regions(*made);
    for (size_t i = 0; i < root.result_count(); ++i) {
      if (!root.result(i)->used()) continue;
      queue_users(*root.result(i), levels_);
      TENON_OK(replace_value(*root.result(i), *(*built)[i]));
    }
    gone_.clear();
    const std::vector<Op*> matched = match.ops();
    for (Op* op : matched) {
      if (!gone_.contains(op) && !op->has_uses()) erase(*op);
    }
    return true;
  }

  // Called before anything changes, so that the graph stays valid.
  static Result<void> check(const Op& root, const Op* first_built, const std::vector<Value*>& built) {
    if (built.size() != root.result_count()) {
      return error(Code::internal, "it gives ", built.size(), " values for ", root.result_count(), " results");
    }
    for (size_t i = 0; i < built.size(); ++i) {
      if (!root.result(i)->used()) continue;
      if (!built[i]) return error(Code::internal, "it gives no value for result ", i, ", which is used");
      if (built[i]->producer() == &root) return error(Code::internal, "it gives the operator itself back");
      if (auto merged = merge(root.result(i)->type(), built[i]->type()); !merged.ok()) {
        return error(Code::internal, "it gives a value of type ", built[i]->type(), " for one of type ",
                     root.result(i)->type(), ": ", merged.error().message());
      }
    }
    for (const Op* made = first_built; made != &root; made = made->next()) {
      for (size_t i = 0; i < made->operand_count(); ++i) {
        if (made->operand(i) && made->operand(i)->producer() == &root) {
          return error(Code::internal, "it builds ", made->describe(), " on the operator that it replaces");
        }
      }
    }
    return {};
  }

  // Erases the replaced operator, whatever it is, and then what only it used, if that has no side effects.
  void erase(Op& op) {
    std::vector<Op*> producers;
    const std::vector<Value*> operands = op.operands();
    forget(op);
    op.erase();
    for (Value* operand : operands) {
      if (!operand) continue;
      // It now has a single use, which a pattern may require.
      if (operand->has_one_use()) queue_users(*operand, levels_);
      if (operand->producer()) producers.push_back(operand->producer());
    }
    for (Op* producer : producers) {
      if (!gone_.contains(producer)) erase_dead(*producer, [&](Op& dead) { forget(dead); });
    }
  }

  Result<void> count(const Rewrite& rewrite) {
    if (++done_ <= most_) return {};
    // The last rewrites are the ones that form a cycle.
    ++last_[rewrite.name()];
    if (done_ <= most_ + 64) return {};
    std::string names;
    for (const auto& [name, times] : last_) names += str(names.empty() ? "'" : ", '", name, "'");
    return error(Code::internal, "rewrites undo each other for ever, or grow the graph without end: ", names, " (",
                 done_, " rewrites in graph '", graph_.name(), "')");
  }

  Graph& graph_;
  const std::vector<Rewrite>& rewrites_;
  std::unordered_map<Name, std::vector<const Rewrite*>> by_root_;
  size_t levels_ = 0;
  std::vector<Op*> stack_;
  std::unordered_set<Op*> queued_;
  std::unordered_set<Op*> gone_;  // by the current rewrite
  size_t done_ = 0, most_ = 0;
  std::map<std::string, int> last_;
};

Result<Change> apply_rewrites(Graph& graph, const std::vector<Rewrite>& rewrites) {
  return Rewriter(graph, rewrites).run();
}

Pass rewrite_pass(std::string name, std::string contract, std::vector<Rewrite> rewrites,
                  std::vector<std::string> needs) {
  return {.name = std::move(name),
          .contract = std::move(contract),
          .run = [rewrites = std::move(rewrites)](Graph& graph) { return apply_rewrites(graph, rewrites); },
          .needs = std::move(needs)};
}

}  // namespace tenon
