#include <tenon/snippet/lower/lower.hpp>

#include <algorithm>
#include <iterator>

#include <tenon/snippet/lower/lower_internal.hpp>

namespace tenon::snippet {

Lowering::Lowering(const Body& body, const LowerOptions& options)
    : options_(options),
      plan_(plan_lowering(body, options)),
      body_(plan_.body.values.empty() ? body : plan_.body),
      bound_(body_.values.size()),
      row_ports_(body_.values.size(), -1) {
  kernel_.name = body.name;
  kernel_.lanes = options.lanes;
  kernel_.stretch = plan_.stretch;
  kernel_.merged = !plan_.mergings.empty();
  kernel_.skewed = plan_.skewed_with.has_value();
  kernel_.skewed_twice = plan_.skewed_behind.has_value();
  makers_.resize(body_.values.size());
  users_.resize(body_.values.size());
  for (const BodyNode& node : body_.nodes) {
    makers_[index(node.result)].node = &node;
    for (const ValueId operand : node.operands) ++users_[index(operand)];
  }
  for (size_t i = 0; i < body.inputs.size(); ++i) makers_[index(body.inputs[i].value)].port = static_cast<int>(i);
  for (const BodyDim& dim : body.dims) kernel_.extents.push_back(dim.extent.is_constant() ? dim.extent.constant() : -1);
  for (const std::vector<BodyPort>* ports : {&body.inputs, &body.outputs})
    for (const BodyPort& port : *ports) kernel_.varies.push_back(body.values[index(port.value)].varies);
  for (const ScratchPlan& scratch : plan_.scratch) kernel_.scratch.push_back({scratch.element, scratch.dims, 1});
}

LinearKernel Lowering::run() {
  for (const Nest& nest : plan_.nests) write_nest(nest);
  kernel_.body.insert(kernel_.body.begin(), std::make_move_iterator(entry_.begin()),
                      std::make_move_iterator(entry_.end()));
  drop_idle_scratch();
  return std::move(kernel_);
}

void Lowering::drop_idle_scratch() {
  for (int port = tensors() + static_cast<int>(kernel_.scratch.size()); port-- > tensors();) {
    if (std::ranges::any_of(kernel_.params, [&](const Param& param) { return param.port == port; })) continue;
    kernel_.scratch.erase(kernel_.scratch.begin() + (port - tensors()));
    for (Param& param : kernel_.params) param.port -= param.port > port;
  }
}

void Lowering::write_nest(const Nest& nest) {
  pointers_.clear();
  row_pointers_.clear();
  touched_ = {};
  row_loop_ = -1;
  last_row_loops_.clear();
  row_ports_.assign(body_.values.size(), -1);
  for (const Access& read : nest.reads) makers_[index(read.value)] = {nullptr, read.port};
  std::vector<LoopId> ids = {};
  region([&] { write_scope(nest, 0, ids); });
  std::vector<int> ports = touched_.all();
  std::sort(ports.begin(), ports.end());
  move_pointers(ports, nest.kept, ids, false);
  if (row_loop_ >= 0) move_row_pointers(nest.kept.back(), ports);
  // The last rows follow their loop.
  for (const LoopId loop : last_row_loops_) kernel_.loops[index(loop)].shifts = kernel_.loops[index(ids.back())].shifts;
}

void Lowering::write_scope(const Nest& nest, size_t level, std::vector<LoopId>& ids) {
  if (level == nest.kept.size()) begin_held(nest);
  for (const Phase& phase : nest.scopes[level].phases) write_phase(nest, phase);
  if (level < nest.kept.size()) {
    ids.resize(std::max(ids.size(), level + 1));
    const bool of_rows = level + 1 == nest.kept.size();
    const int together = of_rows ? rows_stored_together(nest) : 1, rows = of_rows ? rows_together(nest) : 1;
    if (plan_.skewed_with && of_rows)
      plan_.skewed_behind ? write_skewed_twice(nest, ids) : write_skewed(nest, ids);
    else if (together > 1)
      ids[level] = write_rows_stored_together(nest, together, ids);
    else if (rows > 1)
      ids[level] = write_rows(nest, rows, ids);
    else
      ids[level] = scalar_loop(nest.kept[level], zero(), 1, [&] { write_scope(nest, level + 1, ids); });
  } else if (nest.whole_rows) {
    write_whole_rows(nest);
  } else if (nest.tiled && level + 1 < nest.scopes.size()) {
    const int copies = copies_within(nest.vector, tile_copies(nest));
    std::vector<Access> stores;
    std::copy_if(nest.roots.begin(), nest.roots.end(), std::back_inserter(stores),
                 [&](const Access& root) { return !swept(root.value); });
    const auto tile = [&] {
      place_.tile_copies = copies;
      write_scope(nest, level + 1, ids);
    };
    vector_loops(nest.vector, copies, tile, head_port(nest.vector, stores));
  }
}

int Lowering::tile_copies(const Nest& nest) const {
  const Scope& scope = nest.scopes.back();
  size_t instructions = 0, accumulators = 0;
  for (const Phase& phase : scope.phases) {
    instructions += phase.values.size();
    for (const Sweep& sweep : phase.sweeps) {
      instructions += sweep.values.size() + sweep.reads.size() + sweep.stores.size();
      accumulators += sweep.folds.size();
    }
  }
  // Columns are folded in wide tiles, so that each row provides several cache lines at a time: the hardware prefetchers
  // then run ahead of the loop.
  if (accumulators > 0)
    return copies_for(instructions, accumulators, 4 * options_.unroll, static_cast<size_t>(options_.vectors) / 2);
  // With several written tensors, two lines each: stores_late().
  const auto written = [&](const Access& root) { return contains(varies(root.value), nest.vector); };
  const bool several = std::count_if(nest.roots.begin(), nest.roots.end(), written) > 1;
  if (options_.all_copies) return options_.unroll;
  return copies_for(instructions, 0, several ? std::min(options_.unroll, 2) : options_.unroll);
}

void Lowering::write_phase(const Nest& nest, const Phase& phase) {
  std::vector<Access> roots;
  std::copy_if(nest.roots.begin(), nest.roots.end(), std::back_inserter(roots),
               [&](const Access& root) { return !swept(root.value); });
  const StoresByValue stores(std::move(roots));
  make({}, phase.values, stores);
  if (phase.settles >= 0) {
    const Merging& merging = plan_.mergings[index(phase.settles)];
    settle_lanes(merging);
    for (const Merging::Fold& one : merging.sums)
      if (one.by >= 0) store_if_wanted(one.node.result, {}, stores);
  }
  if (phase.merges >= 0) {
    const Merging& merging = plan_.mergings[index(phase.merges)];
    write_merged_sweep(merging);
    for (const Merging::Fold& one : merging.folds) store_if_wanted(one.node.result, {}, stores);
  }
  for (const Sweep& sweep : phase.sweeps) {
    write_sweep(nest, sweep);
    store_folds(nest, sweep);
  }
}

// Stores those that are outputs.
void Lowering::store_folds(const Nest& nest, const Sweep& sweep) {
  const StoresByValue roots(nest.roots);
  for (const BodyNode* fold : sweep.folds) {
    const int copies = in_lanes(fold->result) ? place_.copies : 1;
    for (int unit = 0; unit < place_.rows * copies; ++unit) store_if_wanted(fold->result, unit_of(unit), roots);
  }
}

namespace {

Result<void> check(const Body& body, const LowerOptions& options) {
  if (options.lanes < 1 || options.unroll < 1 || options.rows < 1)
    return error(Code::invalid_argument, "lowering body '", body.name, "' for ", options.lanes, " lanes, ",
                 options.unroll, " copies and ", options.rows, " rows");
  for (const BodyNode& node : body.nodes) {
    const std::string_view wanted = node.op == "Scalar" ? "bits" : is_reduction(node.op) ? "initial" : "";
    if (wanted.empty()) continue;
    const Attribute* bits = node.attributes.find(wanted);
    if (!bits || !bits->get_if<int64_t>())
      return error(Code::internal, node.op, " (", node.label, ") of body '", body.name, "' has no integer '", wanted,
                   "'");
  }
  return {};
}

}  // namespace

Result<LinearKernel> lower(const Body& body, const LowerOptions& options) {
  TENON_OK(check(body, options));
  return Lowering(body, options).run();
}

}  // namespace tenon::snippet
