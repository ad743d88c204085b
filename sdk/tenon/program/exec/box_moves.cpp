#include <tenon/program/exec/box_moves_internal.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include <tenon/expr/bounds.hpp>
#include <tenon/program/exec/arithmetic_internal.hpp>
#include <tenon/program/ir/fixed_step_internal.hpp>

namespace tenon::program::detail {
namespace {

// Indices that a copy reads must not be farther apart, so that sums of distances stay in int64.
constexpr int64_t kLongestWay = int64_t{1} << 56;

// Indices of a copy during the analysis of its map. No text can name them.
std::string index_symbol(size_t d) { return "copy.index." + std::to_string(d); }

// Whether every divisor is a nonzero number. Other divisors are checked in the run, and registers refuse them at bind
// time.
bool divides_by_numbers(const Expr& e) {
  const bool divides = e.kind() == ExprKind::floordiv || e.kind() == ExprKind::mod;
  return (!divides || (e.operands()[1].is_constant() && !e.operands()[1].is_constant(0))) &&
         std::ranges::all_of(e.operands(), divides_by_numbers);
}

// Indices first ... last - 1 of a dim, relative to the beginning of the copy's box.
struct Span {
  int64_t first = 0, last = 0;
};

class MoveMaker {
 public:
  MoveMaker(const Copy& copy, const CopyBoxes& boxes, const Scope& scope)
      : copy_(copy), boxes_(boxes), scope_(scope), rank_(boxes.destination.dims.size()) {
    for (size_t d = 0; d < rank_; ++d) indices_.push_back(index_symbol(d));
  }

  std::optional<CopyMoves> make(ElementType element) {
    made_.moves.element_bytes = static_cast<size_t>(element.bits()) / 8;
    if (const auto* bytes = std::get_if<Copy::Element>(&copy_.padding)) made_.moves.element = *bytes;
    made_.to = made_.source = made_.padding = 0;
    if (!look_at_destination() || !look_at_padding()) return std::nullopt;
    for (size_t j = 0; j < copy_.map.size(); ++j) {
      const std::optional<Reach> reach = reach_of(j);
      if (!reach || !look_at_source_dim(boxes_.source.dims[j], *reach)) return std::nullopt;
    }
    std::vector<Span> rest;
    for (const int64_t extent : extents_) rest.push_back({0, extent});
    for (size_t d = rank_; d-- > 0;) {
      const Span all = rest[d];
      pad(rest, d, {all.first, within_[d].first});
      pad(rest, d, {within_[d].last, all.last});
      rest[d] = within_[d];
    }
    add(MoveFrom::source, rest, source_strides_);
    return std::move(made_);
  }

  std::vector<Expr> margins() {
    std::vector<Expr> all;
    if (!look_at_destination()) return all;
    for (size_t j = 0; j < copy_.map.size(); ++j)
      if (const std::optional<Reach> reach = reach_of(j))
        for (const Expr& margin : margins_of(*reach, boxes_.source.dims[j])) all.push_back(margin);
    return all;
  }

 private:
  bool is_not_negative(const Expr& e) const {
    return e.is_constant() ? e.constant() >= 0 : prove_le(0, e, scope_.assumptions());
  }
  // Bytes from the base of a dim to the first of `count` indices from x on, which do not wrap around; none: they may.
  std::optional<Expr> bytes_to(const SymbolicDim& dim, const Expr& x, int64_t count) const {
    if (is_unfolded(dim)) return (x - dim.min) * dim.stride;
    const Expr place = scope_.place_in_ring(x, dim.fold);
    if (count > 1 && !(dim.fold.is_constant() && prove_le(place + count, dim.fold, scope_.assumptions())))
      return std::nullopt;
    return place * dim.stride;
  }

  bool look_at_destination() {
    for (const SymbolicDim& dim : boxes_.destination.dims) {
      const Expr extent = scope_.simplified(dim.extent), stride = scope_.simplified(dim.stride);
      if (!extent.is_constant() || extent.constant() < 1 || !stride.is_constant()) return false;
      const auto bytes = bytes_to(dim, dim.min, extent.constant());
      if (!bytes) return false;
      made_.to += *bytes;
      extents_.push_back(extent.constant());
      to_strides_.push_back(stride.constant());
      within_.push_back({0, extent.constant()});
    }
    source_strides_.assign(rank_, 0);
    padding_strides_.assign(rank_, 0);
    return true;
  }

  // The map with unique names for its indices, since loops may have the same names.
  Expr mapped(const Expr& map) const {
    Substitution names;
    for (const std::string& symbol : map.symbols()) {
      const auto index = std::ranges::find(copy_.indices, symbol);
      names[symbol] = index == copy_.indices.end()
                          ? scope_.resolve(Expr::symbol(symbol))
                          : Expr::symbol(indices_[static_cast<size_t>(index - copy_.indices.begin())]);
    }
    return map.substitute(names);
  }

  // How the copy traverses one dim of its source: the index that the first element reads, the step per index of each
  // dim of the copy, and the distances to the lowest and highest index.
  struct Reach {
    Expr at;
    std::vector<int64_t> steps;
    int64_t down = 0, up = 0;
  };
  std::optional<Reach> reach_of(size_t source_dim) const {
    const Expr map = mapped(copy_.map[source_dim]);
    if (!divides_by_numbers(map)) return std::nullopt;
    Substitution begin;
    Reach reach{.at = 0, .steps = std::vector<int64_t>(rank_, 0)};
    for (size_t d = 0; d < rank_; ++d) {
      begin[indices_[d]] = boxes_.destination.dims[d].min;
      if (extents_[d] == 1) continue;
      const auto fixed = fixed_step(map, indices_[d], indices_);
      const Expr step = fixed ? scope_.simplified(*fixed) : map;
      if (!step.is_constant()) return std::nullopt;
      reach.steps[d] = step.constant();
      int64_t way = 0;
      if (__builtin_mul_overflow(reach.steps[d], extents_[d] - 1, &way) || std::abs(way) > kLongestWay)
        return std::nullopt;
      (way < 0 ? reach.down : reach.up) += way;
    }
    reach.at = scope_.simplified(map.substitute(begin));
    return reach;
  }
  // Non-negative where all accesses are inside the dim: on its low side, and on its high side.
  std::array<Expr, 2> margins_of(const Reach& reach, const SymbolicDim& dim) const {
    return {scope_.simplified(reach.at + reach.down - dim.min),
            scope_.simplified(dim.min + dim.extent - 1 - reach.at - reach.up)};
  }

  bool look_at_source_dim(const SymbolicDim& dim, const Reach& reach) {
    const Expr stride = scope_.simplified(dim.stride);
    if (!stride.is_constant()) return false;
    for (size_t d = 0; d < rank_; ++d)
      source_strides_[d] = detail::add(source_strides_[d], multiply(reach.steps[d], stride.constant()));
    if (!std::ranges::all_of(margins_of(reach, dim), [&](const Expr& e) { return is_not_negative(e); })) {
      if (std::holds_alternative<std::monostate>(copy_.padding) || !is_unfolded(dim) || !cut(dim, reach)) return false;
    }
    const auto bytes = bytes_to(dim, reach.at + reach.down, reach.up - reach.down + 1);
    if (!bytes) return false;
    made_.source += *bytes - reach.down * stride.constant();
    return true;
  }

  // Restricts reads to the source's dim. Possible where one dim of the copy moves along it.
  bool cut(const SymbolicDim& dim, const Reach& reach) {
    const std::vector<int64_t>& steps = reach.steps;
    const Expr begin = scope_.simplified(reach.at - dim.min), extent = scope_.simplified(dim.extent);
    if (!begin.is_constant() || !extent.is_constant()) return false;
    // An index outside of int64 is an error of the run, not padding.
    if (begin.constant() < -kLongestWay || begin.constant() > kLongestWay) return false;
    const auto moving = std::ranges::find_if(steps, [](int64_t step) { return step != 0; });
    if (moving == steps.end()) {  // all of it is outside
      if (rank_ == 0) return false;
      within_[0] = {0, 0};
      return true;
    }
    if (std::any_of(moving + 1, steps.end(), [](int64_t step) { return step != 0; })) return false;
    const int64_t low = -begin.constant(), high = extent.constant() - 1 - begin.constant();
    const auto ceil = [](int64_t a, int64_t b) { return -floor_divide(-a, b); };
    const int64_t first = ceil(*moving > 0 ? low : high, *moving),
                  last = floor_divide(*moving > 0 ? high : low, *moving);
    Span& span = within_[static_cast<size_t>(moving - steps.begin())];
    span.first = std::max(span.first, std::min(first, span.last));
    span.last = std::max(span.first, std::min(span.last, last + 1));
    return true;
  }

  bool look_at_padding() {
    if (!boxes_.padding || boxes_.padding->dims.empty()) return true;
    for (size_t d = 0; d < rank_; ++d) {
      const SymbolicDim &dim = boxes_.padding->dims[d], &to = boxes_.destination.dims[d];
      const Expr stride = scope_.simplified(dim.stride);
      const bool has_all = is_not_negative(scope_.simplified(to.min - dim.min)) &&
                           is_not_negative(scope_.simplified(dim.min + dim.extent - to.min - extents_[d]));
      if (!stride.is_constant() || !has_all) return false;
      const auto bytes = bytes_to(dim, to.min, extents_[d]);
      if (!bytes) return false;
      made_.padding += *bytes;
      padding_strides_[d] = stride.constant();
    }
    return true;
  }

  void pad(std::vector<Span> box, size_t d, Span span) {
    box[d] = span;
    add(boxes_.padding ? MoveFrom::padding : MoveFrom::element, box, padding_strides_);
  }

  void add(MoveFrom from, const std::vector<Span>& box, const std::vector<int64_t>& from_strides) {
    std::vector<BoxDim> dims;
    BoxMove move{.from = from};
    for (size_t d = 0; d < rank_; ++d) {
      if (box[d].first >= box[d].last) return;
      move.to_bytes += box[d].first * to_strides_[d];
      move.from_bytes += box[d].first * from_strides[d];
      dims.push_back({box[d].last - box[d].first, to_strides_[d], from_strides[d]});
    }
    dims.resize(join_dims(dims));
    const auto bytes = static_cast<int64_t>(made_.moves.element_bytes);
    const auto is_dense = [&](const BoxDim& dim) { return dim.to_stride == bytes && dim.from_stride == bytes; };
    if (dims.empty()) move.run_bytes = bytes;
    if (dims.size() == 1 && is_dense(dims[0])) move.run_bytes = dims[0].extent * bytes;
    for (const BoxDim& dim : dims) move.dims.push_back(dim);
    made_.moves.moves.push_back(std::move(move));
  }

  const Copy& copy_;
  const CopyBoxes& boxes_;
  const Scope& scope_;
  const size_t rank_;
  std::vector<std::string> indices_;
  CopyMoves made_;
  std::vector<int64_t> extents_, to_strides_, source_strides_, padding_strides_;  // of each dim of the copy
  std::vector<Span> within_;                                                      // the part inside the source
};

}  // namespace

std::optional<CopyMoves> moves_of(const Copy& copy, ElementType element, const CopyBoxes& boxes, const Scope& scope) {
  if (!element.byte_addressable() || boxes.destination.dims.size() > kMaxRank) return std::nullopt;
  return MoveMaker(copy, boxes, scope).make(element);
}

std::vector<Expr> source_margins(const Copy& copy, const CopyBoxes& boxes, const Scope& scope) {
  return MoveMaker(copy, boxes, scope).margins();
}

void BoxMoves::run(std::byte* to, const std::byte* source, const std::byte* padding) const {
  for (const BoxMove& move : moves) {
    const std::byte* const base = move.from == MoveFrom::source    ? source
                                  : move.from == MoveFrom::padding ? padding
                                                                   : element.data();
    std::byte* const first = to + move.to_bytes;
    const std::byte* const from = base + move.from_bytes;
    if (move.run_bytes > 0) {
      if (first != from) std::memmove(first, from, static_cast<size_t>(move.run_bytes));
    } else if (move.dims.size() == 1) {
      const BoxDim& row = move.dims[0];
      move_row(first, row.to_stride, from, row.from_stride, row.extent, element_bytes);
    } else {
      InlineVector<BoxDim, 4> dims = move.dims;  // move_box() changes them
      move_box(first, from, dims, element_bytes);
    }
  }
}

bool is_run(const BoxMoves& moves) {
  return moves.moves.size() == 1 && moves.moves[0].from == MoveFrom::source && moves.moves[0].run_bytes > 0;
}

namespace {

std::byte* address(int64_t word) { return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(word)); }

// Word by word, as loops have just stored them: a wider load would have to wait for store forwarding.
void move_run_of(const int64_t* words) {
  if (words[kMoveTo] == words[kMoveSource]) return;
  std::memmove(address(words[kMoveTo]), address(words[kMoveSource]), static_cast<size_t>(words[kMoveHow]));
}
void move_boxes_of(const int64_t* words) {
  const auto* moves = reinterpret_cast<const BoxMoves*>(address(words[kMoveHow]));
  moves->run(address(words[kMoveTo]), address(words[kMoveSource]), address(words[kMovePadding]));
}

}  // namespace

Result<void> move_run(CallContext& context) {
  move_run_of(context.scalars.data());
  return {};
}
Result<void> move_boxes(CallContext& context) {
  move_boxes_of(context.scalars.data());
  return {};
}

void (*settled_move(MoveFunction function))(const int64_t* words) {
  return function == &move_run ? &move_run_of : function == &move_boxes ? &move_boxes_of : nullptr;
}

}  // namespace tenon::program::detail
