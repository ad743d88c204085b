#include <tenon/irgen/snippet_call_internal.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tenon::irgen::detail {
namespace {

// Less work than this is not worth waking a thread for: a call of two such pieces takes as long on two threads, one of
// which sleeps, as on one (30 us).
constexpr double kCyclesForThread = 40000;
// Threads are seldom equally fast: who is done takes another piece.
constexpr int64_t kPiecesOfThread = 4;
// A row of so many vectors hides what comes before and after its loop; one of fewer is worth being joined.
constexpr int64_t kVectorsOfRow = 16, kVectorsOfShortRow = 8;

const snippet::BodyPort& port_of(const snippet::Body& body, size_t i) {
  return i < body.inputs.size() ? body.inputs[i] : body.outputs[i - body.inputs.size()];
}
snippet::DimSet varies(const snippet::Body& body, size_t port) {
  return body.values[static_cast<size_t>(port_of(body, port).value)].varies;
}
size_t ports_of(const snippet::Body& body) { return body.inputs.size() + body.outputs.size(); }
int64_t element_bytes(const snippet::Body& body, size_t port) { return port_of(body, port).element.bits() / 8; }

// May stores to these outputs go past the caches: are they aligned, and do they lie on no input?
bool aligned_and_apart(std::span<void* const> addresses, size_t inputs) {
  const auto in = addresses.first(inputs);
  return std::ranges::all_of(addresses.subspan(inputs), [&](void* out) {
    return reinterpret_cast<uintptr_t>(out) % kAlignBytes == 0 && std::ranges::find(in, out) == in.end();
  });
}

}  // namespace

std::optional<RowJoin> join_rows(const snippet::Body& body, const Dims& extents, int lanes) {
  const size_t rank = body.rank();
  if (rank < 2) return std::nullopt;
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

Result<void> SnippetCall::add_piece(const SnippetCode& code, Dims extents, std::vector<int64_t> skipped_bytes,
                                    const CallOptions& options) {
  TENON_TRY(plan, snippet::CallPlan::make_for_extents(code.body, code.kernel, std::move(extents)));
  if (plan.empty()) return {};
  Piece piece{.plan = std::move(plan),
              .split = {},
              .skipped_bytes = std::move(skipped_bytes),
              .addresses = {},
              .words = {},
              .scratch = {}};
  const auto least = static_cast<int64_t>(kCyclesForThread / std::max(code.cycles_per_element, 0.01));
  piece.split = piece.plan.split(options.threads == 1 ? 1 : options.threads * kPiecesOfThread, least);
  piece.chunks = piece.split.chunks();
  piece.addresses.resize(ports_of(code.body));
  piece.words.resize(piece.plan.words() * static_cast<size_t>(piece.chunks));
  piece.scratch_stride = (piece.plan.scratch_bytes() + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
  TENON_TRY(scratch, allocate_aligned(piece.scratch_stride * static_cast<size_t>(piece.chunks)));
  piece.scratch = std::move(scratch);
  choose_code(code, options, piece);
  pieces_.push_back(std::move(piece));
  return {};
}

void SnippetCall::choose_code(const SnippetCode& code, const CallOptions& options, Piece& piece) {
  const size_t inputs = code.body.inputs.size();
  double read = 0, written = 0;
  bool aligned = true;
  for (size_t i = 0; i < piece.addresses.size(); ++i) {
    (i < inputs ? read : written) += static_cast<double>(piece.plan.port_bytes(i));
    aligned &= i < inputs || piece.plan.rows_aligned(i, kAlignBytes);
  }
  piece.near = code.run;
  for (const SnippetCode::Variant& variant : code.variants) {
    const double bytes = variant.past_caches && options.read_again ? written : read + written;
    if (bytes < variant.least_bytes || (variant.past_caches && !aligned)) continue;
    (variant.past_caches ? piece.past_caches : piece.near) = variant.run;
  }
}

Result<void> SnippetCall::add_joined(const SnippetCode& code, const Dims& extents, const RowJoin& join,
                                     const CallOptions& options) {
  const size_t last = extents.size() - 1, ports = ports_of(code.body);
  const int64_t length = extents[last], rows = extents[last - 1], left = rows % join.rows;
  Dims main = extents;
  main[last - 1] = rows / join.rows;
  main[last] = length * join.rows;
  TENON_OK(add_piece(code, main, std::vector<int64_t>(ports, 0), options));
  if (left != 0) {  // of a space of two dims
    std::vector<int64_t> skipped(ports, 0);
    for (size_t i = 0; i < ports; ++i)
      if (!join.repeated[i] && varies(code.body, i) != 0)
        skipped[i] = (rows - left) * length * element_bytes(code.body, i);
    TENON_OK(add_piece(code, {1, left * length}, std::move(skipped), {.threads = 1, .read_again = options.read_again}));
  }
  for (size_t i = 0; i < ports; ++i) {
    if (!join.repeated[i]) continue;
    const auto row_bytes = static_cast<size_t>(length * element_bytes(code.body, i));
    TENON_TRY(bytes, allocate_aligned(row_bytes * static_cast<size_t>(join.rows)));
    repeats_.push_back({i, row_bytes, join.rows, std::move(bytes)});
  }
  return {};
}

Result<void> SnippetCall::prepare(const SnippetCode& code, std::span<const Dims> shapes, const CallOptions& options) {
  pieces_.clear();
  repeats_.clear();
  TENON_TRY(extents, snippet::space_extents(code.body, shapes));
  if (const auto join = join_rows(code.body, extents, code.kernel.lanes))
    return add_joined(code, extents, *join, options);
  return add_piece(code, std::move(extents), std::vector<int64_t>(ports_of(code.body), 0), options);
}

void SnippetCall::run(const SnippetCode& code, std::span<void* const> addresses, ParallelFor& pool) {
  for (Repeat& repeat : repeats_)
    for (int64_t i = 0; i < repeat.times; ++i)
      std::memcpy(repeat.bytes.get() + static_cast<size_t>(i) * repeat.row_bytes, addresses[repeat.port],
                  repeat.row_bytes);
  for (Piece& piece : pieces_) {
    for (size_t i = 0; i < addresses.size(); ++i)
      piece.addresses[i] = static_cast<std::byte*>(addresses[i]) + piece.skipped_bytes[i];
    for (const Repeat& repeat : repeats_) piece.addresses[repeat.port] = repeat.bytes.get();
    const bool past = piece.past_caches && aligned_and_apart(piece.addresses, code.body.inputs.size());
    const auto run = past ? piece.past_caches : piece.near;
    const auto run_chunks = [&piece, run](int64_t begin, int64_t end) {
      const size_t count = piece.plan.words();
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        const size_t at = static_cast<size_t>(chunk);
        const std::span<int64_t> words(piece.words.data() + at * count, count);
        piece.plan.fill(words, piece.addresses, piece.scratch.get() + at * piece.scratch_stride, piece.split, chunk);
        run(words.data());
      }
    };
    piece.chunks == 1 ? run_chunks(0, 1) : pool.run(piece.chunks, 1, run_chunks);
  }
}

}  // namespace tenon::irgen::detail
