// Inside lowering: the lowering of one body. Its parts are values (lower_values.cpp), memory (lower_memory.cpp), loops
// (lower_loops.cpp), sweeps and reductions (lower_sweeps.cpp), merged sweeps (lower_merged.cpp), loop nests
// (lower.cpp), several rows side by side (lower_rows.cpp), skewed rows (lower_skewed.cpp), unrolled short rows
// (lower_held.cpp), and columns in whole rows (lower_columns.cpp). Terms are those of lower.hpp.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/snippet/lower/lower_nests_internal.hpp>

namespace tenon::snippet {

inline int64_t initial_of(const BodyNode& fold) { return *fold.attributes.find("initial")->get_if<int64_t>(); }
// Attributes from the target that each reducing instruction keeps.
inline Attributes said_of(const BodyNode& fold) {
  Attributes all = fold.attributes;
  all.erase("initial");
  return all;
}

// The number of copies of a loop body with `instructions` instructions and `accumulators` accumulators. Long bodies
// keep the processor busy on their own; copies would only increase the code size.
int copies_for(size_t instructions, size_t accumulators, int most, size_t most_accumulators = 8);

// Bits of a cache line.
inline constexpr int64_t kLineBits = 64 * 8;

// Stores, indexed by the value that they store.
class StoresByValue {
 public:
  StoresByValue() = default;
  StoresByValue(std::vector<Access> stores) : all_(std::move(stores)) {
    std::ranges::stable_sort(all_, {}, &Access::value);
  }
  const std::vector<Access>& all() const { return all_; }
  bool has(ValueId id) const { return !of(id).empty(); }
  // In the order in which they were added.
  std::span<const Access> of(ValueId id) const {
    const auto found = std::ranges::equal_range(all_, id, {}, &Access::value);
    return {found.begin(), found.end()};
  }

 private:
  std::vector<Access> all_;
};

class Lowering {
 public:
  Lowering(const Body& body, const LowerOptions& options);
  LinearKernel run();

 private:
  struct Maker {
    const BodyNode* node = nullptr;
    int port = -1;  // where it is in memory, when no node computes it
  };
  // A set of ports that keeps the order in which they were added.
  class PortSet {
   public:
    void add(int port) {
      const auto at = static_cast<size_t>(port);
      if (at >= has_.size()) has_.resize(at + 1, 0);
      if (std::exchange(has_[at], 1) == 0) ports_.push_back(port);
    }
    const std::vector<int>& all() const { return ports_; }

   private:
    std::vector<int> ports_;
    std::vector<char> has_;
  };
  // A row that is fully unrolled (lower_held.cpp).
  struct HeldRow {
    int vectors = 0;    // 0: it is not unrolled
    int held = 0;       // vectors at the end of a row whose values stay in registers from sweep to sweep
    int tail = 0;       // lanes of the last vector; 0: all
    int registers = 0;  // for values that stay
  };
  // The context of the instructions that are being written.
  struct Place {
    int vector = -1;                   // the dim whose elements are in the lanes; -1: all lanes are equal
    RegisterId counter = -1;           // of that dim
    RegisterId mask = -1, count = -1;  // in a tail
    int copies = 1;
    int tile_copies = 0;      // most copies in the enclosing tile
    int row_dim = -1;         // the dim along which several elements (rows) are processed side by side; -1: none
    int rows = 1;             // how many
    int least_copies = 1;     // vectors of each row, where a loop is long enough
    int ahead = 0;            // offset in rows from the nest's pointers; 1: the instructions are for the next row
    size_t accumulators = 0;  // that are live here
    HeldRow row = {};
    int first_row = 0, unit_rows = 0;  // rows covered by the units; 0: all
    int neighbours = 1;                // copies of one row that are consecutive units
    bool one_by_one = false;           // units are not interleaved
    bool reuses = false;               // bound values are not computed again
    int aligned_port = -1;             // the port whose vectors are aligned to their size here
  };
  // One vector: copy `copy` of row `row`. Units are interleaved.
  struct Unit {
    int row = 0, copy = 0;
  };
  // The loops of a sweep: scalar ones, and vector loops inside them unless the lanes belong to an enclosing tile.
  struct SweepLoops {
    const Sweep* sweep = nullptr;
    size_t scalar = 0;
    int vector = -1;
    int copies = 1;
    bool whole_rows = false;           // vectors along a row inside the loops over rows: accumulators are in memory
    int rows = 1;                      // with whole_rows: that are processed at once
    const Sweep* behind = nullptr;     // fused sweep over the previous block of whole rows, or the previous row
    const Merging* merging = nullptr;  // two merged sweeps
    SweepLoops* next = nullptr;        // fused sweep over the next row
    std::vector<LoopId> ids = {};
    std::vector<std::vector<RegisterId>> accumulators = {};  // of each reduction; the copies of a row are consecutive
  };

  static size_t index(int id) { return static_cast<size_t>(id); }
  DimSet varies(ValueId id) const { return body_.values[index(id)].varies; }
  ElementType lane(ValueId id) const { return body_.values[index(id)].element; }
  bool in_lanes(ValueId id) const { return contains(varies(id), place_.vector); }
  bool in_rows(ValueId id) const { return place_.rows > 1 && contains(varies(id), place_.row_dim); }
  bool swept(ValueId id) const { return (varies(id) & body_.reduced_dims()) != 0; }

  // --- instructions: lower_values.cpp ---
  Instruction& write(Instruction instruction);
  int label_of(const BodyNode& node);
  RegisterId scalar(ElementType element, int64_t bits);
  // Returns the same number for equal params, as LinearKernel::add_param(); indexed, since kernels may have many ports.
  ParamId add_param(const Param& param);
  RegisterId parameter(const Param& param);

  // --- values: lower_values.cpp ---
  // The registers of a value: one for each unit, for each row, for each copy, or one for all. Bindings end with the
  // region in which they were made.
  std::vector<RegisterId>& binding(ValueId id);
  size_t place_in_binding(ValueId id, Unit unit) const;
  void bind(ValueId id, std::vector<RegisterId> registers);
  void bind(ValueId id, Unit unit, RegisterId made);
  RegisterId register_of(ValueId id, Unit unit) const;
  template <class F>
  void region(F f) {
    const size_t bound = bound_order_.size();
    const Place place = place_;
    f();
    place_ = place;
    unbind(bound);
  }
  void unbind(size_t bound);
  // Writes the computation of `values`, which belong to one loop. Values with equal lanes come first, because the
  // copies share them. The others are written operator by operator, interleaved for as many units as registers hold: a
  // chain of dependent operators stalls, and units written one after the other would stall one after the other, because
  // the waiting instructions fill the out-of-order window. `reads` come before any store: they may be in the memory of
  // an output that is stored here. `folds`: the reductions that accumulate the values.
  void make(const std::vector<Access>& reads, const std::vector<ValueId>& values, const StoresByValue& stores,
            SweepLoops* folds = nullptr);
  void make_units(const std::vector<Access>& reads, const std::vector<ValueId>& values, const StoresByValue& stores,
                  bool lanes, int first, int last);
  int unit_rows() const { return place_.unit_rows > 0 ? place_.unit_rows : place_.rows; }
  Unit unit_of(int number) const {
    const int side = place_.neighbours, row = number / side % unit_rows();
    return {place_.first_row + row, number / side / unit_rows() * side + number % side};
  }
  bool is_bound(ValueId id, Unit unit) const;
  // Values that are equal in all rows are computed with the first row.
  bool has_own(ValueId id, Unit unit) const { return unit.row == 0 || in_rows(id); }
  bool stores_parts(const std::vector<Access>& stores) const;
  bool stores_late(const std::vector<Access>& reads, const std::vector<ValueId>& values,
                   const StoresByValue& stores) const;
  int units_together(const std::vector<Access>& reads, const std::vector<ValueId>& values,
                     const StoresByValue& stores) const;
  RegisterId make_value(ValueId id, Unit unit);
  std::optional<int64_t> reduced_count() const;
  bool is_plain_constant(ValueId id) const;
  void clamp_by_constant(const BodyNode& node, Instruction& instruction) const;

  // --- memory: lower_memory.cpp ---
  int tensors() const { return static_cast<int>(body_.inputs.size() + body_.outputs.size()); }
  const ScratchPlan* scratch_of(int port) const;
  ElementType element_of(int port) const;
  DimSet varies_of(int port) const;
  RegisterId pointer_of(int port);
  RegisterId pointer_of(int port, int row);
  Memory address(int port, ValueId id, Unit unit);
  bool in_tile_scratch(int port) const;
  void note_width(int port);
  RegisterId load(int port, ValueId id, Unit unit);
  void store(int port, ValueId id, Unit unit);
  bool is_aligned(int port, ValueId id) const;
  void store_if_wanted(ValueId id, Unit unit, const StoresByValue& stores);
  void limit_to_tail(Instruction& instruction, int port, ValueId id) const;

  // --- loops: lower_loops.cpp ---
  ParamId limit_of(const Loop& loop, LoopId id);
  LoopId begin_loop(Loop::Kind kind, int dim, RegisterId counter, int64_t increment);
  void end_loop(LoopId id);
  int head_port(int dim, const std::vector<Access>& stores) const;
  RegisterId begin_head(int dim, int port);
  RegisterId zero();
  template <class F>
  LoopId scalar_loop(int dim, RegisterId counter, int64_t increment, F f) {
    const LoopId id = begin_loop(Loop::Kind::scalar, dim, counter, increment);
    region([&] {
      place_.aligned_port = -1;
      f();
    });
    end_loop(id);
    return id;
  }
  // Writes `f` for all elements of `dim`: several vectors at once, fewer where that many do not fit, single ones, and
  // the tail. Before them comes the head, up to the first aligned vector of output `aligned`; -1: there is none.
  template <class F>
  void vector_loops(int dim, int copies, F f, int aligned = -1) {
    vector_loops(dim, columns_ < 0 ? dim : columns_, copies, f, aligned);
  }
  // The same for the elements of `dim`, counted by `walked`, a dim of joined rows.
  template <class F>
  void vector_loops(int dim, int walked, int copies, F f, int aligned = -1) {
    const size_t head = kernel_.body.size();
    RegisterId counter = -1;
    if (aligned < 0) {
      counter = zero();
    } else {
      region([&] {
        counter = begin_head(dim, aligned);
        f();
      });
    }
    LoopId last = -1;
    const auto piece = [&](Loop::Kind kind, int copies_now) {
      const int64_t increment = kind == Loop::Kind::tail ? 1 : int64_t{options_.lanes} * copies_now;
      region([&] {
        place_.vector = dim, place_.counter = counter, place_.copies = copies_now, place_.aligned_port = aligned;
        last = begin_loop(kind, walked, counter, increment);
        f();
        end_loop(last);
      });
    };
    for (; copies > 1; copies /= 4) piece(Loop::Kind::vector, copies);
    piece(Loop::Kind::vector, 1);
    piece(Loop::Kind::tail, 1);
    if (aligned >= 0) kernel_.body[head].number = kernel_.loops[index(last)].limit;
  }
  int copies_within(int dim, int copies) const;
  void move_pointers(const std::vector<int>& ports, const std::vector<int>& dims, const std::vector<LoopId>& ids,
                     bool rewound);

  // --- nests: lower.cpp; several rows at once: lower_rows.cpp ---
  // Drops scratch buffers without pointers: unrolled rows keep in registers what loops keep in memory.
  void drop_idle_scratch();
  void write_nest(const Nest& nest);
  void write_scope(const Nest& nest, size_t level, std::vector<LoopId>& ids);
  int tile_copies(const Nest& nest) const;
  void write_phase(const Nest& nest, const Phase& phase);
  void store_folds(const Nest& nest, const Sweep& sweep);
  bool ends_within_line(const Access& store, int dim) const;
  bool rows_share(ValueId id, int dim) const {
    return contains(varies(id), dim) && !contains(varies(id), place_.row_dim);
  }
  bool goes_row_by_row(const Sweep& sweep) const;
  bool gains_row_by_row(const Sweep& sweep) const;
  bool stores_parts_of_lines(const Nest& nest, const Scope& scope) const;
  int rows_together(const Nest& nest) const;
  int longest_row(const Scope& scope) const;
  bool rows_have_memory(const Nest& nest, const Scope& scope) const;
  size_t row_pointers_of(const Nest& nest) const;
  int rows_stored_together(const Nest& nest) const;
  void fold_and_store_rows(const Nest& nest, int rows);
  LoopId write_rows_stored_together(const Nest& nest, int rows, std::vector<LoopId>& ids);
  LoopId write_rows(const Nest& nest, int rows, std::vector<LoopId>& ids);
  void make_row_pointers(LoopId single);
  void move_row_pointers(int dim, const std::vector<int>& ports);

  // --- columns in whole rows: lower_columns.cpp ---
  void write_whole_rows(const Nest& nest);
  void add_row_operands(const Nest& nest, const std::vector<ValueId>& wanted, std::vector<Access>& reads,
                        std::vector<ValueId>& makes) const;
  void write_row_values(const Nest& nest, const Phase& phase);
  void write_row_sweep(const Nest& nest, const Sweep& sweep, const Sweep* behind = nullptr);
  Sweep along_row(const Nest& nest, const Sweep& sweep) const;
  int rows_of_sweep(const Sweep& row, int most) const;
  void begin_row_folds(const Nest& nest, const Sweep& row);
  void store_row_fold(const BodyNode& fold);
  void store_row_folds(const Nest& nest, const Sweep& row);
  void write_row_loops(SweepLoops& loops, size_t level);
  void fold_along_row(SweepLoops& loops);

  // --- rows that are joined: lower_joined.cpp ---
  bool joined() const { return plan_.joined; }
  template <class F>
  void each_row(const std::vector<ValueId>& ids, F f);
  void write_joined_values(const Nest& nest, const std::vector<Access>& reads, const std::vector<ValueId>& makes,
                           const std::vector<Access>& stores);
  struct JoinedFold {
    const BodyNode* fold = nullptr;
    ValueId part = -1;  // of each row
  };
  void join_folds(const Nest& nest, const std::vector<JoinedFold>& folds, const std::vector<ValueId>& wanted,
                  const std::vector<ValueId>& states, const std::vector<ValueId>& made);
  void join_row_folds(const Nest& nest, const Sweep& row);
  void store_in_each_row(const std::vector<Access>& stores);
  void rewind_behind_rest(LoopId outermost);

  // --- blocks of columns, the last sweep one block behind the others: lower_blocks.cpp ---
  void write_block_loop(const Nest& nest);
  void write_block(const Nest& nest, bool last_behind);

  // --- merged sweeps: lower_merged.cpp ---
  // Rows of a group whose powers are kept; later readers use the same groups. More rows would map to the same sets of
  // L1 where rows are a power of two apart.
  static constexpr int kRowsOfKept = 4;
  int largest_group() const;
  template <class F>
  void each_carried(const Merging& merging, F f);
  void write_merged_sweep(const Merging& merging);
  void settle_lanes(const Merging& merging);
  void begin_merged_rows(const Nest& nest, const Merging& merging);
  void write_merged_rows(const Nest& nest, const Merging& merging, const Sweep* behind);
  void settle_rows(const Nest& nest, const Merging& merging);
  std::vector<RegisterId> fold_group(const SweepLoops& loops, const BodyNode& node);
  void write_group(SweepLoops& loops);

  // --- unrolled short rows: lower_held.cpp ---
  std::pair<int, int> waiting(const Nest& nest) const;
  static bool waits_in_memory(const Nest& nest, const Access& store);
  bool long_when_walked_once(const Nest& nest) const;
  HeldRow held_row(const Nest& nest, int rows) const;
  std::pair<RegisterId, RegisterId> held_tail(int lanes);
  void begin_held(const Nest& nest);
  int accumulator_of(int number, int copies) const;
  void fold_held(const SweepLoops& loops, int first, int last);
  void write_held_vectors(const Nest& nest, const SweepLoops& loops, int begin, int end);
  void write_held_sweep(const Nest& nest, const Sweep& sweep);

  // --- skewed rows, the store of one fused with the reduction of the next: lower_skewed.cpp ---
  void write_skewed(const Nest& nest, std::vector<LoopId>& ids);
  using RowValues = std::vector<std::pair<ValueId, RegisterId>>;
  class ThreeWalks;
  void write_skewed_twice(const Nest& nest, std::vector<LoopId>& ids);
  void write_row_folds(const Nest& nest, const Sweep* behind = nullptr);
  void write_row_before(SweepLoops& loops);
  void write_row_before(const SweepLoops& loops, size_t level);
  void write_row_next(SweepLoops& loops);
  // Where there is no next row: loops advance no pointers.
  template <class Write>
  void without_rows_behind(const Write& write) {
    auto pointers = std::exchange(row_pointers_, {});
    write();
    row_pointers_ = std::move(pointers);
  }
  std::vector<std::vector<RegisterId>> put_aside(const RowValues& values);
  void put_back(const RowValues& values, std::vector<std::vector<RegisterId>> aside);
  bool is_taken(ValueId id, std::span<const ValueId> by) const;

  // --- sweeps: lower_sweeps.cpp ---
  int sweep_copies(const Sweep& sweep) const;
  void write_sweep(const Nest& nest, const Sweep& sweep);
  void walk_sweep(SweepLoops& loops);
  void make_sweep_level(SweepLoops& loops, size_t level, bool folds);
  void write_sweep_level(SweepLoops& loops, size_t level);
  int head_of(const SweepLoops& loops) const;
  int copies_of(const SweepLoops& loops, const BodyNode& fold) const;
  void begin_folds(SweepLoops& loops);
  void fold(SweepLoops& loops, int first, int last);
  bool loaded_in_part(RegisterId id) const;
  RegisterId fill_tail(const SweepLoops& loops, const BodyNode& node, RegisterId operand);
  void finish_folds(SweepLoops& loops);
  RegisterId fold_copies(const BodyNode& node, std::vector<RegisterId> made);
  std::vector<RegisterId> fold_lanes(const BodyNode& node, const std::vector<RegisterId>& rows);

  const LowerOptions& options_;
  const LowerPlan plan_;
  const Body& body_;  // including what the plan adds
  LinearKernel kernel_;
  std::vector<Instruction> entry_;  // before all loops
  std::vector<Maker> makers_;       // of each value
  std::vector<int> users_;          // of each value: number of operands that it is
  std::vector<std::vector<RegisterId>> bound_;
  std::vector<ValueId> bound_order_;
  std::vector<RegisterId> pointers_;                               // of each port, in the nest
  std::unordered_map<int, std::vector<RegisterId>> row_pointers_;  // of ports: for the second row and further ones
  int columns_ = -1;  // the dim counted by vector loops along columns, where it is not the body's own
  PortSet touched_;
  const Sweep* behind_ = nullptr;          // fused into the sweep that is being written, over the previous row
  SweepLoops* next_ = nullptr;             // and this one over the next row
  RowValues of_row_before_, of_row_next_;  // the values that they use
  LoopId row_loop_ = -1;                   // of the nest, or of the sweep: the loop that processes several rows at once
  std::vector<LoopId> last_row_loops_;     // of skewed rows: loops that run once, around that loop
  std::vector<int> row_ports_;             // of values: the scratch row in which they are kept; -1: none
  std::pair<RegisterId, RegisterId> held_tail_{-1, -1};  // mask and count
  std::unordered_multimap<uint64_t, ParamId> params_;    // by their immutable fields
  std::unordered_map<std::string, RegisterId> scalars_;
  std::unordered_map<std::string, int> labels_;
  std::pair<const BodyNode*, int> labelled_{nullptr, -1};  // the node whose label was requested last, and the label
  Place place_;
};

}  // namespace tenon::snippet
