#include <algorithm>
#include <cstring>

#include <tenon/irgen/runner_part_internal.hpp>
#include <tenon/snippet/canonical/specialise.hpp>

namespace tenon::irgen::detail {
namespace {

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.element() == b.element() && a.dims() == b.dims() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

}  // namespace

LatePart::LatePart(const GraphPart& part, const PartSource& from)
    : op_(*part.ops.at(0)), from_(from), operand_(from.plans.at(&op_).late_operand) {
  const auto value = std::ranges::find(part.inputs, op_.operand(operand_));
  TENON_CHECK(value != part.inputs.end(), op_.describe(), " is late for a value that is none of its inputs");
  input_ = static_cast<size_t>(value - part.inputs.begin());
}

Result<void> LatePart::run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs, PartRun& with) {
  TENON_TRY(found, special(inputs[input_]->tensor(), with.means.arena.size()), op_.describe());
  std::vector<const Datum*> others(inputs.begin(), inputs.end());
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(input_));
  return found->runner->run_into(others, outputs, with.means);
}

Result<std::shared_ptr<const LatePart::Special>> LatePart::special(const Tensor& value, size_t lent) {
  const std::lock_guard lock(mutex_);
  last_lent_ = lent;
  const auto known = std::ranges::find_if(special_, [&](const auto& s) { return same_bytes(s->value, value); });
  if (known != special_.end()) {
    special_.splice(special_.begin(), special_, known);
    return special_.front();
  }
  TENON_TRY(made, make(value));
  special_.push_front(made);
  if (special_.size() > kMostValues) special_.pop_back();
  return made;
}

Result<std::shared_ptr<const LatePart::Special>> LatePart::make(const Tensor& value) const {
  auto made = std::make_shared<Special>();
  TENON_TRY(own, value.clone());
  made->value = std::move(own);
  TENON_TRY(graph, snippet::with_value(op_, operand_, made->value, from_.types));
  made->graph = std::move(graph);
  TENON_TRY(runner, GraphRunner::prepare(*made->graph, from_.kernels, from_.options));
  made->runner = std::move(runner);
  return std::shared_ptr<const Special>(std::move(made));
}

size_t LatePart::most(size_t (GraphRunner::*bytes)() const) const {
  const std::lock_guard lock(mutex_);
  size_t most = 0;
  for (const auto& special : special_) {
    const size_t lendable = special->runner->lendable_bytes(), all = ((*special->runner).*bytes)();
    most = std::max(most, lendable <= last_lent_ ? all - std::min(all, lendable) : all);
  }
  return most;
}

}  // namespace tenon::irgen::detail
