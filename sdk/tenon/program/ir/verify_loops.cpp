#include <algorithm>

#include <tenon/program/ir/verify_internal.hpp>
#include <tenon/program/ir/walk.hpp>

namespace tenon::program::detail {

Result<void> Verifier::check(const Loop& loop) {
  TENON_OK(check_symbol(loop.symbol));
  const Expr begin = scope_.resolve(loop.begin), end = scope_.resolve(loop.end), step = scope_.resolve(loop.step);
  if (prove_lt(step, 1, scope_.assumptions()))
    return wrong("loop ", loop.symbol, " has the step ", loop.step, ", at least 1 is needed");
  scope_.define(loop.symbol, Expr::symbol(loop.symbol));
  scope_.assumptions()[loop.symbol] = {bounds(begin, scope_.assumptions()).lower,
                                       bounds(end - 1, scope_.assumptions()).upper};
  ++loops_;
  const bool was_pipelined = std::exchange(in_pipeline_, in_pipeline_ || loop.kind == LoopKind::pipelined);
  const std::set<BufferId> coming = coming_;
  add_written_in(loop.body);
  TENON_OK(check_iterations(loop, max(ceildiv(end - begin, max(step, 1)), 0)));
  coming_ = coming;
  in_pipeline_ = was_pipelined;
  --loops_;
  scope_.assumptions().erase(loop.symbol);
  scope_.erase(loop.symbol);
  return {};
}

void Verifier::add_written_in(const Statement& body) {
  std::vector<std::pair<BufferId, BufferId>> view_of;
  for_each_statement(body, [&](const Statement& s) {
    for_each_buffer(s, [&](BufferId id, Access access) {
      if (access == Access::in) return;
      for (auto it = view_of.rbegin(); it != view_of.rend(); ++it)
        if (it->first == id) id = it->second;
      if (const SymbolicBuffer* known = check_id(id).ok() ? scope_.find(id) : nullptr) coming_.insert(known->root);
    });
    if (const BufferId made = defined_buffer(s); made >= 0 && !s.as<Allocate>())
      for_each_buffer(s, [&](BufferId source, Access) {
        if (source != made) view_of.emplace_back(made, source);
      });
  });
}

Result<void> Verifier::check_iterations(const Loop& loop, const Expr& iterations) {
  const std::vector<Expr> before = pending_;
  const bool alone = loop.kind != LoopKind::serial;
  for (size_t t = 0; t < pending_.size(); ++t) pending_[t] = alone ? Expr(0) : unknown_count(t);
  const std::vector<Expr> at_begin = pending_;
  TENON_OK(check(loop.body));
  if (alone) TENON_OK(tokens_are_done(str("an iteration of loop ", loop.symbol)));
  for (size_t t = 0; t < pending_.size(); ++t) {
    const Expr added = pending_[t] - at_begin[t];
    const auto symbols = added.symbols();
    const bool constant = std::find(symbols.begin(), symbols.end(), loop.symbol) == symbols.end();
    pending_[t] = alone ? before[t] : constant ? before[t] + added * iterations : unknown_count(t);
  }
  return {};
}

Result<void> Verifier::check_token(TokenId id) const {
  if (id < 0 || static_cast<size_t>(id) >= program_.tokens.size())
    return wrong("token number ", id, " does not exist: there are ", program_.tokens.size());
  return {};
}

Result<void> Verifier::check(const DmaStart& s) {
  TENON_OK(check_token(s.token));
  TENON_OK(check(s.copy));
  pending_[static_cast<size_t>(s.token)] += 1;
  return {};
}

Result<void> Verifier::check(const DmaWait& s) {
  TENON_OK(check_token(s.token));
  Expr& pending = pending_[static_cast<size_t>(s.token)];
  if (prove_le(pending, 0, scope_.assumptions()))
    return wrong("token '", program_.tokens[static_cast<size_t>(s.token)],
                 "' is waited for, and no transfer is under way");
  pending -= 1;
  return {};
}

Result<void> Verifier::tokens_are_done(const std::string& where) const {
  for (size_t t = 0; t < pending_.size(); ++t)
    if (prove_le(1, pending_[t], scope_.assumptions()))
      return wrong("at the end of ", where, ", ", pending_[t], " transfers of token '", program_.tokens[t],
                   "' have not been waited for");
  return {};
}

Result<void> Verifier::check_stage(int stage, std::string_view word) const {
  if (!in_pipeline_) return wrong(word, " ", stage, " stands in no pipelined loop");
  if (stage < 0 || stage > kMostStages) return wrong(word, " ", stage, ": stages are 0 to ", kMostStages);
  return {};
}

}  // namespace tenon::program::detail
