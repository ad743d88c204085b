#include <tenon/irgen/strips_stage_internal.hpp>

#include <algorithm>
#include <array>

#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/irgen/dims.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::irgen {

namespace {

using program::BufferView;
using program::DimView;

constexpr size_t kMostOperands = 12;  // of a kernel, including results and workspace
constexpr size_t kMostRank = 8;

int64_t aligned(int64_t bytes) {
  return (bytes + static_cast<int64_t>(kAlignBytes) - 1) / static_cast<int64_t>(kAlignBytes) *
         static_cast<int64_t>(kAlignBytes);
}

int64_t dense_bytes(const Dims& extents, ElementType element) {
  int64_t bytes = element.bits() / 8;
  for (const int64_t extent : extents) bytes *= extent;
  return bytes;
}

bool lies_in(const StaticBox& inner, const StaticBox& outer) {
  for (size_t d = 0; d < inner.size(); ++d)
    if (inner[d].extent() > 0 && (inner[d].min < outer[d].min || inner[d].max > outer[d].max)) return false;
  return true;
}

bool same_tensors(const std::map<size_t, Tensor>& a, const std::map<size_t, Tensor>& b) {
  return std::ranges::equal(
      a, b, [](const auto& x, const auto& y) { return x.first == y.first && x.second.identical(y.second); });
}

// Whether a box of these extents is contiguous in memory, wherever it begins. Only for values outside of the chain:
// windows may be ring buffers.
bool lies_dense(const Value& value, const Dims& extents, const StageSource& from) {
  if (std::ranges::find(from.outside, &value) == from.outside.end()) return false;
  const Dims whole = *from.types.type_of(value).shape().static_dims();
  size_t d = 0;
  while (d < extents.size() && extents[d] == 1) ++d;
  return d >= extents.size() || std::equal(extents.begin() + static_cast<int64_t>(d) + 1, extents.end(),
                                           whole.begin() + static_cast<int64_t>(d) + 1);
}

// A copy of a whole buffer of that rank, index by index.
Result<program::CopyPlan> whole_copy(size_t rank, ElementType element) {
  program::Copy copy;
  for (size_t d = 0; d < rank; ++d) {
    copy.indices.push_back(str("x", d));
    copy.map.push_back(Expr::symbol(copy.indices.back()));
  }
  return program::CopyPlan::make(copy, element);
}

// A part of a buffer, or a dense copy of one, with dims of its own.
struct OwnView {
  std::array<DimView, kMostRank> dims;
  BufferView view;

  void set(const BufferView& like) {
    view = like;
    view.dims = {dims.data(), like.dims.size()};
  }
  // Restricts dim d to indices [min, min + extent); a ring that they do not wrap around becomes linear.
  void set_dim(size_t d, const DimView& like, int64_t min, int64_t extent) {
    const bool wraps = like.fold > 0 && like.place(min) + extent > like.fold;
    if (!wraps) view.base += like.place(min) * like.stride;
    dims[d] = {min, extent, like.stride, wraps ? like.fold : 0};
  }
  // `mins` and `extents` are those of a tensor.
  void crop(const BufferView& of, const int64_t* mins, const Dims& extents) {
    set(of);
    const size_t last = of.dims.size() - 1;
    for (size_t d = 0; d <= last && !of.dims.empty(); ++d) set_dim(d, of.dims[d], mins[last - d], extents[last - d]);
  }
  void whole(const BufferView& of) {
    set(of);
    for (size_t d = 0; d < of.dims.size(); ++d) set_dim(d, of.dims[d], of.dims[d].min, of.dims[d].extent);
  }
  // Dense, with minima 0.
  void make(ElementType element, std::span<const int64_t> extents, std::byte* memory) {
    view.element = element;
    view.base = memory;
    view.dims = {dims.data(), extents.size()};
    int64_t stride = element.bits() / 8;
    for (size_t d = 0; d < extents.size(); ++d) {
      dims[d] = {0, extents[extents.size() - 1 - d], stride, 0};
      stride *= dims[d].extent;
    }
  }
  void pack(const BufferView& like, std::byte* memory) {
    set(like);
    view.base = memory;
    int64_t stride = like.element_bytes();
    for (size_t d = 0; d < like.dims.size(); ++d) {
      dims[d] = {like.dims[d].min, like.dims[d].extent, stride, 0};
      stride *= like.dims[d].extent;
    }
  }
};

// One per variant.
struct States final : program::KernelState {
  std::vector<std::unique_ptr<program::KernelState>> of_variant;
};

// The operands of one kernel call: passed as they are, or packed.
class Operands {
 public:
  Operands(const KernelChoice& choice, std::byte* memory) : choice_(choice), memory_(memory) {}

  OwnView& next() { return views_[count_]; }
  // Adds the view that was set last, packed if the kernel cannot accept it. Returns whether it was packed. `promised`:
  // to be dense, so no workspace was requested; contract mode moves buffers to places where they are not.
  bool add(bool promised) {
    const BufferView& view = views_[count_].view;
    const bool packs = promised ? !is_dense(view) : !takes(view);
    if (packs) packed_[count_].pack(view, memory_for(view.elements() * view.element_bytes(), promised));
    operands_[count_] = packs ? packed_[count_].view : view;
    ++count_;
    return packs;
  }
  void add_unused(const Type& type) {
    std::array<int64_t, kMostRank> extents;
    const auto& dims = type.shape().dims();
    for (size_t d = 0; d < dims.size(); ++d) extents[d] = dims[d].value();
    add_memory(type.element(), {extents.data(), dims.size()});
  }
  void add_workspace(int64_t bytes) { add_memory(kU8, std::span(&bytes, 1)); }
  const BufferView& given(size_t i) const { return operands_[i]; }
  const BufferView& original(size_t i) const { return views_[i].view; }
  std::span<const BufferView> all() const { return {operands_.data(), count_}; }

 private:
  std::byte* memory_for(int64_t bytes, bool promised) {
    if (promised) return own_.emplace_back(static_cast<size_t>(bytes)).data();
    std::byte* memory = memory_;
    memory_ += aligned(bytes);
    return memory;
  }
  void add_memory(ElementType element, std::span<const int64_t> extents) {
    OwnView& own = next();
    own.make(element, extents, memory_);
    memory_ += aligned(own.view.elements() * own.view.element_bytes());
    operands_[count_++] = own.view;
  }
  bool takes(const BufferView& view) const {
    if (!choice_.takes_strided) return is_dense(view);
    return choice_.kernel->takes_folded || std::ranges::none_of(view.dims, [](const DimView& d) { return d.fold > 0; });
  }

  const KernelChoice& choice_;
  std::byte* memory_;
  size_t count_ = 0;
  std::vector<std::vector<std::byte>> own_;
  std::array<OwnView, kMostOperands> views_, packed_;
  std::array<BufferView, kMostOperands> operands_;
};

}  // namespace

Result<std::shared_ptr<const StripStage>> StripStage::make(const ChainOp& op, const std::vector<size_t>& passed,
                                                           const std::vector<StageCall>& calls,
                                                           const StageSource& from) {
  auto stage = std::make_shared<StripStage>();
  stage->passed_ = passed.size();
  stage->result_ = op.result;
  const int rank = static_cast<int>(from.types.type_of(op.value()).shape().rank());
  for (const int d : op.dims) stage->moved_.push_back(rank - 1 - d);
  for (const StageCall& call : calls) TENON_OK(stage->add(op, passed, call, from), "in a strip of ", op.op->describe());
  std::ranges::sort(stage->boxes_, {}, &Box::key);
  return std::shared_ptr<const StripStage>(std::move(stage));
}

Result<void> StripStage::add(const ChainOp& op, const std::vector<size_t>& passed, const StageCall& call,
                             const StageSource& from) {
  const StaticInferContext context(*op.op, from.types);
  TENON_TRY(part, sub_box_op(context, op.result, *from.types.type_of(op.value()).shape().static_dims(), call.result));
  for (size_t i = 0; i < passed.size(); ++i)
    if (!lies_in(part.operands[passed[i]], call.reads[i]))
      return error(Code::unsupported, "it reads more of operand ", passed[i],
                   " than the rule says for each index by itself");
  Box box;
  for (const int d : op.dims) {
    const StaticRange& range = call.result[static_cast<size_t>(d)];
    box.key.insert(box.key.end(), {range.min, range.extent()});
  }
  const std::vector<StaticBox> crops = part.operands;
  TENON_TRY(variant, variant_for(op, passed, call.result, std::move(part), from));
  box.variant = variant;
  for (const size_t operand : variants_[variant].operands)
    for (const StaticRange& range : crops[passed[operand]]) box.mins.push_back(range.min);
  boxes_.push_back(std::move(box));
  return {};
}

Result<size_t> StripStage::variant_for(const ChainOp& op, const std::vector<size_t>& passed, const StaticBox& result,
                                       SubBoxOp part, const StageSource& from) {
  Variant v;
  for (size_t i = 0; i < passed.size(); ++i) {
    if (part.replaced.contains(passed[i])) continue;
    v.operands.push_back(i);
    v.extents.push_back(extents_of(part.operands[passed[i]]));
  }
  v.extents.push_back(extents_of(result));
  for (size_t i = 0; i < variants_.size(); ++i)
    if (variants_[i].extents == v.extents && variants_[i].part.attributes == part.attributes &&
        same_tensors(variants_[i].part.replaced, part.replaced))
      return i;
  if (v.operands.size() + op.op->result_count() + 1 > kMostOperands)
    return error(Code::unsupported, op.op->describe(), " has ", v.operands.size(), " operands and ",
                 op.op->result_count(), " results, strips pass up to ", kMostOperands - 1, " of both");
  for (const Dims& extents : v.extents)
    if (extents.size() > kMostRank) return error(Code::unsupported, op.op->describe(), " has dims beyond ", kMostRank);
  TENON_TRY(request, request_for_part(*op.op, part, result, op.result, from.types));
  request.dense_operands.resize(request.operands.size());
  for (size_t i = 0; i < v.operands.size(); ++i) {
    const size_t operand = passed[v.operands[i]];
    v.is_dense.push_back(lies_dense(*op.op->operand(operand), v.extents[i], from));
    request.dense_operands[operand] = v.is_dense.back();
  }
  v.is_dense.push_back(lies_dense(op.value(), v.extents.back(), from));
  // Unused results are dense.
  request.dense_results.assign(request.results.size(), true);
  request.dense_results[op.result] = v.is_dense.back();
  TENON_TRY(choice, from.kernels.kernel(request));
  if (!choice.workspace_bytes.is_constant())
    return error(Code::unsupported, "the workspace of ", choice.kernel->name, " is not known before a run");
  v.choice = std::move(choice);
  std::vector<ElementType> elements;
  for (const size_t i : v.operands) elements.push_back(request.operands[passed[i]].element());
  elements.push_back(request.results[op.result].element());
  for (size_t r = 0; r < request.results.size(); ++r)
    if (r != op.result) v.unused.push_back(request.results[r]);
  TENON_OK(size_up(v, elements));
  v.part = std::move(part);
  variants_.push_back(std::move(v));
  return variants_.size() - 1;
}

Result<void> StripStage::size_up(Variant& v, const std::vector<ElementType>& elements) {
  v.kernel_bytes = aligned(v.choice.workspace_bytes.constant());
  int64_t bytes = v.kernel_bytes;
  for (size_t i = 0; i < v.extents.size(); ++i) {
    TENON_TRY(copy, whole_copy(v.extents[i].size(), elements[i]));
    v.copies.push_back(std::move(copy));
    if (!v.choice.takes_strided && !v.is_dense[i]) bytes += aligned(dense_bytes(v.extents[i], elements[i]));
  }
  for (const Type& type : v.unused) {
    if (type.shape().rank() > static_cast<int64_t>(kMostRank))
      return error(Code::unsupported, "a result that nobody uses has dims beyond ", kMostRank);
    bytes += aligned(dense_bytes(*type.shape().static_dims(), type.element()));
  }
  workspace_bytes_ = std::max(workspace_bytes_, bytes);
  return {};
}

const StripStage::Box* StripStage::find(const BufferView& result) const {
  std::array<int64_t, 2 * kMostStripLoops> key{};
  for (size_t i = 0; i < moved_.size(); ++i) {
    const DimView& dim = result.dims[static_cast<size_t>(moved_[i])];
    key[2 * i] = dim.min, key[2 * i + 1] = dim.extent;
  }
  const auto found = std::ranges::lower_bound(
      boxes_, std::span<const int64_t>(key.data(), 2 * moved_.size()),
      [](const auto& a, const auto& b) { return std::ranges::lexicographical_compare(a, b); }, &Box::key);
  const bool equal = found != boxes_.end() && std::equal(found->key.begin(), found->key.end(), key.begin());
  return equal ? &*found : nullptr;
}

std::unique_ptr<program::KernelState> StripStage::make_state() const {
  auto states = std::make_unique<States>();
  for (const Variant& v : variants_)
    states->of_variant.push_back(v.choice.kernel->make_state ? v.choice.kernel->make_state() : nullptr);
  return states;
}

Result<void> StripStage::run(program::CallContext& context) const {
  const BufferView& result = context.operands[passed_];
  const Box* box = find(result);
  if (!box) return error(Code::internal, "stage '", context.stage, "' is called for a strip that was not planned");
  const Variant& v = variants_[box->variant];
  Operands operands(v.choice, workspace_bytes_ > 0 ? context.operands[passed_ + 1].base : nullptr);
  const int64_t* mins = box->mins.data();
  for (size_t i = 0; i < v.operands.size(); mins += v.extents[i].size(), ++i) {
    operands.next().crop(context.operands[v.operands[i]], mins, v.extents[i]);
    if (operands.add(v.is_dense[i])) TENON_OK(v.copies[i].run(operands.given(i), operands.original(i), nullptr, {}));
  }
  const size_t out = v.operands.size();
  for (size_t r = 0; r < result_; ++r) operands.add_unused(v.unused[r]);
  const size_t given = out + result_;
  operands.next().whole(result);
  const bool is_packed = operands.add(v.is_dense[out]);
  for (size_t r = result_; r < v.unused.size(); ++r) operands.add_unused(v.unused[r]);
  if (v.kernel_bytes > 0) operands.add_workspace(v.choice.workspace_bytes.constant());
  const auto* states = static_cast<const States*>(context.state);
  program::KernelState* state = states ? states->of_variant[box->variant].get() : nullptr;
  program::CallContext inner{operands.all(), {}, context.stage, context.worker, state, context.parallel};
  TENON_OK(v.choice.kernel->run(inner));
  if (is_packed) TENON_OK(v.copies[out].run(operands.original(given), operands.given(given), nullptr, {}));
  return {};
}

}  // namespace tenon::irgen
