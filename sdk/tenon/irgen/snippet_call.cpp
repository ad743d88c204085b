#include <tenon/irgen/snippet_call_internal.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tenon::irgen {

namespace detail {
namespace {

// Work below this is not worth waking a thread: a call of two such pieces takes as long on two threads, one of which
// sleeps, as on one (30 us).
constexpr double kCyclesToWake = 40000;
// Work below this (.7 us) is not worth sharing with a spinning thread, which takes .3 to .5 us.
constexpr double kCyclesForThread = 2500;
// The prediction counts operations one by one, of which half overlap at best. Reads and writes of kernels come from L2.
constexpr double kOperationsAtOnce = 2, kBytesOfCycle = 32;
// Threads are seldom equally fast: one that has finished takes another piece, where pieces are worth it.
constexpr int64_t kPiecesOfThread = 4;
// A row of this many vectors hides the overhead around its loop; one with fewer is worth joining.
constexpr int64_t kVectorsOfRow = 16, kVectorsOfShortRow = 8;
// With this many short rows, the rows are divided among threads, and no row is cut.
constexpr double kRowsToCut = 256;

const snippet::BodyPort& port_of(const snippet::Body& body, size_t i) {
  return i < body.inputs.size() ? body.inputs[i] : body.outputs[i - body.inputs.size()];
}
snippet::DimSet varies(const snippet::Body& body, size_t port) {
  return body.values[static_cast<size_t>(port_of(body, port).value)].varies;
}
size_t ports_of(const snippet::Body& body) { return body.inputs.size() + body.outputs.size(); }
int64_t element_bytes(const snippet::Body& body, size_t port) { return port_of(body, port).element.bits() / 8; }

// Whether outputs, by port and offset by `begin_bytes`, overlap no input. Inputs that are repeated are elsewhere.
bool apart(std::span<std::byte* const> addresses, std::span<const int64_t> begin_bytes, size_t inputs) {
  for (size_t j = inputs; j < addresses.size(); ++j)
    for (size_t i = 0; i < inputs; ++i)
      if (addresses[i] + begin_bytes[i] == addresses[j] + begin_bytes[j]) return false;
  return true;
}

// Whether outputs have the alignment that non-temporal stores need: whole lines, or where rows may begin anywhere,
// elements that are congruent modulo `lanes`.
bool aligned(const snippet::Body& body, std::span<std::byte* const> addresses, std::span<const int64_t> begin_bytes,
             int64_t lanes) {
  std::optional<uintptr_t> first;
  for (size_t j = body.inputs.size(); j < addresses.size(); ++j) {
    const auto out = reinterpret_cast<uintptr_t>(addresses[j] + begin_bytes[j]);
    const auto bytes = static_cast<uintptr_t>(lanes == 0 ? kAlignBytes : element_bytes(body, j));
    const uintptr_t beyond = lanes == 0 ? 0 : out / bytes % static_cast<uintptr_t>(lanes);
    if (out % bytes != 0 || beyond != first.value_or(beyond)) return false;
    first = beyond;
  }
  return true;
}

// The work of a call with these extents. It may be 0, as for a fold of nothing.
struct Cycles {
  double predicted = 0;  // operations one by one
  double least = 0;
  double elements = 1;
};
Cycles cycles_of(const snippet::Body& body, const Dims& extents, double cycles_per_element) {
  Cycles cycles;
  for (const int64_t extent : extents) cycles.elements *= static_cast<double>(std::max<int64_t>(extent, 1));
  cycles.predicted = cycles.elements * std::max(cycles_per_element, 0.01);
  double bytes = 0;
  for (size_t i = 0; i < ports_of(body); ++i) {
    auto of_port = static_cast<double>(element_bytes(body, i));
    for (size_t d = 0; d < extents.size(); ++d)
      if (varies(body, i) >> d & 1) of_port *= static_cast<double>(extents[d]);
    bytes += of_port;
  }
  cycles.least = std::max(cycles.predicted / kOperationsAtOnce, bytes / kBytesOfCycle);
  return cycles;
}

// Pieces for work of `cycles` per thread: several where they are large enough for load balancing to matter.
int64_t pieces_of_thread(double cycles) {
  constexpr double kCyclesOfPiece = kCyclesToWake / kPiecesOfThread;
  return static_cast<int64_t>(std::clamp<double>(cycles / kCyclesOfPiece, 1, kPiecesOfThread));
}

// Whether the rows of all outputs begin at whole lines, if the first rows do.
bool begin_at_lines(const snippet::Body& body, const snippet::CallPlan& plan) {
  for (size_t i = body.inputs.size(); i < ports_of(body); ++i)
    if (!plan.rows_aligned(i, kAlignBytes)) return false;
  return true;
}

// Whether the rows of all outputs have the alignment that non-temporal stores need, as traversed by the form, and
// whether its blocks are in a near cache.
Result<bool> serves_non_temporal(const snippet::Body& body, const SnippetForm& form, const Dims& extents) {
  TENON_TRY(plan, snippet::CallPlan::make_for_extents(body, form.kernel, extents));
  if (form.kernel.blocks.inside && !plan.blocks_are_near()) return false;
  const bool in_parts = std::ranges::any_of(body.dims, &snippet::BodyDim::parted);
  if (in_parts && (form.whole_items || !plan.parts_aligned(kAlignBytes))) return false;
  return form.any_rows || form.whole_items || begin_at_lines(body, plan);
}

// Forms for a call: by its size, and where addresses allow it by the alignment of its outputs' rows.
struct Choice {
  const SnippetForm* near = nullptr;
  const SnippetForm* non_temporal = nullptr;  // null: none
};
Result<Choice> choose_forms(const SnippetCode& code, const CallOptions& options, const snippet::CallPlan& plan) {
  const size_t inputs = code.body.inputs.size();
  double read = 0, written = 0;
  for (size_t i = 0; i < ports_of(code.body); ++i)
    (i < inputs ? read : written) += static_cast<double>(plan.port_bytes(i));
  const Dims& extents = plan.extents();
  const bool joins = extents.size() > 1 &&
                     snippet::rows_to_join(extents[extents.size() - 2], extents.back(), code.form.kernel.lanes) > 1;
  int64_t folded = 1;
  for (size_t d = 0; d < extents.size(); ++d)
    if (code.body.dims[d].reduced) folded *= extents[d];
  const auto row_dims = extents.begin() + static_cast<std::ptrdiff_t>(code.body.first_of_row());
  const int64_t row = std::accumulate(row_dims, extents.end(), int64_t{1}, std::multiplies<>());
  const bool single_row = std::all_of(extents.begin(), row_dims, [](int64_t extent) { return extent == 1; });
  const double bytes = plan.folded_bytes(CallRange::kColumns);
  const double item_bytes = plan.folded_bytes(std::numeric_limits<int64_t>::max());
  const bool rows_aligned = begin_at_lines(code.body, plan);
  Choice choice{.near = &code.form};
  for (const auto& larger : code.larger) {
    const CallRange& calls = larger->calls();
    if (read + written < calls.least_bytes || (calls.joins_rows && !joins)) continue;
    if (!extents.empty() && !calls.holds_rows(row, extents.back())) continue;
    if (calls.several_rows && single_row) continue;
    if (calls.rows_aligned.value_or(rows_aligned) != rows_aligned) continue;
    if (bytes < calls.least_folded_bytes || bytes > calls.most_folded_bytes || folded > calls.most_folded) continue;
    if (item_bytes > calls.most_item_bytes) continue;
    TENON_TRY(form, larger->get(code.body));
    if (form->least_row > 0 && plan.extents().back() < form->least_row) continue;
    if (!form->non_temporal) {
      choice.near = form;
    } else if (!options.read_again || written >= calls.least_bytes) {
      // Rows that begin at whole lines need no heads.
      if (form->any_rows && choice.non_temporal && !choice.non_temporal->any_rows) continue;
      TENON_TRY(serves, serves_non_temporal(code.body, *form, extents));
      if (serves) choice.non_temporal = form;
    }
  }
  return choice;
}

}  // namespace

std::optional<FoldCut> fold_cut_for(const SnippetCode& code, const Dims& extents, int threads) {
  // Each stage is a loop that threads share; a stage that stores the folded values recomputes them.
  constexpr double kCyclesToCut = 8 * kCyclesForThread, kCyclesToMakeAgain = 16 * kCyclesForThread;
  constexpr int64_t kMostParts = 64, kLeastRows = 8;
  const snippet::Body& body = code.body;
  const snippet::DimSet folded = body.reduced_dims();
  if (threads <= 1 || folded == 0) return std::nullopt;
  const Cycles cycles = cycles_of(body, extents, code.cycles_per_element);
  const auto is_last = [&](size_t d) { return d + 1 == extents.size(); };
  snippet::DimSet of_all = ~folded, of_any = 0;
  for (size_t j = body.inputs.size(); j < ports_of(body); ++j) of_all &= varies(body, j), of_any |= varies(body, j);
  if (cycles.least < ((of_any & folded) == 0 ? kCyclesToCut : kCyclesToMakeAgain)) return std::nullopt;
  double kept = 1;  // pieces without a cut through a fold
  for (size_t d = 0; d < extents.size(); ++d)
    if ((of_all >> d & 1) != 0)
      kept *= static_cast<double>(std::max<int64_t>(is_last(d) ? extents[d] / snippet::kLineElements : extents[d], 1));
  if (3 * kept > 2 * threads) return std::nullopt;
  FoldCut cut;
  int64_t most = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    if ((folded >> d & 1) == 0 || (d > 0 && (folded >> (d - 1) & 1) != 0)) continue;
    const int64_t parts = extents[d] / (is_last(d) ? snippet::kLineElements : kLeastRows);
    if (parts > most) most = parts, cut.dim = d;
  }
  cut.parts = std::min({most, kMostParts, static_cast<int64_t>(cycles.least / (2 * kCyclesForThread))});
  if (cut.parts < 2) return std::nullopt;
  return cut;
}

std::optional<RowJoin> join_rows(const snippet::Body& body, const Dims& extents, int lanes) {
  const size_t rank = body.rank();
  if (rank < 2 || body.has_cuts()) return std::nullopt;
  const snippet::DimSet inner = snippet::DimSet{1} << (rank - 1), before = snippet::DimSet{1} << (rank - 2);
  const int64_t length = extents[rank - 1], rows = extents[rank - 2];
  if ((body.reduced_dims() & (inner | before)) != 0 || length < 1 || length >= kVectorsOfShortRow * lanes)
    return std::nullopt;
  RowJoin join;
  join.repeated.resize(ports_of(body), 0);
  for (size_t i = 0; i < join.repeated.size(); ++i) {
    const snippet::DimSet own = varies(body, i);
    const bool along_inner = (own & inner) != 0, along_before = (own & before) != 0;
    if (along_inner == along_before) continue;
    if (along_before || own != inner || i >= body.inputs.size()) return std::nullopt;
    join.repeated[i] = 1;
  }
  // Whole vectors, when rows of them are short enough.
  const int64_t whole = lanes / std::gcd(length, int64_t{lanes});
  const int64_t wanted = std::max<int64_t>(1, kVectorsOfRow * lanes / length);
  join.rows = (wanted + whole - 1) / whole * whole;
  if (rows < 2 * join.rows || (rank > 2 && rows % join.rows != 0)) return std::nullopt;
  return join;
}

Result<void> SnippetCall::add_piece(const SnippetCode& code, Dims extents, const std::vector<int64_t>& skipped_bytes,
                                    const CallOptions& options) {
  TENON_TRY(plan, snippet::CallPlan::make_for_extents(code.body, code.form.kernel, extents));
  if (plan.empty()) return {};
  TENON_TRY(choice, choose_forms(code, options, plan));
  TENON_TRY(near, plan_form(code, *choice.near, extents, skipped_bytes, options));
  Piece piece{.begin_bytes = {}, .near = std::move(near), .non_temporal = {}};
  if (choice.non_temporal) {
    TENON_TRY(planned, plan_form(code, *choice.non_temporal, extents, skipped_bytes, options));
    piece.non_temporal = std::move(planned);
  }
  for (size_t i = 0; i < skipped_bytes.size(); ++i) piece.begin_bytes.push_back(skipped_bytes[i] + plan.begin_bytes(i));
  pieces_.push_back(std::move(piece));
  return {};
}

Result<std::unique_ptr<SnippetCall::FormCall>> SnippetCall::plan_form(const SnippetCode& code, const SnippetForm& form,
                                                                      const Dims& extents,
                                                                      std::span<const int64_t> skipped_bytes,
                                                                      const CallOptions& options) const {
  TENON_TRY(plan, snippet::CallPlan::make_for_extents(code.body, form.kernel, extents));
  const Cycles cycles = cycles_of(code.body, extents, code.cycles_per_element);
  const int64_t pieces = plan.pieces(options.threads, pieces_of_thread(cycles.predicted / options.threads));
  const double least_elements = kCyclesForThread * cycles.elements / cycles.least;
  const snippet::Split split = options.fold_parts > 0 ? plan.split_fold(options.fold_parts)
                                                      : plan.split(pieces, static_cast<int64_t>(least_elements));
  auto planned = std::make_unique<FormCall>();
  FormCall& call = *planned;
  call.run = form.run;
  call.head_lanes = form.whole_items ? 1 : form.any_rows ? form.kernel.lanes : 0;
  call.chunks = split.chunks();
  call.sequences = std::min(call.chunks, pieces);
  const double to_wake = kCyclesToWake * static_cast<double>(call.sequences) / cycles.predicted;
  call.sequences_to_wake = std::min(call.sequences, static_cast<int64_t>(to_wake) + 1);
  // Data that different threads write is on different lines.
  const auto whole_lines = [](size_t bytes) { return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes; };
  const size_t scratch_stride = whole_lines(plan.scratch_bytes());
  TENON_TRY(scratch, allocate_aligned(scratch_stride * static_cast<size_t>(call.sequences)));
  call.scratch = std::move(scratch);
  call.bytes_of_words = whole_lines(plan.words() * sizeof(int64_t));
  TENON_TRY(words, allocate_aligned(call.bytes_of_words * static_cast<size_t>(call.chunks)));
  call.words = std::move(words);
  std::vector<void*> begins(skipped_bytes.size());
  for (size_t i = 0; i < begins.size(); ++i) begins[i] = repeated(i);
  int64_t sequence = 0;
  for (int64_t chunk = 0; chunk < call.chunks; ++chunk) {
    if (chunk == call.first_of(sequence + 1)) ++sequence;
    const std::span<int64_t> words(call.words_of(chunk), plan.words());
    std::byte* const own = call.scratch.get() + static_cast<size_t>(sequence) * scratch_stride;
    plan.fill(words, begins, own, split, chunk);
    for (size_t w = 0; w < words.size(); ++w)
      if (const auto port = plan.tensor_of(w); port && !begins[*port])
        call.pointers.push_back(
            {static_cast<uint32_t>(w), static_cast<uint32_t>(*port), words[w] + skipped_bytes[*port]});
  }
  call.pointers_of_chunk = call.pointers.size() / static_cast<size_t>(call.chunks);
  call.sequences_body = [&call](int64_t begin, int64_t end) { call.run_sequences(begin, end); };
  return planned;
}

Result<void> SnippetCall::add_joined(const SnippetCode& code, const Dims& extents, const RowJoin& join,
                                     const CallOptions& options) {
  const size_t last = extents.size() - 1, ports = ports_of(code.body);
  const int64_t length = extents[last], rows = extents[last - 1], left = rows % join.rows;
  TENON_OK(add_repeats(code, join, length));
  std::vector<int64_t> skipped(ports, 0);
  Dims main = extents;
  main[last - 1] = rows / join.rows;
  main[last] = length * join.rows;
  TENON_OK(add_piece(code, main, skipped, options));
  if (left == 0) return {};
  // For a space of two dims.
  for (size_t i = 0; i < ports; ++i)
    if (!join.repeated[i] && varies(code.body, i) != 0)
      skipped[i] = (rows - left) * length * element_bytes(code.body, i);
  return add_piece(code, {1, left * length}, std::move(skipped), {.threads = 1, .read_again = options.read_again});
}

Result<void> SnippetCall::add_repeats(const SnippetCode& code, const RowJoin& join, int64_t length) {
  for (size_t i = 0; i < join.repeated.size(); ++i) {
    if (!join.repeated[i]) continue;
    const auto row_bytes = static_cast<size_t>(length * element_bytes(code.body, i));
    TENON_TRY(bytes, allocate_aligned(row_bytes * static_cast<size_t>(join.rows)));
    repeats_.push_back({i, row_bytes, join.rows, std::move(bytes)});
  }
  return {};
}

std::byte* SnippetCall::repeated(size_t port) const {
  const auto found = std::ranges::find(repeats_, port, &Repeat::port);
  return found == repeats_.end() ? nullptr : found->bytes.get();
}

Result<void> SnippetCall::prepare(const SnippetCode& code, Dims extents, const CallOptions& options) {
  pieces_.clear();
  repeats_.clear();
  if (const auto join = join_rows(code.body, extents, code.form.kernel.lanes))
    return add_joined(code, extents, *join, options);
  return add_piece(code, std::move(extents), std::vector<int64_t>(ports_of(code.body), 0), options);
}

SnippetCall::FormCall& SnippetCall::form_for(const SnippetCode& code, std::span<std::byte* const> addresses,
                                             Piece& piece) {
  const bool suits = piece.non_temporal && apart(addresses, piece.begin_bytes, code.body.inputs.size()) &&
                     aligned(code.body, addresses, piece.begin_bytes, piece.non_temporal->head_lanes);
  return suits ? *piece.non_temporal : *piece.near;
}

const int64_t* SnippetCall::words_for(FormCall& call, std::byte* const* addresses, int64_t chunk) {
  int64_t* const words = call.words_of(chunk);
  const Pointer* const first = call.pointers.data() + static_cast<size_t>(chunk) * call.pointers_of_chunk;
  for (const Pointer* p = first; p != first + call.pointers_of_chunk; ++p)
    words[p->word] = static_cast<int64_t>(reinterpret_cast<intptr_t>(addresses[p->port])) + p->offset_bytes;
  return words;
}

void SnippetCall::FormCall::run_sequences(int64_t begin, int64_t end) {
  for (int64_t chunk = first_of(begin); chunk < first_of(end); ++chunk) run(words_for(*this, addresses, chunk));
}

void SnippetCall::run(const SnippetCode& code, std::span<std::byte* const> addresses, ParallelFor& pool) {
  for (Repeat& repeat : repeats_)
    for (int64_t i = 0; i < repeat.times; ++i)
      std::memcpy(repeat.bytes.get() + static_cast<size_t>(i) * repeat.row_bytes, addresses[repeat.port],
                  repeat.row_bytes);
  for (Piece& piece : pieces_) {
    FormCall& call = form_for(code, addresses, piece);
    if (call.addresses != addresses.data()) call.addresses = addresses.data();
    if (call.sequences == 1)
      call.run_sequences(0, 1);
    else
      pool.run_short(call.sequences, 1, call.sequences_to_wake, call.sequences_body);
  }
}

bool SnippetCall::settle(const SnippetCode& code, std::span<std::byte* const> addresses,
                         std::vector<SettledCall>& calls) {
  const auto once = [&](Piece& piece) { return form_for(code, addresses, piece).chunks == 1; };
  if (!repeats_.empty() || !std::ranges::all_of(pieces_, once)) return false;
  for (Piece& piece : pieces_) {
    FormCall& call = form_for(code, addresses, piece);
    calls.push_back({call.run, words_for(call, addresses.data(), 0)});
  }
  return true;
}

}  // namespace detail

namespace {

// nullopt: some are not known.
std::optional<Dims> known_extents(const snippet::Body& body) {
  Dims extents;
  for (const snippet::BodyDim& dim : body.dims) {
    if (!dim.extent.is_constant()) return std::nullopt;
    extents.push_back(dim.extent.constant());
  }
  return extents;
}

}  // namespace

int64_t rows_joined(const snippet::Body& body, int lanes) {
  const auto extents = known_extents(body);
  const auto join = extents ? detail::join_rows(body, *extents, lanes) : std::nullopt;
  return join ? join->rows : 1;
}

snippet::DimSet whole_dims(const snippet::Body& body, int lanes, double cycles_per_element) {
  const snippet::DimSet kept = body.all_dims() & ~body.reduced_dims();
  const auto extents = known_extents(body);
  if (kept == 0 || !extents || detail::join_rows(body, *extents, lanes)) return 0;
  const detail::Cycles cycles = detail::cycles_of(body, *extents, cycles_per_element);
  if (cycles.least < 2 * detail::kCyclesForThread) return kept;
  const snippet::DimSet innermost = snippet::DimSet{1} << (body.rank() - 1);
  const int64_t row = extents->back();
  const bool is_short =
      row <= detail::kVectorsOfRow * lanes && cycles.elements >= detail::kRowsToCut * static_cast<double>(row);
  return is_short ? kept & innermost : 0;
}

}  // namespace tenon::irgen
