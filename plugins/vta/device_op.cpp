#include "vta/device_op.hpp"

#include <tenon-ext/fused/convolution.hpp>
#include <tenon-ext/fused/dense.hpp>
#include <tenon-ext/fused/elementwise.hpp>
#include <tenon-ext/fused/pooling.hpp>

#include "vta/device_op_internal.hpp"
#include "vta/pool_commands.hpp"
#include "vta/tiling.hpp"

namespace tenon::vta {
namespace {

struct Row {
  std::string_view op;
  MakeDeviceOp make;
};
constexpr Row kRows[] = {
    {fused::QConv::kName, convolution},
    {fused::QDense::kName, dense},
    {fused::QAdd::kName, addition},
    {fused::QMaxPool::kName, max_pool},
    {fused::QAvgPool::kName, average_pool},
    {"Reshape", view},
    {"Flatten", view},
    {"Squeeze", view},
    {"Unsqueeze", view},
};

}  // namespace

Result<DeviceOp> device_op(const Op& op, const Hardware& hardware) {
  for (const Row& row : kRows) {
    if (op.name() != Name(row.op)) continue;
    TENON_TRY(made, row.make(op, hardware));
    made.op = row.op;
    made.label = op.label();
    made.result = op.result();
    return made;
  }
  return refuse(hardware, str(op.name(), " has no form of sums and windows"));
}

Result<void> check_tiling(const DeviceOp& op, const Hardware& hardware) {
  if (const auto* layer = std::get_if<Layer>(&op.work)) TENON_OK(check_tiles(*layer, hardware, 1));
  if (const auto* pool = std::get_if<PoolLayer>(&op.work)) TENON_OK(tile_pool(*pool, hardware, 1));
  return {};
}

}  // namespace tenon::vta
