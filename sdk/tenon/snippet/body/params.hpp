// CallPlan: the 64-bit words that a compiled snippet is called with, for the extents of one run.
//
//   TENON_TRY(plan, CallPlan::make(body, kernel, shapes));         // once for each combination of shapes
//   const Split split = plan.split(threads, 16384);
//   for each chunk in [0, split.chunks()), on any thread:
//     plan.fill(words, addresses, scratch, split, chunk);          // words: plan.words() of them
//     code(words.data());
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/linear/linear.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon::snippet {

// The extents of the body's dims when the tensors of its ports (inputs, then outputs) have `shapes`. Negative or
// fractional ones are errors.
TENON_API Result<Dims> space_extents(const Body& body, std::span<const Dims> shapes);

// How many rows a kernel with joined rows (LinearKernel::Joined) processes as one, where the reduced dim has `rows`
// elements and the next dim `columns`. Chosen so that a joined row is worth a loop and consists of whole vectors, as
// long as enough rows are left; 1: joining does not pay.
TENON_API int64_t rows_to_join(int64_t rows, int64_t columns, int lanes);

// How the kept dims are divided: parts[d] pieces along dim d, whose borders are multiples of multiple[d].
struct TENON_API Split {
  std::vector<int64_t> parts, multiple;  // one per dim
  int64_t chunks() const;
};

// Immutable; may be used by any thread.
class TENON_API CallPlan {
 public:
  // `shapes` of inputs, then outputs. For one that is a part of a tensor: the shape of the tensor or of the part.
  static Result<CallPlan> make(const Body& body, const LinearKernel& kernel, std::span<const Dims> shapes);
  // The same for known extents of the dims.
  static Result<CallPlan> make_for_extents(const Body& body, const LinearKernel& kernel, Dims extents);

  // Writes into the params of `kernel` the values that they have in every call, however it is divided and whatever open
  // extents are. Only where the innermost dim is reduced and its extent is known; other kernels may be called with rows
  // joined (irgen). `whole`: kept dims of known extents that no call divides or joins; plans of the kernel then leave
  // them undivided.
  static Result<void> write_known(const Body& body, LinearKernel& kernel, DimSet whole = 0);

  const Dims& extents() const { return extents_; }
  size_t words() const { return words_.size(); }
  // No output has an element, so there is nothing to call.
  bool empty() const { return empty_; }
  // Scratch memory that each call needs for itself, aligned to 64 bytes.
  size_t scratch_bytes() const { return scratch_bytes_; }
  // Bytes of the elements of port `port` (inputs, then outputs).
  size_t port_bytes(size_t port) const;
  // The offset in bytes of its first element from that of the tensor.
  int64_t begin_bytes(size_t port) const { return ports_[port].begin_bytes; }
  // Whether each row along the innermost dim begins at a multiple of `align_bytes`, at most 64, if the port does; also
  // in all chunks, and for ports that have one element a row.
  bool rows_aligned(size_t port, size_t align_bytes) const;
  // For a body with a parted dim (split_fold): whether the outputs of each part begin at multiples of `align_bytes`, if
  // the outputs do. Single elements are ignored, because they are stored as such.
  bool parts_aligned(size_t align_bytes) const;

  // For a kernel in blocks: whether their size is bounded, so that what is read again stays in a near cache.
  bool blocks_are_near() const { return blocks_are_near_; }

  // Bytes of the tensors for one reduction: at one point of the kept dims; for column reductions at up to `columns` of
  // them, because neighbours share lines.
  double folded_bytes(int64_t columns) const;

  // Number of pieces for `threads` threads: `each` for each thread. A kernel that iterates over blocks itself gets few
  // enough pieces to leave sixteen blocks to each, because the first and the last sweep over a piece overlap with
  // nothing. 1 for one thread.
  int64_t pieces(int64_t threads, int64_t each) const;

  // At most `parts` pieces of about equal work, each with at least `min_elements` of the space. Divides kept dims that
  // all outputs vary over, the outermost first; the innermost is divided at whole cache lines. Where the kernel has
  // block sizes (LinearKernel::Blocks), each piece is divided into blocks as well; consecutive chunks are adjacent.
  Split split(int64_t parts, int64_t min_elements) const;
  // Divides the parted dim (BodyDim::parted) into `parts` parts, some of which may have no elements, and into blocks,
  // but nothing else. Outputs that do not vary over it are those of the first part, then those of the second, and so
  // on; ReducedCount is that of the part.
  Split split_fold(int64_t parts) const;

  // The tensor (inputs, then outputs) that word `word` points into; none: a number, or scratch memory. Between calls of
  // the same chunk only these words change, by as much as the address that they come from.
  std::optional<size_t> tensor_of(size_t word) const;
  // Writes all words of chunk `chunk` of `split`. `addresses`: the first elements of the tensors, inputs, then outputs.
  // Chunks that run one after the other may share scratch memory.
  void fill(std::span<int64_t> words, std::span<void* const> addresses, void* scratch, const Split& split,
            int64_t chunk) const;
  // The same for undivided work; only for kernels without blocks.
  void fill(std::span<int64_t> words, std::span<void* const> addresses, void* scratch) const;

 private:
  CallPlan() = default;
  // A tensor or scratch buffer: the stride in bytes along each dim; 0 where it does not vary.
  struct Port {
    std::vector<int64_t> strides;
    int64_t bytes = 0;
    int element_bytes = 0;
    int64_t begin_bytes = 0;  // of a part of a tensor, relative to the tensor's first element
  };
  struct Word {
    Param::Kind kind = Param::Kind::pointer;
    int port = -1;
    int dim = -1, inner_dim = -1;  // of the param's loops
    int64_t less = 0;              // limit: subtracted from the extent, or from the length of a stream
    int64_t times = 1;             // shift: strides of an iteration
    int64_t longest = 0;           // limit of a loop over several rows
    int streams = 0, stream_least = 0;
    ElementType element = {};  // of a count
    int64_t value = 0;         // of work that is not cut
  };
  // Extents of the loops' dims: those of the body, and those of joined rows.
  using Walk = std::array<int64_t, kMaxDims + 3>;
  Walk walk_of(const Dims& extents) const;
  Result<void> join_rows(const LinearKernel& kernel);
  int64_t stride_of(const Word& word, int dim) const;
  int64_t block_of(int64_t columns) const { return block_ > 0 ? block_ : columns; }
  void add_tensor(const Body& body, const BodyPort& port);
  void add_scratch_port(const LinearKernel::Scratch& scratch, const Dims& extents);
  int64_t block_for(const LinearKernel::Blocks& blocks);
  int64_t column_bytes() const;
  void add_scratch(const LinearKernel& kernel);
  Result<Word> word_of(const Body& body, const LinearKernel& kernel, const Param& param) const;
  bool is_same_for_chunks(const Word& word) const;
  void cut_blocks(Split& split, int64_t wanted) const;
  void fill_whole(std::span<int64_t> words, std::span<void* const> addresses, void* scratch) const;
  // The number of elements of a reduction, for work with these extents.
  int64_t count_of(const Word& word, const Dims& extents) const;
  int64_t value_of(const Word& word, const Walk& walk) const;
  int64_t address_of(const Word& word, std::span<void* const> addresses, void* scratch) const;

  Dims extents_;
  std::vector<Port> ports_;              // inputs, outputs, scratch buffers
  std::vector<size_t> scratch_offsets_;  // of each scratch buffer
  std::vector<Word> words_;
  DimSet splittable_ = 0, reduced_ = 0;
  size_t inputs_ = 0, tensors_ = 0, scratch_bytes_ = 0;
  int parted_dim_ = -1;  // -1: none is
  int stretch_ = -1;     // LinearKernel::stretch
  int joined_dim_ = -1;  // rows of it are joined, each_ at a time
  int64_t each_ = 1;
  LinearKernel::Blocks blocks_;
  bool blocks_are_near_ = false;
  int64_t block_ = 0;  // elements of the innermost dim at most, in a chunk; 0: any number
  bool empty_ = true;
};

}  // namespace tenon::snippet
