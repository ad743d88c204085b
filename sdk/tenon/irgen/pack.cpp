#include <tenon/irgen/pack.hpp>

#include <cstring>
#include <utility>

namespace tenon::irgen {
namespace {

using program::BufferView;
using program::DimView;

// Calls move(bytes of the view, count) for runs of contiguous elements, in the order of the dense form.
template <class Move>
class Runs {
 public:
  Runs(const BufferView& view, const Move& move) : view_(view), move_(move) {
    for (size_t d = 0; d < view.dims.size() && dense(d); ++d) {
      run_ *= view.dims[d].extent;
      first_ = d + 1;
    }
  }

  void walk() {
    if (!view_.empty()) walk(view_.dims.size(), view_.base);
  }

 private:
  bool dense(size_t d) const {
    const DimView& dim = view_.dims[d];
    return dim.fold <= 0 && (dim.extent == 1 || dim.stride == view_.element_bytes() * run_);
  }
  // Visits the dims below `left`.
  void walk(size_t left, std::byte* at) {
    if (left == first_) return move_(at, run_);
    const DimView& dim = view_.dims[left - 1];
    for (int64_t i = dim.min; i <= dim.max(); ++i) walk(left - 1, at + dim.place(i) * dim.stride);
  }

  const BufferView& view_;
  const Move& move_;
  int64_t run_ = 1;
  size_t first_ = 0;
};

template <class Move>
void for_each_run(const BufferView& view, const Move& move) {
  Runs<Move>(view, move).walk();
}

}  // namespace

void pack(const BufferView& from, std::byte* to) {
  const int64_t element = from.element_bytes();
  for_each_run(from, [&](const std::byte* run, int64_t count) {
    std::memcpy(to, run, static_cast<size_t>(count * element));
    to += count * element;
  });
}

void unpack(const std::byte* from, const BufferView& to) {
  const int64_t element = to.element_bytes();
  for_each_run(to, [&](std::byte* run, int64_t count) {
    std::memcpy(run, from, static_cast<size_t>(count * element));
    from += count * element;
  });
}

}  // namespace tenon::irgen
