#include <tenon/plugin/graph_values.hpp>

namespace tenon {

std::vector<ValueInfo> inputs_of(const Region& body) {
  std::vector<ValueInfo> out;
  for (size_t i = 0; i < body.input_count(); ++i) out.push_back({body.input(i)->name(), body.input(i)->type()});
  return out;
}

std::vector<ValueInfo> outputs_of(const Region& body) {
  std::vector<ValueInfo> out;
  for (size_t i = 0; i < body.output_count(); ++i) {
    out.push_back({body.output_name(i), body.output(i) ? body.output(i)->type() : Type()});
  }
  return out;
}

}  // namespace tenon
