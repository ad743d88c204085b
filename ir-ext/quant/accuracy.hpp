// The difference between a quantised graph and the original graph, value by value and at the outputs.
#pragma once
#include <string>
#include <vector>

#include <tenon-ext/quant/calibrate.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>

namespace tenon::quant {

// Sums over elements of all samples.
struct TENON_API Distance {
  double signal = 0, noise = 0;  // sums of squares: of the expected values, of the differences
  double max_abs = 0;            // the largest difference
  int64_t elements = 0;
  void add(const Tensor& got, const Tensor& expected, double scale = 1);  // got * scale; both have the same size
  // 10 log10(signal / noise); infinite if there is no difference.
  double sqnr_db() const;
};

struct LayerAccuracy {
  IntegerValue value;
  Distance distance;
};
struct OutputAccuracy {
  std::string name;
  Distance distance;
  // Rows along the last dim whose maximum is at the same position in both; only rows of at least two elements.
  int64_t rows = 0, same_top = 0;
};
struct Accuracy {
  // In the order of `values`, without those that have no name or that either graph lacks.
  std::vector<LayerAccuracy> layers;
  std::vector<OutputAccuracy> outputs;
};

// Runs both graphs on the reference. `values` are the integers of `quantised`; `expected` has reals of the same names.
TENON_API Result<Accuracy> compare_accuracy(const Graph& expected, const Graph& quantised,
                                            const std::vector<IntegerValue>& values, const Samples& samples,
                                            ParallelFor& parallel = serial());

}  // namespace tenon::quant
