#include "vta/kernel_tiling.hpp"

#include "vta/command_writer.hpp"
#include "vta/dram.hpp"
#include "vta/layer_commands.hpp"
#include "vta/simulator.hpp"

namespace tenon::vta {
namespace {

Result<void> check_any(const AnyLayer& any, const Hardware& hardware, int64_t slots) {
  if (const auto* layer = std::get_if<Layer>(&any)) return check_tiles(*layer, hardware, slots);
  TENON_OK(tile_pool(std::get<PoolLayer>(any), hardware, slots));
  return {};
}

Result<int64_t> score_of(const Layer& layer, const Tiling& tiling, size_t operands, const Hardware& hardware) {
  TENON_TRY(stream, stream_of(commands_of(layer, tiling, hardware), operands, hardware));
  TENON_TRY(bound, stream.bound(separate_addresses(operands + 2), hardware));
  TENON_TRY(counters, time_stream(bound, hardware));
  return TilingCost{.dram_cycles = counters.dram_cycles, .cycles = counters.cycles}.score();
}

Result<AnyTiling> best_of(const Layer& layer, size_t operands, int64_t slots, const Hardware& hardware) {
  TENON_TRY(candidates, tile_candidates(layer, hardware, slots));
  size_t best = 0;
  int64_t least = 0;
  for (size_t i = 0; i < candidates.size() && candidates.size() > 1; ++i) {
    // Stalls, which the model ignores, add some percent to its estimate: much worse candidates need no simulation.
    if (i > 0 && candidates[i].cost.score() > least + least / 4) break;
    TENON_TRY(score, score_of(layer, candidates[i], operands, hardware));
    if (i > 0 && score >= least) continue;
    best = i, least = score;
  }
  return AnyTiling(candidates[best]);
}

}  // namespace

std::vector<uint64_t> separate_addresses(size_t count) {
  std::vector<uint64_t> addresses;
  for (uint64_t segment = 0; segment < count; ++segment) addresses.push_back(segment * 2 * Dram::kMaxBufferBytes);
  return addresses;
}

Result<int64_t> slots_of(const AnyLayer& layer, const Hardware& hardware, bool double_buffer) {
  if (double_buffer && check_any(layer, hardware, 2).ok()) return 2;
  TENON_OK(check_any(layer, hardware, 1));
  return 1;
}

Result<AnyTiling> best_tiling(const AnyLayer& any, size_t operands, int64_t slots, const Hardware& hardware) {
  if (const auto* layer = std::get_if<Layer>(&any)) return best_of(*layer, operands, slots, hardware);
  TENON_TRY(tiling, tile_pool(std::get<PoolLayer>(any), hardware, slots));
  return AnyTiling(tiling);
}

std::vector<Command> commands_of(const AnyLayer& layer, const AnyTiling& tiling, const Hardware& hardware) {
  if (const auto* pool = std::get_if<PoolLayer>(&layer)) return commands_of(*pool, std::get<PoolTiling>(tiling));
  return commands_of(std::get<Layer>(layer), std::get<Tiling>(tiling), hardware);
}

// ---- Attributes ----

void set_tiling(Op& kernel, const AnyTiling& any) {
  if (const auto* pool = std::get_if<PoolTiling>(&any)) {
    kernel.set_attr(names().tile, Attribute::Integers{pool->blocks, pool->rows, pool->cols});
    return;
  }
  const Tiling& tiling = std::get<Tiling>(any);
  kernel.set_attr(names().tile, Attribute::Integers{tiling.blocks, tiling.rows, tiling.cols});
  kernel.set_attr(names().weight_slots, tiling.wgt_slots);
  kernel.set_attr(names().reduce, tiling.reduce);
  if (tiling.inp_whole) kernel.set_attr(names().keep_input, 1);
  if (tiling.wgt_whole) kernel.set_attr(names().keep_weights, 1);
  if (tiling.spatial_outer) kernel.set_attr(names().outer, "places");
}

Result<AnyTiling> tiling_of(const Kernel& kernel, const AnyLayer& layer) {
  const Attributes& attributes = kernel->attributes();
  const auto& tile = integers_of(attributes, names().tile);
  const int64_t slots = integer_of(attributes, names().slots, 0);
  if (tile.size() != 3 || slots < 1)
    return error(Code::invalid_argument, kernel->describe(),
                 " has no tiles yet: vta-double-buffer and vta-tile give them");
  if (std::holds_alternative<PoolLayer>(layer)) return AnyTiling(PoolTiling{tile[0], tile[1], tile[2], slots});
  return AnyTiling(Tiling{.blocks = tile[0],
                          .rows = tile[1],
                          .cols = tile[2],
                          .reduce = integer_of(attributes, names().reduce, 1),
                          .inp_whole = integer_of(attributes, names().keep_input, 0) != 0,
                          .wgt_whole = integer_of(attributes, names().keep_weights, 0) != 0,
                          .spatial_outer = kernel.attr<std::string>(names().outer) == "places",
                          .slots = slots,
                          .wgt_slots = integer_of(attributes, names().weight_slots, slots),
                          .cost = {}});
}

}  // namespace tenon::vta
