// The words that a compiled snippet is called with, for the extents of one run.
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

// How many rows a kernel with joined rows (LinearKernel::Joined) walks as one, where the folded dim has `rows` elements
// and the one behind it `columns`: so many that a joined row is worth a loop and is whole vectors, as long as enough of
// them are left; 1: they are not worth it.
TENON_API int64_t rows_to_join(int64_t rows, int64_t columns, int lanes);

// How the kept dims are cut: parts[d] pieces along dim d, whose borders are multiples of multiple[d].
struct TENON_API Split {
  std::vector<int64_t> parts, multiple;  // one each dim
  int64_t chunks() const;
};

// Immutable; any thread.
class TENON_API CallPlan {
 public:
  // `shapes` of inputs, then outputs; of one that is a part of a tensor, that tensor's, or what it is of it.
  static Result<CallPlan> make(const Body& body, const LinearKernel& kernel, std::span<const Dims> shapes);
  // The same for known extents of the dims.
  static Result<CallPlan> make_for_extents(const Body& body, const LinearKernel& kernel, Dims extents);

  // Writes into params of `kernel` what they are in every call, however it is cut and whatever extents are that are not
  // known, where the innermost dim is reduced and its extent known; others may be called with rows joined (irgen). Kept
  // dims of known extents that no call cuts and whose rows none joins are `whole`: plans of the kernel leave them so.
  static Result<void> write_known(const Body& body, LinearKernel& kernel, DimSet whole = 0);

  const Dims& extents() const { return extents_; }
  size_t words() const { return words_.size(); }
  // No output has an element: there is nothing to call.
  bool empty() const { return empty_; }
  // Scratch memory that each call needs for itself, aligned to 64 bytes.
  size_t scratch_bytes() const { return scratch_bytes_; }
  // Bytes of the elements of port `port` (inputs, then outputs).
  size_t port_bytes(size_t port) const;
  // Where its first element lies, bytes behind the tensor's.
  int64_t begin_bytes(size_t port) const { return ports_[port].begin_bytes; }
  // Does each row along the innermost dim begin at a multiple of `align_bytes`, at most 64, if the port does? Those of
  // all chunks, too. Also of ports that have one element a row.
  bool rows_aligned(size_t port, size_t align_bytes) const;
  // Of a body of which a dim is parted (split_fold): do the outputs of each part begin at multiples of `align_bytes`,
  // if the outputs do? Not asked of single elements, which are stored as such.
  bool parts_aligned(size_t align_bytes) const;

  // Of a kernel in blocks: are they of a size with a bound, so that what is wanted again stays near?
  bool blocks_are_near() const { return blocks_are_near_; }

  // What tensors have for one fold: at one point of the kept dims; down columns for `columns` of these at most, since
  // neighbours share lines.
  double folded_bytes(int64_t columns) const;

  // For `threads` threads: `each` pieces for each of them, of a kernel that goes over blocks itself as few as leave
  // sixteen blocks to each piece, since the first and the last walk over a piece overlap with nothing. 1 for one
  // thread.
  int64_t pieces(int64_t threads, int64_t each) const;

  // At most `parts` pieces of work of about the same size, each with at least `min_elements` of the space: cuts kept
  // dims that all outputs vary over, the outermost first. The innermost is cut at whole cache lines. Where the kernel
  // has sizes of blocks (LinearKernel::Blocks), each piece is cut into these as well: chunks that follow one another
  // lie side by side.
  Split split(int64_t parts, int64_t min_elements) const;
  // The dim that is parted (BodyDim::parted), in `parts` parts, some of which may have no elements, and blocks, but
  // nothing else. Outputs that do not vary over it are those of the first part, then those of the second, and so on;
  // ReducedCount is that of the part.
  Split split_fold(int64_t parts) const;

  // The tensor (inputs, then outputs) that word `word` points into; none: a number, or scratch memory. Between calls of
  // a chunk these words alone change, by as much as the address that they come from.
  std::optional<size_t> tensor_of(size_t word) const;
  // All words of chunk `chunk` of `split`. `addresses`: of inputs, then outputs; the first elements of the tensors.
  // Chunks that run one after the other may have the same scratch memory.
  void fill(std::span<int64_t> words, std::span<void* const> addresses, void* scratch, const Split& split,
            int64_t chunk) const;
  // The only chunk of work that is not cut; of kernels without blocks.
  void fill(std::span<int64_t> words, std::span<void* const> addresses, void* scratch) const;

 private:
  CallPlan() = default;
  // A tensor or scratch buffer: bytes from one element to the next along each dim; 0 where it does not vary.
  struct Port {
    std::vector<int64_t> strides;
    int64_t bytes = 0;
    int element_bytes = 0;
    int64_t begin_bytes = 0;  // of a part of a tensor, behind the tensor's first element
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
  // Of the loops' dims: those of the body, and those of joined rows.
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
  // How many elements a fold has, of work with these extents.
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
  int joined_dim_ = -1;  // rows of it are joined, so many each time
  int64_t each_ = 1;
  LinearKernel::Blocks blocks_;
  bool blocks_are_near_ = false;
  int64_t block_ = 0;  // elements of the innermost dim at most, in a chunk; 0: any number
  bool empty_ = true;
};

}  // namespace tenon::snippet
