#include <tenon/program/ir/labels.hpp>

#include <array>

namespace tenon::program {

std::string_view stage_of(const Call& call) { return call.stage.empty() ? call.kernel->name : call.stage; }
std::string_view stage_of(const Copy& copy) { return copy.stage.empty() ? std::string_view("copy") : copy.stage; }

std::string stage_label(std::string_view stage, const std::vector<std::string>& written) {
  std::string label = str(stage, "->");
  for (size_t i = 0; i < written.size(); ++i) label += (i ? "," : "") + written[i];
  return label;
}

std::string operand_label(const Program& program, const Call& call, size_t operand) {
  const Operand& o = call.operands[operand];
  return str("operand ", operand, " (", access_name(o.access), " '", program.buffer(o.region.buffer).name, "')");
}

std::string_view access_name(Access access) {
  constexpr std::array<std::string_view, 3> kNames = {"in", "out", "inout"};
  return kNames[static_cast<size_t>(access)];
}

}  // namespace tenon::program
