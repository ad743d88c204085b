#include <tenon/irgen/strips.hpp>

#include <algorithm>
#include <iterator>
#include <set>

#include <tenon/irgen/strips_pipeline_internal.hpp>
#include <tenon/program/ir/walk.hpp>
#include <tenon/support/str.hpp>

namespace tenon::irgen {

// The kernels of a chain's calls.
class ChainKernels {
 public:
  ChainShape shape;
  std::vector<std::shared_ptr<const StripStage>> stages;  // by operator
  std::vector<program::KernelHandle> handles;
  int64_t workers = 1;
  int64_t workspace_bytes = 0;  // of any stage
  int64_t window_bytes = 0;     // of one worker
};

namespace {

using program::Statement;

// Inserts the statements of a chain's program into another program.
class Splicer {
 public:
  Splicer(GroupContext& context, const ChainKernels& kernels) : context_(context), kernels_(kernels) {}

  // `outer`: the buffers that correspond to the chain's declared ones.
  Statement run(const program::Program& chain, const std::map<program::BufferId, program::BufferId>& outer) {
    ids_ = outer;
    for (program::BufferId id = 0; id < static_cast<program::BufferId>(chain.buffers.size()); ++id)
      if (!ids_.contains(id)) ids_[id] = context_.program().add_buffer(chain.buffer(id));
    if (kernels_.workspace_bytes == 0) return spliced(chain.body);
    workspace_ = context_.program().add_buffer({context_.fresh_name("strip_workspace"), kU8, 1});
    program::Allocation memory{workspace_, {{0, kernels_.workspace_bytes, std::nullopt, std::nullopt}}};
    if (kernels_.workers > 1)
      memory.slots = max(Expr(1), min(Expr(kernels_.workers), Expr::symbol(program::kThreadsSymbol)));
    return program::Allocate{memory, spliced(chain.body)};
  }

 private:
  Statement spliced(const Statement& s) {
    // The outer program checks its inputs and outputs.
    if (s.empty() || s.as<program::Check>()) return {};
    Statement out = program::with_children(s, [this](const Statement& child) { return spliced(child); });
    // A block may have become the single statement that remains.
    if (out.empty() || s.as<program::Block>()) return out;
    out = program::with_buffers(out, [this](program::BufferId id) { return ids_.at(id); });
    const auto* call = out.as<program::Call>();
    if (!call || workspace_ < 0) return out;
    program::Call with_workspace = *call;
    with_workspace.operands.push_back({program::Access::out, {workspace_, {}}});
    return with_workspace;
  }

  GroupContext& context_;
  const ChainKernels& kernels_;
  std::map<program::BufferId, program::BufferId> ids_;
  program::BufferId workspace_ = -1;
};

program::KernelHandle handle_of(const ChainOp& op, const std::shared_ptr<const StripStage>& stage, bool has_workspace) {
  auto kernel = std::make_shared<program::Kernel>();
  kernel->name = str("strips.", op.op->name());
  kernel->run = [stage](program::CallContext& c) { return stage->run(c); };
  kernel->takes_folded = true;
  kernel->workspaces = has_workspace ? 1 : 0;
  kernel->make_state = [stage] { return stage->make_state(); };
  return kernel;
}

// For a buffer that is created when others have been named.
std::string name_within(GroupContext& context, const std::string& wanted, std::set<std::string>& taken) {
  std::string name = context.fresh_name(wanted);
  for (int i = 2; !taken.insert(name).second; ++i) name = context.fresh_name(str(wanted, "_strip", i));
  return name;
}

std::string describe(const Chain& chain, const Dims& dims) {
  std::string out;
  for (const ChainLoop& loop : chain.loops)
    out +=
        str(out.empty() ? "" : ", then ", loop.step, " of ", dims[static_cast<size_t>(loop.dim)], " in dim ", loop.dim);
  return out;
}

StripReport::Row row_of(const StripChain& made) {
  StripReport::Row row;
  for (const Op* op : made.ops()) row.ops.push_back(op->describe());
  row.strips = made.describe();
  row.whole = made.chain().whole;
  row.in_strips = made.chain().strips;
  row.peak_bytes = made.peak_bytes();
  row.kernels = made.kernel_count();
  return row;
}

StripReport report_of(const std::vector<StripChain>& made, const RefusedOps& whole, const CostModel& model) {
  StripReport report;
  for (const StripChain& strips : made) report.rows.push_back(row_of(strips));
  for (const auto& [op, why] : whole) report.whole.emplace_back(op->describe(), why);
  std::ranges::sort(report.whole);
  report.model = model;
  return report;
}

}  // namespace

Result<StripChain> StripChain::make(Chain chain, const KernelSource& source, int64_t workers, const Op** op,
                                    const TypeSource& types) {
  auto kernels = std::make_shared<ChainKernels>();
  if (op) *op = &chain.last();
  kernels->shape = ChainShape::of(chain, types);
  kernels->workers = workers;
  TENON_TRY(trace, trace_chain(chain, kernels->shape, 1));
  std::vector<const Value*> outside = kernels->shape.inputs;
  outside.push_back(&chain.value());
  for (size_t i = 0; i < chain.ops.size(); ++i) {
    if (op) *op = chain.ops[i].op;
    TENON_TRY(stage,
              StripStage::make(chain.ops[i], kernels->shape.passed[i], trace.calls[i], {source, types, outside}));
    kernels->workspace_bytes = std::max(kernels->workspace_bytes, stage->workspace_bytes());
    kernels->stages.push_back(std::move(stage));
  }
  for (size_t i = 0; i < chain.ops.size(); ++i)
    kernels->handles.push_back(handle_of(chain.ops[i], kernels->stages[i], kernels->workspace_bytes > 0));
  kernels->window_bytes = trace.peak_bytes;
  StripChain made;
  made.chain_ = std::make_shared<const Chain>(std::move(chain));
  made.kernels_ = std::move(kernels);
  return made;
}

std::string StripChain::describe() const { return irgen::describe(*chain_, kernels_->shape.dims_of(chain_->value())); }

std::vector<const Op*> StripChain::ops() const {
  std::vector<const Op*> ops;
  for (const ChainOp& op : chain_->ops) ops.push_back(op.op);
  std::ranges::sort(ops, [](const Op* a, const Op* b) { return a->is_before(*b); });
  ops.erase(std::ranges::unique(ops).begin(), ops.end());
  return ops;
}

int64_t StripChain::peak_bytes() const { return kernels_->window_bytes + kernels_->workspace_bytes; }

size_t StripChain::kernel_count() const {
  size_t count = 0;
  for (const auto& stage : kernels_->stages) count += stage->variants();
  return count;
}

Result<Statement> StripChain::lower(GroupContext& context) const {
  std::map<const Value*, std::string> names;
  std::map<program::BufferId, program::BufferId> outer;
  program::BufferId next = 0;
  std::vector<const Value*> declared = kernels_->shape.inputs;
  declared.push_back(&chain_->value());
  for (const Value* value : declared) {
    const program::BufferId id = context.buffer_of(*value);
    names[value] = context.program().buffer(id).name;
    outer[next++] = id;
  }
  std::set<std::string> taken;
  const NameOf name_of = [&](const Value& value) {
    const auto [found, is_new] = names.try_emplace(&value);
    if (is_new) found->second = name_within(context, value.name(), taken);
    return found->second;
  };
  TENON_TRY(program, chain_program(*chain_, kernels_->shape, name_of, kernels_->handles, kernels_->workers),
            "strips of ", chain_->last().describe());
  return Splicer(context, *kernels_).run(program, outer);
}

void StripReport::add(StripReport part) {
  std::ranges::move(part.rows, std::back_inserter(rows));
  std::ranges::move(part.whole, std::back_inserter(whole));
  model = std::move(part.model);
}

std::string StripReport::to_string() const {
  std::string out;
  for (const Row& row : rows) {
    out += str("strips of ", row.strips, ", ", row.ops.size(), " operators, ", row.kernels, " kernels of parts\n");
    for (const std::string& op : row.ops) out += "  " + op + "\n";
    out += "  whole:  " + irgen::to_string(row.whole, model) + "\n  strips: " + irgen::to_string(row.in_strips, model) +
           "\n";
    out += str("  memory of windows and kernels: ", row.peak_bytes, " bytes\n");
  }
  for (const auto& [op, why] : whole) out += "whole: " + op + ": " + why + "\n";
  return out;
}

std::vector<StripChain> plan_strips(std::span<const Op* const> ops, const KernelSource& kernels,
                                    const StripOptions& options, StripReport* report, const TypeSource& types) {
  RefusedOps refused;
  // Each round refuses one more operator.
  while (true) {
    Chains found = find_chains(ops, options, refused, types);
    std::vector<StripChain> made;
    const Op* culprit = nullptr;
    for (Chain& chain : found.chains) {
      auto strips = StripChain::make(std::move(chain), kernels, options.workers, &culprit, types);
      if (!strips.ok()) {
        refused[culprit] = strips.error().to_string();
        break;
      }
      culprit = nullptr;
      made.push_back(*std::move(strips));
    }
    if (culprit) continue;
    if (report) *report = report_of(made, found.whole, options.model);
    return made;
  }
}

Grouping strip_grouping(StripOptions options, StripReport* report) {
  return [options = std::move(options), report](std::span<const Op* const> ops, const KernelSource& kernels,
                                                const TypeSource& types) -> Result<std::vector<OpGroup>> {
    std::vector<OpGroup> groups;
    StripReport of_part;
    const std::vector<StripChain> planned = plan_strips(ops, kernels, options, report ? &of_part : nullptr, types);
    if (report) report->add(std::move(of_part));
    for (const StripChain& strips : planned) {
      OpGroup group;
      group.ops = strips.ops();
      group.scratch_bytes = static_cast<size_t>(strips.peak_bytes());
      group.lower = [strips](GroupContext& context) { return strips.lower(context); };
      groups.push_back(std::move(group));
    }
    return groups;
  };
}

}  // namespace tenon::irgen
