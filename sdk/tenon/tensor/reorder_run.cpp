// Runs a plan: the fill, then nests of loops divided among threads.
#include <algorithm>
#include <cstring>
#include <functional>

#include <tenon/support/str.hpp>
#include <tenon/tensor/layout_internal.hpp>
#include <tenon/tensor/reorder_bits_internal.hpp>
#include <tenon/tensor/reorder_fields_internal.hpp>
#include <tenon/tensor/reorder_internal.hpp>
#include <tenon/tensor/reorder_vectors_internal.hpp>

namespace tenon {

using detail::BitWriter;
using detail::copy_short;
using detail::kShortRun;
using detail::Nest;
using detail::NestLoop;
using detail::ReorderProgram;

namespace {

struct Buffers {
  const std::byte* source;
  std::byte* destination;
  const std::byte* source_end;

  detail::BitSource bits() const { return {source, source_end}; }
};

struct Tasks {
  ParallelFor& parallel;
  int64_t bytes;  // worth a task
};

// Positions of the units of the innermost loops, relative to the start of those loops.
struct LoopPlaces {
  NestLoop loop;
  template <class F>
  void for_each(const F& f) const {
    for (int64_t i = 0; i < loop.count; ++i) f(i * loop.from, i * loop.to);
  }
};
// For several short loops, as a list.
struct LoopPlace {
  int64_t from, to;
};
struct ListedPlaces {
  std::span<const LoopPlace> places;
  template <class F>
  void for_each(const F& f) const {
    for (const LoopPlace& place : places) f(place.from, place.to);
  }
};

template <int64_t kUnit, class Places>
void copy_units(const std::byte* source, std::byte* destination, const Places& places) {
  places.for_each([&](int64_t from, int64_t to) { std::memcpy(destination + to, source + from, kUnit); });
}

inline void zero(std::byte* to, int64_t bytes) {
  static constexpr std::byte kZeros[kShortRun] = {};
  if (bytes <= kShortRun) return copy_short(to, kZeros, bytes);
  std::memset(to, 0, static_cast<size_t>(bytes));
}

// Runs, each followed by zeros.
void copy_padded(const std::byte* source, std::byte* destination, const NestLoop& loop, int64_t unit, int64_t zeros) {
  for (int64_t i = 0; i < loop.count; ++i, source += loop.from, destination += loop.to) {
    if (unit <= kShortRun) {
      copy_short(destination, source, unit);
    } else {
      std::memcpy(destination, source, static_cast<size_t>(unit));
    }
    zero(destination + unit, zeros);
  }
}

void zero_loop(std::byte* destination, const NestLoop& loop, int64_t unit) {
  for (int64_t i = 0; i < loop.count; ++i) zero(destination + i * loop.to, unit);
}

template <class Places>
void copy_places(const std::byte* source, std::byte* destination, const Places& places, int64_t unit) {
  switch (unit) {
    case 1: return copy_units<1>(source, destination, places);
    case 2: return copy_units<2>(source, destination, places);
    case 3: return copy_units<3>(source, destination, places);
    case 4: return copy_units<4>(source, destination, places);
    case 6: return copy_units<6>(source, destination, places);
    case 8: return copy_units<8>(source, destination, places);
    case 12: return copy_units<12>(source, destination, places);
    case 16: return copy_units<16>(source, destination, places);
    case 32: return copy_units<32>(source, destination, places);
    case 64: return copy_units<64>(source, destination, places);
    default: break;
  }
  if (unit <= kShortRun) {
    return places.for_each([&](int64_t from, int64_t to) { copy_short(destination + to, source + from, unit); });
  }
  places.for_each(
      [&](int64_t from, int64_t to) { std::memcpy(destination + to, source + from, static_cast<size_t>(unit)); });
}

// Runs of at least this many bits are copied by whole words.
constexpr int64_t kLongBits = 256;

void copy_bit_run(const detail::BitSource& source, int64_t from, std::byte* destination, int64_t to, int64_t bits) {
  if (bits >= kLongBits) return detail::copy_bits(source, from, destination, to, bits);
  BitWriter out(destination, to);
  out.copy(source, from, bits);
  out.flush();
}

// Copies `loop` of `unit` bits each, from bit `from` to bit `to`.
void gather_loop(const Buffers& buffers, int64_t from, int64_t to, const NestLoop& loop, int64_t unit) {
  const detail::BitSource source = buffers.bits();
  if (unit <= detail::kMaxFieldBits && detail::copy_fields(source, from, buffers.destination, to, loop, unit)) return;
  if (loop.to == unit && unit < kLongBits) {
    BitWriter out(buffers.destination, to);
    for (int64_t i = 0; i < loop.count; ++i) out.copy(source, from + i * loop.from, unit);
    out.flush();
    return;
  }
  for (int64_t i = 0; i < loop.count; ++i) {
    copy_bit_run(source, from + i * loop.from, buffers.destination, to + i * loop.to, unit);
  }
}

// A nest being run: the remaining loops, and short inner ones as a list of positions.
class NestRunner {
 public:
  // All of `loops` but the first may be turned into positions.
  NestRunner(const Nest& nest, const Buffers& buffers, std::span<const NestLoop> loops)
      : nest_(nest), buffers_(buffers), non_temporal_(written_bytes(nest) >= detail::kFarBytes) {
    const bool listed = nest.kind == Nest::Kind::run && nest.zeros == 0;
    if (!listed || loops.size() < 3 || loops.back().count >= kLongLoop) return;
    int64_t count = 1;
    while (loops.size() - listed_ > 1 && count * loops[loops.size() - 1 - listed_].count <= kMaxPlaces) {
      count *= loops[loops.size() - 1 - listed_++].count;
    }
    if (listed_ < 2) {
      listed_ = 0;
      return;
    }
    places_ = {{0, 0}};
    for (const NestLoop& loop : loops.last(listed_)) repeat(loop);
  }

  // `loops` as given to the constructor; the count of the first one may differ.
  void run(std::span<const NestLoop> loops, int64_t from, int64_t to) const {
    run_outer(loops.first(loops.size() - listed_), from, to);
  }

 private:
  static constexpr int64_t kLongLoop = 16, kMaxPlaces = 256;

  // In a transpose, each iteration of all loops but the last one writes that one's elements, and the padding.
  static int64_t written_bytes(const Nest& nest) {
    if (nest.kind != Nest::Kind::transpose || nest.loops.empty()) return 0;
    int64_t bytes = nest.loops.back().count * nest.unit + nest.zeros;
    for (size_t i = 0; i + 1 < nest.loops.size(); ++i) bytes *= nest.loops[i].count;
    return bytes;
  }

  // Repeats each position for each iteration of a loop inside the previous ones.
  void repeat(const NestLoop& loop) {
    std::vector<LoopPlace> inner;
    for (const LoopPlace& place : places_) {
      for (int64_t i = 0; i < loop.count; ++i) inner.push_back({place.from + i * loop.from, place.to + i * loop.to});
    }
    places_ = std::move(inner);
  }

  // The number of inner loops that a kernel handles; tiles may have fewer.
  size_t kernel_loops() const {
    if (nest_.kind == Nest::Kind::transpose) return 3;
    if (nest_.kind == Nest::Kind::fields) return 2;
    return listed_ > 0 ? 0 : 1;
  }

  void run_outer(std::span<const NestLoop> loops, int64_t from, int64_t to) const {
    const size_t kernel = kernel_loops();
    if (loops.size() <= kernel) return run_kernel(loops, from, to);
    for (int64_t i = 0; i < loops[0].count; ++i) {
      run_outer(loops.subspan(1), from + i * loops[0].from, to + i * loops[0].to);
    }
  }

  void run_kernel(std::span<const NestLoop> loops, int64_t from, int64_t to) const {
    const NestLoop inner = loops.empty() ? NestLoop{} : loops.back();
    const std::byte* source = buffers_.source + from;
    std::byte* destination = buffers_.destination + to;
    switch (nest_.kind) {
      case Nest::Kind::run:
        if (listed_ > 0) return copy_places(source, destination, ListedPlaces{places_}, nest_.unit);
        if (nest_.zeros > 0) return copy_padded(source, destination, inner, nest_.unit, nest_.zeros);
        return copy_places(source, destination, LoopPlaces{inner}, nest_.unit);
      case Nest::Kind::zeros: return zero_loop(destination, inner, nest_.unit);
      case Nest::Kind::transpose: return transpose(loops, source, destination);
      case Nest::Kind::fields:
        return detail::transpose_fields(buffers_.bits(), from, buffers_.destination, to, loops[0], inner, nest_.unit);
      case Nest::Kind::bits: return gather_loop(buffers_, from, to, inner, nest_.unit);
    }
  }

  // Transposes the last two loops, once for each iteration of the one before.
  void transpose(std::span<const NestLoop> loops, const std::byte* source, std::byte* destination) const {
    const NestLoop &columns = loops[loops.size() - 2], &rows = loops.back();
    const NestLoop matrices = loops.size() > 2 ? loops[0] : NestLoop{};
    detail::transpose({.source = source,
                       .destination = destination,
                       .rows = rows.count,
                       .columns = columns.count,
                       .source_pitch = rows.from,
                       .destination_pitch = columns.to,
                       .zero_rows = nest_.zeros / nest_.unit,
                       .count = matrices.count,
                       .source_step = matrices.from,
                       .destination_step = matrices.to,
                       .non_temporal = non_temporal_},
                      nest_.unit);
  }

  const Nest& nest_;
  const Buffers& buffers_;
  const bool non_temporal_;
  size_t listed_ = 0;  // number of inner loops turned into positions
  std::vector<LoopPlace> places_;
};

// Runs a nest as independent tasks: all values of the outer loops, times pieces of the next one.
void run_nest(const Nest& nest, const Buffers& buffers, const Tasks& split) {
  std::vector<NestLoop> loops = nest.loops;
  size_t disjoint = nest.disjoint;
  int64_t unit = nest.unit;
  Nest whole = nest;
  if (loops.empty() && nest.kind == Nest::Kind::run && nest.zeros == 0 && unit > split.bytes) {
    // A single run: divided into runs, and the remainder.
    loops.push_back({unit / split.bytes, split.bytes, split.bytes});
    const int64_t done = loops[0].count * split.bytes;
    std::memcpy(buffers.destination + nest.to_base + done, buffers.source + nest.from_base + done,
                static_cast<size_t>(unit - done));
    whole.unit = unit = split.bytes;
    disjoint = 1;
  }
  const bool in_bits = nest.kind == Nest::Kind::bits || nest.kind == Nest::Kind::fields;
  int64_t bytes = in_bits ? detail::ceil_div(unit, 8) : unit;
  for (const NestLoop& loop : loops) bytes *= loop.count;
  const int64_t wanted = std::min<int64_t>(detail::ceil_div(bytes, split.bytes), int64_t{4} * split.parallel.threads());
  // Outer loops until there are enough tasks, the last of them in pieces. In a tile, the longer one of its loops.
  size_t outer = 0;
  int64_t tasks = 1;
  while (outer < disjoint && tasks < wanted) tasks *= loops[outer++].count;
  if (outer == 0) return NestRunner(whole, buffers, loops).run(loops, nest.from_base, nest.to_base);
  size_t cut = outer - 1;
  int64_t before = tasks / loops[cut].count;
  const bool in_tile = nest.kind == Nest::Kind::transpose && cut + 2 >= loops.size();
  if (in_tile) {
    if (cut + 1 == loops.size()) before /= loops[--cut].count;
    outer = cut;
    if (nest.zeros == 0 && loops[cut].count < loops[cut + 1].count) ++cut;
  } else {
    outer = cut;
  }
  int64_t piece = std::max<int64_t>(loops[cut].count * before / wanted, 1);
  if (in_tile) piece = detail::round_up(piece, detail::kTileBytes);  // whole tiles
  const int64_t pieces = detail::ceil_div(loops[cut].count, piece);
  split.parallel.run(before * pieces, 1, [&](int64_t begin, int64_t end) {
    std::vector<NestLoop> inner(loops.begin() + static_cast<ptrdiff_t>(outer), loops.end());
    const NestRunner runner(whole, buffers, inner);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % pieces * piece;
      int64_t from = nest.from_base + first * loops[cut].from, to = nest.to_base + first * loops[cut].to;
      int64_t rest = task / pieces;
      for (size_t i = outer; i-- > 0;) {
        from += rest % loops[i].count * loops[i].from;
        to += rest % loops[i].count * loops[i].to;
        rest /= loops[i].count;
      }
      inner[cut - outer].count = std::min(piece, loops[cut].count - first);
      runner.run(inner, from, to);
    }
  });
}

// Fill ------------------------------------------------------------------------------------------------------------

// Writes one word with the fill in every slot.
void write_fill_word(const Layout& layout, std::byte* bank, int64_t word) {
  const int64_t w = layout.element_bits(), fill_bits = std::min<int64_t>(w, 64);
  const int64_t slack = layout.word_bits() - layout.lanes() * w;
  BitWriter out(bank, word * layout.word_bits());
  if (layout.lane_msb()) out.put_zeros(slack);
  for (int64_t lane = 0; lane < layout.lanes(); ++lane) {
    out.put_wide(*layout.fill(), fill_bits);
    out.put_zeros(w - fill_bits);
  }
  if (!layout.lane_msb()) out.put_zeros(slack);
  out.flush();
}

// Fills everything: slots with the fill, the rest with 0.
void fill_all(const Layout& layout, std::byte* destination, const Tasks& split) {
  const int64_t total = layout.bytes(), bank_bytes = layout.bytes_per_bank();
  if (*layout.fill() == 0) {
    split.parallel.run(total, split.bytes, [&](int64_t begin, int64_t end) {
      std::memset(destination + begin, 0, static_cast<size_t>(end - begin));
    });
    return;
  }
  // Eight words are whole bytes: the pattern is written once and repeated over the first bank, then over all banks.
  const int64_t words = layout.words_per_bank(), pattern_words = std::min<int64_t>(words, 8);
  std::memset(destination, 0, static_cast<size_t>(bank_bytes));
  for (int64_t word = 0; word < pattern_words; ++word) write_fill_word(layout, destination, word);
  const int64_t whole = words / 8 * layout.word_bits();
  for (int64_t done = layout.word_bits(); done < whole;) {
    const int64_t more = std::min(done, whole - done);
    std::memcpy(destination + done, destination, static_cast<size_t>(more));
    done += more;
  }
  for (int64_t word = words / 8 * 8; word < words; ++word) write_fill_word(layout, destination, word);
  split.parallel.run(layout.banks() - 1, std::max<int64_t>(split.bytes / bank_bytes, 1),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t bank = begin + 1; bank <= end; ++bank) {
                         std::memcpy(destination + bank * bank_bytes, destination, static_cast<size_t>(bank_bytes));
                       }
                     });
}

// Element by element: every slot of the destination gets its index from the inverse. Eight words are whole bytes, so
// tasks share no byte.
void run_elements(const ReorderProgram& program, const Buffers& buffers, const Tasks& split) {
  const Layout &from = program.from, &to = program.to;
  const int64_t units = detail::ceil_div(to.words_per_bank(), 8), w = to.element_bits(), lanes = to.lanes();
  const int64_t from_bank_bits = from.bytes_per_bank() * 8;
  const int64_t grain = std::max<int64_t>(split.bytes / to.word_bits(), 1);
  split.parallel.run(to.banks() * units, grain, [&](int64_t begin, int64_t end) {
    Dims index(to.shape().size());
    for (int64_t task = begin; task < end; ++task) {
      const int64_t bank = task / units, first = task % units * 8;
      const int64_t last = std::min(first + 8, to.words_per_bank());
      for (int64_t slot = first * lanes; slot < last * lanes; ++slot) {
        if (!to.inverse(bank, slot, index)) continue;
        const LayoutPosition at = from.apply(index);
        const int64_t word = slot / lanes, lane = slot % lanes;
        const int64_t bit = to.lane_msb() ? to.word_bits() - w - lane * w : lane * w;
        BitWriter out(buffers.destination + bank * to.bytes_per_bank(), word * to.word_bits() + bit);
        out.copy(buffers.bits(), at.bank * from_bank_bits + at.bit, w);
        out.flush();
      }
    }
  });
}

// Row by row. Rows share no byte of the destination.
void run_rows(const ReorderProgram& program, const Buffers& buffers, const Tasks& split) {
  std::call_once(program.tables_made, [&] {
    program.tables.emplace(detail::RowTables{detail::RowOffsets(program.from), detail::RowOffsets(program.to)});
  });
  const detail::RowLoop& rows = program.rows;
  int64_t count = 1;
  for (const int64_t extent : rows.domain) count *= extent;
  const int64_t length = rows.domain[rows.dim];
  const int64_t grain = std::max<int64_t>(split.bytes / (length * rows.element_bytes), 1);
  split.parallel.run(count / length, grain, [&](int64_t begin, int64_t end) {
    detail::copy_rows(*program.tables, rows, buffers.source, buffers.destination, begin, end);
  });
}

Result<void> check_buffers(const ReorderProgram& program, std::span<const std::byte> source,
                           std::span<std::byte> destination) {
  const auto check = [](std::string_view what, const Layout& layout, size_t bytes) -> Result<void> {
    if (bytes >= static_cast<size_t>(layout.bytes())) return {};
    return error(Code::invalid_argument, "the ", what, " of a reorder has ", bytes, " bytes, layout ",
                 quote(layout.to_string()), " of shape ", layout.shape(), " needs ", layout.bytes());
  };
  TENON_OK(check("source", program.from, source.size()));
  TENON_OK(check("destination", program.to, destination.size()));
  const std::byte *a = source.data(), *b = destination.data();
  const std::less<const std::byte*> before;
  const bool apart = !before(a, b + program.to.bytes()) || !before(b, a + program.from.bytes());
  if (apart || (program.kind == ReorderKind::no_op && a == b)) return {};
  return error(Code::invalid_argument, "source and destination of a reorder from ", quote(program.from.to_string()),
               " to ", quote(program.to.to_string()), " overlap; give it a buffer of its own");
}

}  // namespace

Result<void> ReorderPlan::run(std::span<const std::byte> source, std::span<std::byte> destination,
                              ParallelFor& parallel, int64_t task_bytes) const {
  const ReorderProgram& program = *program_;
  TENON_OK(check_buffers(program, source, destination));
  if (program.to.bytes() == 0 || (program.kind == ReorderKind::no_op && source.data() == destination.data())) return {};
  const Buffers buffers{source.data(), destination.data(), source.data() + program.from.bytes()};
  const Tasks split{parallel, std::max<int64_t>(task_bytes, 1)};
  if (program.fills) fill_all(program.to, destination.data(), split);
  if (program.to.valid_elements() == 0) return {};
  if (program.nests.empty()) {
    program.rows.domain.empty() ? run_elements(program, buffers, split) : run_rows(program, buffers, split);
  }
  for (const Nest& nest : program.nests) run_nest(nest, buffers, split);
  return {};
}

}  // namespace tenon
