#include <tenon/program/exec/steady_numbers_internal.hpp>

#include <algorithm>

#include <tenon/program/exec/box_moves_internal.hpp>
#include <tenon/program/exec/simple_loops_internal.hpp>

namespace tenon::program::detail {

template <class Made>
void Numbers::show(const Made& s, BufferId id, SymbolicBuffer made) {
  add(made);
  auto before = scope_.exchange(id, std::move(made));
  collect(s.body);
  scope_.exchange(id, std::move(before));
}

void Numbers::collect(const Statement& s) {
  if (s.empty()) return;
  s.visit([this](const auto& statement) { visit(statement); });
}

int64_t Numbers::calls() const {
  return std::ranges::count_if(calls_, [this](const std::vector<Expr>& extents) {
    return std::ranges::none_of(extents, [this](const Expr& e) { return prove_le(e, 0, scope_.assumptions()); });
  });
}

void Numbers::visit(const Block& s) {
  for (const Statement& inner : s.statements) collect(inner);
}

void Numbers::visit(const Let& s) {
  const Expr value = scope_.simplified(scope_.resolve(s.value));
  add(value);
  scope_.define(s.symbol, value);
  collect(s.body);
  scope_.erase(s.symbol);
}

void Numbers::visit(const Allocate& s) { show(s, s.allocation.buffer, scope_.allocation(s.allocation)); }
void Numbers::visit(const Crop& s) { show(s, s.buffer, scope_.crop(s)); }
void Numbers::visit(const Slice& s) { show(s, s.buffer, scope_.slice(s)); }
void Numbers::visit(const Transpose& s) { show(s, s.buffer, scope_.transpose(s)); }
void Numbers::visit(const View& s) { show(s, s.buffer, scope_.view(s)); }

void Numbers::visit(const Call& s) {
  calls_.emplace_back();
  for (const Operand& o : s.operands) region(o.region, o.access != Access::in);
  for (const Expr& e : s.scalars) add(scope_.resolve(e));
  add(scope_.resolve(s.predicate));
}

void Numbers::visit(const Copy& s) {
  calls_.emplace_back();
  region(s.destination, true);
  region(s.source, false);
  if (const auto* padding = std::get_if<Region>(&s.padding)) region(*padding, false);
  add(scope_.resolve(s.predicate));
  if (std::holds_alternative<std::monostate>(s.padding)) return;
  // Nothing is padded where all of these are non-negative.
  const SymbolicBuffer destination = scope_.region(s.destination), source = scope_.region(s.source);
  for (const Expr& margin : source_margins(s, {destination, source}, scope_)) add(less_equal(0, margin));
}

void Numbers::visit(const Check& s) { add(scope_.resolve(s.condition)); }

void Numbers::visit(const Loop& s) {
  const Expr begin = scope_.simplified(scope_.resolve(s.begin)), end = scope_.simplified(scope_.resolve(s.end));
  add(begin);
  add(end);
  if (!has_one_iteration(s)) {
    const std::string number = str(kSteadyNumber, ".", s.symbol);
    scope_.assumptions()[number] = {bounds(begin, scope_.assumptions()).lower,
                                    bounds(end - 1, scope_.assumptions()).upper};
    within.push_back(number);
    scope_.define(s.symbol, Expr::symbol(number));
  } else {
    scope_.define(s.symbol, begin);
  }
  collect(s.body);
  scope_.erase(s.symbol);
}

void Numbers::visit(const Prefetch& s) {
  has_hints = true;
  for (const Range& r : scope_.cropped(s.region)) {
    add(r.min);
    add(r.extent);
  }
}

void Numbers::region(const Region& r, bool written) {
  const SymbolicBuffer box = scope_.region(r);
  add(box);
  int64_t elements = 1;
  for (const SymbolicDim& d : box.dims) {
    if (written) calls_.back().push_back(d.extent);
    if (!is_unfolded(d) && d.fold.is_constant()) rings.push_back({d.min, d.fold.constant()});
    if (d.extent.is_constant()) elements *= d.extent.constant();
  }
  if (written) most_elements = std::max(most_elements, elements);
}

void Numbers::add(const SymbolicBuffer& buffer) {
  for (const SymbolicDim& d : buffer.dims) {
    add(d.min);
    add(d.extent);
  }
}

void Numbers::add(const Expr& e) {
  if (!e.operands().empty()) found.push_back(e);
}

}  // namespace tenon::program::detail
