#include "opencl/fuse.hpp"

#include <algorithm>
#include <unordered_set>

#include <tenon/program/ir/statement.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/epilogue.hpp"

namespace tenon::opencl {
namespace {

program::Statement call_of(const Fused& fused, irgen::GroupContext& context) {
  program::Call call;
  call.kernel = fused.kernel;
  call.stage = fused.stage();
  const auto add = [&](program::Access access, const Value& value) {
    call.operands.push_back({access, {context.buffer_of(value), {}}});
  };
  for (const Value* operand : fused.op->operands())
    if (operand) add(program::Access::in, *operand);
  for (const size_t i : fused.others) add(program::Access::in, *fused.behind->operand(i));
  for (size_t i = 0; i < fused.behind->result_count(); ++i) add(program::Access::out, *fused.behind->result(i));
  return call;
}

class Fuser {
 public:
  Fuser(const Compiler& compiler, std::span<const Op* const> ops)
      : compiler_(compiler), free_(ops.begin(), ops.end()) {}

  // Fuses the snippet with the last of the operators before it for which that is possible.
  std::optional<Fused> with_producer(const Op& snippet) {
    const auto body = snippet::make_body(snippet);
    if (!body.ok() || !compiler_.why_not(*body).empty()) return std::nullopt;
    const std::vector<size_t> operands = snippet::body_operands(snippet);
    std::vector<size_t> inputs(operands.size());
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = i;
    std::ranges::stable_sort(inputs, [&](size_t a, size_t b) {
      const Op *first = snippet.operand(operands[a])->producer(), *second = snippet.operand(operands[b])->producer();
      return first && (!second || second->is_before(*first));
    });
    for (const size_t input : inputs) {
      const Value& value = *snippet.operand(operands[input]);
      if (!may_vanish(value, snippet)) continue;
      if (auto made = make(*value.producer(), snippet, *body, input, operands)) return made;
    }
    return std::nullopt;
  }

 private:
  bool may_vanish(const Value& value, const Op& snippet) {
    const Op* producer = value.producer();
    if (!producer || !free_.contains(producer) || !takes_epilogue(*producer)) return false;
    return std::ranges::all_of(value.uses(), [&](const Use* use) { return use->user() == &snippet; });
  }

  std::optional<Fused> make(const Op& op, const Op& snippet, const snippet::Body& body, size_t input,
                            const std::vector<size_t>& operands) {
    if (body.outputs.size() != snippet.result_count() || !why_no_epilogue(body, input).empty()) return std::nullopt;
    const Type& result = op.result()->type();
    if (!irgen::fits_buffer(result)) return std::nullopt;
    size_t ports = operands.size() - 1 + snippet.result_count();
    for (const Value* operand : op.operands()) ports += operand ? 1 : 0;
    if (ports > compiler_.options().max_ports) return std::nullopt;
    auto forms = compiler_.forms(irgen::request_for(op), Epilogue{body, input});
    if (!forms.ok()) return std::nullopt;
    Fused made{.op = &op, .behind = &snippet, .input = input};
    for (size_t i = 0; i < operands.size(); ++i)
      if (i != input) made.others.push_back(operands[i]);
    made.kernel = device_kernel(op.name().str());
    made.kernel->forms = *std::move(forms);
    made.kernel->result = result;
    free_.erase(&op);
    return made;
  }

  const Compiler& compiler_;
  std::unordered_set<const Op*> free_;
};

}  // namespace

std::string Fused::stage() const { return str(irgen::stage_of_op(*op), " with ", irgen::stage_of_op(*behind)); }

std::vector<Fused> fuse_epilogues(std::span<const Op* const> ops, const Compiler& compiler) {
  std::vector<Fused> made;
  Fuser fuser(compiler, ops);
  for (const Op* op : ops) {
    if (!isa<snippet::Subgraph>(*op)) continue;
    if (auto fused = fuser.with_producer(*op)) made.push_back(*std::move(fused));
  }
  return made;
}

irgen::Grouping epilogue_grouping(const Compiler& compiler) {
  return [&compiler](std::span<const Op* const> ops, const irgen::KernelSource&,
                     const TypeSource&) -> Result<std::vector<irgen::OpGroup>> {
    std::vector<irgen::OpGroup> groups;
    for (Fused& fused : fuse_epilogues(ops, compiler)) {
      irgen::OpGroup group;
      group.ops = {fused.op, fused.behind};
      group.lower = [fused = std::move(fused)](irgen::GroupContext& context) -> Result<program::Statement> {
        return call_of(fused, context);
      };
      groups.push_back(std::move(group));
    }
    return groups;
  };
}

}  // namespace tenon::opencl
