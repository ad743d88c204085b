#include <tenon/program/exec/registers_internal.hpp>

#include <algorithm>

namespace tenon::program::detail {

Registers::Registers(ByteCode& code, const Assumptions& assumptions) : code_(code), assumptions_(assumptions) {
  levels_.emplace_back();
}

void Registers::enter(const std::string& symbol, Place place, const Expr& begin, const Expr& step, bool stepped) {
  levels_.push_back({symbol, begin, step, stepped, {}, {}, {}});
  define(symbol, place, depth());
}

Registers::LevelCode Registers::leave() {
  LevelCode code = leave_program();
  for (const std::string& symbol : levels_.back().symbols) definitions_.erase(symbol);
  levels_.pop_back();
  return code;
}

Registers::LevelCode Registers::leave_program() { return std::move(levels_.back().code); }

void Registers::define(const std::string& symbol, Place place, size_t level) {
  definitions_[symbol] = {place, level};
  levels_[level].symbols.push_back(symbol);
  levels_[level].known[Expr::symbol(symbol)] = {0, place};
}

size_t Registers::level_of(const Expr& e) const {
  size_t level = 0;
  for (const std::string& symbol : e.symbols())
    if (const auto it = definitions_.find(symbol); it != definitions_.end()) level = std::max(level, it->second.level);
  return level;
}

Place Registers::new_words(size_t count) {
  const size_t at = code_.frame.size();
  code_.frame.resize(at + count);
  given_.resize(at + count);
  return static_cast<Place>(at * sizeof(int64_t));
}
Place Registers::new_word() { return new_words(1); }

const Value* Registers::find(const Expr& e) const {
  for (const Level& level : levels_)
    if (const auto it = level.known.find(e); it != level.known.end()) return &it->second;
  return nullptr;
}

bool Registers::is_address(const Expr& e) const {
  const auto symbols = e.symbols();
  return std::any_of(symbols.begin(), symbols.end(),
                     [](const std::string& s) { return s.starts_with(kAddressPrefix); });
}

// The value must exist for every value of the loops' symbols: its code may run where the statement would not.
void Registers::check(const Expr& e) {
  if (!status_.ok() || is_address(e)) return;
  for (const std::string& symbol : e.symbols())
    if (!definitions_.contains(symbol)) status_ = error(Code::not_found, "the symbol ", symbol, " has no value here");
  const Interval range = bounds(e, assumptions_);
  if (!range.lower || !range.upper)
    status_ = error(Code::resource_exhausted, "the value of ", e, " cannot be told to lie within int64");
}

Value Registers::value(const Expr& e) {
  if (e.is_constant()) return {e.constant(), -1};
  if (const Value* known = find(e)) return give(*known);
  check(e);
  const size_t level = level_of(e);
  const Place place = new_word();
  make(e, place, level);
  return give(levels_[level].known[e] = {0, place});
}

Value Registers::give(const Value& value) {
  if (!value.known()) ++given_[word_of(value.place)];
  return value;
}

void Registers::into(const Expr& e, Place place) {
  if (e.is_constant()) {
    code_.frame[static_cast<size_t>(place) / sizeof(int64_t)] = e.constant();
    return;
  }
  check(e);
  make(e, place, level_of(e));
}

void Registers::make(const Expr& e, Place place, size_t level) {
  if (levels_[level].stepped &&
      (step(e, place, level) || step_modulo(e, place, level) || step_beside_modulo(e, place, level)))
    return;
  compute(e, place, level);
}

void Registers::set_before(size_t level, Place place, const Value& value) {
  Instr instr{value.known() ? Op::set : Op::move, place, value, {}, {}, value.number};
  levels_[level].code.entry.push_back(std::move(instr));
}

// Whether the value changes by a loop-invariant amount from one iteration to the next.
bool Registers::step(const Expr& e, Place place, size_t level) {
  const Expr symbol = Expr::symbol(levels_[level].symbol);
  const Expr by = e.substitute({{levels_[level].symbol, symbol + levels_[level].step}}) - e;
  if (!by.is_constant() && level_of(by) >= level) return false;
  set_before(level, place, value(e.substitute({{levels_[level].symbol, levels_[level].begin}})));
  const Value step_by = value(by);
  if (!(step_by == Value{})) levels_[level].code.increments.push_back({place, step_by});
  return true;
}

// x mod m for a constant m and an x that is stepped by a constant.
bool Registers::step_modulo(const Expr& e, Place place, size_t level) {
  if (e.kind() != ExprKind::mod || !e.operands()[1].is_constant()) return false;
  const std::string& name = levels_[level].symbol;
  const Expr x = e.operands()[0];
  const int64_t modulus = e.operands()[1].constant();
  const Expr by = x.substitute({{name, Expr::symbol(name) + levels_[level].step}}) - x;
  if (modulus <= 0 || !by.is_constant()) return false;
  const Value begin = value(mod(x.substitute({{name, levels_[level].begin}}), modulus));
  set_before(level, place, begin);
  const int64_t rest = mod(by, modulus).constant();
  levels_[level].code.ring_steps.push_back({place, rest, modulus});
  levels_[level].code.ring_begins.push_back(begin);
  return true;
}

// A sum in which one operand is stepped modulo a constant, and the others by a constant: the position of an index in a
// ring.
bool Registers::step_beside_modulo(const Expr& e, Place place, size_t level) {
  if (e.kind() != ExprKind::sum) return false;
  const auto operands = e.operands();
  const auto ring = std::ranges::find_if(operands, [&](const Expr& x) {
    return x.kind() == ExprKind::mod && x.operands()[1].is_constant() && level_of(x) == level;
  });
  if (ring == operands.end()) return false;
  const Level& l = levels_[level];
  const auto stepped_by = [&](const Expr& x) {
    return x.substitute({{l.symbol, Expr::symbol(l.symbol) + l.step}}) - x;
  };
  const int64_t modulus = ring->operands()[1].constant(),
                factor = e.numbers().empty() ? 1 : e.numbers()[static_cast<size_t>(ring - operands.begin())];
  const Expr by = stepped_by(ring->operands()[0]), other_by = stepped_by(e - factor * *ring);
  if (modulus <= 0 || !by.is_constant() || !other_by.is_constant()) return false;
  const int64_t rest = mod(by, modulus).constant();
  const Value beside = value(*ring);
  set_before(level, place, value(e.substitute({{l.symbol, l.begin}})));
  levels_[level].code.beside_steps.push_back(
      {place, beside.place, other_by.constant() + factor * rest, rest, factor * modulus});
  return true;
}

void Registers::compute(const Expr& e, Place place, size_t level) {
  const auto operands = e.operands();
  const auto operand = [&](size_t i) { return value(operands[i]); };
  switch (e.kind()) {
    case ExprKind::symbol: return emit(level, {Op::move, place, value(e)});
    case ExprKind::sum:
    case ExprKind::unfolded_sum: return compute_sum(e, place, level);
    case ExprKind::product:
    case ExprKind::unfolded_product: return compute_chain(e, place, level, Op::product);
    case ExprKind::min: return compute_chain(e, place, level, Op::min);
    case ExprKind::max: return compute_chain(e, place, level, Op::max);
    case ExprKind::floordiv:
    case ExprKind::mod: {
      const Interval divisor = bounds(operands[1], assumptions_);
      const bool positive = divisor.lower && *divisor.lower > 0, negative = divisor.upper && *divisor.upper < 0;
      if (!positive && !negative && status_.ok()) status_ = error(Code::invalid_argument, e, " may divide by zero");
      return emit(level, {e.kind() == ExprKind::mod ? Op::mod : Op::floordiv, place, operand(0), operand(1)});
    }
    case ExprKind::select: return emit(level, {Op::select, place, operand(0), operand(1), operand(2)});
    case ExprKind::at_least_0: return emit(level, {Op::at_least_0, place, operand(0)});
    case ExprKind::is_0: return emit(level, {Op::is_0, place, operand(0)});
    case ExprKind::constant: break;  // handled by into() and value()
  }
}

void Registers::compute_sum(const Expr& e, Place place, size_t level) {
  const auto operands = e.operands();
  const auto numbers = e.numbers();
  Instr instr{Op::linear, place, {}, {}, {}, numbers.empty() ? 0 : numbers.back()};
  std::vector<Term> terms;
  for (size_t i = 0; i < operands.size(); ++i) {
    const int64_t factor = numbers.empty() ? 1 : numbers[i];
    const Value v = value(operands[i]);
    if (v.known())
      instr.number += factor * v.number;
    else
      terms.push_back({v.place, factor});
  }
  instr.first = static_cast<int32_t>(code_.terms.size());
  code_.terms.insert(code_.terms.end(), terms.begin(), terms.end());
  instr.last = static_cast<int32_t>(code_.terms.size());
  emit(level, std::move(instr));
}

// a op b op c ...; powers are products.
void Registers::compute_chain(const Expr& e, Place place, size_t level, Op op) {
  std::vector<Value> values;
  for (size_t i = 0; i < e.operands().size(); ++i)
    values.insert(values.end(), e.numbers().empty() ? 1 : static_cast<size_t>(e.numbers()[i]), value(e.operands()[i]));
  Value so_far = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    emit(level, {op, place, so_far, values[i]});
    so_far = {0, place};
  }
}

}  // namespace tenon::program::detail
