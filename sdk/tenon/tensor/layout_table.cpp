// Layouts that keep their map: every index is evaluated, and the result is a table.
#include <algorithm>
#include <unordered_map>

#include <tenon/expr/bounds.hpp>
#include <tenon/tensor/layout_internal.hpp>

namespace tenon::detail {
namespace {

// The most operations and levels of an expression, expanded to a tree: larger maps are refused.
constexpr int64_t kMaxTreeSize = 1 << 14;
constexpr int kMaxTreeDepth = 400;

// The number of operations in `e`, where shared ones count each time; more than kMaxTreeSize if it is too large or
// deep.
int64_t tree_size(const Expr& e, int depth = 0) {
  if (depth > kMaxTreeDepth) return kMaxTreeSize + 1;
  int64_t size = 1;
  for (const Expr& operand : e.operands()) {
    size += tree_size(operand, depth + 1);
    if (size > kMaxTreeSize) break;
  }
  return size;
}

// An expression over the index in postfix order, for evaluation at millions of indices.
class Program {
 public:
  Program(const Expr& e, std::string_view symbols) : symbols_(symbols) { add(e); }

  // Nothing if it divides by zero or exceeds 64 bits.
  std::optional<int64_t> run(std::span<const int64_t> index) {
    stack_.clear();
    for (const Step& step : steps_) {
      if (!apply(step, index)) return std::nullopt;
    }
    return stack_.back();
  }

 private:
  struct Step {
    ExprKind kind;
    int64_t value = 0;  // the constant, or the number of the dim
    Expr source = {};
  };

  void add(const Expr& e) {
    if (e.is_constant()) {
      steps_.push_back({ExprKind::constant, e.constant()});
      return;
    }
    for (const Expr& operand : e.operands()) add(operand);
    const int64_t dim = e.is_symbol() ? static_cast<int64_t>(symbols_.find(upper(e.name()[0]))) : 0;
    steps_.push_back({e.kind(), dim, e});
  }

  static bool multiply_add(int64_t& sum, int64_t a, int64_t b) {
    return !__builtin_mul_overflow(a, b, &a) && !__builtin_add_overflow(sum, a, &sum);
  }

  static bool divide(ExprKind kind, int64_t a, int64_t b, int64_t& out) {
    if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
    const int64_t rest = a % b, down = rest != 0 && (rest < 0) != (b < 0);
    out = kind == ExprKind::floordiv ? a / b - down : rest + (down ? b : 0);
    return true;
  }

  static bool combine(const Step& step, std::span<const int64_t> args, int64_t& out) {
    const auto numbers = step.source.numbers();
    switch (step.kind) {
      case ExprKind::sum:
        out = numbers.back();
        for (size_t i = 0; i < args.size(); ++i) {
          if (!multiply_add(out, args[i], numbers[i])) return false;
        }
        return true;
      case ExprKind::unfolded_sum:
        out = 0;
        return std::ranges::all_of(args, [&](int64_t a) { return !__builtin_add_overflow(out, a, &out); });
      case ExprKind::product:
        out = 1;
        for (size_t i = 0; i < args.size(); ++i) {
          for (int64_t power = 0; power < numbers[i]; ++power) {
            if (__builtin_mul_overflow(out, args[i], &out)) return false;
          }
        }
        return true;
      case ExprKind::unfolded_product:
        out = 1;
        return std::ranges::all_of(args, [&](int64_t a) { return !__builtin_mul_overflow(out, a, &out); });
      case ExprKind::floordiv:
      case ExprKind::mod: return divide(step.kind, args[0], args[1], out);
      case ExprKind::min: out = *std::ranges::min_element(args); return true;
      case ExprKind::max: out = *std::ranges::max_element(args); return true;
      case ExprKind::select: out = args[0] != 0 ? args[1] : args[2]; return true;
      case ExprKind::at_least_0: out = args[0] >= 0; return true;
      case ExprKind::is_0: out = args[0] == 0; return true;
      case ExprKind::constant:
      case ExprKind::symbol: break;
    }
    return false;
  }

  bool apply(const Step& step, std::span<const int64_t> index) {
    if (step.kind == ExprKind::constant || step.kind == ExprKind::symbol) {
      stack_.push_back(step.kind == ExprKind::symbol ? index[static_cast<size_t>(step.value)] : step.value);
      return true;
    }
    const size_t count = step.source.operands().size();
    int64_t out = 0;
    if (!combine(step, std::span<const int64_t>(stack_).last(count), out)) return false;
    stack_.resize(stack_.size() - count);
    stack_.push_back(out);
    return true;
  }

  std::string_view symbols_;
  std::vector<Step> steps_;
  std::vector<int64_t> stack_;
};

struct Coordinate {
  size_t space = 0;
  Program program;
  int64_t extent = 1, stride = 1;
};

class TableBuilder {
 public:
  TableBuilder(LayoutData& data, const LayoutMap& map) : data_(data), map_(map) {}

  Result<void> build() {
    TENON_OK(make_coordinates());
    std::vector<int64_t> values;
    TENON_OK(try_all(values));
    TENON_OK(set_sizes());
    auto table = std::make_shared<LayoutTable>();
    table->map = map_;
    table->map.word_bits = data_.parts.word_bits;
    for (const Coordinate& coordinate : coordinates_) {
      const bool device = coordinate.space == static_cast<size_t>(LayoutSpace::device);
      const int64_t per_device = data_.devices ? data_.banks / data_.devices : 1;
      table->strides[coordinate.space].push_back(coordinate.stride * (device ? per_device : 1));
    }
    TENON_OK(place_all(values, *table));
    data_.table = std::move(table);
    return {};
  }

 private:
  Result<void> make_coordinates() {
    for (size_t s = 0; s < 4; ++s) {
      for (const Expr& e : coordinates_of(map_, s)) {
        if (tree_size(e) > kMaxTreeSize) {
          return layout_error("E_UNSUPPORTED", "a coordinate of more than ", kMaxTreeSize, " operations, or more than ",
                              kMaxTreeDepth, " levels");
        }
        coordinates_.push_back({s, Program(e, data_.parts.dims)});
      }
    }
    return {};
  }

  Expr expression(size_t i) const {
    size_t first = 0;
    for (size_t s = 0; s < coordinates_[i].space; ++s) first += coordinates_of(map_, s).size();
    return coordinates_of(map_, coordinates_[i].space)[i - first];
  }

  // Evaluates all coordinates of all indices, and the extents.
  Result<void> try_all(std::vector<int64_t>& values) {
    Dims index(data_.parts.shape.size());
    values.reserve(static_cast<size_t>(data_.valid) * coordinates_.size());
    for (int64_t number = 0; number < data_.valid; ++number) {
      for (size_t i = 0; i < coordinates_.size(); ++i) {
        const auto value = coordinates_[i].program.run(index);
        if (!value || *value < 0 || *value >= kMaxLayoutBits) {
          return layout_error("E_BAD_EXTENT", "the coordinate ", expression(i), " has ",
                              value ? str("the value ", *value) : std::string("no value of 64 bits"), " at index ",
                              index, "; it has to lie in [0, 2^62)");
        }
        coordinates_[i].extent = std::max(coordinates_[i].extent, *value + 1);
        values.push_back(*value);
      }
      next_index(index, data_.parts.shape);
    }
    Assumptions assumptions;
    for (size_t d = 0; d < index.size(); ++d) {
      assumptions[std::string(1, lower(data_.parts.dims[d]))] = {0, data_.parts.shape[d] - 1};
    }
    for (size_t i = 0; i < coordinates_.size() && data_.valid > 0; ++i) {
      const Interval bounds = tenon::bounds(expression(i), assumptions);
      if (bounds.lower && *bounds.lower >= 0 && bounds.upper && *bounds.upper < kMaxLayoutBits) {
        coordinates_[i].extent = std::max(coordinates_[i].extent, *bounds.upper + 1);
      }
    }
    return {};
  }

  Result<void> set_sizes() {
    int64_t running[4] = {1, 1, 1, 1};
    for (size_t i = coordinates_.size(); i-- > 0;) {
      int64_t& count = running[coordinates_[i].space];
      coordinates_[i].stride = count;
      if (!multiply(count, coordinates_[i].extent)) return too_large();
    }
    data_.devices = running[static_cast<size_t>(LayoutSpace::device)];
    data_.banks = data_.devices;
    if (!multiply(data_.banks, running[static_cast<size_t>(LayoutSpace::bank)])) return too_large();
    data_.words = running[static_cast<size_t>(LayoutSpace::address)];
    data_.lanes = running[static_cast<size_t>(LayoutSpace::lane)];
    Layout::Parts& parts = data_.parts;
    TENON_OK(set_word(parts, data_.lanes));
    int64_t bits = parts.word_bits;
    data_.physical = data_.banks;
    if (!multiply(data_.physical, data_.words) || !multiply(data_.physical, data_.lanes) ||
        !multiply(bits, data_.banks) || !multiply(bits, data_.words) || !multiply(bits, parts.size_bytes)) {
      return too_large();
    }
    if (data_.valid == 0) data_.words = data_.physical = 0;
    data_.padding = data_.physical - data_.valid;
    return {};
  }
  static Error too_large() { return layout_error("E_BAD_EXTENT", "the coordinates go beyond 2^62 bits"); }

  Result<void> place_all(const std::vector<int64_t>& values, LayoutTable& table) {
    const size_t count = coordinates_.size();
    data_.span = 0;
    for (int64_t number = 0; number < data_.valid; ++number) {
      int64_t sums[4] = {};
      for (size_t i = 0; i < count; ++i) {
        sums[coordinates_[i].space] += coordinates_[i].stride * values[static_cast<size_t>(number) * count + i];
      }
      const int64_t bank = sums[0] * (data_.banks / data_.devices) + sums[1];
      data_.span = std::max(data_.span, sums[2] + 1);
      table.slots.push_back((bank * data_.words + sums[2]) * data_.lanes + sums[3]);
      table.owners.emplace_back(table.slots.back(), number);
    }
    std::ranges::sort(table.owners);
    const auto same = std::ranges::adjacent_find(table.owners, {}, [](const auto& owner) { return owner.first; });
    if (same == table.owners.end()) return {};
    const int64_t slots = data_.words * data_.lanes;
    return layout_error("E_NOT_INVERTIBLE", "indices ", index_at(same->second), " and ", index_at((same + 1)->second),
                        " both lie in bank ", same->first / slots, ", slot ", same->first % slots);
  }

  Dims index_at(int64_t number) const {
    Dims index(data_.parts.shape.size());
    index_of(number, data_.parts.shape, index);
    return index;
  }

  LayoutData& data_;
  const LayoutMap& map_;
  std::vector<Coordinate> coordinates_;
};

}  // namespace

Result<Layout> table_of_map(std::string_view dims, const Dims& shape, int64_t element_bits, const LayoutMap& map,
                            const LayoutSpec& spec) {
  if (!spec.strides.empty() || !spec.aligns.empty() || !spec.folds.empty() || !spec.fuses.empty() ||
      !spec.xors.empty() || spec.view) {
    return layout_error("E_UNSUPPORTED", "the map is not made of digits, so only size, lane and fill may be added");
  }
  // The row-major layout has checked the shape and knows the dims.
  LayoutSpec plain;
  plain.size_bytes = spec.size_bytes;
  plain.fill = spec.fill;
  for (const char name : dims) plain.digits.emplace_back().name = name;
  TENON_TRY(resolved, resolve(plain, dims, std::vector<Expr>(shape.begin(), shape.end())));
  TENON_OK(set_strides(resolved, plain, element_bits));
  TENON_TRY(parts, parts_of(resolved, plain, dims, shape, element_bits));
  TENON_TRY(row_major, Layout::make(std::move(parts)));
  if (row_major.valid_elements() > kMaxMapElements) {
    // Two indices that share a slot in a part of the tensor are enough.
    Dims part = shape;
    int64_t elements = row_major.valid_elements();
    while (elements > kMaxMapElements) {
      int64_t& largest = *std::ranges::max_element(part);
      elements = elements / largest * (largest / 2);
      largest /= 2;
    }
    TENON_TRY(tried, table_of_map(dims, part, element_bits, map, spec), "in the part ", part, " of shape ", shape);
    return layout_error("E_UNSUPPORTED", "the map is not made of digits, and its ", row_major.valid_elements(),
                        " elements are more than the ", kMaxMapElements, " that can be tried one by one");
  }
  auto data = std::make_shared<LayoutData>(row_major.data());
  data->parts.digits.clear();
  data->weight.clear();
  data->address_order.clear();
  data->parts.word_bits = map.word_bits;
  data->parts.lane_msb = spec.lane_msb;
  TENON_OK(TableBuilder(*data, map).build());
  return Layout(std::shared_ptr<const LayoutData>(std::move(data)));
}

}  // namespace tenon::detail
