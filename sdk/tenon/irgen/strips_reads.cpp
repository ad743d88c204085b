#include <tenon/irgen/strips_reads.hpp>

#include <algorithm>

#include <tenon/expr/bounds.hpp>
#include <tenon/ir/bounds_rule.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>

namespace tenon::irgen {

namespace {

StripWindow whole(int64_t extent) { return {Expr(0), Expr(extent - 1), -1, 0, static_cast<double>(extent)}; }

// For one operator: evaluates the bounds rule and interprets its result.
class Asker {
 public:
  Asker(const Op& op, size_t result, const std::vector<int>& dims, const TypeSource& types)
      : op_(op), result_(result), moved_(dims), types_(types) {}

  Result<StripReads> run() {
    TENON_OK(check_op());
    TENON_TRY(shape, strip_dims(*op_.result(result_), types_), op_.describe());
    shape_ = std::move(shape);
    const StaticInferContext context(op_, types_);
    TENON_TRY(bounds, operand_bounds(context, result_, Shape(shape_), box()));
    TENON_OK(check_splits(bounds));
    StripReads reads;
    for (size_t i = 0; i < op_.operand_count(); ++i) {
      TENON_TRY(windows, operand(i, bounds.operands[i]), "operand ", i, " of ", op_.describe());
      reads.operands.push_back(std::move(windows));
    }
    return reads;
  }

 private:
  Result<void> check_op() const {
    const OpDef* def = op_.def();
    if (!def || !def->bounds_fn()) return error(Code::unsupported, op_.describe(), " has no bounds rule");
    if (!def->bounds_rule().sub_box) return error(Code::unsupported, op_.describe(), " runs on the whole only");
    return {};
  }

  Box box() {
    Box box;
    for (const int64_t extent : shape_) box.push_back({Expr(0), Expr(extent - 1)});
    for (size_t l = 0; l < moved_.size(); ++l) {
      const size_t d = static_cast<size_t>(moved_[l]);
      box[d] = {strip_symbol(l), strip_symbol(l)};
      range_[std::string(strip_symbol(l).name())] = {0, shape_[d] - 1};
    }
    return box;
  }

  Result<void> check_splits(const Bounds& bounds) const {
    for (const int d : moved_)
      if (!bounds.splits[static_cast<size_t>(d)])
        return error(Code::unsupported, op_.describe(), " computes all of dim ", d, " of its result at once");
    if (bounds.same_bits) return {};
    return error(Code::unsupported, op_.describe(), " gives other bits in strips along dim ", moved_.front());
  }

  Result<std::vector<StripWindow>> operand(size_t i, const OperandBounds& bounds) const {
    std::vector<StripWindow> windows;
    if (!op_.operand(i)) return windows;
    TENON_TRY(dims, strip_dims(*op_.operand(i), types_));
    for (size_t d = 0; d < dims.size(); ++d)
      windows.push_back(bounds.kind == OperandBounds::Kind::box ? window(bounds.dims[d], dims[d]) : whole(dims[d]));
    return windows;
  }

  // The whole dim unless one loop moves both of its ends, and never backwards.
  StripWindow window(const DimBounds& bounds, int64_t extent) const {
    StripWindow w{simplify(bounds.min, range_), simplify(bounds.max, range_), -1, 0, 0};
    for (size_t l = 0; l < moved_.size(); ++l) {
      if (!depends(w.first, l) && !depends(w.last, l)) continue;
      const std::string_view symbol = strip_symbol(l).name();
      if (w.loop >= 0 || !is_non_decreasing_in(w.first, symbol) || !is_non_decreasing_in(w.last, symbol))
        return whole(extent);
      w.loop = static_cast<int>(l);
    }
    if (w.loop < 0 || bounds.whole || !measure(w)) return whole(extent);
    return w;
  }
  static bool depends(const Expr& e, size_t loop) {
    return std::ranges::count(e.symbols(), std::string(strip_symbol(loop).name())) > 0;
  }

  // False when an end has no value somewhere.
  bool measure(StripWindow& w) const {
    const size_t loop = static_cast<size_t>(w.loop);
    const int64_t last = shape_[static_cast<size_t>(moved_[loop])] - 1;
    std::vector<int64_t> ends;
    for (const int64_t at : {int64_t{0}, last / 2, last}) {
      const SymbolValues values{{std::string(strip_symbol(loop).name()), at}};
      const auto from = w.first.evaluate(values), to = w.last.evaluate(values);
      if (!from.ok() || !to.ok()) return false;
      w.span = std::max(w.span, static_cast<double>(*to - *from + 1));
      ends.push_back(*to);
    }
    w.rate = last > 0 ? static_cast<double>(ends.back() - ends.front()) / static_cast<double>(last) : w.span;
    return true;
  }

  const Op& op_;
  size_t result_;
  const std::vector<int>& moved_;
  const TypeSource& types_;
  Dims shape_;
  Assumptions range_;
};

}  // namespace

Expr strip_symbol(size_t loop) {
  static const Expr symbols[kMostStripLoops] = {Expr::symbol("strip0"), Expr::symbol("strip1")};
  return symbols[loop];
}

std::vector<int> StripReads::moved_dims(size_t operand, size_t loops) const {
  std::vector<int> dims(loops, -1);
  for (size_t d = 0; d < operands[operand].size(); ++d) {
    const int loop = operands[operand][d].loop;
    if (loop < 0) continue;
    int& dim = dims[static_cast<size_t>(loop)];
    if (dim >= 0) return {};
    dim = static_cast<int>(d);
  }
  return dims;
}

Result<Dims> strip_dims(const Value& value, const TypeSource& types) {
  const auto refuse = [&](const auto&... why) {
    return error(Code::unsupported, "value '", value.name(), "' ", why...);
  };
  const Type& type = types.type_of(value);
  if (!type.is_tensor()) return refuse("is no tensor");
  const ElementType element = type.element();
  if (!element.valid() || element.is_string() || element.bits() % 8 != 0)
    return refuse("has no elements of whole bytes");
  if (value.layout()) return refuse("lies in a layout");
  auto dims = type.shape().static_dims();
  if (!dims) return refuse("has dims that are not known before a run");
  if (std::ranges::count(*dims, 0)) return refuse("is empty");
  return *std::move(dims);
}

Result<StripReads> strip_reads(const Op& op, size_t result, const std::vector<int>& dims, const TypeSource& types) {
  return Asker(op, result, dims, types).run();
}

}  // namespace tenon::irgen
