#include <tenon/ops/control.hpp>

#include <algorithm>

#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/stack.hpp>

namespace tenon {
namespace {

// The value of a condition, which must be a single boolean.
Result<bool> truth(const Datum& datum, std::string_view what) {
  if (datum.is_tensor() && datum.tensor().element().is_bool() && datum.tensor().size() == 1) {
    return datum.tensor().as<uint8_t>()[0] != 0;
  }
  return error(Code::invalid_argument, what, " must be one boolean, it is ", datum.type());
}

Result<void> branch(EvalContext& context) {
  TENON_TRY(chosen, truth(context.datum(0), "the condition of If"));
  TENON_TRY(outputs, context.run_region(chosen ? 0 : 1, {}));
  for (size_t i = 0; i < context.result_count(); ++i) context.set_output(i, std::move(outputs[i]));
  return {};
}

// Collects the slices of a scan output.
class ScanOutput {
 public:
  Result<void> add(Datum slice, size_t number) {
    if (!slice.is_tensor()) {
      return error(Code::invalid_argument, "scan output ", number, " of a body must be a tensor, it is ", slice.type());
    }
    slices_.push_back(std::move(slice.tensor()));
    return {};
  }

  // `type` is the declared type of a slice, used if there was none; unknown extents are then 0.
  Result<Tensor> stacked(ParallelFor& parallel, const Type& type, int64_t axis, bool backwards) {
    if (slices_.empty()) return nothing(type, axis);
    TENON_TRY(place, normalize_axis(axis, slices_[0].rank() + 1));
    if (backwards) std::reverse(slices_.begin(), slices_.end());
    return stack(parallel, slices_, static_cast<size_t>(place));
  }

 private:
  static Result<Tensor> nothing(const Type& type, int64_t axis) {
    if (!type.is_tensor() || !type.element().valid()) {
      return error(Code::invalid_argument, "a scan output without iterations needs a declared type, it has ", type);
    }
    Dims dims;
    for (const Dim& dim : type.shape().dims()) dims.push_back(dim.is_static() ? dim.value() : 0);
    TENON_TRY(place, normalize_axis(axis, static_cast<int64_t>(dims.size()) + 1));
    dims.insert(dims.begin() + place, 0);
    return Tensor::allocate(type.element(), std::move(dims));
  }

  std::vector<Tensor> slices_;
};

Type output_type(const EvalContext& context, size_t i) {
  const Value* value = context.op().region(0).output(i);
  return value ? value->type() : Type();
}

Result<void> loop(EvalContext& context) {
  int64_t trips = INT64_MAX;
  if (context.has_operand(0)) {
    if (context.tensor(0).size() != 1) {
      return error(Code::invalid_argument, "the trip count of Loop must be one number, it is ", context.tensor(0));
    }
    trips = context.tensor(0).int_at(0);
  }
  bool goes_on = true;
  if (context.operand_count() > 1 && context.has_operand(1)) {
    TENON_TRY(given, truth(context.datum(1), "the condition of Loop"));
    goes_on = given;
  }
  std::vector<Datum> carried;
  for (size_t i = 2; i < context.operand_count(); ++i) carried.push_back(context.datum(i));
  std::vector<ScanOutput> scans(context.result_count() - carried.size());
  for (int64_t trip = 0; trip < trips && goes_on; ++trip) {
    std::vector<Datum> inputs{Tensor::scalar(trip), Tensor::scalar(goes_on)};
    std::move(carried.begin(), carried.end(), std::back_inserter(inputs));
    TENON_TRY(outputs, context.run_region(0, std::move(inputs)), "iteration ", trip);
    TENON_TRY(said, truth(outputs[0], "the condition that a body of Loop gives"));
    goes_on = said;
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = std::move(outputs[i + 1]);
    for (size_t k = 0; k < scans.size(); ++k) TENON_OK(scans[k].add(std::move(outputs[carried.size() + 1 + k]), k));
  }
  for (size_t i = 0; i < carried.size(); ++i) context.set_output(i, std::move(carried[i]));
  for (size_t k = 0; k < scans.size(); ++k) {
    TENON_TRY(stacked, scans[k].stacked(context.parallel(), output_type(context, carried.size() + 1 + k), 0, false),
              "scan output ", k, " of Loop");
    context.set_output(carried.size() + k, std::move(stacked));
  }
  return {};
}

Result<void> scan(EvalContext& context) {
  const auto scanned = static_cast<size_t>(context.attr<int64_t>("num_scan_inputs"));
  const size_t carried_count = context.operand_count() - scanned;
  const auto list_at = [&](Name name, size_t i) {
    const auto list = context.attr<Attribute::Integers>(name);
    return i < list.size() ? list[i] : 0;
  };
  std::vector<Datum> carried;
  for (size_t i = 0; i < carried_count; ++i) carried.push_back(context.datum(i));
  std::vector<size_t> axes;
  int64_t length = 0;
  for (size_t k = 0; k < scanned; ++k) {
    const Tensor& input = context.tensor(carried_count + k);
    TENON_TRY(axis, normalize_axis(list_at("scan_input_axes", k), input.rank()), "attribute 'scan_input_axes'");
    axes.push_back(static_cast<size_t>(axis));
    length = input.dim(axes[k]);  // the same for all of them
  }
  std::vector<ScanOutput> scans(context.result_count() - carried_count);
  for (int64_t step = 0; step < length; ++step) {
    std::vector<Datum> inputs = std::move(carried);
    for (size_t k = 0; k < scanned; ++k) {
      const int64_t index = list_at("scan_input_directions", k) == 1 ? length - 1 - step : step;
      TENON_TRY(slice, slice_at(context.parallel(), context.tensor(carried_count + k), axes[k], index));
      inputs.emplace_back(std::move(slice));
    }
    TENON_TRY(outputs, context.run_region(0, std::move(inputs)), "step ", step);
    carried.assign(std::make_move_iterator(outputs.begin()),
                   std::make_move_iterator(outputs.begin() + static_cast<int64_t>(carried_count)));
    for (size_t k = 0; k < scans.size(); ++k) TENON_OK(scans[k].add(std::move(outputs[carried_count + k]), k));
  }
  for (size_t i = 0; i < carried_count; ++i) context.set_output(i, std::move(carried[i]));
  for (size_t k = 0; k < scans.size(); ++k) {
    TENON_TRY(stacked,
              scans[k].stacked(context.parallel(), output_type(context, carried_count + k),
                               list_at("scan_output_axes", k), list_at("scan_output_directions", k) == 1),
              "scan output ", k, " of Scan");
    context.set_output(carried_count + k, std::move(stacked));
  }
  return {};
}

const EvaluatorRegistration kControlRegistered({{If::kName, branch}, {Loop::kName, loop}, {Scan::kName, scan}});

}  // namespace
}  // namespace tenon
