// Random graphs of elementwise operators and row reductions over one space, reproducible by seed, and those of
// kinds.hpp. Each has two forms: the text of the graph, and one fused loop nest in C++ (drawn_loop.cpp).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::bench {

enum class Element : uint8_t { f32, f16, i32, u8, i8, boolean, i64, bf16 };

struct DrawnValue {
  std::string op;  // "input", "constant", or an operator of the graph without attributes but those of its row
  std::vector<int> operands;  // earlier values
  Element element = Element::f32;
  unsigned over = 0;   // bit d: it varies over dim d; the extent of others is 1
  int degree = 0;      // of the polynomial in the inputs that bounds it
  double number = 0;   // of a constant
  bool kept = false;   // worth to be kept for later walks of a row rather than made again
  bool inside = false;  // of a later value that the graph makes by one operator, with its operands and attributes:
  std::string whole;

  bool is_input() const { return op == "input"; }
  bool is_constant() const { return op == "constant"; }
  bool is_reduction() const { return op.starts_with("Reduce"); }
};

struct DrawnGraph {
  uint32_t seed = 0;
  std::string title;            // its name, where it is not drawn
  std::string kind;             // what was drawn, such as "elementwise" or "softmax-like"
  std::vector<int64_t> dims;
  int folded = 0;                   // the last dims, over which reductions go
  std::vector<DrawnValue> values;  // inputs, constants and operators, each behind its operands
  std::vector<int> outputs;
  std::string written_text, written_loop;  // of graphs that are no loops over one space, instead of values

  std::vector<int> inputs() const;
  // The title, else kind, extents, operators and types of the inputs, in a line.
  std::string name() const;
  // The graph in its text form.
  std::string text() const;
  // A function NAME(const void* const* in, void* const* out, const int64_t* extents) with one loop nest, as if written
  // by hand. `extents` are loop_extents(). Prelude: see loop_prelude(). `sums`: the type in which it sums.
  std::string loop(const std::string& name, const std::string& sums = "float") const;
  // Whether a sum of floats cancels what another one added, as in (a - b) + b. With -ffast-math a compiler simplifies
  // that to a, and the loop reads less than the graph states.
  bool cancels() const;
  // Whether rows are reduced that are so long that sequential sums in f32 have larger errors than results may have: for
  // a million squares near 2, half a percent.
  bool folds_long_rows() const;
  // The extents of the loops: adjacent dims that all tensors share are merged.
  std::vector<int64_t> loop_extents() const;
};

// The text before the loops in a file.
std::string loop_prelude();

// Elements of all inputs and outputs together: at most about 2^most_bits.
DrawnGraph draw_graph(uint32_t seed, int most_bits = 20);

}  // namespace tenon::bench
