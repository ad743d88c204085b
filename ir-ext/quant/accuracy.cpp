#include <tenon-ext/quant/accuracy.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <tenon-ext/quant/scales.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::quant {
namespace {

// Keeps the tensors of one run that have certain names.
class Recorder final : public Interpreter::Observer {
 public:
  explicit Recorder(const std::vector<IntegerValue>& values) {
    for (const IntegerValue& value : values) {
      if (!value.name.empty()) kept_.emplace(value.name, Tensor());
    }
  }
  void before(const Op&) override {}
  void after(const Op& op, std::span<const Datum> results) override {
    for (size_t i = 0; i < results.size(); ++i) keep(op.result(i)->name(), results[i]);
  }
  void keep(const std::string& name, const Datum& datum) {
    const auto found = kept_.find(name);
    if (found == kept_.end() || !datum.is_tensor()) return;
    // It is in an arena that later operators overwrite.
    auto copy = datum.tensor().clone();
    if (copy.ok()) found->second = *std::move(copy);
  }
  const Tensor& tensor(const std::string& name) const { return kept_.at(name); }

 private:
  std::unordered_map<std::string, Tensor> kept_;
};

int64_t largest(const Tensor& tensor, int64_t row, int64_t columns) {
  int64_t best = 0;
  for (int64_t i = 1; i < columns; ++i) {
    if (tensor.double_at(row * columns + i) > tensor.double_at(row * columns + best)) best = i;
  }
  return best;
}

void add_output(OutputAccuracy& output, const Tensor& got, const Tensor& expected) {
  output.distance.add(got, expected);
  const int64_t columns = expected.rank() == 0 ? 1 : expected.dims().back();
  for (int64_t row = 0; columns > 1 && row < expected.size() / columns; ++row) {
    ++output.rows;
    if (largest(got, row, columns) == largest(expected, row, columns)) ++output.same_top;
  }
}

Result<std::vector<Datum>> recorded_run(const Graph& graph, const Interpreter& interpreter,
                                        const std::vector<Datum>& inputs, ParallelFor& parallel, Recorder& recorder) {
  for (size_t i = 0; i < inputs.size(); ++i) recorder.keep(graph.body().input(i)->name(), inputs[i]);
  return interpreter.run(inputs, parallel, &recorder);
}

bool comparable(const Tensor& got, const Tensor& expected) {
  return got.valid() && expected.valid() && got.size() == expected.size() && got.element() == kI8 &&
         expected.element().is_float();
}

}  // namespace

void Distance::add(const Tensor& got, const Tensor& expected, double scale) {
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double wanted = expected.double_at(i), difference = got.double_at(i) * scale - wanted;
    signal += wanted * wanted;
    noise += difference * difference;
    max_abs = std::max(max_abs, std::abs(difference));
  }
  elements += expected.size();
}

double Distance::sqnr_db() const { return noise == 0 ? INFINITY : 10 * std::log10(signal / noise); }

Result<Accuracy> compare_accuracy(const Graph& expected, const Graph& quantised,
                                  const std::vector<IntegerValue>& values, const Samples& samples,
                                  ParallelFor& parallel) {
  TENON_TRY(wanted, Interpreter::prepare(expected), "the graph that was quantised");
  TENON_TRY(given, Interpreter::prepare(quantised), "the quantised graph");
  std::vector<LayerAccuracy> layers;
  for (const IntegerValue& value : values) {
    if (!value.name.empty()) layers.push_back({value, {}});
  }
  Accuracy accuracy;
  for (size_t i = 0; i < expected.body().output_count(); ++i) {
    accuracy.outputs.push_back({expected.body().output_name(i), {}, 0, 0});
  }
  for (const std::vector<Datum>& inputs : samples) {
    Recorder reals(values), integers(values);
    TENON_TRY(good, recorded_run(expected, *wanted, inputs, parallel, reals));
    TENON_TRY(made, recorded_run(quantised, *given, inputs, parallel, integers));
    for (LayerAccuracy& layer : layers) {
      const Tensor &got = integers.tensor(layer.value.name), &real = reals.tensor(layer.value.name);
      if (comparable(got, real)) {
        layer.distance.add(got, real, step_of(layer.value.exponent, layer.value.factor));
      }
    }
    for (size_t i = 0; i < good.size(); ++i) {
      if (good[i].is_tensor() && made[i].is_tensor() && good[i].tensor().element().is_number()) {
        add_output(accuracy.outputs[i], made[i].tensor(), good[i].tensor());
      }
    }
  }
  std::copy_if(layers.begin(), layers.end(), std::back_inserter(accuracy.layers),
               [](const LayerAccuracy& layer) { return layer.distance.elements > 0; });
  return accuracy;
}

}  // namespace tenon::quant
