#include <tenon/snippet/linear.hpp>

#include <algorithm>

namespace tenon::snippet {

ParamId LinearKernel::add_param(const Param& param) {
  const auto found = std::find(params.begin(), params.end(), param);
  if (found != params.end()) return static_cast<ParamId>(found - params.begin());
  params.push_back(param);
  return static_cast<ParamId>(params.size()) - 1;
}

}  // namespace tenon::snippet
