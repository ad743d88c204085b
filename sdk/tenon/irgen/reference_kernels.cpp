#include <tenon/irgen/reference_kernels.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

#include <tenon/ir/op_def.hpp>
#include <tenon/irgen/dims.hpp>
#include <tenon/irgen/pack.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::irgen {
namespace {

using program::BufferView;
using program::CallContext;
using program::DimView;

size_t round_up(size_t bytes) { return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes; }

// An evaluator and the operator that it runs for: that of the graph, or one of our own for a part.
struct Work {
  const Op* op = nullptr;
  EvaluatorFn evaluate = nullptr;
  std::unique_ptr<Graph> own;
  // By operand of the operator: absent, given to the call, or a constant.
  enum class From : uint8_t { absent, call, constant };
  std::vector<From> from;
  std::vector<Tensor> constants;  // by operand
  bool packs = false;             // the last operand of a call is a workspace for boxes that are not dense
};

// What a tensor was made of the last time.
struct Seen {
  const std::byte* base = nullptr;
  std::vector<DimView> dims;

  bool same(const std::byte* at, const BufferView& view) const {
    return base == at && std::ranges::equal(dims, view.dims, [](const DimView& a, const DimView& b) {
             return a.extent == b.extent && a.stride == b.stride && a.fold == b.fold;
           });
  }
};

// One place of a program: the operands and results of its calls as tensors over their memory.
class Place final : public program::KernelState, public EvalContext {
 public:
  explicit Place(const Work& work) : work_(work) {
    op_ = work.op;
    operand_data_.resize(work.from.size());
    for (size_t i = 0; i < work.from.size(); ++i) {
      if (work.from[i] == Work::From::constant) operand_data_[i] = work.constants[i];
      pointers_.push_back(&operand_data_[i]);
    }
    operands_ = pointers_;
    results_.resize(op_->result_count());
    seen_.resize(work.from.size() + results_.size());
    packed_.resize(results_.size());
  }

  Result<void> run(CallContext& call) {
    call_ = &call;
    workspace_ = work_.packs ? call.operands.back().base : nullptr;
    size_t next = 0;
    for (size_t i = 0; i < work_.from.size(); ++i) {
      if (work_.from[i] == Work::From::call) TENON_OK(take_operand(i, call.operands[next++]), "operand ", i);
    }
    for (size_t i = 0; i < results_.size(); ++i) TENON_OK(take_result(i, call.operands[next + i]), "result ", i);
    delivered_ = {};
    TENON_OK(work_.evaluate(*this));
    TENON_OK(std::move(delivered_));
    for (size_t i = 0; i < results_.size(); ++i) {
      if (packed_[i]) unpack(results_[i].data(), call.operands[next + i]);
    }
    return {};
  }

  Result<Dims> result_dims(size_t i) const override { return results_[i].dims(); }
  Result<Tensor*> output(size_t i) override { return &results_[i]; }
  Result<Tensor*> output(size_t i, ElementType element, Dims dims) override {
    Tensor& planned = results_[i];
    if (planned.element() == element && planned.dims() == dims) return &planned;
    return error(Code::internal, "result ", i, " of ", op_->describe(), " is planned as ", planned, " and made as ",
                 element, dims);
  }
  void set_output(size_t i, Datum value) override {
    Tensor& planned = results_[i];
    if (!value.is_tensor() || value.tensor().element() != planned.element() ||
        value.tensor().dims() != planned.dims()) {
      delivered_ = error(Code::internal, "result ", i, " of ", op_->describe(), " is planned as ", planned,
                         " and set to ", value.type());
    } else if (planned.data() != value.tensor().data()) {
      std::memmove(planned.mutable_data(), value.tensor().data(), planned.bytes());
    }
  }
  Result<std::vector<Datum>> run_region(size_t, std::vector<Datum>) override {
    return error(Code::internal, op_->describe(), " runs a region inside of a program");
  }
  ParallelFor& parallel() override { return call_->pool(); }
  uint64_t random_seed() override { return fresh_seed(); }

 private:
  // A dense box where it lies; another one at a place of the workspace.
  Result<std::byte*> dense_memory(const BufferView& view) {
    if (is_dense(view)) return view.base;
    if (!work_.packs)
      return error(Code::unsupported, "the kernel of ", op_->describe(), " takes dense tensors, and is given strides");
    std::byte* const at = workspace_;
    workspace_ += round_up(static_cast<size_t>(view.elements() * view.element_bytes()));
    return at;
  }

  Result<void> take_operand(size_t i, const BufferView& view) {
    TENON_TRY(at, dense_memory(view));
    TENON_OK(refresh(seen_[i], at, view, [&](Tensor made) { operand_data_[i] = std::move(made); }));
    if (at != view.base) pack(view, at);
    return {};
  }
  Result<void> take_result(size_t i, const BufferView& view) {
    TENON_TRY(at, dense_memory(view));
    packed_[i] = at != view.base;
    return refresh(seen_[work_.from.size() + i], at, view, [&](Tensor made) { results_[i] = std::move(made); });
  }
  template <class Store>
  Result<void> refresh(Seen& seen, std::byte* at, const BufferView& view, const Store& store) {
    if (seen.same(at, view)) [[likely]]
      return {};
    TENON_TRY(made, Tensor::borrow(view.element, tensor_dims(view), at,
                                   static_cast<size_t>(view.elements() * view.element_bytes())));
    store(std::move(made));
    seen.base = at;
    seen.dims.assign(view.dims.begin(), view.dims.end());
    return {};
  }

  const Work& work_;
  CallContext* call_ = nullptr;
  std::byte* workspace_ = nullptr;
  std::vector<Datum> operand_data_;
  std::vector<const Datum*> pointers_;
  std::vector<Tensor> results_;
  std::vector<bool> packed_;  // results that lie in the workspace
  std::vector<Seen> seen_;    // of operands, then results
  Result<void> delivered_;
};

// A name of the text form: [A-Za-z_][A-Za-z0-9_.]*
std::string kernel_name(const Op& op) {
  std::string name = op.name().str();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  }
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "_" + name : name;
}

// The operator with a part's attributes and constants, in a graph of its own.
Result<std::shared_ptr<Work>> work_of_part(const KernelRequest& request) {
  auto work = std::make_shared<Work>();
  work->own = std::make_unique<Graph>("part");
  Region& body = work->own->body();
  std::vector<Value*> operands;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    const auto replaced = request.part->replaced.find(i);
    const bool constant = replaced != request.part->replaced.end();
    work->from.push_back(constant ? Work::From::constant : request.passes(i) ? Work::From::call : Work::From::absent);
    work->constants.push_back(constant ? replaced->second : Tensor());
    operands.push_back(work->from[i] == Work::From::absent ? nullptr
                                                           : body.add_input(str("operand", i), request.operands[i]));
  }
  Op& op = body.create(request.op.name(), operands, request.results, request.attributes());
  op.set_label(request.op.label());
  for (size_t i = 0; i < op.result_count(); ++i) {
    if (request.op.result(i)->used()) body.add_output(op.result(i), str("result", i));
  }
  work->op = &op;
  work->packs = true;
  return work;
}

Result<std::shared_ptr<Work>> work_of(const KernelRequest& request) {
  if (request.part) return work_of_part(request);
  auto work = std::make_shared<Work>();
  work->op = &request.op;
  for (size_t i = 0; i < request.op.operand_count(); ++i)
    work->from.push_back(request.op.operand(i) ? Work::From::call : Work::From::absent);
  return work;
}

Result<Expr> dense_bytes(const Type& type) {
  Expr bytes = type.element().bits() / 8;
  for (const Dim& d : type.shape().dims()) bytes = bytes * d.expr();
  return ceildiv(bytes, static_cast<int64_t>(kAlignBytes)) * static_cast<int64_t>(kAlignBytes);
}

Result<Expr> workspace_of(const KernelRequest& request, const Work& work) {
  Expr bytes = 0;
  if (!work.packs) return bytes;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    if (work.from[i] != Work::From::call) continue;
    TENON_TRY(more, dense_bytes(request.operands[i]));
    bytes += more;
  }
  for (const Type& type : request.results) {
    TENON_TRY(more, dense_bytes(type));
    bytes += more;
  }
  return bytes;
}

// Elementwise evaluators read an element of each operand before they write that of the result.
std::vector<InPlace> in_place_of(const KernelRequest& request) {
  std::vector<InPlace> pairs;
  const OpDef* def = request.op.def();
  if (!def || !def->has(Trait::elementwise) || request.part) return pairs;
  for (size_t r = 0; r < request.results.size(); ++r) {
    const Type& result = request.results[r];
    for (size_t o = 0; o < request.operands.size(); ++o) {
      const Type& operand = request.operands[o];
      const bool fits = request.passes(o) && operand.is_tensor() && operand.shape() == result.shape() &&
                        operand.element().bits() == result.element().bits();
      if (fits) pairs.push_back({r, o});
    }
  }
  return pairs;
}

class ReferenceKernels final : public KernelSource {
 public:
  std::string_view name() const override { return "reference"; }

  Result<KernelChoice> kernel(const KernelRequest& request) const override {
    const EvaluatorFn evaluate = find_evaluator(request.op.name());
    if (!evaluate) return error(Code::unsupported, "the reference has no evaluator for ", request.op.name());
    if (request.op.region_count() > 0) return error(Code::unsupported, request.op.name(), " runs graphs of its own");
    TENON_TRY(work, work_of(request));
    work->evaluate = evaluate;
    TENON_TRY(workspace, workspace_of(request, *work));
    const std::shared_ptr<const Work> shared = std::move(work);
    auto kernel = std::make_shared<program::Kernel>();
    kernel->name = kernel_name(request.op);
    kernel->takes_folded = shared->packs;
    kernel->takes_dense_only = !shared->packs;
    kernel->workspaces = shared->packs ? 1 : 0;
    kernel->make_state = [shared] { return std::make_unique<Place>(*shared); };
    kernel->run = [shared](CallContext& call) -> Result<void> {
      if (call.state) return static_cast<Place*>(call.state)->run(call);
      return Place(*shared).run(call);
    };
    return KernelChoice{.kernel = std::move(kernel),
                        .workspace_bytes = workspace,
                        .in_place = in_place_of(request),
                        .takes_strided = shared->packs};
  }
};

}  // namespace

const KernelSource& reference_kernels() {
  static const ReferenceKernels kernels;
  return kernels;
}

}  // namespace tenon::irgen
