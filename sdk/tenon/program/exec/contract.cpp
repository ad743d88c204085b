#include <tenon/program/exec/contract.hpp>

#include <algorithm>
#include <cstring>

#include <tenon/program/exec/buffers_internal.hpp>
#include <tenon/program/exec/copy_reference_internal.hpp>
#include <tenon/program/ir/labels.hpp>

namespace tenon::program {
namespace {

using namespace detail;

// A side of a dim of an operand: below its box, or above. For a ring: outside of the box.
struct Side {
  size_t dim;
  bool above;
};

// An operand in memory of its own, dense, with margins. A folded dim has all of its places and no margin: places
// outside the box take its role.
class GuardedOperand {
 public:
  static Result<GuardedOperand> make(const BufferView& original, Access access, const Kernel& kernel) {
    GuardedOperand guarded;
    guarded.original_ = original;
    guarded.access_ = access;
    int64_t stride = original.element_bytes();
    int64_t offset = 0;
    for (const DimView& d : original.dims) {
      const bool inner = &d != &original.dims.back();
      const int64_t margin = d.fold > 0 || (kernel.takes_dense_only && inner) ? 0 : kContractMargin;
      const int64_t gap = kernel.keeps_gaps && inner ? gap_behind(d, (&d)[1]) : 0;
      const int64_t places = d.fold > 0 ? d.fold : d.extent + 2 * margin + gap;
      guarded.dims_.push_back({d.min, d.extent, stride, d.fold});
      guarded.places_.push_back(places);
      guarded.margins_.push_back(margin);
      offset += margin * stride;
      if (__builtin_mul_overflow(stride, places, &stride))
        return error(Code::resource_exhausted, "the box with its margins has more bytes than int64 can count");
    }
    TENON_TRY(bytes, allocate_aligned(static_cast<size_t>(stride)));
    guarded.bytes_ = std::move(bytes);
    guarded.size_ = static_cast<size_t>(stride);
    guarded.offset_ = offset;
    return guarded;
  }

  BufferView view() const { return {bytes_.get() + offset_, dims_, original_.element}; }
  Access access() const { return access_; }
  size_t rank() const { return dims_.size(); }

  // Sets all bytes outside of the box to `fill`; the box becomes the original's, or `undefined` where the operand is
  // only written.
  void reset(std::byte fill, std::byte undefined) {
    std::fill_n(bytes_.get(), size_, fill);
    for_each_element([&](std::byte* mine, const std::byte* original) {
      if (access_ == Access::out)
        std::fill_n(mine, element_bytes(), undefined);
      else
        std::memcpy(mine, original, element_bytes());
    });
  }
  // Changes the fill on one side of one dim.
  void refill(Side side, std::byte fill) {
    for_each_place([&](std::byte* place, std::span<const int64_t> position) {
      if (is_on(side, position)) std::fill_n(place, element_bytes(), fill);
    });
  }
  // The first place outside of the box that no longer has `fill`: the dim along which it is outside, and the side.
  std::optional<Side> overwritten(std::byte fill) const {
    std::optional<Side> found;
    for_each_place([&](const std::byte* place, std::span<const int64_t> position) {
      if (found) return;
      for (size_t d = 0; d < rank(); ++d)
        for (const bool above : {false, true})
          if (!found && is_on({d, above}, position) && !all_are(place, fill)) found = Side{d, above};
    });
    return found;
  }
  // The first element of the box that differs from the original.
  std::optional<std::vector<int64_t>> changed() const { return first_difference(original_); }
  std::optional<std::vector<int64_t>> first_difference(const BufferView& other) const {
    std::optional<std::vector<int64_t>> found;
    for_each_box_index([&](std::span<const int64_t> index) {
      if (!found && std::memcmp(view().address(index), other.address(index), element_bytes()) != 0)
        found.emplace(index.begin(), index.end());
    });
    return found;
  }
  void store() const {
    for_each_box_index([&](std::span<const int64_t> index) {
      std::memcpy(original_.address(index), view().address(index), element_bytes());
    });
  }

 private:
  // Places between the last of `inner` and the next index of `outer`.
  static int64_t gap_behind(const DimView& inner, const DimView& outer) {
    const bool several = outer.extent > 1 && inner.stride > 0 && outer.stride % inner.stride == 0;
    return several ? std::max<int64_t>(outer.stride / inner.stride - inner.extent, 0) : 0;
  }
  size_t element_bytes() const { return static_cast<size_t>(original_.element_bytes()); }
  bool all_are(const std::byte* p, std::byte fill) const {
    return std::all_of(p, p + element_bytes(), [&](std::byte b) { return b == fill; });
  }

  template <class Visit>
  void for_each_box_index(const Visit& visit) const {
    const auto every = [&](std::span<const int64_t> index) -> Result<void> {
      visit(index);
      return {};
    };
    TENON_CHECK(for_each_index(dims_, every).ok(), "a visit without errors");
  }
  template <class Visit>
  void for_each_element(const Visit& visit) const {
    for_each_box_index([&](std::span<const int64_t> index) { visit(view().address(index), original_.address(index)); });
  }
  // visit(bytes of the element, position along each dim relative to the lowest place)
  template <class Visit>
  void for_each_place(const Visit& visit) const {
    std::vector<DimView> all;
    for (size_t d = 0; d < rank(); ++d) all.push_back({0, places_[d], dims_[d].stride, 0});
    const auto every = [&](std::span<const int64_t> position) -> Result<void> {
      std::byte* place = bytes_.get();
      for (size_t d = 0; d < rank(); ++d) place += position[d] * dims_[d].stride;
      visit(place, position);
      return {};
    };
    TENON_CHECK(for_each_index(all, every).ok(), "a visit without errors");
  }

  bool is_on(Side side, std::span<const int64_t> position) const {
    const DimView& d = dims_[side.dim];
    const int64_t p = position[side.dim];
    if (d.fold > 0) {  // places between the end of the box and its beginning; they count as above
      const int64_t from_first = (p - d.place(d.min) + d.fold) % d.fold;
      return side.above && from_first >= d.extent;
    }
    const int64_t margin = margins_[side.dim];
    return side.above ? p >= margin + d.extent : p < margin;
  }

  BufferView original_;
  Access access_ = Access::in;
  std::vector<DimView> dims_;
  std::vector<int64_t> places_;
  std::vector<int64_t> margins_;
  AlignedBytes bytes_;
  size_t size_ = 0;
  int64_t offset_ = 0;
};

class CheckedCall {
 public:
  CheckedCall(const Program& program, const Call& call, const CallContext& context)
      : program_(program), call_(call), context_(context) {}

  Result<void> run() {
    for (size_t i = 0; i < context_.operands.size(); ++i) {
      const Kernel& kernel = *call_.kernel;
      TENON_TRY(first, GuardedOperand::make(context_.operands[i], call_.operands[i].access, kernel), label(i));
      TENON_TRY(second, GuardedOperand::make(context_.operands[i], call_.operands[i].access, kernel), label(i));
      results_.push_back(std::move(first));
      other_.push_back(std::move(second));
    }
    TENON_OK(run_on(results_, kFill, kUndefined));
    for (size_t i = 0; i < results_.size(); ++i) TENON_OK(check_writes(i), label(i));
    TENON_OK(run_on(other_, kOtherFill, kUndefined));
    if (const auto wrong = difference()) TENON_OK(name_read(*wrong));
    TENON_OK(run_on(other_, kFill, kOtherUndefined));
    if (const auto wrong = difference()) return unwritten(*wrong);
    for (size_t i = 0; i < results_.size(); ++i)
      if (is_result(i)) results_[i].store();
    return {};
  }

 private:
  // Byte patterns that differ from those of usual elements, which are small integers and floats of moderate size.
  static constexpr std::byte kFill{0xA7}, kOtherFill{0x5E}, kUndefined{0xCB}, kOtherUndefined{0x36};

  struct Difference {
    size_t operand;
    std::vector<int64_t> index;
  };

  std::string label(size_t operand) const { return operand_label(program_, call_, operand); }

  Result<void> run_on(std::vector<GuardedOperand>& operands, std::byte fill, std::byte undefined) const {
    for (GuardedOperand& o : operands) o.reset(fill, undefined);
    return call_kernel(operands);
  }
  Result<void> call_kernel(const std::vector<GuardedOperand>& operands) const {
    std::vector<BufferView> views;
    for (const GuardedOperand& o : operands) views.push_back(o.view());
    CallContext context{views, context_.scalars, context_.stage, context_.worker, nullptr, context_.parallel};
    return call_.kernel->run(context);
  }

  Result<void> check_writes(size_t operand) const {
    const GuardedOperand& o = results_[operand];
    if (const auto side = o.overwritten(kFill))
      return error(Code::invalid_argument, "stage '", context_.stage, "' writes ", describe(*side), " of ",
                   label(operand));
    if (o.access() != Access::in) return {};
    if (const auto index = o.changed())
      return error(Code::invalid_argument, "stage '", context_.stage, "' writes index ", *index, " of ", label(operand),
                   ", which it may only read");
    return {};
  }

  bool is_result(size_t operand) const {
    const auto workspaces = static_cast<size_t>(call_.kernel->workspaces);
    return results_[operand].access() != Access::in && operand + workspaces < results_.size();
  }
  std::optional<Difference> difference() const {
    for (size_t i = 0; i < results_.size(); ++i)
      if (is_result(i))
        if (auto index = results_[i].first_difference(other_[i].view())) return Difference{i, *std::move(index)};
    return std::nullopt;
  }

  // The results depend on some margin: the fills are changed one by one until the results differ.
  Result<void> name_read(const Difference& seen) {
    TENON_OK(run_on(other_, kFill, kUndefined));
    if (difference())
      return error(Code::invalid_argument, "stage '", context_.stage,
                   "' gives different results for the same operands, at index ", seen.index, " of ",
                   label(seen.operand), ": contract mode needs kernels that do not");
    for (size_t i = 0; i < other_.size(); ++i)
      for (size_t d = 0; d < other_[i].rank(); ++d)
        for (const bool above : {false, true}) {
          for (GuardedOperand& o : other_) o.reset(kFill, kUndefined);
          other_[i].refill({d, above}, kOtherFill);
          TENON_OK(call_kernel(other_));
          if (const auto wrong = difference())
            return error(Code::invalid_argument, "stage '", context_.stage, "' reads ", describe({d, above}), " of ",
                         label(i), ": index ", wrong->index, " of ", label(wrong->operand), " depends on it");
        }
    return error(Code::invalid_argument, "stage '", context_.stage, "' reads outside of its boxes, and index ",
                 seen.index, " of ", label(seen.operand), " depends on several sides at once");
  }

  Result<void> unwritten(const Difference& wrong) const {
    return error(Code::invalid_argument, "stage '", context_.stage, "' does not write index ", wrong.index, " of ",
                 label(wrong.operand), ", or reads an operand declared `out` before it writes it");
  }

  static std::string describe(Side side) {
    return str(side.above ? "above" : "below", " the box, in dim ", side.dim, ",");
  }

  const Program& program_;
  const Call& call_;
  const CallContext& context_;
  std::vector<GuardedOperand> results_;
  std::vector<GuardedOperand> other_;
};

}  // namespace

Result<void> call_checked(const Program& program, const Call& call, const CallContext& context) {
  return CheckedCall(program, call, context).run();
}

}  // namespace tenon::program
