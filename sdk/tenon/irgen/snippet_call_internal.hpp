// One call of a snippet's code, planned for the extents of its ports: pieces of work, their params, and memory that
// they need beside the ports.
//
// Short rows. Several rows are processed as one where the innermost dim is shorter than a few vectors, and where each
// port that does not vary along the dim before it varies along the innermost dim alone (a scale for each of three
// interleaved channels). Such ports are repeated in a buffer, often enough that a joined row is worth a loop. The
// remaining rows are a piece of their own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tenon/irgen/snippet_code.hpp>
#include <tenon/program/ir/settled.hpp>
#include <tenon/snippet/body/params.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::irgen::detail {

// How many rows become one; none: the space is processed as it is.
struct RowJoin {
  int64_t rows = 0;
  std::vector<char> repeated;  // by port: its one row is repeated
};
std::optional<RowJoin> join_rows(const snippet::Body& body, const Dims& extents, int lanes);

struct CallOptions {
  int threads = 1;
  bool read_again = false;  // results are read again, by kernels that follow
  int64_t fold_parts = 0;   // of a body one of whose dims is cut into parts
};

// How a call of few results is cut so that threads share its folds: dim `dim`, in `parts` parts, which depend only on
// extents. Empty: there are enough results for nearly all threads, or there is too little work.
struct FoldCut {
  size_t dim = 0;
  int64_t parts = 0;
};
std::optional<FoldCut> fold_cut_for(const SnippetCode& code, const Dims& extents, int threads);

// Used by one thread at a time; its pieces by several. prepare() allocates heap memory, and compiles forms that no call
// has needed before; run() does neither.
class SnippetCall {
 public:
  // `extents` of the body's dims. After an error the call does nothing.
  Result<void> prepare(const SnippetCode& code, Dims extents, const CallOptions& options);
  // `addresses` of inputs, then outputs, with the shapes that it was prepared for.
  void run(const SnippetCode& code, std::span<std::byte* const> addresses, ParallelFor& pool);
  // Appends what run() does with these addresses, valid until the next call of this object; false, and nothing, when
  // that is more than running code once for each piece.
  bool settle(const SnippetCode& code, std::span<std::byte* const> addresses, std::vector<SettledCall>& calls);

 private:
  // A word of a chunk that changes from call to call: an offset in bytes from the beginning of a port.
  struct Pointer {
    uint32_t word = 0, port = 0;
    int64_t offset_bytes = 0;
  };
  // A form of the code, with its params.
  struct FormCall {
    FormCall() = default;
    FormCall(const FormCall&) = delete;
    FormCall& operator=(const FormCall&) = delete;

    void (*run)(const int64_t* params) = nullptr;
    int64_t head_lanes = 0;  // where rows may begin anywhere: outputs are congruent modulo this many elements; else 0
    // Chunks of one sequence run in order, with the same scratch memory.
    int64_t chunks = 0, sequences = 0;
    int64_t sequences_to_wake = 1;  // this many are worth waking a thread for
    int64_t first_of(int64_t sequence) const { return chunks * sequence / sequences; }
    size_t bytes_of_words = 0, pointers_of_chunk = 0;
    AlignedBytes words;  // of all chunks
    int64_t* words_of(int64_t chunk) const {
      return reinterpret_cast<int64_t*>(words.get() + static_cast<size_t>(chunk) * bytes_of_words);
    }
    std::vector<Pointer> pointers;  // of all chunks
    AlignedBytes scratch;           // of all sequences
    // The addresses that the threads read, updated by a run only where its addresses differ: a line that the caller has
    // just written takes another core .2 us to fetch, and loops that are shared take one.
    std::byte* const* addresses = nullptr;
    std::function<void(int64_t, int64_t)> sequences_body;
    void run_sequences(int64_t begin, int64_t end);
  };
  struct Piece {
    std::vector<int64_t> begin_bytes;  // by port: offset of the piece's first element
    // Where addresses have the alignment that it needs, `non_temporal`, if there is one; else `near`.
    std::unique_ptr<FormCall> near, non_temporal;
  };
  struct Repeat {
    size_t port = 0;
    size_t row_bytes = 0;
    int64_t times = 0;
    AlignedBytes bytes;
  };
  Result<void> add_piece(const SnippetCode& code, Dims extents, const std::vector<int64_t>& skipped_bytes,
                         const CallOptions& options);
  Result<std::unique_ptr<FormCall>> plan_form(const SnippetCode& code, const SnippetForm& form, const Dims& extents,
                                              std::span<const int64_t> skipped_bytes, const CallOptions& options) const;
  Result<void> add_joined(const SnippetCode& code, const Dims& extents, const RowJoin& join,
                          const CallOptions& options);
  Result<void> add_repeats(const SnippetCode& code, const RowJoin& join, int64_t length);
  // The repeated copy of a port; null: it is not repeated.
  std::byte* repeated(size_t port) const;
  static FormCall& form_for(const SnippetCode& code, std::span<std::byte* const> addresses, Piece& piece);
  // The chunk's words, with these addresses.
  static const int64_t* words_for(FormCall& call, std::byte* const* addresses, int64_t chunk);

  std::vector<Piece> pieces_;
  std::vector<Repeat> repeats_;
};

}  // namespace tenon::irgen::detail
