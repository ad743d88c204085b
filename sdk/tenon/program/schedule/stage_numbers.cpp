#include <tenon/program/schedule/stage_numbers_internal.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>

namespace tenon::program::detail {

namespace {

// The stride with which a dim of a buffer moves per index of the reader, and the number of additional indices that one
// index of the reader needs.
struct Motion {
  int index = 0;  // of the reader
  double rate = 0, span = 0;
};
using ReadMotion = std::vector<std::vector<Motion>>;  // by dim of the buffer
double overlap_of(const Motion& m) { return m.rate > 0 ? std::max(std::floor(m.span + 1 - m.rate), 0.0) : 0; }
struct KnownMotion {
  const Windows* windows;
  const std::vector<std::string>* indices;  // of the reader
  ReadMotion motion;
  KnownMotion(const Windows* w, const std::vector<std::string>* i, ReadMotion m)
      : windows(w), indices(i), motion(std::move(m)) {}
};

class Measurement {
 public:
  Measurement(const Plan& plan, const SymbolValues& sizes) : plan_(plan), sizes_(sizes) {}

  Result<PipelineNumbers> run() {
    out_.stages.resize(plan_.order.size());
    out_.position.resize(plan_.stages.size());
    first_.resize(plan_.order.size());
    for (size_t at = 0; at < plan_.order.size(); ++at) {
      out_.position[static_cast<size_t>(plan_.order[at])] = at;
      first_[at] = parent_.size();
      for (size_t i = 0; i < plan_.stage(plan_.order[at]).indices.size(); ++i) parent_.push_back(parent_.size());
    }
    last_reader_.assign(plan_.buffers.size(), SIZE_MAX);
    for (size_t at = 0; at < plan_.order.size(); ++at)
      TENON_OK(measure(at), "in stage '", plan_.spec(plan_.order[at]).name, "'");
    name_dims();
    return std::move(out_);
  }

 private:
  StageNumbers& numbers(int stage) { return out_.stages[out_.position[static_cast<size_t>(stage)]]; }

  Result<void> measure(size_t at) {
    const int s = plan_.order[at];
    StageNumbers& n = out_.stages[at];
    n.last_use = at;
    n.is_copy = plan_.spec(s).is_copy();
    std::vector<Window> box;  // numbers, so that boxes derived from it are not expressions
    for (const Window& w : index_box(plan_, s, 0)) {
      TENON_TRY(first, w.first.evaluate(sizes_));
      TENON_TRY(last, w.last.evaluate(sizes_));
      box.emplace_back(first, last);
      n.indices.push_back({static_cast<double>(std::max<int64_t>(last - first + 1, 0))});
    }
    for (const WriteSpec& write : plan_.spec(s).writes) {
      double elements = 1;
      for (const std::string& index : write.indices)
        elements *= n.indices[static_cast<size_t>(plan_.stage(s).index_of(index))].extent;
      if (&write == plan_.spec(s).writes.data()) n.elements = elements;
      n.bytes += elements * bytes_of_element(write.buffer);
      n.is_output |= plan_.buffer(write.buffer).role == Role::output;
    }
    for (int r = 0; r < static_cast<int>(plan_.spec(s).reads.size()); ++r) TENON_OK(measure_read({s, r}, at, box));
    return {};
  }

  double bytes_of_element(int buffer) const { return plan_.buffer_spec(buffer).element.bits() / 8; }

  Result<void> measure_read(const Use& use, size_t at, const std::vector<Window>& box) {
    const ReadSpec& read = plan_.spec(use.stage).reads[static_cast<size_t>(use.read)];
    double elements = 1;
    for (const Window& w : read_box(plan_, use, box)) {
      TENON_TRY(extent, w.extent().evaluate(sizes_));
      elements *= static_cast<double>(std::max<int64_t>(extent, 0));
    }
    const int producer = plan_.buffer(read.buffer).producer;
    const bool given = producer < 0 || plan_.is_declared(read.buffer);
    size_t& before = last_reader_[static_cast<size_t>(read.buffer)];
    if (before != at)
      out_.stages[at].reads.push_back({elements * bytes_of_element(read.buffer),
                                       given ? SIZE_MAX : out_.position[static_cast<size_t>(producer)], before});
    before = at;
    if (producer >= 0) numbers(producer).last_use = std::max(numbers(producer).last_use, at);
    const ReadMotion& motion = motion_of(use);
    for (const std::vector<Motion>& dim : motion)
      for (const Motion& m : dim) {
        double& again = out_.stages[at].indices[static_cast<size_t>(m.index)].again;
        again = std::max(again, overlap_of(m));
      }
    if (producer >= 0) connect(motion, at, producer, read.buffer);
    return {};
  }

  // Stages of a pipeline mostly read in the same way: the kinds of reads seen last are cached.
  const ReadMotion& motion_of(const Use& use) {
    constexpr size_t kKept = 8;
    const StagePlan& reader = plan_.stage(use.stage);
    const Windows& windows = plan_.spec(use.stage).reads[static_cast<size_t>(use.read)].windows;
    for (const KnownMotion& known : known_motions_)
      if (*known.windows == windows && *known.indices == reader.indices) return known.motion;
    if (known_motions_.size() == kKept) known_motions_.pop_front();
    return known_motions_.emplace_back(&windows, &reader.indices, find_motion(reader, windows)).motion;
  }

  // The relation of indices, determined from a few nearby indices and a distant one.
  ReadMotion find_motion(const StagePlan& reader, const Windows& windows) const {
    constexpr int64_t kNear = 4, kFar = 48;  // a multiple of common periods
    SymbolValues values = sizes_;
    for (const std::string& index : reader.indices) values[index] = 0;
    ReadMotion out(windows.size());
    for (size_t d = 0; d < windows.size(); ++d)
      for (size_t i = 0; i < reader.indices.size(); ++i) {
        int64_t& index = values[reader.indices[i]];
        if (!depends_on(windows[d].last, reader.indices[i])) continue;
        Motion m{static_cast<int>(i)};
        const Result<int64_t> last = windows[d].last.evaluate(values);
        index = kFar;
        const Result<int64_t> far = windows[d].last.evaluate(values);
        if (!last.ok() || !far.ok()) continue;
        m.rate = std::abs(static_cast<double>(*far - *last)) / kFar;
        for (index = 0; index < kNear; ++index) {
          const Result<int64_t> from = windows[d].first.evaluate(values), to = windows[d].last.evaluate(values);
          if (from.ok() && to.ok()) m.span = std::max(m.span, static_cast<double>(*to - *from));
        }
        index = 0;
        out[d].push_back(m);
      }
    return out;
  }

  void connect(const ReadMotion& motion, size_t reader, int producer, int buffer) {
    const StagePlan& made_by = plan_.stage(producer);
    StageNumbers& made = numbers(producer);
    const auto& indices = plan_.spec(producer).writes[static_cast<size_t>(plan_.buffer(buffer).write)].indices;
    double window = 1;  // elements that one element of the reader needs, as far as they move with it
    for (size_t d = 0; d < motion.size(); ++d) {
      const auto index = static_cast<size_t>(made_by.index_of(indices[d]));
      double span = 0;
      for (const Motion& m : motion[d]) {
        span = std::max(span, m.span);
        if (m.rate <= 0) continue;
        unite(first_[out_.position[static_cast<size_t>(producer)]] + index,
              first_[reader] + static_cast<size_t>(m.index));
        double& overlap = made.indices[index].overlap;
        overlap = std::max(overlap, overlap_of(m));
      }
      // Unaligned vectors of a row are loaded from two lines.
      window *= 1 + (d == 0 ? 2 : 1) * span;
    }
    made.times_read = std::max(made.times_read, window);
  }

  size_t root(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void unite(size_t a, size_t b) { parent_[root(a)] = root(b); }

  void name_dims() {
    std::vector<int> name(parent_.size(), -1);
    for (size_t at = 0; at < out_.stages.size(); ++at)
      for (size_t i = 0; i < out_.stages[at].indices.size(); ++i) {
        int& dim = name[root(first_[at] + i)];
        if (dim < 0) {
          dim = static_cast<int>(out_.extents.size());
          out_.extents.push_back(0);
        }
        StageNumbers::Index& index = out_.stages[at].indices[i];
        index.dim = dim;
        double& most = out_.extents[static_cast<size_t>(dim)];
        most = std::max(most, index.extent);
      }
  }

  const Plan& plan_;
  const SymbolValues& sizes_;
  PipelineNumbers out_;
  std::vector<size_t> first_;        // by position: where its indices begin among all
  std::vector<size_t> parent_;       // of indices, as a union-find forest of those of one dim
  std::vector<size_t> last_reader_;  // by buffer
  std::deque<KnownMotion> known_motions_;
};

}  // namespace

Result<PipelineNumbers> measure_stages(const Plan& plan, const SymbolValues& sizes) {
  return Measurement(plan, sizes).run();
}

}  // namespace tenon::program::detail
