#include <tenon/irgen/evaluator_call_internal.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <tenon/irgen/dims.hpp>
#include <tenon/irgen/pack.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::irgen::detail {

using program::BufferView;
using program::CallContext;
using program::DimView;

namespace {

size_t round_up(size_t bytes) { return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes; }

size_t bytes_of(const BufferView& view) { return static_cast<size_t>(view.elements() * view.element_bytes()); }

int64_t address_of(const BufferView& view) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(view.base)); }

bool has_dims(const Tensor& tensor, const BufferView& view) {
  return std::equal(tensor.dims().begin(), tensor.dims().end(), view.dims.rbegin(), view.dims.rend(),
                    [](int64_t dim, const DimView& d) { return dim == d.extent; });
}

}  // namespace

EvaluatorCall::EvaluatorCall(const EvaluatorWork& work) : work_(work) {
  op_ = work.op;
  operand_data_.resize(work.from.size());
  for (size_t i = 0; i < work.from.size(); ++i) {
    if (work.from[i] == EvaluatorWork::From::constant) operand_data_[i] = work.constants[i];
    if (work.from[i] == EvaluatorWork::From::call) given_.push_back(i);
    pointers_.push_back(&operand_data_[i]);
  }
  operands_ = pointers_;
  results_.resize(op_->result_count());
}

Result<void> EvaluatorCall::run(CallContext& call) {
  call_ = &call;
  if (!has_seen(call.operands)) [[unlikely]]
    TENON_OK(take(call.operands));
  for (const Packed& p : packed_operands_) pack(call.operands[p.view], p.memory);
  TENON_OK(work_.evaluate(*this));
  if (!delivered_.ok()) [[unlikely]]
    return std::exchange(delivered_, Result<void>());
  for (const Packed& p : packed_results_) unpack(p.memory, call.operands[p.view]);
  return {};
}

bool EvaluatorCall::has_seen(std::span<const BufferView> views) const {
  if (seen_.empty()) return false;
  const int64_t* seen = seen_.data();
  for (const BufferView& view : views) {
    if (*seen++ != address_of(view)) return false;
    for (const DimView& d : view.dims) {
      if (seen[0] != d.extent || seen[1] != d.stride || seen[2] != d.fold) return false;
      seen += 3;
    }
  }
  return true;
}

void EvaluatorCall::remember(std::span<const BufferView> views) {
  for (const BufferView& view : views) {
    seen_.push_back(address_of(view));
    for (const DimView& d : view.dims) seen_.insert(seen_.end(), {d.extent, d.stride, d.fold});
  }
}

Result<void> EvaluatorCall::take(std::span<const BufferView> views) {
  seen_.clear();
  packed_operands_.clear();
  packed_results_.clear();
  workspace_ = work_.packs ? views.back().base : nullptr;
  for (size_t i = 0; i < given_.size(); ++i) {
    Datum& datum = operand_data_[given_[i]];
    if (!datum.is_tensor()) datum = Tensor();
    TENON_OK(take(i, views[i], datum.tensor(), packed_operands_), "operand ", given_[i]);
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    const size_t number = given_.size() + i;
    TENON_OK(take(number, views[number], results_[i], packed_results_), "result ", i);
  }
  remember(views);
  return {};
}

Result<void> EvaluatorCall::take(size_t number, const BufferView& view, Tensor& tensor, std::vector<Packed>& packed) {
  std::byte* at = view.base;
  if (!is_dense(view)) {
    if (!work_.packs)
      return error(Code::unsupported, "the kernel of ", op_->describe(), " takes dense tensors, and is given strides");
    at = workspace_;
    workspace_ += round_up(bytes_of(view));
    packed.push_back({number, at});
  }
  if (tensor.valid() && tensor.data() == at && has_dims(tensor, view)) return {};
  TENON_TRY(made, Tensor::borrow(view.element, tensor_dims(view), at, bytes_of(view)));
  tensor = std::move(made);
  return {};
}

//  // ---- Queries of evaluators ----

Result<Tensor*> EvaluatorCall::output(size_t i, ElementType element, Dims dims) {
  Tensor& planned = results_[i];
  if (planned.element() == element && planned.dims() == dims) return &planned;
  return error(Code::internal, "result ", i, " of ", op_->describe(), " is planned as ", planned, " and made as ",
               element, dims);
}

void EvaluatorCall::set_output(size_t i, Datum value) {
  Tensor& planned = results_[i];
  if (!value.is_tensor() || value.tensor().element() != planned.element() || value.tensor().dims() != planned.dims()) {
    delivered_ = error(Code::internal, "result ", i, " of ", op_->describe(), " is planned as ", planned,
                       " and set to ", value.type());
  } else if (planned.data() != value.tensor().data()) {
    std::memmove(planned.mutable_data(), value.tensor().data(), planned.bytes());
  }
}

Result<std::vector<Datum>> EvaluatorCall::run_region(size_t, std::vector<Datum>) {
  return error(Code::internal, op_->describe(), " runs a region inside of a program");
}

uint64_t EvaluatorCall::random_seed() { return fresh_seed(); }

}  // namespace tenon::irgen::detail
