#include "vta/layer.hpp"

#include <algorithm>

namespace tenon::vta {

int64_t Layer::groups() const {
  int64_t groups = 1;
  for (const Term& term : terms) groups = std::max(groups, term.groups);
  return groups;
}

int64_t Layer::shared_weights() const {
  return std::count_if(terms.begin(), terms.end(), [](const Term& term) { return term.one_weight; });
}

int64_t Layer::weight_elements() const {
  int64_t elements = 0;
  for (const Term& term : terms) elements += term.weight_elements(output.blocks);
  return elements;
}

int64_t Layer::passes() const {
  int64_t passes = 3;  // reset, max, min
  for (const Term& term : terms) passes += term.left_shift > 0;
  return passes + (multiplier != 1) + (bias || rounding != 0) + (shift > 0);
}

}  // namespace tenon::vta
