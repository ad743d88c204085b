// What is timed of a machine. Others run on it meanwhile: things are timed in turn, in rounds, at other places of memory
// each time, and tries in which another thread had the processor do not count.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/exec/prefetch_internal.hpp>
#include <tenon/program/machine_probe_internal.hpp>
#include <tenon/program/machine_readings.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::program {

namespace {

using detail::Probe;

constexpr int kTries = 3, kRounds = 5;
// Bytes passed in a try, at least: some 10 us.
constexpr size_t kBytesOfTry = size_t{1} << 20;

void keep(const void* p) { asm volatile("" : : "r"(p) : "memory"); }

// Line by line, each read and then written as kernels write theirs. What memcpy does is not that: from some KB on it has
// ways to write lines without reading them first.
[[gnu::always_inline]] inline void pass_lines(std::byte* to, const std::byte* from, size_t bytes) {
  typedef uint64_t Line __attribute__((vector_size(64)));
  for (size_t at = 0; at < bytes; at += sizeof(Line)) {
    Line line;
    std::memcpy(&line, from + at, sizeof line);
    line += 1;
    std::memcpy(to + at, &line, sizeof line);
  }
}
using Pass = void (*)(std::byte* to, const std::byte* from, size_t bytes);

void pass_baseline(std::byte* to, const std::byte* from, size_t bytes) { pass_lines(to, from, bytes); }
#if defined(__x86_64__)
[[gnu::target("avx2")]] void pass_avx2(std::byte* to, const std::byte* from, size_t bytes) {
  pass_lines(to, from, bytes);
}
[[gnu::target("avx512f")]] void pass_avx512(std::byte* to, const std::byte* from, size_t bytes) {
  pass_lines(to, from, bytes);
}
#endif

// In the widest vectors of the machine, as a target's kernels are.
Pass widest_pass() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return pass_avx512;
  if (__builtin_cpu_supports("avx2")) return pass_avx2;
#endif
  return pass_baseline;
}

// A chain of kernels that do nothing, in a loop of one index at a time.
class Calls {
 public:
  static constexpr int kStages = 4;
  static constexpr int64_t kIterations = 4096;

  static Result<std::shared_ptr<Calls>> make(bool windows) {
    const Expr x = Expr::symbol("x");
    const KernelHandle nothing = make_kernel(
        "nothing", [](CallContext&) -> Result<void> { return {}; }, true);
    Pipeline p("calls");
    BufferRef source = p.buffer("source", kU8, 1), from = source;
    std::optional<StageRef> last;
    for (int s = 0; s < kStages; ++s) {
      BufferRef to = p.buffer(str("made", s), kU8, 1);
      last = p.stage(str("stage", s), nothing).reads(from, {windows ? Window(x - 1, x + 1) : Window(x)}).writes(to, {x});
      from = to;
    }
    last->loops({{x, 1}});
    TENON_TRY(program, p.build({source}, {from}));
    auto calls = std::make_shared<Calls>();
    calls->arguments_ = {
        {{"source", BufferArgument::dense(calls->in_.data(), kU8, {kIterations + 2 * kStages}, {-kStages})},
         {from.name(), BufferArgument::dense(calls->out_.data(), kU8, {kIterations})}},
        {}};
    TENON_TRY(bound, BoundProgram::bind(program, calls->arguments_));
    calls->bound_.emplace(std::move(bound));
    TENON_OK(calls->bound_->run(calls->arguments_));
    return calls;
  }
  void run() { TENON_CHECK(bound_->run(arguments_).ok(), "kernels that do nothing have run before"); }

 private:
  std::vector<std::byte> in_ = std::vector<std::byte>(kIterations + 2 * kStages),
                         out_ = std::vector<std::byte>(kIterations);
  Arguments arguments_;
  std::optional<BoundProgram> bound_;
};

// What can be timed in a region of memory.
class Probes {
 public:
  Probes(const CacheBytes& caches, std::byte* memory)
      : caches_(caches), memory_(memory), bytes_(region_bytes(caches)), pass_(widest_pass()) {
    for (const size_t within : pass_sizes(caches)) add_pass(within);
    for (size_t level = 0; level < caches.size(); ++level) add_wait(waited_bytes(caches, level));
    add_wait(bytes_);
    add_pieces();
    add_rows();
    add_calls(kCall, false);
    add_calls(kCallWithWindows, true);
    if (two_.threads() == 2) add_two();
  }

  Readings take() {
    for (round_ = 0; round_ < kRounds; ++round_)
      for (Probe& probe : probes_) probe.take_round();
    Readings out;
    int tried = 0, disturbed = 0;
    for (const Probe& probe : probes_) {
      out[probe.name()] = probe.seconds();
      const auto mostly = mostly_.find(probe.name());
      if (mostly != mostly_.end()) out[mostly->second] = probe.mostly_seconds();
      tried += probe.tried();
      disturbed += probe.disturbed();
    }
    out[std::string(kDisturbed)] = static_cast<double>(disturbed) / tried;
    say_what_is_hidden(out);
    return out;
  }

 private:
  // Another one in each round, as far as there are others: physical pages suit caches more or less.
  std::byte* place_for(size_t bytes) const {
    const size_t places = (bytes_ - bytes) / kPage + 1;
    return memory_ + round_ * 0x9e3779b9u % places * kPage;
  }

  void add_pass(size_t within) {
    const size_t half = within / 2, times = std::max<size_t>(1, kBytesOfTry / half);
    Probe& probe = probes_.emplace_back(pass_name(within), static_cast<double>(2 * half * times),
                                        within < bytes_ ? kTries : 1, [this, half, times, within] {
                                          std::byte* const at = place_for(within);
                                          for (size_t i = 0; i < times; ++i) pass_(at + half, at, half);
                                        });
    if (within == bytes_) return;
    probe.moves();
    if (within > caches_[caches_.size() - 2]) mostly_[pass_name(within)] = mostly_name(within);
  }

  // From line to line, each the only one that says that the next one is wanted, in an order that nothing is fetched ahead
  // for: x -> a * x + c modulo a power of two goes through all of them. Bytes that have been passed before are in the
  // smallest cache that holds them; of the whole region, the first quarter is in none.
  void add_wait(size_t within) {
    constexpr size_t kSteps = 2048, kLine = 64, kFactor = 0x5851f42d4c957f2du, kShift = 0x14057b7ef767814fu;
    size_t lines = 1;
    while (2 * lines * kLine <= (within < bytes_ ? within : within / 4)) lines *= 2;
    const auto walk = [this, lines, at = size_t{0}]() mutable {
      for (size_t i = 0; i < kSteps; ++i) {
        size_t none;
        std::memcpy(&none, memory_ + at * kLine, sizeof none);
        asm volatile("and $0, %0" : "+r"(none));
        at = (at * kFactor + kShift + none) & (lines - 1);
      }
      keep(&at);
    };
    probes_.emplace_back(wait_name(within), kSteps, 1, walk,
                         [this, half = within / 2] { pass_(memory_ + half, memory_, half); })
        .moves();
  }

  // Pieces that are read from main memory, worked on in the smallest cache and written to main memory, and the same
  // without main memory.
  void add_pieces() {
    const size_t region = std::min(bytes_ / 64, kBytesOfTry);
    for (const size_t piece : kPieceBytes)
      for (const bool far : {false, true})
        probes_.emplace_back(piece_name(piece, far), static_cast<double>(region), kTries,
                             [this, piece, far, region] { work_on_pieces(piece, region, far, false); });
    const size_t fetched = fetched_piece_bytes(caches_);
    probes_.emplace_back(std::string(kPieceFetched), static_cast<double>(region), kTries,
                         [this, region, fetched] { work_on_pieces(fetched, region, true, true); });
  }
  static constexpr std::string_view kPieceFetched = "piece fetched";
  static std::string piece_name(size_t bytes, bool far) { return str("piece ", bytes, far ? " far" : " near"); }
  // The way of the two longest ones hides behind nothing, and is that of the others: load is in it as it is in theirs.
  void say_what_is_hidden(Readings& readings) const {
    std::vector<double> near, far;
    for (const size_t piece : kPieceBytes) {
      near.push_back(readings.extract(piece_name(piece, false)).mapped());
      far.push_back(readings.extract(piece_name(piece, true)).mapped());
    }
    const size_t last = near.size() - 1;
    const double way = std::max((far[last] - near[last] + far[last - 1] - near[last - 1]) / 2, 1e-15);
    for (size_t i = 0; i < kPieceBytes.size(); ++i)
      readings[hidden_name(kPieceBytes[i])] = std::max((near[i] + way - far[i]) / std::min(near[i], way), 0.0);
    const auto fetched_one = std::ranges::find(kPieceBytes, fetched_piece_bytes(caches_)) - kPieceBytes.begin();
    const double alone = near[static_cast<size_t>(fetched_one)];
    const double fetched = readings.extract(std::string(kPieceFetched)).mapped();
    readings[std::string(kFetched)] = std::max((alone + way - fetched) / std::min(alone, way), 0.0);
  }
  void work_on_pieces(size_t piece, size_t region, bool far, bool fetches) {
    // As much as the way takes, some 40 GB/s there and back beside 400 in the smallest cache: it need not be just that.
    constexpr int kWork = 10;
    std::byte* const near = memory_ + bytes_ - 2 * kPieceBytes.back();
    const size_t half = bytes_ / 2 - 2 * kPieceBytes.back();
    // No try goes where one has been until all others have been through the caches.
    std::byte* const from = memory_ + (far_ += far ? region : 0) % (half - region) / kPage * kPage;
    const auto fetch_part = [&](size_t at, int part) {
      const size_t bytes = (piece / kWork + detail::kLineBytes - 1) / detail::kLineBytes * detail::kLineBytes;
      const auto lines = static_cast<int32_t>(bytes / detail::kLineBytes);
      const auto next = reinterpret_cast<uint64_t>(from + at + piece + static_cast<size_t>(part) * bytes);
      detail::read_lines_soon(next, lines);
      detail::write_lines_soon(next + bytes_ / 2, lines);
    };
    for (size_t at = 0; at + piece <= region; at += piece) {
      pass_(near, far ? from + at : near + piece, piece);
      for (int i = 0; i < kWork; ++i) {
        if (fetches) fetch_part(at, i);
        pass_(near + (i + 1) % 2 * piece, near + i % 2 * piece, piece);
      }
      pass_(far ? from + bytes_ / 2 + at : near + piece, near, piece);
    }
  }

  // Rows with gaps between them, and the same without. They are longer than what processors foresee the end of.
  void add_rows() {
    constexpr size_t kRow = kPage, kApart = 2 * kPage + 64;
    const size_t rows = caches_[1] / 4 / kApart;
    if (rows == 0) return;
    probes_.emplace_back(std::string(kRowApart), static_cast<double>(rows), kTries, [this, rows] {
      std::byte* const at = place_for(2 * rows * kApart);
      for (size_t i = 0; i < rows; ++i) pass_(at + (rows + i) * kApart, at + i * kApart, kRow);
    });
    probes_.emplace_back(std::string(kRowTogether), static_cast<double>(rows), kTries, [this, rows] {
      std::byte* const at = place_for(2 * rows * kApart);
      pass_(at + rows * kApart, at, rows * kRow);
    });
  }

  void add_calls(std::string_view name, bool windows) {
    auto calls = Calls::make(windows);
    if (!calls.ok()) return;
    probes_.emplace_back(std::string(name), Calls::kStages * Calls::kIterations, kTries,
                         [calls = *std::move(calls)] { calls->run(); });
  }

  void add_two() {
    probes_.emplace_back(std::string(kPassByTwo), static_cast<double>(bytes_), 1, [this] { pass_by_two(); })
        .is_shared();
    constexpr int kLoops = 16;
    const auto meet = [this] {
      std::atomic<int> here = 0;
      two_.run(2, 1, [&](int64_t, int64_t) {
        for (++here; here < 2;) std::this_thread::yield();
      });
    };
    probes_
        .emplace_back(
            std::string(kJoined), kLoops, kTries,
            [meet] {
              for (int i = 0; i < kLoops; ++i) meet();
            },
            meet)
        .moves();
    // Longer than threads of a pool look for work.
    static constexpr std::chrono::microseconds kAsleep{400};
    probes_
        .emplace_back(
            std::string(kWoken), 1, kTries, [this] { two_.run(2, 1, [](int64_t, int64_t) {}); },
            [] { std::this_thread::sleep_for(kAsleep); })
        .moves();
  }
  // In pieces that are taken as each thread comes to them, so that none waits for long.
  void pass_by_two() {
    const size_t half = bytes_ / 2, piece = half / 256 / kPage * kPage;
    std::atomic<size_t> next = 0;
    two_.run(2, 1, [&](int64_t, int64_t) {
      for (size_t at; (at = next.fetch_add(piece)) < half;)
        pass_(memory_ + half + at, memory_ + at, std::min(piece, half - at));
    });
  }

  static constexpr size_t kPage = 4096;

  const CacheBytes caches_;
  std::byte* const memory_;
  const size_t bytes_;
  const Pass pass_;
  ThreadPool two_{2};
  std::vector<Probe> probes_;
  std::map<std::string, std::string, std::less<>> mostly_;  // by names of probes: those of what they mostly take
  size_t round_ = 0, far_ = 0;
};

}  // namespace

Readings read_machine(const CacheBytes& caches) {
  const size_t bytes = region_bytes(caches);
  auto memory = allocate_aligned(bytes, kAlignBytes);
  if (!memory.ok()) return {};
  std::memset(memory->get(), 1, bytes);
  return Probes(caches, memory->get()).take();
}

}  // namespace tenon::program
