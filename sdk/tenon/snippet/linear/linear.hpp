// The linear kernel: one list of instructions over virtual registers, with loops as data. Lowering makes it from a
// Body, passes of the core and of plugins rewrite it, the allocator assigns registers, and the jitter table turns it
// into code.
//
// Terms: a port is an input, an output or a scratch buffer; a row is the elements along the innermost dim; a stretch is
// a contiguous part of a dim or an array that a loop traverses as one stream.
//
//   kernel @scale lanes 16 {
//     #0 = pointer 0                      the words that a call brings
//     #1 = pointer 1
//     #2 = limit loop 0
//     #3 = limit loop 1
//     %0:g = Parameter #0                 pointer of input 0
//     %1:g = Parameter #1                 pointer of output 0
//     %2:f32 = Scalar {bits = 0x40000000}
//     %3:g = Zero
//     loop 0 d0 dim 0 %3 vector step 16 limit #2 {    while %3 <= #2: ... %3 += 16
//       %4:f32 = Load f32 [%0 + %3]
//       %5:f32 = Mul %4, %2 ; Mul blocks.0/scale
//       Store f32 [%1 + %3], %5
//     }
//     tail 1 d0 dim 0 %3 limit #3 -> %6:bool, %7:g {  once, with the lanes below #3 - %3, if there are any
//       %8:f32 = Load.partial f32 [%0 + %3], %6, %7
//       ...
//     }
//   }
//
// Registers are variables: pointers, counters and accumulators are written more than once.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/codegen/emitter.hpp>
#include <tenon/codegen/register.hpp>
#include <tenon/ir/attribute.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/inline_vector.hpp>
#include <tenon/support/name.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon::snippet {

using RegisterId = int;
using ParamId = int;
using LoopId = int;
using RegisterIds = InlineVector<RegisterId, 4>;  // few instructions have more

// Lanes of booleans are in `mask` here; the allocator puts them into the file that the target uses for them.
struct Register {
  codegen::RegisterFile file = codegen::RegisterFile::vector;
  ElementType element;  // lane type; i64 in general registers
};

// A 64-bit word that a kernel is called with: void kernel(const int64_t* params). The words serve any extents.
struct Param {
  enum class Kind : uint8_t {
    pointer,  // address of port's first element of this call
    limit,    // of loop `loop`: the last counter value for which it runs; of a tail: its end. With `inner`, `loop`
              // processes several rows at once, whose elements are `inner`'s dim: it does not run for rows of more than
              // `longest` elements. With `ahead`, it runs while so many elements follow its own
    shift,    // bytes by which port's pointer advances after an iteration of `loop` (as many strides as its increment),
              // less what it has advanced in `inner`
    rewind,   // bytes that reset it after `loop` has ended to where it was before
    count,    // elements that a reduction covers, as the bits of a lane of type `element`
    // For a `loop` that traverses `streams` stretches of its dim side by side. Each has stream_length() elements,
    // counted from the beginning of the dim; the counter is that of the first.
    stream_limit,  // the last counter value for which it runs
    stream_step,   // bytes from one stretch to the next in `port`
    stream_rest,   // elements of all stretches but the first
  };
  Kind kind = Kind::pointer;
  int port = -1;  // inputs, then outputs of the body, then scratch buffers
  LoopId loop = -1, inner = -1;
  int longest = 0, ahead = 0;
  ElementType element = {};
  int streams = 0, stream_least = 0;            // shorter stretches do not pay
  std::optional<int64_t> known = std::nullopt;  // its value in every call: code may contain it
  bool operator==(const Param&) const = default;
};

// Elements between two cuts of a row: whole cache lines for any element type.
inline constexpr int64_t kLineElements = 64;

// Whether stretches of `length` elements begin at sufficiently different offsets in a page, for any element type.
// Processors compare loads with earlier stores by the offset in a page alone (4 KB aliasing: Intel's and AMD's
// optimisation manuals), so with equal offsets each stretch would wait for the store of the one before.
constexpr bool begin_apart(int64_t length, int streams) {
  constexpr int64_t kPage = 4096, kApart = 256;
  for (int64_t bytes = 1; bytes <= 8; bytes *= 2) {
    for (int64_t stretch = 1; stretch < streams; ++stretch) {
      const int64_t place = stretch * length * bytes % kPage;
      if (place < kApart || place > kPage - kApart) return false;
    }
  }
  return true;
}

// Elements of each stretch of a dim of `extent` elements: whole cache lines; 0 when there are too few. Stretches longer
// than a page begin at different page offsets (begin_apart) if a slightly shorter length achieves that.
constexpr int64_t stream_length(const Param& param, int64_t extent) {
  constexpr int64_t kLong = 4096, kTries = 16;
  const int64_t longest = extent / param.streams / kLineElements * kLineElements;
  int64_t length = longest;
  for (int64_t less = 0; less < kTries && longest > kLong; ++less) {
    length = longest - less * kLineElements;
    if (begin_apart(length, param.streams)) break;
    length = longest;
  }
  return length < param.stream_least ? 0 : length;
}

struct Memory {
  ElementType element;  // as stored in memory
  RegisterId base = -1;
  RegisterId index = -1;  // in elements; -1: none
  int64_t displacement_bytes = 0;
};

// An operator and its operands. `in` and `out` may name one register twice. `number` is the number named in each line.
//
//   Parameter            out g                 = params[number]
//   BroadcastParameter   out vector            all lanes = params[number] (a lane's bits)
//   Scalar               out vector            all lanes = attribute `bits`
//   Zero                 out g                 = 0
//   Number               out g                 = attribute `value`
//   AddParameter         in g, out g           out = in + params[number]
//   Copy                 in x, out x           any file
//   Load                 out vector            memory; partial: in (tail mask, tail count), other lanes are 0
//   BroadcastLoad        out vector            memory's one element, in all lanes
//   Store                in vector             memory; partial: in (value, tail mask, tail count); one: lane 0.
//                        Attribute `aligned` 1: at a multiple of the bytes stored, in calls whose outputs have the same
//                        alignment
//   LoopBegin, LoopEnd   in g (counter)        number: loop. While counter <= params[limit]: body, counter += increment
//   TailBegin, TailEnd   in g (counter), out (mask, g)   number: loop. If counter < params[limit]: mask and count of
//                        the lanes
//   WhenBegin, WhenEnd   in mask               the instructions between them run if lane 0 of the mask is set; with
//                        attribute `holds` 0, if it is not. As text: "when %3 {" and "when not %3 {"
//   HeadLanes            out g                 the number of elements from memory up to the next multiple of a vector's
//                        bytes; at most params[number]
//   FirstLanes           in g, out mask        the lanes below in, which is less than the lanes of a vector
//   FillTail             in vector, mask; out vector   lanes outside the mask = attribute `bits`
//   FoldLanes            in vector, out vector   attribute `by` (Add, Mul, Max, Min): all lanes = reduction over lanes
//   FoldRows             in 4 vectors, out 4 vectors   FoldLanes of each
//   Spill                in x                  frame slot `number` = in
//   Reload               out x                 = frame slot `number`
//   Move                 general to general after allocation
// and the elementwise operators of Body, vector to vector, in all lanes. Passes of a target may insert instructions of
// its own, with any other name. These have one or more lanes as operands and results. If they access memory, they have
// one result or none, or their result is an address.
struct Instruction {
  Name op;
  Attributes attributes = {};
  RegisterIds in = {}, out = {};
  std::optional<Memory> memory = std::nullopt;
  codegen::Lanes touched = codegen::Lanes::full;
  int64_t number = 0;
  int label = -1;  // index into LinearKernel::labels
  // Assigned by the allocator, as many as the row of the instruction asks for.
  InlineVector<int, 4> vectors = {}, masks = {}, generals = {};
};

struct Loop {
  enum class Kind : uint8_t { scalar, vector, tail };
  Kind kind = Kind::scalar;
  std::string name;         // of the body's dim, for text output: "d1"
  int dim = -1;             // of the body
  RegisterId counter = -1;  // in elements of the dim; of a tail: that of the vector loop before it
  int64_t increment = 1;    // vector: lanes times unrolled copies; scalar: rows processed side by side
  ParamId limit = -1;
  // Pointers that the loop advances at the end of each iteration and resets after the last one. insert_shifts turns
  // them into AddParameter, and the list is then empty.
  struct Shift {
    RegisterId pointer = -1;
    ParamId each = -1, rewind = -1;  // -1: does not move
  };
  std::vector<Shift> shifts = {};
};

struct TENON_API LinearKernel {
  std::string name;
  int lanes = 1;
  std::vector<Register> registers;
  std::vector<Param> params;
  std::vector<Loop> loops;
  std::vector<Instruction> body;
  std::vector<std::string> labels;  // of the graph's operators
  // Scratch buffers of a call: dense, row-major over some dims of the body, with `width` elements at each point. They
  // are ports, numbered after the tensors. `more_bytes` are allocated after each.
  struct Scratch {
    ElementType element;
    uint32_t dims = 0;  // a DimSet
    int64_t width = 1, more_bytes = 0;
  };
  std::vector<Scratch> scratch;
  // For a kernel that processes whole rows in a column reduction: a call may be divided along `dim`, the innermost dim
  // of the body, into blocks of any number of columns; the accumulators are in scratch rows of one block.
  struct Blocks {
    int dim = -1;        // -1: it may not be divided
    bool again = false;  // rows of a block are traversed by more than one sweep
    // The kernel iterates over the blocks of a call itself. Its loops then have dims that the body does not have:
    bool inside = false;
    int block() const { return dim + 1; }  // the columns of a block; 0 where there is no whole one
    int rest() const { return dim + 2; }   // the columns that remain after the last block
    int count() const { return dim + 3; }  // the blocks
    // How calls are divided, which passes of a target decide: into blocks of `elements` columns, where the bytes of all
    // ports in so many columns are at most `within_bytes`. The first size that fits is used; the last one has no bound
    // (0). Empty: rows are not divided into blocks.
    struct Size {
      int64_t elements = 0;  // a multiple of kLineElements
      int64_t within_bytes = 0;
      bool operator==(const Size&) const = default;
    };
    std::vector<Size> sizes = {};
    bool operator==(const Blocks&) const = default;
  };
  Blocks blocks = {};
  // For a kernel that joins short rows: as many consecutive rows as rows_to_join() says form one row of the two
  // innermost dims, of which the outer one is reduced. Loops over dim `rows` iterate over joined rows, and loops over
  // the next dim over their elements. For the remaining rows, loops have dims that the body does not have.
  struct Joined {
    int rows = -1;                         // -1: no rows are joined
    int row() const { return rows + 2; }   // the elements of one row
    int rest() const { return rows + 3; }  // the elements of the rows that remain after the last joined one
    int each() const { return rows + 4; }  // the rows of a joined one
    bool operator==(const Joined&) const = default;
  };
  Joined joined = {};
  // What lowering knows about the body and the text form omits; passes change neither.
  std::vector<int64_t> extents;  // of its dims; -1: open
  std::vector<uint32_t> varies;  // of inputs, then outputs: a DimSet of these
  // Whether elements of port `port` are contiguous along the innermost dim. If not, as for scratch memory, the
  // alignment of tensor rows says nothing about the alignment of the port's rows.
  bool has_rows(int port) const {
    const auto at = static_cast<size_t>(port);
    return extents.empty() || (at < varies.size() && (varies[at] >> (extents.size() - 1) & 1) != 0);
  }
  // Kept dims of the body that no call may divide or join: params that depend on their extents may be known where the
  // extents are.
  uint32_t whole = 0;  // a DimSet
  // Loops over the dim after the body's last one traverse all elements of the dims from this one on as one stretch,
  // which is contiguous in the ports that they advance along; -1: no loop does. Not for kernels with blocks or joined
  // rows.
  int stretch = -1;
  bool is_inside_row(const Loop& loop) const { return stretch >= 0 && loop.dim >= stretch; }
  bool merged = false;           // two sweeps, the second of which sums a function of the first's result, are one
  bool skewed = false;           // the loop over rows stores one row and reduces the next
  bool skewed_twice = false;     // and also the row after that
  bool stored_together = false;  // the loop over rows reduces several rows one by one, and stores them in one sweep
  // After allocation: the physical register of each register, and the number of 64-byte slots in the frame.
  std::vector<codegen::PhysicalRegister> places;
  int frame_slots = 0;

  RegisterId add_register(codegen::RegisterFile file, ElementType element) {
    registers.push_back({file, element});
    return static_cast<RegisterId>(registers.size()) - 1;
  }
  RegisterId add_general() { return add_register(codegen::RegisterFile::general, kI64); }
  // Lanes of `element`; booleans are masks.
  RegisterId add_lanes(ElementType element) {
    return add_register(element.is_bool() ? codegen::RegisterFile::mask : codegen::RegisterFile::vector, element);
  }
  // Returns the same number for equal params.
  ParamId add_param(const Param& param);
};

// The text form above; print(parse_linear(print(k))) equals print(k). Errors name line and column.
TENON_API std::string print(const LinearKernel& kernel);
TENON_API std::string print(const LinearKernel& kernel, const Instruction& instruction);
TENON_API void print_into(std::string& text, const LinearKernel& kernel, const Instruction& instruction);  // appends
// The kernel's text without names of the graph and of operators: equal for kernels that compute the same.
TENON_API std::string text_without_names(const LinearKernel& kernel);
TENON_API Result<LinearKernel> parse_linear(std::string_view text);

// The index of the LoopEnd, TailEnd or WhenEnd that ends the loop, tail or when that begins at body[begin]. `body` must
// satisfy verify().
TENON_API size_t end_of_region(std::span<const Instruction> body, size_t begin);

// For a WhenBegin: whether it runs where the mask is set (and not where it is clear).
TENON_API bool when_holds(const Instruction& when);

// Turns Loop::shifts into instructions. No effect when there are none.
TENON_API void insert_shifts(LinearKernel& kernel);

// Checks that registers are written before they are read on every path, loops are nested, operands have the files and
// types of the table above, params and labels exist, and tensors advance along dims that they vary over. After
// allocation it also checks that no two live registers share a place. Errors name the instruction.
TENON_API Result<void> verify(const LinearKernel& kernel);

}  // namespace tenon::snippet
