// Quotients by a row of divisors that several rows share, as products.
//
//   for rows {                          for a row: scratch rows h, l of s; %o = whether any divisor is odd
//     for vectors {                     for rows {
//       %x = ...                          for vectors {
//       %s = Load [s + c]                   %x = ...
//       %q = Div %x, %s                     %r = Mul %x, [l + c]   %p = Fma %x, [h + c], %r
//     }                                     %q = DivOdd %p, %x, [s + c], %o
//   }                                     }
//                                       }
//
// h and l are those of loop-invariant divisors, with the same accuracy (passes/standing_divisors.cpp). Where a divisor
// is odd, the divider is used for all quotients by this row, so that one register is enough for the check; DivOdd and o
// are omitted where divisors are moderate. The divisors may be computed from several such rows; what they are is then
// kept in a third scratch row, unless they are moderate.
//
// A row is prepared before the outermost loop whose iterations share it, in each call, and so in each piece of a
// divided call. Preparing one vector takes little more than a quotient, because vectors overlap: 16 rows of 768 already
// gain a quarter, and leave several rows to each of a few pieces. It does not pay where each vector unit has as much
// other work for each quotient. Of rows of 16,384 elements, whose two scratch rows fill twice L1, L2 still gains a
// fifth; longer ones were not measured.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "x86/names.hpp"
#include "x86/passes/quotients.hpp"

namespace tenon::x86 {
namespace {

const Name kDivOdd("DivOdd"), kParameter("Parameter");

// The instructions that compute one vector of divisors from shared rows and from what is known before all loops over
// rows.
struct Divisors {
  std::vector<Instruction> code = {};
  std::vector<RegisterId> pointers = {};         // to the rows
  std::optional<int64_t> offset = std::nullopt;  // of the vector from the loop's counter, in elements
  size_t known = 0;                              // position from which on everything else is known
  const Instruction& load() const {
    return *std::ranges::find_if(code, [](const Instruction& one) { return one.memory.has_value(); });
  }
  int made_at(RegisterId id) const {  // index in `code`; -1: known before
    const auto at = std::ranges::find_if(code, [&](const Instruction& one) { return one.out[0] == id; });
    return at == code.end() ? -1 : static_cast<int>(at - code.begin());
  }
};

// Whether both compute the same row.
bool are_alike(const Divisors& a, const Divisors& b) {
  return std::ranges::equal(a.code, b.code, [&](const Instruction& one, const Instruction& other) {
    if (one.op != other.op || one.attributes != other.attributes) return false;
    if (one.memory) return one.memory->base == other.memory->base && one.memory->element == other.memory->element;
    return std::ranges::equal(one.in, other.in, [&](RegisterId x, RegisterId y) {
      return a.made_at(x) == b.made_at(y) && (a.made_at(x) >= 0 || x == y);
    });
  });
}

// A row of divisors, and its scratch rows.
struct Row {
  Divisors divisors;                                     // of one vector
  size_t begin;                                          // of the loops that share it
  size_t around;                                         // beginning of the region around these
  bool moderate = true;                                  // all quotients by it are marked so
  RegisterId high = -1, low = -1, value = -1, odd = -1;  // pointers to scratch rows, and o

  bool is_kept() const {
    const Instruction& last = divisors.code.back();
    return !moderate && !(divisors.code.size() == 1 && last.memory->element == kF32);
  }
};

class DivisorRows {
 public:
  DivisorRows(LinearKernel& kernel, const PassOptions& options)
      : kernel_(kernel),
        uses_(kernel),
        quotients_(kernel, options),
        ports_(ports_of(kernel)),
        joined_rows_(options.joined_rows) {
    note_writes();
    std::vector<size_t> open;  // beginnings of the open regions
    size_t stretch_begin = 0, stretch_end = 0;
    double beside = 0;
    for (size_t i = 0; i < kernel.body.size(); ++i) {
      const Instruction& one = kernel.body[i];
      if (i >= stretch_end) std::tie(stretch_end, beside) = quotients_.stretch_from(i);
      if (snippet::begins_region(one.op)) open.push_back(i);
      if (snippet::ends_region(one.op)) open.pop_back();
      if (is_border(one.op)) stretch_begin = i + 1;
      if (quotients_.holds(one) && beside <= quotients_.unit_cycles_of(one)) look_at(i, open, stretch_begin);
    }
  }

  bool has_any() const { return !rows_.empty(); }
  void divide_by_products();

 private:
  static constexpr size_t kOutside = ~size_t{0};
  struct Quotient {
    size_t row;
    Divisors divisors;
  };

  const Loop& loop_at(size_t begin) const { return kernel_.loops[static_cast<size_t>(kernel_.body[begin].number)]; }
  int last_dim() const { return static_cast<int>(kernel_.extents.size()) - 1; }
  bool is_when(size_t begin) const { return kernel_.body[begin].op == kWhenBegin; }

  void note_writes() {
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      const Instruction& one = kernel_.body[i];
      if (writes_memory(one.op)) stores_.emplace_back(i, ports_[static_cast<size_t>(one.memory->base)]);
      if (one.op == kLoopBegin)
        for (const Loop::Shift& shift : loop_at(i).shifts) moves_.emplace_back(i, shift.pointer);
    }
  }

  // Adds the quotient if it is in a loop along the innermost dim and if enough rows share its divisors.
  void look_at(size_t at, const std::vector<size_t>& open, size_t stretch_begin) {
    if (open.size() < 2 || is_when(open.back())) return;
    const Loop& along = loop_at(open.back());
    if (along.kind == Loop::Kind::scalar || along.dim != last_dim()) return;
    name_ = along.name;
    Divisors divisors;
    if (!take(kernel_.body[at].in[1], along.counter, stretch_begin, divisors) || !divisors.offset) return;
    for (size_t depth = 0; depth + 1 < open.size(); ++depth) {
      if (is_when(open[depth])) continue;
      const size_t begin = open[depth], end = snippet::end_of_region(kernel_.body, begin);
      if (!stand(divisors, begin, end)) continue;
      if (!pays(std::span(open).subspan(depth, open.size() - 1 - depth))) return;
      const size_t row = row_of(divisors, begin, end, depth == 0 ? kOutside : open[depth - 1]);
      rows_[row].moderate &= kernel_.body[at].attributes.find(kModerate) != nullptr;
      quotients_by_.emplace(at, Quotient{row, std::move(divisors)});
      return;
    }
  }

  // Collects the instructions that compute `id`. False if they are not lane by lane, or not of rows.
  bool take(RegisterId id, RegisterId counter, size_t stretch_begin, Divisors& made) const {
    constexpr size_t kMostInstructions = 8;
    static const Name kAcrossLanes[] = {kFoldLanes, kFoldRows, kFillTail, kFirstLanes};
    const auto maker = uses_.maker(id);
    if (!maker) return false;
    if (*maker < stretch_begin) {
      made.known = std::max(made.known, *maker + 1);
      return true;
    }
    if (made.made_at(id) >= 0) return true;
    const Instruction& one = kernel_.body[*maker];
    if (one.op == kLoad) {
      const std::optional<size_t> from = uses_.maker(one.memory->base);
      if (one.memory->index != counter || !from || kernel_.body[*from].op != kParameter) return false;
      const int64_t bits = one.memory->element.bits(), begin = one.memory->displacement_bytes * 8;
      if (begin % bits != 0 || made.offset.value_or(begin / bits) != begin / bits) return false;
      made.offset = begin / bits;
      made.known = std::max(made.known, *from + 1);
      made.pointers.push_back(one.memory->base);
    } else {
      if (one.memory || one.out.size() != 1 || std::ranges::find(kAcrossLanes, one.op) != std::end(kAcrossLanes))
        return false;
      for (const RegisterId operand : one.in)
        if (!take(operand, counter, stretch_begin, made)) return false;
    }
    made.code.push_back(one);
    return made.code.size() <= kMostInstructions;
  }

  // Whether the divisors are the same in each iteration of loops within [begin, end].
  bool stand(const Divisors& divisors, size_t begin, size_t end) const {
    const auto is_inside = [&](size_t i) { return begin <= i && i <= end; };
    return divisors.known <= begin && std::ranges::none_of(divisors.pointers, [&](RegisterId pointer) {
             const int port = ports_[static_cast<size_t>(pointer)];
             return std::ranges::any_of(moves_,
                                        [&](auto& one) { return one.second == pointer && is_inside(one.first); }) ||
                    std::ranges::any_of(stores_, [&](auto& one) { return one.second == port && is_inside(one.first); });
           });
  }

  // For the loops around a quotient that share its divisors, whens among them.
  bool pays(std::span<const size_t> around) const {
    constexpr int64_t kLeastRows = 16, kMostElements = 16384;
    const int64_t row = kernel_.extents.back();
    if (row < 1 || row > kMostElements) return false;
    double rows = 1;
    for (const size_t begin : around) {
      if (is_when(begin)) continue;
      const Loop& loop = loop_at(begin);
      const auto dim = static_cast<size_t>(loop.dim);
      if (loop.kind != Loop::Kind::scalar || dim >= kernel_.extents.size() || kernel_.extents[dim] < 0) return false;
      rows *= static_cast<double>(kernel_.extents[dim]);
    }
    return rows >= static_cast<double>(kLeastRows * joined_rows_);
  }

  // The row with these divisors, possibly one that loops before have used, too.
  size_t row_of(const Divisors& divisors, size_t begin, size_t end, size_t around) {
    size_t at = 0;
    const auto is_it = [&](const Row& row) {
      return row.around == around && are_alike(row.divisors, divisors) && stand(divisors, row.begin, end);
    };
    while (at < rows_.size() && !is_it(rows_[at])) ++at;
    if (at == rows_.size()) rows_.push_back({divisors, begin, around});
    return at;
  }

  // ---- Writing ----

  snippet::Memory scratch_row(RegisterId pointer, RegisterId counter) const {
    return {.element = kF32, .base = pointer, .index = counter};
  }
  Instruction& write(Instruction one) { return kernel_.body.emplace_back(std::move(one)); }
  RegisterId write_pointer(int port) {
    const RegisterId pointer = kernel_.add_general();
    write({.op = kParameter,
           .out = {pointer},
           .number = kernel_.add_param({.kind = Param::Kind::pointer, .port = port})});
    return pointer;
  }
  int add_scratch_row() {
    kernel_.scratch.push_back({kF32, uint32_t{1} << last_dim()});
    return static_cast<int>(kernel_.varies.size() + kernel_.scratch.size()) - 1;
  }
  LoopId add_loop(Loop::Kind kind, RegisterId counter) {
    const auto id = static_cast<LoopId>(kernel_.loops.size());
    kernel_.loops.push_back({.kind = kind, .name = name_, .dim = last_dim(), .counter = counter});
    kernel_.loops.back().increment = kind == Loop::Kind::vector ? kernel_.lanes : 1;
    kernel_.loops.back().limit = kernel_.add_param({.kind = Param::Kind::limit, .loop = id});
    return id;
  }

  // The preparation has pointers of its own: passes tell from where a pointer is used whether rows share its data.
  struct Pointers {
    std::map<RegisterId, RegisterId> from;
    RegisterId high = -1, low = -1, value = -1;
  };
  void prepare(const std::vector<Row*>& rows);
  Pointers write_pointers(Row& row);
  void prepare_vector(const Row& row, const Pointers& to, FactorWriter& factors, RegisterId counter,
                      const RegisterIds& tail);
  void write_quotient(const Instruction& quotient, const Quotient& by);

  LinearKernel& kernel_;
  const Uses uses_;
  const Quotients quotients_;
  const std::vector<int> ports_;
  const int64_t joined_rows_;
  std::vector<std::pair<size_t, int>> stores_;        // positions and ports
  std::vector<std::pair<size_t, RegisterId>> moves_;  // positions of loops that advance pointers
  std::string name_;                                  // of the innermost dim
  std::vector<Row> rows_;
  std::map<size_t, Quotient> quotients_by_;  // positions
  struct Loaded {
    RegisterId high, low, value;
  };
  std::map<std::pair<size_t, int64_t>, Loaded> loaded_;  // by row and offset, in this stretch of code
};

DivisorRows::Pointers DivisorRows::write_pointers(Row& row) {
  static const Name kCopy("Copy");
  Pointers to;
  for (const RegisterId pointer : row.divisors.pointers) {
    const auto [own, is_new] = to.from.try_emplace(pointer, -1);
    if (!is_new) continue;
    own->second = kernel_.add_general();
    write({.op = kCopy, .in = {pointer}, .out = {own->second}});
  }
  const auto add_row = [&](RegisterId& in_loops) {
    const int port = add_scratch_row();
    in_loops = write_pointer(port);
    return write_pointer(port);
  };
  to.high = add_row(row.high), to.low = add_row(row.low);
  if (row.is_kept()) to.value = add_row(row.value);
  return to;
}

// The preparation of `rows`, whose loops over rows begin here.
void DivisorRows::prepare(const std::vector<Row*>& rows) {
  std::vector<Pointers> to;
  for (Row* row : rows) to.push_back(write_pointers(*row));
  for (Row* row : rows) {
    if (row->moderate) continue;
    row->odd = kernel_.add_lanes(kBool);
    write({.op = kScalar, .attributes = {{"bits", int64_t{0}}}, .out = {row->odd}});
  }
  const RegisterId counter = kernel_.add_general();
  write({.op = kZero, .out = {counter}});
  const LoopId vectors = add_loop(Loop::Kind::vector, counter), tail = add_loop(Loop::Kind::tail, counter);
  const auto begin = static_cast<std::ptrdiff_t>(kernel_.body.size());
  FactorWriter factors(kernel_);
  write({.op = kLoopBegin, .in = {counter}, .number = vectors});
  for (size_t i = 0; i < rows.size(); ++i) prepare_vector(*rows[i], to[i], factors, counter, {});
  // Constants before the loop.
  std::stable_partition(kernel_.body.begin() + begin, kernel_.body.end(),
                        [](const Instruction& one) { return one.op == kScalar; });
  write({.op = kLoopEnd, .in = {counter}, .number = vectors});
  const RegisterId mask = kernel_.add_lanes(kBool), count = kernel_.add_general();
  write({.op = kTailBegin, .in = {counter}, .out = {mask, count}, .number = tail});
  for (size_t i = 0; i < rows.size(); ++i) prepare_vector(*rows[i], to[i], factors, counter, {mask, count});
  write({.op = kTailEnd, .number = tail});
}

// `tail`: its mask and count; empty for a whole vector.
void DivisorRows::prepare_vector(const Row& row, const Pointers& to, FactorWriter& factors, RegisterId counter,
                                 const RegisterIds& tail) {
  const Lanes touched = tail.empty() ? Lanes::full : Lanes::partial;
  std::map<RegisterId, RegisterId> made;
  for (Instruction one : row.divisors.code) {
    const snippet::Register like = kernel_.registers[static_cast<size_t>(one.out[0])];
    if (one.memory) {
      one.in = tail, one.touched = touched;
      one.memory->base = to.from.at(one.memory->base), one.memory->index = counter, one.memory->displacement_bytes = 0;
    }
    for (RegisterId& id : one.in)
      if (const auto known = made.find(id); known != made.end()) id = known->second;
    const RegisterId out = kernel_.add_register(like.file, like.element);
    made[one.out[0]] = out;
    one.out = RegisterIds{out};
    write(std::move(one));
  }
  const RegisterId divisor = made.at(row.divisors.code.back().out[0]);
  const int label = row.divisors.code.back().label;
  const DivisorFactors by = factors.write_factors(divisor, row.moderate, label);
  const auto store = [&](RegisterId value, RegisterId pointer) {
    Instruction& one = write({.op = kStore, .in = {value}, .memory = scratch_row(pointer, counter), .label = label});
    one.touched = touched;
    for (const RegisterId id : tail) one.in.push_back(id);
  };
  store(by.parts.high, to.high), store(by.parts.low, to.low);
  if (row.is_kept()) store(divisor, to.value);
  if (row.moderate) return;
  RegisterId odd = by.odd;
  if (!tail.empty()) {
    odd = kernel_.add_lanes(kBool);
    write({.op = kAnd, .in = {by.odd, tail[0]}, .out = {odd}, .label = label});
  }
  write({.op = kOr, .in = {row.odd, odd}, .out = {row.odd}, .label = label});
}

void DivisorRows::write_quotient(const Instruction& quotient, const Quotient& by) {
  const Row& row = rows_[by.row];
  const auto [loaded, is_new] = loaded_.try_emplace({by.row, *by.divisors.offset});
  if (is_new) {
    const auto load = [&](RegisterId pointer) {
      Instruction one = by.divisors.load();
      const RegisterId out = kernel_.add_lanes(kF32);
      one.attributes = {};
      one.out = RegisterIds{out};
      one.memory = scratch_row(pointer, one.memory->index);
      one.memory->displacement_bytes = *by.divisors.offset * int64_t{sizeof(float)};
      write(std::move(one));
      return out;
    };
    loaded->second = {load(row.high), load(row.low), row.is_kept() ? load(row.value) : quotient.in[1]};
  }
  const auto make = [&](Name op, RegisterIds in, RegisterId out) {
    Instruction one = quotient;
    one.op = op, one.in = std::move(in), one.out = RegisterIds{out}, one.attributes = {};
    write(std::move(one));
    return out;
  };
  const auto& [high, low, value] = loaded->second;
  const RegisterId x = quotient.in[0], out = quotient.out[0];
  const RegisterId rest = make(kMul, {x, low}, kernel_.add_lanes(kF32));
  if (row.moderate) return void(make(kFma, {x, high, rest}, out));
  make(kDivOdd, {make(kFma, {x, high, rest}, kernel_.add_lanes(kF32)), x, value, row.odd}, out);
}

void DivisorRows::divide_by_products() {
  std::map<size_t, std::vector<Row*>> rows;  // by the beginning of the loops that share them
  for (Row& row : rows_) rows[row.begin].push_back(&row);
  std::vector<Instruction> old = std::exchange(kernel_.body, {});
  kernel_.body.reserve(old.size() + old.size() / 4);
  for (size_t i = 0; i < old.size(); ++i) {
    if (is_border(old[i].op)) loaded_.clear();
    if (const auto here = rows.find(i); here != rows.end()) prepare(here->second);
    if (const auto by = quotients_by_.find(i); by != quotients_by_.end())
      write_quotient(old[i], by->second);
    else
      kernel_.body.push_back(std::move(old[i]));
  }
  drop_unread(kernel_, uses_);
}

}  // namespace

void divide_by_rows(LinearKernel& kernel, const PassOptions& options) {
  const bool has_rows = kernel.extents.size() > 1 && kernel.blocks.dim < 0 && kernel.joined.rows < 0;
  // These have loops of their own order.
  if (!has_rows || options.items || options.staged_rows || !has_any(kernel, {kDiv})) return;
  DivisorRows rows(kernel, options);
  if (rows.has_any()) rows.divide_by_products();
}

}  // namespace tenon::x86
