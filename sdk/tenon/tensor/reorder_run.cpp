// Running a plan: fill, then nests of loops cut between threads.
#include <algorithm>
#include <cstring>
#include <functional>

#include <tenon/support/str.hpp>
#include <tenon/tensor/layout_internal.hpp>
#include <tenon/tensor/reorder_bits.hpp>
#include <tenon/tensor/reorder_fields_internal.hpp>
#include <tenon/tensor/reorder_internal.hpp>
#include <tenon/tensor/reorder_vectors.hpp>

namespace tenon {

using detail::BitWriter;
using detail::copy_short;
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
  int64_t bytes;  // worth one
};

// Copies of `unit` bytes along one loop.
template <int64_t kUnit>
void copy_units(const std::byte* source, std::byte* destination, const NestLoop& loop) {
  for (int64_t i = 0; i < loop.count; ++i) std::memcpy(destination + i * loop.to, source + i * loop.from, kUnit);
}

// Up to here a loop of vectors is quicker than a call.
constexpr int64_t kShortRun = 256;

inline void zero(std::byte* to, int64_t bytes) {
  static constexpr std::byte kZeros[kShortRun] = {};
  if (bytes <= kShortRun) return copy_short(to, kZeros, bytes);
  std::memset(to, 0, static_cast<size_t>(bytes));
}

// Runs with zeros behind each.
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

void copy_loop(const std::byte* source, std::byte* destination, const NestLoop& loop, int64_t unit) {
  switch (unit) {
    case 1: return copy_units<1>(source, destination, loop);
    case 2: return copy_units<2>(source, destination, loop);
    case 4: return copy_units<4>(source, destination, loop);
    case 8: return copy_units<8>(source, destination, loop);
    case 16: return copy_units<16>(source, destination, loop);
    case 32: return copy_units<32>(source, destination, loop);
    case 64: return copy_units<64>(source, destination, loop);
    default: break;
  }
  if (unit <= kShortRun) {
    for (int64_t i = 0; i < loop.count; ++i) copy_short(destination + i * loop.to, source + i * loop.from, unit);
    return;
  }
  for (int64_t i = 0; i < loop.count; ++i) {
    std::memcpy(destination + i * loop.to, source + i * loop.from, static_cast<size_t>(unit));
  }
}

// `loop` of `unit` bits each, from bit `from` to bit `to`.
void gather_loop(const Buffers& buffers, int64_t from, int64_t to, const NestLoop& loop, int64_t unit) {
  const detail::BitSource source = buffers.bits();
  if (unit <= detail::kMaxFieldBits && detail::copy_fields(source, from, buffers.destination, to, loop, unit)) return;
  if (loop.to == unit && unit <= 32) {
    BitWriter out(buffers.destination, to);
    for (int64_t i = 0; i < loop.count; ++i) out.put(source.load(from + i * loop.from, unit), unit);
    out.flush();
    return;
  }
  if (loop.to == unit) {
    BitWriter out(buffers.destination, to);
    for (int64_t i = 0; i < loop.count; ++i) out.copy(source, from + i * loop.from, unit);
    out.flush();
    return;
  }
  for (int64_t i = 0; i < loop.count; ++i) {
    BitWriter out(buffers.destination, to + i * loop.to);
    out.copy(source, from + i * loop.from, unit);
    out.flush();
  }
}

// The loops of one nest from `loops` on; `from` and `to` in its units.
void run_loops(const Nest& nest, const Buffers& buffers, std::span<const NestLoop> loops, int64_t from, int64_t to) {
  const size_t kernel = nest.kind == Nest::Kind::transpose || nest.kind == Nest::Kind::fields ? 2 : 1;
  if (loops.size() > kernel) {
    for (int64_t i = 0; i < loops[0].count; ++i) {
      run_loops(nest, buffers, loops.subspan(1), from + i * loops[0].from, to + i * loops[0].to);
    }
    return;
  }
  const NestLoop inner = loops.empty() ? NestLoop{} : loops.back();
  switch (nest.kind) {
    case Nest::Kind::run:
      if (nest.zeros > 0) {
        return copy_padded(buffers.source + from, buffers.destination + to, inner, nest.unit, nest.zeros);
      }
      return copy_loop(buffers.source + from, buffers.destination + to, inner, nest.unit);
    case Nest::Kind::zeros: return zero_loop(buffers.destination + to, inner, nest.unit);
    case Nest::Kind::transpose:
      return detail::transpose({.source = buffers.source + from,
                                .destination = buffers.destination + to,
                                .rows = inner.count,
                                .columns = loops[0].count,
                                .source_pitch = inner.from,
                                .destination_pitch = loops[0].to,
                                .zero_rows = nest.zeros / nest.unit},
                               nest.unit);
    case Nest::Kind::fields:
      return detail::transpose_fields(buffers.bits(), from, buffers.destination, to, loops[0], inner, nest.unit);
    case Nest::Kind::bits: return gather_loop(buffers, from, to, inner, nest.unit);
  }
}

// A nest as independent tasks: all values of the outer loops, times pieces of the next one.
void run_nest(const Nest& nest, const Buffers& buffers, const Tasks& split) {
  std::vector<NestLoop> loops = nest.loops;
  size_t disjoint = nest.disjoint;
  int64_t unit = nest.unit;
  Nest whole = nest;
  if (loops.empty() && nest.kind == Nest::Kind::run && nest.zeros == 0 && unit > split.bytes) {
    // One run: cut into runs, and the rest.
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
  // Outer loops until there are enough tasks; the last one of them in pieces. Of a tile, the longer one of its loops.
  size_t outer = 0;
  int64_t tasks = 1;
  while (outer < disjoint && tasks < wanted) tasks *= loops[outer++].count;
  if (outer == 0) return run_loops(whole, buffers, loops, nest.from_base, nest.to_base);
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
      run_loops(whole, buffers, inner, from, to);
    }
  });
}

// Fill ------------------------------------------------------------------------------------------------------------

// One word with the fill in every slot.
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

// Everything: slots with the fill, the rest with 0.
void fill_all(const Layout& layout, std::byte* destination, const Tasks& split) {
  const int64_t total = layout.bytes(), bank_bytes = layout.bytes_per_bank();
  if (*layout.fill() == 0) {
    split.parallel.run(total, split.bytes, [&](int64_t begin, int64_t end) {
      std::memset(destination + begin, 0, static_cast<size_t>(end - begin));
    });
    return;
  }
  // Eight words are whole bytes: the pattern is written once and repeated over the first bank, then over all.
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

// Element by element: every slot of the destination looks for its index. Eight words are whole bytes, so that tasks
// share none.
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
  if (program.nests.empty()) run_elements(program, buffers, split);
  for (const Nest& nest : program.nests) run_nest(nest, buffers, split);
  return {};
}

}  // namespace tenon
