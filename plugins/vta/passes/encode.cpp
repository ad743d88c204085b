#include <algorithm>

#include "vta/emitters.hpp"
#include "vta/kernel_tiling.hpp"
#include "vta/passes/walk.hpp"
#include "vta/stream_check.hpp"

namespace tenon::vta {
namespace {

// Loads address micro-ops by their index in the operand, so for the check their segment has addresses that begin at its
// first byte.
Result<void> check_races(const Stream& stream, std::span<const uint32_t> micro_ops, size_t segments,
                         const Hardware& hardware) {
  const auto addresses = separate_addresses(segments);
  TENON_TRY(bound, stream.bound(addresses, hardware));
  const auto first = static_cast<int64_t>(addresses[stream.micro_op_segment]) / hardware.element_bytes(Memory::uop);
  CheckOptions options;
  options.micro_op = [&](int64_t element) -> Result<uint32_t> {
    if (element < first || static_cast<size_t>(element - first) >= micro_ops.size())
      return error(Code::invalid_argument, "there is no micro-op ", element - first);
    return micro_ops[static_cast<size_t>(element - first)];
  };
  TENON_TRY(findings, check_stream(bound, hardware, options));
  if (findings.empty()) return {};
  std::string list;
  for (const Finding& finding : findings) list += str("\n", finding.to_string(bound));
  return error(Code::internal, "the stream has races:", list);
}

// Replaces a kernel by its instructions, whose addresses are relative to the segments' first bytes.
class Encoder {
 public:
  Encoder(Kernel& kernel, const PassContext& context)
      : kernel_(kernel), context_(context), writer_(context.hardware, kernel->operand_count()) {}

  Result<void> encode() {
    writer_.set_tensors(tensors_of(kernel_));
    TENON_OK(emit_body(kernel_, context_.target, writer_));
    Stream stream = writer_.take_stream();
    const size_t count = kernel_->operand_count();
    const Tensor* micro_ops = count > 0 ? constant_of(kernel_->operand(count - 1)) : nullptr;
    if (stream.entries.empty() || !micro_ops || micro_ops->element() != kU32)
      return error(Code::invalid_argument,
                   "it has no vta.Finish or no micro-ops: its body is not in tiles with places");
    stream.micro_op_segment = static_cast<Segment>(count - 1);
    if (context_.check_races) TENON_OK(check_races(stream, micro_ops->as<uint32_t>(), count + 1, context_.hardware));
    return replace(stream);
  }

 private:
  Result<void> replace(const Stream& stream) {
    const auto count = static_cast<int64_t>(stream.entries.size());
    TENON_TRY(instructions, Tensor::allocate(kU64, {count, 2}));
    TENON_TRY(segments, Tensor::allocate(kU8, {count}));
    auto words = instructions.mutable_as<uint64_t>();
    auto numbers = segments.mutable_as<uint8_t>();
    for (size_t i = 0; i < stream.entries.size(); ++i) {
      TENON_TRY(encoded, vta::encode(stream.entries[i].instruction, context_.hardware));
      words[2 * i] = encoded[0], words[2 * i + 1] = encoded[1];
      numbers[i] = static_cast<uint8_t>(stream.entries[i].segment);
    }
    Builder builder(*kernel_->parent(), &kernel_.op());
    std::vector<Value*> operands = kernel_->operands();
    operands.push_back(builder.constant(std::move(instructions), str(kernel_.result()->name(), ".instructions")));
    operands.push_back(builder.constant(std::move(segments), str(kernel_.result()->name(), ".segments")));
    Op& made = kernel_->parent()->create(StreamOp::name(), operands, {kernel_.result()->type()},
                                         {{names().of, kernel_.of()},
                                          {names().machine, context_.hardware.fingerprint()},
                                          {names().dram, integers_of(kernel_->attributes(), names().dram)},
                                          {names().shape, *kernel_.result()->type().shape().static_dims()}},
                                         &kernel_.op());
    made.set_label(kernel_->label());
    made.result()->set_name(kernel_.result()->name());
    made.result()->set_layout(kernel_.result()->shared_layout());
    kernel_.result()->replace_all_uses_with(made.result());
    kernel_->erase();
    return {};
  }

  Kernel& kernel_;
  const PassContext& context_;
  CommandWriter writer_;
};

}  // namespace

Pass vta_encode(const PassContext& context) {
  const auto run = [context](Kernel& kernel) -> Result<void> { return Encoder(kernel, context).encode(); };
  return pass_over_kernels("vta-encode",
                           "Needs places of everything. Leaves a vta.Stream for each kernel, checked for races.", run);
}

}  // namespace tenon::vta
