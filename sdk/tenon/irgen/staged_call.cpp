#include <cstring>

#include <tenon/irgen/staged_call_internal.hpp>
#include <tenon/snippet/body/body_elements.hpp>

namespace tenon::irgen::detail {
namespace {

void store_count(ElementType element, int64_t count, std::byte* to) {
  const uint64_t bits = snippet::lane_bits(element, static_cast<double>(count));
  std::memcpy(to, &bits, static_cast<size_t>(element.bits()) / 8);
}

}  // namespace

Result<std::shared_ptr<const StagedCode>> make_stages(const snippet::Body& body, SnippetCompiler& compiler,
                                                      size_t cut) {
  const std::shared_ptr<const StagedCode> kNone;
  auto stages = snippet::make_fold_stages(body, cut);
  if (!stages) return kNone;
  auto made = std::make_shared<StagedCode>();
  made->folded = body.reduced_dims();
  made->stages = *std::move(stages);
  for (const snippet::FoldStage& stage : made->stages.stages) {
    auto code = compiler.compile(stage.body);
    if (!code.ok() && code.error().code() == Code::unsupported) return kNone;
    TENON_OK(code, "folds of '", body.name, "' cut along dim ", cut);
    made->codes.push_back(*std::move(code));
  }
  return std::shared_ptr<const StagedCode>(std::move(made));
}

Result<std::shared_ptr<const StagedCode>> StagesOnDemand::get(size_t cut) {
  const std::lock_guard lock(mutex_);
  if (const auto found = made_.find(cut); found != made_.end()) return found->second;
  TENON_TRY(made, make_stages(body_, *compiler_, cut));
  return made_.emplace(cut, std::move(made)).first->second;
}

Result<void> StagedCall::prepare(std::shared_ptr<const StagedCode> code, const Dims& extents, int64_t parts,
                                 const CallOptions& options) {
  stages_.clear();
  code_ = std::move(code);
  const auto& [memories, stages] = code_->stages;
  std::vector<size_t> begins;
  size_t bytes = 0;
  for (const snippet::FoldStages::Memory& memory : memories) {
    begins.push_back(bytes);
    bytes += memory.bytes(extents, parts);
    bytes = (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
  }
  TENON_TRY(memory, allocate_aligned(bytes));
  memory_ = std::move(memory);
  const int64_t folded = snippet::element_count(code_->folded, extents);
  for (size_t i = 0; i < memories.size(); ++i)
    if (memories[i].counts) store_count(memories[i].element, folded, memory_.get() + begins[i]);
  for (size_t s = 0; s < stages.size(); ++s) {
    const snippet::FoldStage& stage = stages[s];
    Stage& made = stages_.emplace_back();
    for (const snippet::FoldStage::Port& port : stage.ports)
      made.addresses.push_back(port.in_memory ? memory_.get() + begins[port.index] : nullptr);
    // The results of a stage are read by the next ones.
    const bool of_parts = stage.kind == snippet::FoldStage::Kind::parts;
    const CallOptions own{.threads = options.threads,
                          .read_again = options.read_again || s + 1 < stages.size(),
                          .fold_parts = of_parts ? parts : 0};
    TENON_OK(made.call.prepare(*code_->codes[s], stage.extents(extents, parts), own));
  }
  return {};
}

void StagedCall::run(std::span<std::byte* const> addresses, ParallelFor& pool) {
  for (size_t s = 0; s < stages_.size(); ++s) {
    const std::vector<snippet::FoldStage::Port>& ports = code_->stages.stages[s].ports;
    Stage& stage = stages_[s];
    for (size_t i = 0; i < ports.size(); ++i)
      if (!ports[i].in_memory) stage.addresses[i] = addresses[ports[i].index];
    stage.call.run(*code_->codes[s], stage.addresses, pool);
  }
}

}  // namespace tenon::irgen::detail
