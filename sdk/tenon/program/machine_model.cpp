// What the machine takes to read and write, to wait for memory and to call, measured once.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <tenon/program/auto_schedule.hpp>
#include <tenon/program/exec/bound_program.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::program {

namespace {

// The least of so many tries is what nothing has disturbed: fewer of those that take milliseconds.
constexpr int kTries = 15, kFewTries = 3;
// Bytes passed in a try, at least: some 10 us.
constexpr size_t kBytesOfTry = size_t{1} << 20;
// Passes within so many bytes go through main memory: more than caches that are to be told from it.
constexpr double kMostBytes = 64 << 20;
// No cache is taken for smaller, however slow the machine is meanwhile.
constexpr double kLeastBytes = 8 << 10;
// Caches count as far as passes within are so much faster than in main memory: others use the rest.
constexpr double kFasterThanMemory = 1.25;

template <class Body>
double least_seconds(const Body& body, int tries = kTries) {
  double least = 1e9;
  for (int i = 0; i < tries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
}

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

// Read and written, of passes within `bytes` of memory.
double passed_per_second(Pass pass, std::byte* memory, size_t bytes) {
  const size_t half = bytes / 2, times = std::max<size_t>(1, kBytesOfTry / half);
  const double seconds = least_seconds(
      [&] {
        for (size_t i = 0; i < times; ++i) pass(memory + half, memory, half);
      },
      times > 1 ? kTries : kFewTries);
  return static_cast<double>(2 * half * times) / seconds;
}

// Of pieces that are read from main memory, worked on in the smallest one and written to main memory, the longest whose
// work and whose way take little more than the longer of both. `seconds`: of the way of a byte, there and back.
double ahead_bytes(Pass pass, std::byte* memory, size_t bytes, const CostModel::Memory& smallest, double seconds) {
  constexpr size_t kPieces[] = {4 << 10, 5 << 10, 6 << 10, 7 << 10, 8 << 10, 10 << 10, 12 << 10};
  constexpr double kHidden = 0.5;
  const size_t region = std::min<size_t>(bytes / 64, size_t{1} << 20);  // that no try has gone through before
  std::byte *const near = memory + bytes - 2 * std::end(kPieces)[-1], *from = memory, *to = memory + bytes / 2;
  double ahead = 0;
  for (const size_t piece : kPieces) {
    const auto work = static_cast<int>(seconds * smallest.bytes_per_second);
    const auto run = [&](bool far) {
      for (size_t at = 0; at + piece <= region; at += piece) {
        pass(near, far ? from + at : near + piece, piece);
        for (int i = 0; i < work; ++i) pass(near + (i + 1) % 2 * piece, near + i % 2 * piece, piece);
        pass(far ? to + at : near + piece, near, piece);
      }
    };
    const double inside = least_seconds([&] { run(false); }, kFewTries);
    const double both = least_seconds([&] { run(true), from += region, to += region; }, kFewTries);
    const double way = static_cast<double>(region) * seconds;
    if (inside + way - both >= kHidden * std::min(inside, way)) ahead = static_cast<double>(piece);
  }
  return ahead;
}

// So much of a cache is gone through again and again as fast as half of it. Of the smallest one, where what streams by
// counts for more, half is taken.
double sure_bytes(Pass pass, std::byte* memory, double bytes) {
  constexpr double kAsFast = 0.9, kStep = 1.0 / 8;
  const auto passed = [&](double part) { return passed_per_second(pass, memory, static_cast<size_t>(part * bytes)); };
  const double half = passed(0.5);
  double sure = 0.5;
  while (sure + kStep < 1 && passed(sure + kStep) >= kAsFast * half) sure += kStep;
  return sure * bytes;
}

// More for each row than its bytes take: of short rows, each on pages of its own, and of the same without gaps.
double seconds_of_row(Pass pass, std::byte* memory, const CostModel::Memory& holder) {
  constexpr size_t kRow = 1024, kApart = 4096 + 64;
  const auto rows = static_cast<size_t>(holder.bytes / 4) / kApart;
  if (rows == 0) return 0;
  std::byte* const to = memory + rows * kApart;
  const double seconds = least_seconds([&] {
    for (size_t i = 0; i < rows; ++i) pass(to + i * kApart, memory + i * kApart, kRow);
  });
  const double together = least_seconds([&] { pass(to, memory, rows * kRow); });
  return std::max((seconds - together) / static_cast<double>(rows), 0.0);
}

// A chain of places, each the only one that says where the next one is: in an order that nothing is fetched ahead for.
class Chain {
 public:
  Chain(std::byte* memory, size_t bytes)
      : memory_(memory), places_(std::min(bytes / kApart, kSteps * (kFewTries + 1))) {
    std::vector<size_t> order(places_);
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin() + (places_ > 0), order.end(), std::mt19937(1));
    for (size_t i = 0; i < places_; ++i) {
      const size_t next = order[(i + 1) % places_] * kApart;
      std::memcpy(memory + order[i] * kApart, &next, sizeof next);
    }
  }
  // In few tries, so that those of a long chain meet no place again.
  double seconds_to_next() const {
    if (places_ < 2) return 0;
    size_t at = 0;
    const auto walk = [&] {
      for (size_t i = 0; i < kSteps; ++i) std::memcpy(&at, memory_ + at, sizeof at);
      keep(&at);
    };
    return least_seconds(walk, kFewTries) / kSteps;
  }

 private:
  static constexpr size_t kApart = 4096 + 64, kSteps = 2048;  // each on a page of its own

  std::byte* memory_;
  size_t places_;
};

double cache_bytes(int name, double otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<double>(bytes) : otherwise;
}

// Seconds of a call of a chain of kernels that do nothing, in a loop of one index at a time.
Result<double> seconds_of_call(bool windows) {
  constexpr int kStages = 4;
  constexpr int64_t kIterations = 4096;
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
  std::vector<std::byte> in(kIterations + 2 * kStages), out(kIterations);
  const Arguments arguments{{{"source", BufferArgument::dense(in.data(), kU8, {kIterations + 2 * kStages}, {-kStages})},
                             {from.name(), BufferArgument::dense(out.data(), kU8, {kIterations})}},
                            {}};
  TENON_TRY(bound, BoundProgram::bind(program, arguments));
  Result<void> ran;
  const double seconds = least_seconds([&] { ran = bound.run(arguments); });
  TENON_OK(std::move(ran));
  return seconds / (kStages * kIterations);
}

CostModel measured() {
  CostModel model = CostModel::host();
  const std::vector<double> bytes{cache_bytes(_SC_LEVEL1_DCACHE_SIZE, model.memories[0].bytes),
                                  cache_bytes(_SC_LEVEL2_CACHE_SIZE, model.memories[1].bytes),
                                  cache_bytes(_SC_LEVEL3_CACHE_SIZE, model.memories[2].bytes)};
  const auto all = static_cast<size_t>(std::min(2 * bytes.back(), kMostBytes));
  auto memory = allocate_aligned(all, kAlignBytes);
  if (!memory.ok()) return model;
  std::memset(memory->get(), 1, all);
  const Pass pass = widest_pass();
  // Within half of what a memory holds. The chain is laid before bytes are passed, so that its places are where theirs
  // are.
  const auto measure = [&](CostModel::Memory& m, double holds) {
    const auto within = static_cast<size_t>(holds / 2);
    const Chain chain(memory->get(), within / 2);
    m.bytes_per_second = passed_per_second(pass, memory->get(), within);
    m.latency_seconds = chain.seconds_to_next();
  };
  measure(model.memories.back(), 2 * static_cast<double>(all));
  const double main_memory = model.memories.back().bytes_per_second;
  for (size_t i = 0; i < bytes.size(); ++i) {
    CostModel::Memory& m = model.memories[i];
    const double smaller = i > 0 ? bytes[i - 1] : 0;
    for (m.bytes = std::min(bytes[i], kMostBytes / 2);; m.bytes /= 2) {
      measure(m, m.bytes);
      if (m.bytes_per_second >= kFasterThanMemory * main_memory || m.bytes <= (i > 0 ? 2 * smaller : kLeastBytes))
        break;
    }
    if (i > 0) m.sure_bytes = sure_bytes(pass, memory->get(), m.bytes);
    // What is fetched ahead makes passes within some parts of a memory half as fast again as within others.
    for (const double part : {m.bytes / 4, m.bytes / 8})
      if (part > smaller)
        m.bytes_per_second =
            std::min(m.bytes_per_second, passed_per_second(pass, memory->get(), static_cast<size_t>(part)));
  }
  model.ahead_bytes = ahead_bytes(pass, memory->get(), all, model.memories.front(),
                                  2 / model.memories.back().bytes_per_second);
  model.seconds_per_row = seconds_of_row(pass, memory->get(), model.memories[1]);
  const auto plain = seconds_of_call(false), with_windows = seconds_of_call(true);
  if (!plain.ok() || !with_windows.ok()) return model;
  model.seconds_per_call = *plain;
  model.seconds_per_window = std::max(*with_windows - *plain, 0.0);
  return model;
}

}  // namespace

CostModel CostModel::of_machine() {
  static const CostModel model = measured();
  return model;
}

}  // namespace tenon::program
