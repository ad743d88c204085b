// Runs a Body on tensors with the evaluators of the generic operators: the meaning of a snippet, without any kernel.
#pragma once
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include <tenon/codegen/register.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/snippet/body/body.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon::testing {

// Values are tensors of the space's rank, with extent 1 along dims in which they do not vary.
class BodyEvaluator {
 public:
  // Inputs in the order of the body's; the dims of the outputs, which a run knows.
  BodyEvaluator(const snippet::Body& body, const std::vector<Tensor>& inputs, const std::vector<Dims>& outputs)
      : body_(body), outputs_(outputs), values_(body.values.size()) {
    std::vector<Dims> ports;
    for (const Tensor& input : inputs) ports.push_back(input.dims());
    ports.insert(ports.end(), outputs.begin(), outputs.end());
    for (const snippet::BodyDim& dim : body.dims) {
      int64_t extent = dim.factor;
      for (const auto& source : dim.sources) extent *= ports[source.port][static_cast<size_t>(source.dim)];
      extents_.push_back(extent / dim.divisor);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto id = static_cast<size_t>(body.inputs[i].value);
      auto lanes = convert(inputs[i], body.values[id].element);
      TENON_CHECK(lanes.ok() && inputs[i].element() == body.inputs[i].element, "input ", i);
      auto shaped = lanes->reshaped(dims_of(body.values[id].varies));
      TENON_CHECK(shaped.ok(), "input ", i, " of ", Shape(inputs[i].dims()), ": ", body.to_string());
      values_[id] = *std::move(shaped);
    }
  }

  Result<std::vector<Tensor>> run() {
    for (const snippet::BodyNode& node : body_.nodes) {
      TENON_TRY(value, evaluated(node), node.op, " of ", node.label);
      values_[static_cast<size_t>(node.result)] = std::move(value);
    }
    std::vector<Tensor> results;
    for (size_t i = 0; i < body_.outputs.size(); ++i) {
      TENON_TRY(narrow, convert(values_[static_cast<size_t>(body_.outputs[i].value)], body_.outputs[i].element));
      TENON_TRY(shaped, narrow.reshaped(outputs_[i]), "output ", i);
      results.push_back(std::move(shaped));
    }
    return results;
  }

 private:
  Dims dims_of(snippet::DimSet varies) const {
    Dims dims;
    for (size_t d = 0; d < extents_.size(); ++d) dims.push_back(varies >> d & 1 ? extents_[d] : 1);
    return dims;
  }
  ElementType lane_of(const snippet::BodyNode& node) const {
    return body_.values[static_cast<size_t>(node.result)].element;
  }
  const Tensor& operand(const snippet::BodyNode& node, size_t i) const {
    return values_[static_cast<size_t>(node.operands[i])];
  }

  static Result<Tensor> one(Name op, std::vector<Datum> operands, const Attributes& attributes = {}) {
    TENON_TRY(results, evaluate(op, std::move(operands), attributes));
    return results[0].tensor();
  }

  Result<Tensor> of_bits(ElementType lane, uint64_t bits) const {
    TENON_TRY(tensor, Tensor::zeros(lane, Dims(extents_.size(), 1)));
    store_bits(tensor.mutable_data(), lane.bits(), 0, bits);
    return tensor;
  }

  // For f32 or f64, computed in f64.
  template <class F>
  static Result<Tensor> function(const Tensor& x, F f) {
    TENON_TRY(y, Tensor::zeros(x.element(), x.dims()));
    for (int64_t i = 0; i < x.size(); ++i) y.set_double(i, f(x.double_at(i)));
    return y;
  }

  Result<Tensor> folded(const snippet::BodyNode& node) const {
    const Tensor& x = operand(node, 0);
    const auto bits = static_cast<uint64_t>(*node.attributes.find("initial")->get_if<int64_t>());
    TENON_TRY(initial, of_bits(x.element(), bits));
    Dims wide = x.dims(), narrow = x.dims();
    std::vector<int64_t> axes;
    bool empty = false;
    for (size_t d = 0; d < wide.size(); ++d) {
      if (!body_.dims[d].reduced) continue;
      axes.push_back(static_cast<int64_t>(d));
      wide[d] = extents_[d];
      narrow[d] = 1;
      empty = empty || wide[d] == 0;
    }
    if (empty) return one("Expand", {initial, Tensor::of<int64_t>({static_cast<int64_t>(narrow.size())}, narrow)});
    const auto rank = static_cast<int64_t>(wide.size());
    TENON_TRY(spread, one("Expand", {x, Tensor::of<int64_t>({rank}, wide)}));
    return one(node.op, {spread, Tensor::of<int64_t>({static_cast<int64_t>(axes.size())}, axes)});
  }

  Result<Tensor> count(ElementType lane) const {
    int64_t count = 1;
    for (size_t d = 0; d < extents_.size(); ++d) count *= body_.dims[d].reduced ? extents_[d] : 1;
    TENON_TRY(tensor, Tensor::zeros(lane, Dims(extents_.size(), 1)));
    if (lane.is_float())
      tensor.set_double(0, static_cast<double>(count));
    else
      tensor.set_int(0, count);
    return tensor;
  }

  // Converts to a narrower type and back: rounds, or truncates.
  static Result<Tensor> by_way_of(const Tensor& x, const Attribute* to) {
    TENON_TRY(narrow, convert(x, *ElementType::parse(*to->get_if<std::string>())));
    return convert(narrow, x.element());
  }

  Result<Tensor> chosen(Name condition, const snippet::BodyNode& node) const {
    TENON_TRY(outside, one(condition, {operand(node, 0), operand(node, 1)}));
    return one("Where", {outside, operand(node, 1), operand(node, 0)});
  }

  Result<Tensor> evaluated(const snippet::BodyNode& node) const {
    const std::string& op = node.op.str();
    const ElementType lane = lane_of(node);
    if (op == "Scalar") return of_bits(lane, static_cast<uint64_t>(*node.attributes.find("bits")->get_if<int64_t>()));
    if (op == "ReducedCount") return count(lane);
    if (op.starts_with("Reduce")) return folded(node);
    if (op == "BitCast") return one("BitCast", {operand(node, 0)}, {{"to", Type(lane, Shape())}});
    if (op == "Convert") return convert(operand(node, 0), lane);
    if (op == "Round" || op == "Wrap") return by_way_of(operand(node, 0), node.attributes.find("to"));
    if (op == "ClampLow") return chosen("Less", node);
    if (op == "ClampHigh") return chosen("Greater", node);
    if (op == "Expm1") return function(operand(node, 0), [](double x) { return std::expm1(x); });
    if (op == "RoundEven") return one("Round", {operand(node, 0)});
    std::vector<Datum> operands;
    for (size_t i = 0; i < node.operands.size(); ++i) operands.emplace_back(operand(node, i));
    if (op == "Fmod") return one("Mod", operands, {{"fmod", 1}});
    if (op == "ShiftLeft") return one("BitShift", operands, {{"direction", "LEFT"}});
    if (op == "ShiftRight") return one("BitShift", operands, {{"direction", "RIGHT"}});
    if (op == "NotEqual") {
      TENON_TRY(same, one("Equal", operands));
      return one("Not", {same});
    }
    return one(node.op, operands, node.attributes);
  }

  const snippet::Body& body_;
  const std::vector<Dims>& outputs_;
  std::vector<int64_t> extents_;
  std::vector<Tensor> values_;
};

}  // namespace tenon::testing
