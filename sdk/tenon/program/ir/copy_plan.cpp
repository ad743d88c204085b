#include <tenon/program/ir/copy_plan.hpp>

#include <algorithm>
#include <array>
#include <cstring>

#include <tenon/program/ir/fixed_step_internal.hpp>
#include <tenon/tensor/move_box.hpp>

namespace tenon::program {

// --- expressions as steps ---

Result<IndexCode> IndexCode::make(const Expr& e, std::span<const std::string> names) {
  IndexCode code;
  TENON_OK(code.append(e, names));
  size_t depth = 0, deepest = 0;
  for (const Step& step : code.steps_) {
    if (step.op == Op::constant || step.op == Op::value)
      ++depth;
    else if (step.op == Op::select)
      depth -= 2;
    else if (step.op != Op::at_least_0 && step.op != Op::is_0)
      --depth;
    deepest = std::max(deepest, depth);
  }
  if (deepest > kMaxDepth)
    return error(Code::resource_exhausted, "an index is nested ", deepest, " deep, beyond ", kMaxDepth);
  return code;
}

Result<void> IndexCode::append(const Expr& e, std::span<const std::string> names) {
  switch (e.kind()) {
    case ExprKind::constant: push(Op::constant, e.constant()); return {};
    case ExprKind::symbol: {
      const auto at = std::ranges::find(names, e.name());
      if (at == names.end()) return error(Code::invalid_argument, "'", e.name(), "' has no value in the map of a copy");
      push(Op::value, at - names.begin());
      return {};
    }
    case ExprKind::sum: return append_sum(e, names);
    case ExprKind::product: return append_product(e, names);
    case ExprKind::unfolded_sum: return append_folded(e, Op::add, names);
    case ExprKind::unfolded_product: return append_folded(e, Op::multiply, names);
    case ExprKind::floordiv: return append_folded(e, Op::floordiv, names);
    case ExprKind::mod: return append_folded(e, Op::mod, names);
    case ExprKind::min: return append_folded(e, Op::min, names);
    case ExprKind::max: return append_folded(e, Op::max, names);
    case ExprKind::at_least_0:
    case ExprKind::is_0:
      TENON_OK(append(e.operands()[0], names));
      push(e.kind() == ExprKind::is_0 ? Op::is_0 : Op::at_least_0);
      return {};
    case ExprKind::select:
      for (const Expr& operand : e.operands()) TENON_OK(append(operand, names));
      push(Op::select);
      return {};
  }
  return {};
}

Result<void> IndexCode::append_folded(const Expr& e, Op op, std::span<const std::string> names) {
  for (size_t i = 0; i < e.operands().size(); ++i) {
    TENON_OK(append(e.operands()[i], names));
    if (i > 0) push(op);
  }
  return {};
}

Result<void> IndexCode::append_sum(const Expr& e, std::span<const std::string> names) {
  push(Op::constant, e.numbers().back());
  for (size_t i = 0; i < e.operands().size(); ++i) {
    TENON_OK(append(e.operands()[i], names));
    if (e.numbers()[i] != 1) {
      push(Op::constant, e.numbers()[i]);
      push(Op::multiply);
    }
    push(Op::add);
  }
  return {};
}

Result<void> IndexCode::append_product(const Expr& e, std::span<const std::string> names) {
  bool first = true;
  for (size_t i = 0; i < e.operands().size(); ++i)
    for (int64_t power = 0; power < e.numbers()[i]; ++power) {
      TENON_OK(append(e.operands()[i], names));
      if (!first) push(Op::multiply);
      first = false;
    }
  return {};
}

namespace {

// Each returns whether the result exists and is within int64. They have distinct types so that each call is inlined.
constexpr auto sum = [](int64_t a, int64_t b, int64_t& result) { return !__builtin_add_overflow(a, b, &result); };
constexpr auto product = [](int64_t a, int64_t b, int64_t& result) { return !__builtin_mul_overflow(a, b, &result); };
constexpr auto floor_quotient = [](int64_t a, int64_t b, int64_t& result) {
  if (b == 0 || b == -1) return b != 0 && !__builtin_sub_overflow(int64_t{0}, a, &result);
  result = a / b - (a % b != 0 && (a < 0) != (b < 0));
  return true;
};
constexpr auto floor_remainder = [](int64_t a, int64_t b, int64_t& result) {
  if (b == 0) return false;
  const int64_t r = b == -1 ? 0 : a % b;
  result = r != 0 && (r < 0) != (b < 0) ? r + b : r;
  return true;
};

}  // namespace

std::optional<int64_t> IndexCode::run(std::span<const int64_t> values) const {
  std::array<int64_t, kMaxDepth> stack;
  uint64_t faults = 0;  // one bit per stack place without a value
  static_assert(kMaxDepth <= 64);
  const auto fault = [&](size_t place) { return faults >> place & 1; };
  const auto set_fault = [&](size_t place, uint64_t bit) {
    faults = (faults & ((uint64_t{1} << place) - 1)) | bit << place;  // places above are free
  };
  size_t top = 0;
  for (const Step& step : steps_) {
    const auto binary = [&](auto f) {
      --top;
      if (faults != 0) set_fault(top - 1, fault(top - 1) | fault(top));
      int64_t result = 0;
      if (!f(stack[top - 1], stack[top], result)) [[unlikely]]
        set_fault(top - 1, 1);
      stack[top - 1] = result;
    };
    const auto choose = [&](auto f) {
      binary([&](int64_t a, int64_t b, int64_t& result) { return result = f(a, b), true; });
    };
    switch (step.op) {
      case Op::constant: stack[top++] = step.number; break;
      case Op::value: stack[top++] = values[static_cast<size_t>(step.number)]; break;
      case Op::add: binary(sum); break;
      case Op::multiply: binary(product); break;
      case Op::floordiv: binary(floor_quotient); break;
      case Op::mod: binary(floor_remainder); break;
      case Op::min: choose([](int64_t a, int64_t b) { return std::min(a, b); }); break;
      case Op::max: choose([](int64_t a, int64_t b) { return std::max(a, b); }); break;
      case Op::select: {
        top -= 2;
        const size_t taken = stack[top - 1] != 0 ? top : top + 1;
        if (faults != 0) set_fault(top - 1, fault(top - 1) | fault(taken));
        stack[top - 1] = stack[taken];
        break;
      }
      case Op::at_least_0: stack[top - 1] = stack[top - 1] >= 0; break;
      case Op::is_0: stack[top - 1] = stack[top - 1] == 0; break;
    }
  }
  if (top == 0) return 0;
  return faults == 0 ? std::optional(stack[0]) : std::nullopt;
}

// --- the plan ---

Result<CopyPlan> CopyPlan::make(const Copy& copy, ElementType element) {
  if (!element.byte_addressable()) return error(Code::unsupported, "copies of elements of ", element.bits(), " bits");
  if (copy.indices.size() > kMaxRank || copy.map.size() > kMaxRank)
    return error(Code::unsupported, "a copy of rank ", copy.indices.size(), " from rank ", copy.map.size());
  CopyPlan plan;
  plan.element_bytes_ = static_cast<size_t>(element.bits()) / 8;
  plan.stage_ = copy.stage.empty() ? "copy" : copy.stage;
  for (const Expr& e : copy.map)
    for (const std::string& symbol : e.symbols())
      if (!std::ranges::count(copy.indices, symbol) && !std::ranges::count(plan.parameters_, symbol))
        plan.parameters_.push_back(symbol);
  plan.map_.reserve(copy.map.size());
  plan.by_.reserve(copy.map.size());
  plan.exprs_ = copy.map;
  plan.names_ = copy.indices;
  plan.names_.insert(plan.names_.end(), plan.parameters_.begin(), plan.parameters_.end());
  for (const Expr& e : copy.map) {
    TENON_TRY(code, IndexCode::make(e, plan.names_), "the map of '", plan.stage_, "'");
    plan.map_.push_back(std::move(code));
    auto& by = plan.by_.emplace_back();
    by.reserve(copy.indices.size());
    for (const std::string& index : copy.indices) {
      by.emplace_back();
      const auto step = fixed_step(e, index, copy.indices);
      if (!step) continue;
      TENON_TRY(step_code, IndexCode::make(*step, plan.names_));
      by.back() = std::move(step_code);
    }
  }
  plan.pads_ = !std::holds_alternative<std::monostate>(copy.padding);
  if (const auto* bytes = std::get_if<Copy::Element>(&copy.padding)) plan.element_ = *bytes;
  return plan;
}

// --- running ---

struct CopyPlan::Job {
  const BufferView& destination;
  const BufferView& source;
  const BufferView* padding;
  std::array<int64_t, 2 * kMaxRank + 32> values{};  // indices, then parameters
  size_t value_count = 0;
  size_t along = 0;                      // the dim of the destination along which rows lie
  bool rows = false;                     // whether the source is read with a fixed stride along it
  std::array<int64_t, kMaxRank> step{};  // for each dim of the source, along a row

  std::span<const int64_t> all() const { return {values.data(), value_count}; }
  std::span<const int64_t> index() const { return {values.data(), destination.dims.size()}; }
};

Result<void> CopyPlan::run(const BufferView& destination, const BufferView& source, const BufferView* padding,
                           std::span<const int64_t> parameters) const {
  if (destination.empty()) return {};
  Job job{destination, source, padding};
  const size_t rank = destination.dims.size();
  job.value_count = rank + parameters.size();
  if (job.value_count > job.values.size())
    return error(Code::unsupported, "the map of '", stage_, "' has ", parameters.size(), " parameters");
  for (size_t d = 0; d < rank; ++d) job.values[d] = destination.dims[d].min;
  std::ranges::copy(parameters, job.values.begin() + static_cast<ptrdiff_t>(rank));
  while (job.along + 1 < rank && destination.dims[job.along].extent == 1) ++job.along;
  if (move_whole(job)) return {};
  job.rows = rank > 0 && destination.dims[job.along].fold <= 0;
  for (size_t j = 0; j < map_.size() && job.rows; ++j) {
    const std::optional<IndexCode>& code = by_[j][job.along];
    const std::optional<int64_t> step = code ? code->run(job.all()) : std::nullopt;
    job.step[j] = step.value_or(0);
    job.rows = step && (*step == 0 || source.dims[j].fold <= 0);
  }
  return run_rows(job);
}

// Where each index of the source moves by fixed steps and none leaves the source, rows are not examined one by one.
// This does with numbers what moves_of() (exec/box_moves_internal.hpp) does with expressions at bind time, for copies
// about which that could prove nothing. They share fixed_step() and move_box() but no traversal, since every comparison
// of moves_of() is a proof, and it makes a separate box of what is outside of the source.
bool CopyPlan::move_whole(Job& job) const {
  const std::span<const DimView> dims = job.destination.dims;
  std::array<BoxDim, kMaxRank> box;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].fold > 0) return false;
    box[d] = {.extent = dims[d].extent, .to_stride = dims[d].stride};
  }
  const std::byte* from = job.source.base;
  for (size_t j = 0; j < map_.size(); ++j) {
    const DimView& s = job.source.dims[j];
    const std::optional<int64_t> at = map_[j].run(job.all());
    if (!at) return false;
    int64_t least = *at, most = *at;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].extent == 1) continue;
      if (!by_[j][d]) return false;
      const std::optional<int64_t> step = by_[j][d]->run(job.all());
      int64_t way = 0;
      if (!step || __builtin_mul_overflow(*step, dims[d].extent - 1, &way)) return false;
      int64_t& end = way < 0 ? least : most;
      if (__builtin_add_overflow(end, way, &end)) return false;
      box[d].from_stride += *step * s.stride;
    }
    if (least < s.min || most > s.max() || (least != most && s.fold > 0)) return false;
    from += s.place(*at) * s.stride;
  }
  move_box(job.destination.base, from, std::span(box).first(dims.size()), element_bytes_);
  return true;
}

Result<void> CopyPlan::run_rows(Job& job) const {
  const std::span<const DimView> dims = job.destination.dims;
  while (true) {
    if (job.rows)
      TENON_OK(row(job));
    else
      TENON_OK(by_element(job));
    size_t d = 0;
    for (; d < dims.size(); ++d) {
      if (d == job.along) continue;
      if (++job.values[d] <= dims[d].max()) break;
      job.values[d] = dims[d].min;
    }
    if (d == dims.size()) return {};
  }
}

namespace {

// Shrinks [from, to) to those i in [0, extent) for which at + i * step is in the dim. False where that index, or its
// distance from the ends of the dim, leaves int64.
bool clip(const DimView& dim, int64_t at, int64_t step, int64_t extent, int64_t& from, int64_t& to) {
  if (step == 0) {
    if (at < dim.min || at > dim.max()) to = 0;
    return true;
  }
  int64_t way = 0, last = 0, low = 0, high = 0, before = 0, through = 0;
  if (!product(step, extent - 1, way) || !sum(at, way, last)) return false;
  const int64_t near = step > 0 ? dim.min : dim.max(), far = step > 0 ? dim.max() : dim.min;
  if (__builtin_sub_overflow(at, near, &low) || __builtin_sub_overflow(far, at, &high)) return false;
  if (!floor_quotient(low, step, before) || !floor_quotient(high, step, through)) return false;
  from = std::max(from, -std::max(before, -extent));  // rounded up: at is `low` beyond the near end
  to = std::min(to, std::min(through, extent - 1) + 1);
  return true;
}

}  // namespace

Result<void> CopyPlan::row(Job& job) const {
  const DimView& dim = job.destination.dims[job.along];
  job.values[job.along] = dim.min;
  int64_t from = 0, to = dim.extent;  // of the row, the part inside the source
  int64_t stride = 0;
  std::array<int64_t, kMaxRank> at{};
  for (size_t j = 0; j < map_.size(); ++j) {
    const DimView& s = job.source.dims[j];
    const std::optional<int64_t> index = map_[j].run(job.all());
    if (!index || !clip(s, *index, job.step[j], dim.extent, from, to)) return by_element(job);
    at[j] = *index;
    stride += job.step[j] * s.stride;
  }
  from = std::min(from, dim.extent);
  to = std::max(to, from);
  TENON_OK(pad(job, 0, from));
  if (to > from) {
    const std::byte* source = job.source.base;
    for (size_t j = 0; j < map_.size(); ++j)
      source += job.source.dims[j].place(at[j] + from * job.step[j]) * job.source.dims[j].stride;
    job.values[job.along] = dim.min + from;
    move_row(job.destination.address(job.index()), dim.stride, source, stride, to - from, element_bytes_);
  }
  return pad(job, to, dim.extent);
}

Result<void> CopyPlan::pad(Job& job, int64_t from, int64_t to) const {
  const DimView* dim = job.destination.dims.empty() ? nullptr : &job.destination.dims[job.along];
  for (int64_t i = from; i < to; ++i) {
    if (dim) job.values[job.along] = dim->min + i;
    if (!pads_) return outside(job);
    const std::byte* element = job.padding ? job.padding->base : element_.data();
    if (job.padding && job.padding->rank() > 0) element = job.padding->address(job.index());
    std::memcpy(job.destination.address(job.index()), element, element_bytes_);
  }
  return {};
}

Result<void> CopyPlan::by_element(Job& job) const {
  const bool scalar = job.destination.dims.empty();
  const int64_t count = scalar ? 1 : job.destination.dims[job.along].extent;
  for (int64_t i = 0; i < count; ++i) {
    if (!scalar) job.values[job.along] = job.destination.dims[job.along].min + i;
    const std::byte* source = job.source.base;
    bool inside = true;
    for (size_t j = 0; j < map_.size(); ++j) {
      const DimView& s = job.source.dims[j];
      std::optional<int64_t> at = map_[j].run(job.all());
      if (!at) {
        TENON_TRY(exact, evaluated(job, j));
        at = exact;
      }
      inside &= *at >= s.min && *at <= s.max();
      if (inside) source += s.place(*at) * s.stride;
    }
    if (!inside)
      TENON_OK(pad(job, i, i + 1));
    else if (std::byte* to = job.destination.address(job.index()); to != source)
      std::memmove(to, source, element_bytes_);
  }
  return {};
}

Result<void> CopyPlan::outside(const Job& job) const {
  std::string index, limits;
  for (size_t d = 0; d < job.destination.dims.size(); ++d) index += str(d ? ", " : "", job.values[d]);
  for (const DimView& s : job.source.dims) limits += str(limits.empty() ? "" : ", ", s.min, " to ", s.max());
  return error(Code::invalid_argument, "'", stage_, "' at index (", index, ") reads outside of its source, which has ",
               limits, "; pad it, or give more");
}

Result<int64_t> CopyPlan::evaluated(const Job& job, size_t source_dim) const {
  SymbolValues symbols;
  for (size_t i = 0; i < names_.size(); ++i) symbols[names_[i]] = job.values[i];
  TENON_TRY(value, exprs_[source_dim].evaluate(symbols), "the index of dim ", source_dim, " of the source, in '",
            stage_, "'");
  return value;
}

}  // namespace tenon::program
