#include <tenon/program/exec/code_internal.hpp>

namespace tenon::program::detail {

void Frame::make_states() {
  for (const Kernel* kernel : code_->states) states_.push_back(kernel->make_state ? kernel->make_state() : nullptr);
}

void Frame::set_parallel(ParallelFor* parallel) {
  if (parallel == parallel_) return;
  parallel_ = parallel;
  for (const ContextFixup& c : code_->contexts) as<CallContext>(c.context).parallel = parallel;
}

void Frame::fix() {
  for (const ViewFixup& v : code_->views) {
    BufferView& view = as<BufferView>(v.view);
    view.dims = {&as<DimView>(v.dims), static_cast<size_t>(v.rank)};
    view.element = v.element;
  }
  for (const ContextFixup& c : code_->contexts) {
    CallContext& context = as<CallContext>(c.context);
    context.state = c.state >= 0 ? states_[static_cast<size_t>(c.state)].get() : nullptr;
    context.operands = {&as<BufferView>(c.views), static_cast<size_t>(c.operands)};
    context.scalars = {words_.data() + c.scalars / static_cast<Place>(sizeof(int64_t)),
                       static_cast<size_t>(c.scalar_count)};
    context.stage = c.stage;
  }
}

}  // namespace tenon::program::detail
