// Timings of a machine that others use as well: quantities are timed in turn, in rounds, at different places of memory,
// and samples during which another thread had the processor do not count.
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
#include <tenon/program/pipeline/non_temporal_internal.hpp>
#include <tenon/program/schedule/machine_probe_internal.hpp>
#include <tenon/program/schedule/machine_readings.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::program {

namespace {

using detail::Probe;

// Samples of the largest cache or main memory take .1 to 4 ms, so there are fewer of them: everything should take some
// 0.2 s, since each of the first processes on a machine waits for it.
constexpr int kTries = 3, kTriesBeyond = 2, kTriesOfRegion = 1, kRounds = 4;
// Bytes passed in a sample, at least: some 10 us.
constexpr size_t kBytesOfTry = size_t{1} << 20;

void keep(const void* p) { asm volatile("" : : "r"(p) : "memory"); }

// Line by line, each read and then written, as kernels do. memcpy differs: from some KB on it can write lines without
// reading them first.
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

// In the widest vectors of the machine, as a target's kernels do.
Pass widest_pass() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return pass_avx512;
  if (__builtin_cpu_supports("avx2")) return pass_avx2;
#endif
  return pass_baseline;
}

// A chain of empty kernels, in a loop of one index at a time.
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
      last =
          p.stage(str("stage", s), nothing).reads(from, {windows ? Window(x - 1, x + 1) : Window(x)}).writes(to, {x});
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

// The quantities that can be timed in a region of memory.
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
  // A different one in each round, as far as available: physical pages differ in how well they suit caches.
  std::byte* place_for(size_t bytes) const {
    const size_t places = (bytes_ - bytes) / kPage + 1;
    return memory_ + round_ * 0x9e3779b9u % places * kPage;
  }

  int tries_within(size_t bytes) const {
    return bytes == bytes_ ? kTriesOfRegion : bytes > caches_[caches_.size() - 2] ? kTriesBeyond : kTries;
  }

  void add_pass(size_t within) {
    const size_t half = within / 2, times = std::max<size_t>(1, kBytesOfTry / half);
    Probe& probe = probes_.emplace_back(pass_name(within), static_cast<double>(2 * half * times), tries_within(within),
                                        [this, half, times, within] {
                                          std::byte* const at = place_for(within);
                                          for (size_t i = 0; i < times; ++i) pass_(at + half, at, half);
                                        });
    if (within < bytes_) probe.moves();
    if (within > caches_[caches_.size() - 2]) mostly_[pass_name(within)] = mostly_name(within);
  }

  // A pointer chase from line to line, in an order that the hardware does not prefetch: x -> a * x + c modulo a power
  // of two visits all of them. Data that has been passed before is in the smallest cache that holds it; the first
  // quarter of the whole region is in none.
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
    probes_
        .emplace_back(wait_name(within), kSteps, 1, walk,
                      [this, half = within / 2] { pass_(memory_ + half, memory_, half); })
        .moves();
  }

  // Prefetches before each part of a piece, for the next piece: reads and writes; or reads only, with non-temporal
  // stores.
  enum class Hints : uint8_t { none, all, non_temporal };
  // Pieces that are read from far away, processed in the smallest cache and written far away; the same without the
  // processing, or without the transfers. Far away is main memory, or a part of the largest cache.
  struct Pieces {
    size_t piece = 0;
    size_t span = 0;  // traversed in halves that are read and written; 0: the smallest cache only
    Hints hints = Hints::none;
    bool works = true;
    size_t apart = 0;  // distance between pieces; 0: contiguous
    size_t step() const { return apart > 0 ? apart : piece; }
  };
  void add_pieces() {
    for (const size_t piece : kPieceBytes) {
      add_pieces(piece_name(piece, "near"), {.piece = piece});
      add_pieces(piece_name(piece, kFar), {.piece = piece, .span = far_span()});
    }
    add_hinted(kFar, far_span(), {Hints::all, Hints::non_temporal});
    add_pieces(std::string(kPiecesApart), {.piece = kShortPiece,
                                           .span = far_span(),
                                           .hints = Hints::all,
                                           .works = false,
                                           .apart = 2 * kPage + detail::kLineBytes});
    if (has_fetched_nearby(caches_)) add_hinted(kNearby, waited_bytes(caches_, caches_.size() - 1), {Hints::all});
  }
  void add_hinted(std::string_view where, size_t span, std::initializer_list<Hints> all) {
    const size_t piece = fetched_piece_bytes(caches_);
    add_pieces(way_name(where, Hints::none), {.piece = piece, .span = span, .works = false});
    for (const Hints hints : all) {
      add_pieces(way_name(where, hints), {.piece = piece, .span = span, .hints = hints, .works = false});
      add_pieces(hinted_name(where, hints), {.piece = piece, .span = span, .hints = hints});
    }
  }
  void add_pieces(std::string name, const Pieces& pieces) {
    const size_t region = std::min(bytes_ / 64, kBytesOfTry);
    std::function<void()> before;
    int tries = kTries;
    // Main memory is where no sample has been until all others have been through the caches. For smaller spans, the
    // data passed last is in smaller caches.
    if (pieces.span > 0 && pieces.span < far_span()) {
      before = [this, half = pieces.span / 2] { pass_(memory_ + half, memory_, half); };
      tries = kTriesBeyond;
    }
    probes_.emplace_back(
        std::move(name), static_cast<double>(region), tries,
        [this, pieces, region] {
          const size_t passed = region / pieces.piece * pieces.step();
          if (pieces.span == far_span()) far_ = (far_ + passed) % (pieces.span / 2 - passed) / kPage * kPage;
          work_on_pieces(pieces, pieces.span == far_span() ? far_ : 0, region);
        },
        std::move(before));
  }
  size_t far_span() const { return bytes_ - 4 * kPieceBytes.back(); }
  static constexpr size_t kShortPiece = 1024;
  static constexpr std::string_view kFar = "far", kNearby = "nearby", kPiecesApart = "pieces apart";
  static std::string piece_name(size_t bytes, std::string_view where) { return str("piece ", bytes, " ", where); }
  static std::string way_name(std::string_view where, Hints hints) {
    return str("pass ", where, " ", static_cast<int>(hints));
  }
  static std::string hinted_name(std::string_view where, Hints hints) {
    return str("hinted ", where, " ", static_cast<int>(hints));
  }

  void say_what_is_hidden(Readings& readings) const {
    const auto take = [&](const std::string& name) { return readings.extract(name).mapped(); };
    std::map<size_t, double> near, far;
    for (const size_t piece : kPieceBytes) {
      near[piece] = take(piece_name(piece, "near"));
      far[piece] = take(piece_name(piece, kFar));
    }
    const auto hidden = [&](size_t piece, double way, double taken) {
      return std::max((near[piece] + way - taken) / std::min(near[piece], way), 0.0);
    };
    // The transfer of the two longest ones is not hidden and is used for the others: disturbances affect both alike.
    double way = 0;
    for (const size_t piece : {kPieceBytes[kPieceBytes.size() - 2], kPieceBytes.back()})
      way += (far[piece] - near[piece]) / 2;
    for (const size_t piece : kPieceBytes)
      readings[hidden_name(piece)] = hidden(piece, std::max(way, 1e-15), far[piece]);
    const auto say = [&](std::string_view where, Hints hints, double plain, const HintedNames& names) {
      const double hinted = take(way_name(where, hints));
      readings[std::string(names.way)] = hinted / plain;
      readings[std::string(names.hidden)] =
          hidden(fetched_piece_bytes(caches_), hinted, take(hinted_name(where, hints)));
    };
    const double plain_far = take(way_name(kFar, Hints::none)), apart = take(std::string(kPiecesApart));
    readings[std::string(kPieceApart)] =
        std::max((apart - readings.find(way_name(kFar, Hints::all))->second) * kShortPiece, 0.0);
    say(kFar, Hints::all, plain_far, kFetched);
    say(kFar, Hints::non_temporal, plain_far, kNonTemporal);
    if (has_fetched_nearby(caches_)) say(kNearby, Hints::all, take(way_name(kNearby, Hints::none)), kFetchedNearby);
  }
  void work_on_pieces(const Pieces& pieces, size_t at_first, size_t region) {
    // About as much as the transfer takes: some 40 GB/s there and back compared with 400 in the smallest cache. The
    // exact value is not critical.
    constexpr int kWork = 10;
    const size_t piece = pieces.piece, half = pieces.span / 2;
    const size_t part = (piece / kWork + detail::kLineBytes - 1) / detail::kLineBytes * detail::kLineBytes;
    std::byte* const near = memory_ + bytes_ - 2 * kPieceBytes.back();
    std::byte* const from = memory_ + at_first;
    const auto write = [&](std::byte* to, const std::byte* what, size_t bytes) {
      pieces.hints == Hints::non_temporal ? non_temporal_(to, what, bytes) : pass_(to, what, bytes);
    };
    const auto hint = [&](size_t next) {
      const auto at = reinterpret_cast<uint64_t>(from + next);
      if (pieces.hints != Hints::none) detail::read_lines_soon(at, static_cast<int32_t>(part / detail::kLineBytes));
      if (pieces.hints == Hints::all)
        detail::write_lines_soon(at + half, static_cast<int32_t>(part / detail::kLineBytes));
    };
    for (size_t i = 0; i < region / piece; ++i) {
      const size_t at = i * pieces.step();
      if (!pieces.works) {
        for (size_t done = 0; done < piece; done += part) {
          hint(at + pieces.step() + done);
          write(from + half + at + done, from + at + done, std::min(part, piece - done));
        }
        continue;
      }
      pass_(near, half > 0 ? from + at : near + piece, piece);
      for (size_t w = 0; w < kWork; ++w) {
        hint(at + pieces.step() + w * part);
        pass_(near + (w + 1) % 2 * piece, near + w % 2 * piece, piece);
      }
      write(half > 0 ? from + half + at : near + piece, near, piece);
    }
    if (pieces.hints == Hints::non_temporal) detail::end_of_lines();
  }

  // Rows with gaps between them, and the same without. Too long for their ends to be predicted by the branch predictor.
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
    // Longer than threads of a pool spin.
    static constexpr std::chrono::microseconds kAsleep{400};
    probes_
        .emplace_back(
            std::string(kWoken), 1, kTries, [this] { two_.run(2, 1, [](int64_t, int64_t) {}); },
            [] { std::this_thread::sleep_for(kAsleep); })
        .moves();
  }
  // In pieces that each thread takes when it is ready, so that none waits for long.
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
  const detail::MoveRow non_temporal_ = detail::non_temporal_row();
  ThreadPool two_{2};
  std::vector<Probe> probes_;
  std::map<std::string, std::string, std::less<>> mostly_;  // by names of probes: names of the typical times
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
