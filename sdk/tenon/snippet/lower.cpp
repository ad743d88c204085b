#include <tenon/snippet/lower.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <tenon/snippet/lower_plan.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

// Copies of a loop's body that holds so many instructions, and so many accumulators: long bodies keep the machine busy
// by themselves, and would only grow the code.
int copies_for(size_t instructions, size_t accumulators, int most) {
  constexpr size_t kInstructions = 96, kAccumulators = 8;
  int copies = std::max(most, 1);
  while (copies > 1 && (static_cast<size_t>(copies) * instructions > kInstructions ||
                        static_cast<size_t>(copies) * accumulators > kAccumulators))
    copies /= 2;
  return copies;
}

class Lowering {
 public:
  Lowering(const Body& body, const LowerOptions& options)
      : body_(body), options_(options), plan_(plan_lowering(body, options)), bound_(body.values.size()) {
    kernel_.name = body.name;
    kernel_.lanes = options.lanes;
    makers_.resize(body.values.size());
    users_.resize(body.values.size());
    for (const BodyNode& node : body.nodes) {
      makers_[index(node.result)].node = &node;
      for (const ValueId operand : node.operands) ++users_[index(operand)];
    }
    for (size_t i = 0; i < body.inputs.size(); ++i) makers_[index(body.inputs[i].value)].port = static_cast<int>(i);
    for (const ScratchPlan& scratch : plan_.scratch) kernel_.scratch.push_back({scratch.element, scratch.dims, 1});
  }

  LinearKernel run() {
    for (const Nest& nest : plan_.nests) write_nest(nest);
    kernel_.body.insert(kernel_.body.begin(), std::make_move_iterator(entry_.begin()),
                        std::make_move_iterator(entry_.end()));
    return std::move(kernel_);
  }

 private:
  struct Maker {
    const BodyNode* node = nullptr;
    int port = -1;  // where it lies, when no node makes it
  };
  // Where the instructions that are being written stand.
  struct Place {
    int vector = -1;                   // the dim whose elements lie in the lanes; -1: all lanes are alike
    RegisterId counter = -1;           // of that dim
    RegisterId mask = -1, count = -1;  // of a tail
    int copies = 1;
    int tile_copies = 0;  // most copies of the tile that it is in
  };

  static size_t index(int id) { return static_cast<size_t>(id); }
  DimSet varies(ValueId id) const { return body_.values[index(id)].varies; }
  bool in_lanes(ValueId id) const { return contains(varies(id), place_.vector); }
  bool swept(ValueId id) const { return (varies(id) & body_.reduced_dims()) != 0; }

  // --- instructions -----------------------------------------------------------------------------------------------

  Instruction& write(Instruction instruction) {
    kernel_.body.push_back(std::move(instruction));
    return kernel_.body.back();
  }

  int label_of(const BodyNode& node) {
    if (node.label.empty()) return -1;
    const auto [at, is_new] = labels_.try_emplace(node.label, static_cast<int>(kernel_.labels.size()));
    if (is_new) kernel_.labels.push_back(node.label);
    return at->second;
  }

  RegisterId scalar(ElementType element, int64_t bits) {
    const auto [at, is_new] = scalars_.try_emplace(str(element, " ", bits), -1);
    if (is_new) {
      at->second = kernel_.add_lanes(element);
      entry_.push_back({.op = "Scalar", .attributes = {{"bits", bits}}, .out = {at->second}});
    }
    return at->second;
  }

  RegisterId parameter(const Param& param) {
    const RegisterId made = kernel_.add_general();
    entry_.push_back({.op = "Parameter", .out = {made}, .number = kernel_.add_param(param)});
    return made;
  }

  // --- values -----------------------------------------------------------------------------------------------------

  // One register for each copy, or one for all. Bindings end with the region in which they were made.
  void bind(ValueId id, std::vector<RegisterId> registers) {
    bound_[index(id)] = std::move(registers);
    bound_order_.push_back(id);
  }
  RegisterId register_of(ValueId id, int copy) const {
    const std::vector<RegisterId>& registers = bound_[index(id)];
    TENON_CHECK(!registers.empty(), "%", id, " of body '", body_.name, "' is lowered before it is made");
    return registers.size() == 1 ? registers[0] : registers[index(copy)];
  }
  template <class F>
  void region(F f) {
    const size_t bound = bound_order_.size();
    const Place place = place_;
    f();
    place_ = place;
    while (bound_order_.size() > bound) {
      bound_[index(bound_order_.back())].clear();
      bound_order_.pop_back();
    }
  }

  // Makes `values`, which stand at one loop; those that are alike in all lanes first, since the copies share them. The
  // others operator by operator, for as many copies side by side as registers hold: a chain of operators waits for
  // itself, and what waits fills the machine's window, so copies one behind the other would wait one behind the other.
  // `reads` come before anything is stored: they may lie in the memory of an output that is stored here.
  void make(const std::vector<Access>& reads, const std::vector<ValueId>& values, const std::vector<Access>& stores) {
    make_copies(reads, values, stores, false, 0, 1);
    const int together = place_.copies == 1 ? 1 : copies_together(reads, values);
    for (int first = 0; first < place_.copies; first += together)
      make_copies(reads, values, stores, true, first, std::min(first + together, place_.copies));
  }
  void make_copies(const std::vector<Access>& reads, const std::vector<ValueId>& values,
                   const std::vector<Access>& stores, bool lanes, int first, int last) {
    for (const Access& read : reads) {
      if (in_lanes(read.value) != lanes) continue;
      for (int copy = first; copy < last; ++copy) add_copy(read.value, load(read.port, read.value, copy));
      for (int copy = first; copy < last; ++copy) store_if_wanted(read.value, copy, stores);
    }
    for (const ValueId id : values) {
      if (in_lanes(id) != lanes) continue;
      for (int copy = first; copy < last; ++copy) add_copy(id, make_value(id, copy));
      for (int copy = first; copy < last; ++copy) store_if_wanted(id, copy, stores);
    }
  }

  // How many copies of `values` the registers hold at once: one of them takes what is alive in it at most; beside them
  // stand what the copies share, accumulators, and what an emitter needs for itself.
  int copies_together(const std::vector<Access>& reads, const std::vector<ValueId>& values) const {
    constexpr int kBeside = 8, kMasks = 4;
    std::unordered_map<ValueId, int> left;  // users to come
    int alive = 0, most = 1, masks = 0, most_masks = 1;
    const auto count = [&](ValueId id, int change) {
      alive += change, most = std::max(most, alive);
      if (!body_.values[index(id)].element.is_bool()) return;
      masks += change, most_masks = std::max(most_masks, masks);
    };
    const auto made = [&](ValueId id) {
      if (const BodyNode* node = makers_[index(id)].node)
        for (const ValueId operand : node->operands)
          if (const auto user = left.find(operand); user != left.end() && --user->second == 0) count(operand, -1);
      count(id, 1);
      if (users_[index(id)] == 0)
        count(id, -1);
      else
        left[id] = users_[index(id)];
    };
    for (const Access& read : reads)
      if (in_lanes(read.value)) made(read.value);
    for (const ValueId id : values)
      if (in_lanes(id)) made(id);
    return std::clamp(std::min((options_.vectors - kBeside) / most, kMasks / most_masks), 1, place_.copies);
  }
  void add_copy(ValueId id, RegisterId made) {
    std::vector<RegisterId>& registers = bound_[index(id)];
    if (registers.empty()) bound_order_.push_back(id);
    registers.push_back(made);
  }

  RegisterId make_value(ValueId id, int copy) {
    const Maker& maker = makers_[index(id)];
    if (!maker.node) return load(maker.port, id, copy);
    const BodyNode& node = *maker.node;
    const ElementType element = body_.values[index(id)].element;
    static const Name kScalar("Scalar"), kCount("ReducedCount");
    if (node.op == kScalar) return scalar(element, *node.attributes.find("bits")->get_if<int64_t>());
    const RegisterId made = kernel_.add_lanes(element);
    if (node.op == kCount) {
      const ParamId count = kernel_.add_param({.kind = Param::Kind::count, .element = element});
      write({.op = "BroadcastParameter", .out = {made}, .number = count, .label = label_of(node)});
      return made;
    }
    Instruction instruction{.op = node.op, .attributes = node.attributes, .out = {made}, .label = label_of(node)};
    for (const ValueId operand : node.operands) instruction.in.push_back(register_of(operand, copy));
    write(std::move(instruction));
    return made;
  }

  // --- memory -----------------------------------------------------------------------------------------------------

  int tensors() const { return static_cast<int>(body_.inputs.size() + body_.outputs.size()); }
  const ScratchPlan* scratch_of(int port) const {
    return port < tensors() ? nullptr : &plan_.scratch[index(port - tensors())];
  }
  ElementType element_of(int port) const {
    const size_t inputs = body_.inputs.size();
    if (const ScratchPlan* scratch = scratch_of(port)) return scratch->element;
    return index(port) < inputs ? body_.inputs[index(port)].element : body_.outputs[index(port) - inputs].element;
  }
  DimSet varies_of(int port) const {
    const size_t inputs = body_.inputs.size();
    if (const ScratchPlan* scratch = scratch_of(port)) return scratch->dims;
    return varies(index(port) < inputs ? body_.inputs[index(port)].value : body_.outputs[index(port) - inputs].value);
  }

  RegisterId pointer_of(int port) {
    if (pointers_.size() <= index(port)) pointers_.resize(index(port) + 1, -1);
    RegisterId& pointer = pointers_[index(port)];
    if (pointer < 0) pointer = parameter({.kind = Param::Kind::pointer, .port = port});
    if (std::find(touched_.begin(), touched_.end(), port) == touched_.end()) touched_.push_back(port);
    return pointer;
  }

  Memory address(int port, ValueId id, int copy) {
    const ElementType element = element_of(port);
    Memory memory{.element = element, .base = pointer_of(port)};
    if (!in_lanes(id)) return memory;
    memory.displacement_bytes = int64_t{copy} * options_.lanes * (element.bits() / 8);
    if (!in_tile_scratch(port)) memory.index = place_.counter;
    return memory;
  }
  // The lanes of one tile are all there, whatever the tensors' tail.
  bool in_tile_scratch(int port) const {
    const ScratchPlan* scratch = scratch_of(port);
    return scratch && scratch->tile;
  }
  void note_width(int port) {
    if (!in_tile_scratch(port)) return;
    int64_t& width = kernel_.scratch[index(port - tensors())].width;
    width = std::max(width, int64_t{options_.lanes} * place_.tile_copies);
  }

  RegisterId load(int port, ValueId id, int copy) {
    const RegisterId made = kernel_.add_lanes(body_.values[index(id)].element);
    Instruction instruction{
        .op = in_lanes(id) ? "Load" : "BroadcastLoad", .out = {made}, .memory = address(port, id, copy)};
    limit_to_tail(instruction, port, id);
    write(std::move(instruction));
    return made;
  }

  void store(int port, ValueId id, int copy) {
    note_width(port);
    Instruction instruction{.op = "Store", .in = {register_of(id, copy)}, .memory = address(port, id, copy)};
    if (!in_lanes(id)) instruction.touched = codegen::Lanes::one;
    limit_to_tail(instruction, port, id);
    write(std::move(instruction));
  }
  void store_if_wanted(ValueId id, int copy, const std::vector<Access>& stores) {
    for (const Access& store : stores)
      if (store.value == id) this->store(store.port, id, copy);
  }
  void limit_to_tail(Instruction& instruction, int port, ValueId id) const {
    if (place_.mask < 0 || !in_lanes(id) || in_tile_scratch(port)) return;
    instruction.touched = codegen::Lanes::partial;
    instruction.in.push_back(place_.mask);
    instruction.in.push_back(place_.count);
  }

  // --- loops ------------------------------------------------------------------------------------------------------

  // Loops that end at the same counter value share their limit.
  ParamId limit_of(const Loop& loop, LoopId id) {
    for (size_t other = 0; other < kernel_.loops.size(); ++other) {
      const Loop& candidate = kernel_.loops[other];
      if (candidate.limit >= 0 && candidate.dim == loop.dim && candidate.increment == loop.increment &&
          (candidate.kind == Loop::Kind::tail) == (loop.kind == Loop::Kind::tail))
        return candidate.limit;
    }
    return kernel_.add_param({.kind = Param::Kind::limit, .loop = id});
  }

  LoopId begin_loop(Loop::Kind kind, int dim, RegisterId counter, int64_t increment) {
    const LoopId id = static_cast<LoopId>(kernel_.loops.size());
    Loop loop{.kind = kind, .name = str("d", dim), .dim = dim, .counter = counter, .increment = increment};
    loop.limit = limit_of(loop, id);
    kernel_.loops.push_back(std::move(loop));
    Instruction begin{.op = kind == Loop::Kind::tail ? "TailBegin" : "LoopBegin", .in = {counter}, .number = id};
    if (kind == Loop::Kind::tail) {
      place_.mask = kernel_.add_lanes(kBool);
      place_.count = kernel_.add_general();
      begin.out = {place_.mask, place_.count};
    }
    write(std::move(begin));
    return id;
  }
  void end_loop(LoopId id) {
    const Loop& loop = kernel_.loops[index(id)];
    if (loop.kind == Loop::Kind::tail)
      write({.op = "TailEnd", .number = id});
    else
      write({.op = "LoopEnd", .in = {loop.counter}, .number = id});
  }
  RegisterId zero() {
    const RegisterId counter = kernel_.add_general();
    write({.op = "Zero", .out = {counter}});
    return counter;
  }

  template <class F>
  LoopId scalar_loop(int dim, F f) {
    const LoopId id = begin_loop(Loop::Kind::scalar, dim, zero(), 1);
    region(f);
    end_loop(id);
    return id;
  }

  // `f` for all elements of `dim`: several vectors at once, single ones, and what is left.
  template <class F>
  void vector_loops(int dim, int copies, F f) {
    const RegisterId counter = zero();
    const auto piece = [&](Loop::Kind kind, int copies_now) {
      const int64_t increment = kind == Loop::Kind::tail ? 1 : int64_t{options_.lanes} * copies_now;
      region([&] {
        place_.vector = dim, place_.counter = counter, place_.copies = copies_now;
        const LoopId id = begin_loop(kind, dim, counter, increment);
        f();
        end_loop(id);
      });
    };
    if (copies > 1) piece(Loop::Kind::vector, copies);
    piece(Loop::Kind::vector, 1);
    piece(Loop::Kind::tail, 1);
  }

  // Pointers of `ports` move with the loops `ids` over `dims`, outermost first, each by what is left of its stride when
  // the loops inside of it have moved the pointer; a loop that the port does not vary over takes that back. `rewound`:
  // afterwards they stand where they stood.
  void move_pointers(const std::vector<int>& ports, const std::vector<int>& dims, const std::vector<LoopId>& ids,
                     bool rewound) {
    for (const int port : ports) {
      LoopId inner = -1;
      for (size_t i = ids.size(); i-- > 0;) {
        const bool varies = contains(varies_of(port), dims[i]);
        if (!varies && inner < 0) continue;
        const ParamId each =
            kernel_.add_param({.kind = Param::Kind::shift, .port = port, .loop = ids[i], .inner = inner});
        kernel_.loops[index(ids[i])].shifts.push_back({.pointer = pointers_[index(port)], .each = each});
        inner = varies ? ids[i] : -1;
      }
      if (rewound && inner >= 0)
        kernel_.loops[index(inner)].shifts.back().rewind =
            kernel_.add_param({.kind = Param::Kind::rewind, .port = port, .loop = inner});
    }
  }

  // --- nests ------------------------------------------------------------------------------------------------------

  void write_nest(const Nest& nest) {
    pointers_.clear();
    touched_.clear();
    for (const Access& read : nest.reads) makers_[index(read.value)] = {nullptr, read.port};
    std::vector<LoopId> ids = {};
    region([&] { write_scope(nest, 0, ids); });
    std::vector<int> ports = touched_;
    std::sort(ports.begin(), ports.end());
    move_pointers(ports, nest.kept, ids, false);
  }

  void write_scope(const Nest& nest, size_t level, std::vector<LoopId>& ids) {
    for (const Phase& phase : nest.scopes[level].phases) write_phase(nest, phase);
    if (level < nest.kept.size()) {
      ids.resize(std::max(ids.size(), level + 1));
      const LoopId id = scalar_loop(nest.kept[level], [&] { write_scope(nest, level + 1, ids); });
      ids[level] = id;
    } else if (nest.tiled && level + 1 < nest.scopes.size()) {
      const int copies = tile_copies(nest.scopes.back());
      vector_loops(nest.vector, copies, [&] {
        place_.tile_copies = copies;
        write_scope(nest, level + 1, ids);
      });
    }
  }

  int tile_copies(const Scope& scope) const {
    size_t instructions = 0, accumulators = 0;
    for (const Phase& phase : scope.phases) {
      instructions += phase.values.size();
      for (const Sweep& sweep : phase.sweeps) {
        instructions += sweep.values.size() + sweep.reads.size() + sweep.stores.size();
        accumulators = std::max(accumulators, sweep.folds.size());
      }
    }
    // Columns are folded in wide tiles, so that each row gives whole cache lines at a time.
    return copies_for(instructions, accumulators, accumulators > 0 ? 2 * options_.unroll : options_.unroll);
  }

  void write_phase(const Nest& nest, const Phase& phase) {
    std::vector<Access> stores;
    std::copy_if(nest.roots.begin(), nest.roots.end(), std::back_inserter(stores),
                 [&](const Access& root) { return !swept(root.value); });
    make({}, phase.values, stores);
    for (const Sweep& sweep : phase.sweeps) {
      write_sweep(nest, sweep);
      for (const BodyNode* fold : sweep.folds)
        for (int copy = 0; copy < (in_lanes(fold->result) ? place_.copies : 1); ++copy)
          store_if_wanted(fold->result, copy, stores);
    }
  }

  // --- sweeps -----------------------------------------------------------------------------------------------------

  // Loops of a sweep: scalar ones, and inside of them vectors when the lanes are not those of a tile around it.
  struct SweepLoops {
    const Sweep* sweep = nullptr;
    size_t scalar = 0;
    int vector = -1;
    int copies = 1;
    std::vector<LoopId> ids = {};
    std::vector<std::vector<RegisterId>> accumulators = {};  // of each fold
  };

  // Sums of floats depend on their order. So they always have the same number of accumulators, however long the body:
  // fused or alone, a reduction gives the same bits.
  int sweep_copies(const Sweep& sweep) const {
    const auto ordered = [&](const BodyNode* fold) {
      const bool sum = fold->op == "ReduceSum" || fold->op == "ReduceProd";
      return sum && body_.values[index(fold->result)].element.is_float();
    };
    if (std::any_of(sweep.folds.begin(), sweep.folds.end(), ordered)) return options_.unroll;
    return copies_for(sweep.values.size() + sweep.reads.size() + sweep.stores.size(), sweep.folds.size(),
                      options_.unroll);
  }

  void write_sweep(const Nest& nest, const Sweep& sweep) {
    SweepLoops loops{.sweep = &sweep, .scalar = sweep.loops.size()};
    // Only elements of the innermost dim lie side by side.
    const bool innermost = nest.kept.empty() || sweep.loops.back() > nest.kept.back();
    if (!nest.tiled && innermost) {
      loops.vector = sweep.loops.back();
      --loops.scalar;
      loops.copies = sweep_copies(sweep);
    }
    begin_folds(loops);
    const std::vector<int> before = std::exchange(touched_, {});
    region([&] { write_sweep_level(loops, 0); });
    std::vector<int> ports = touched_;
    std::sort(ports.begin(), ports.end());
    std::reverse(loops.ids.begin(), loops.ids.end());
    move_pointers(ports, sweep.loops, loops.ids, true);
    for (const int port : before)
      if (std::find(touched_.begin(), touched_.end(), port) == touched_.end()) touched_.push_back(port);
    finish_folds(loops);
  }

  // The loop of the sweep, counted from 1, in which a value is made.
  static size_t sweep_level(const Sweep& sweep, DimSet varies) {
    for (size_t i = sweep.loops.size(); i-- > 0;)
      if (contains(varies, sweep.loops[i])) return i + 1;
    return 0;
  }

  void make_sweep_level(const Sweep& sweep, size_t level) {
    const auto here = [&](ValueId id) { return sweep_level(sweep, varies(id)) == level; };
    std::vector<Access> reads;
    std::vector<ValueId> values;
    std::copy_if(sweep.reads.begin(), sweep.reads.end(), std::back_inserter(reads),
                 [&](const Access& read) { return here(read.value); });
    std::copy_if(sweep.values.begin(), sweep.values.end(), std::back_inserter(values), here);
    make(reads, values, sweep.stores);
  }

  void write_sweep_level(SweepLoops& loops, size_t level) {
    const Sweep& sweep = *loops.sweep;
    const bool vectors = level + 1 == sweep.loops.size() && loops.vector >= 0;
    if (level > 0) make_sweep_level(sweep, level);
    if (level == sweep.loops.size()) return fold(loops);
    if (vectors) {
      vector_loops(loops.vector, loops.copies, [&] {
        make_sweep_level(sweep, level + 1);
        fold(loops);
      });
    } else {
      loops.ids.push_back(scalar_loop(sweep.loops[level], [&] { write_sweep_level(loops, level + 1); }));
    }
  }

  static int64_t initial_of(const BodyNode& fold) { return *fold.attributes.find("initial")->get_if<int64_t>(); }
  static Name folding(Name reduction) {
    if (reduction == "ReduceSum") return "Add";
    if (reduction == "ReduceProd") return "Mul";
    return reduction == "ReduceMax" ? "Max" : "Min";
  }

  // Each copy has accumulators of its own, so that no copy waits for another.
  void begin_folds(SweepLoops& loops) {
    for (const BodyNode* fold : loops.sweep->folds) {
      const int copies = loops.vector >= 0 ? loops.copies : in_lanes(fold->result) ? place_.copies : 1;
      std::vector<RegisterId>& made = loops.accumulators.emplace_back();
      for (int copy = 0; copy < copies; ++copy) {
        made.push_back(kernel_.add_lanes(body_.values[index(fold->result)].element));
        write({.op = "Scalar",
               .attributes = {{"bits", initial_of(*fold)}},
               .out = {made.back()},
               .label = label_of(*fold)});
      }
    }
  }

  void fold(const SweepLoops& loops) {
    for (size_t i = 0; i < loops.sweep->folds.size(); ++i) {
      const BodyNode& node = *loops.sweep->folds[i];
      const int copies = loops.vector >= 0 || in_lanes(node.result) ? place_.copies : 1;
      for (int copy = 0; copy < copies; ++copy) {
        const RegisterId accumulator = loops.accumulators[i][index(copy)];
        const RegisterId operand = fill_tail(loops, node, register_of(node.operands[0], copy));
        write({.op = folding(node.op), .in = {accumulator, operand}, .out = {accumulator}, .label = label_of(node)});
      }
    }
  }
  // Lanes behind the end must not count, when lanes are folded.
  RegisterId fill_tail(const SweepLoops& loops, const BodyNode& node, RegisterId operand) {
    if (loops.vector < 0 || place_.mask < 0) return operand;
    const RegisterId filled = kernel_.add_lanes(body_.values[index(node.result)].element);
    write({.op = "FillTail",
           .attributes = {{"bits", initial_of(node)}},
           .in = {operand, place_.mask},
           .out = {filled},
           .label = label_of(node)});
    return filled;
  }

  void finish_folds(SweepLoops& loops) {
    for (size_t i = 0; i < loops.sweep->folds.size(); ++i) {
      const BodyNode& node = *loops.sweep->folds[i];
      std::vector<RegisterId> made = loops.accumulators[i];
      if (loops.vector >= 0) made = {fold_lanes(node, fold_copies(node, made))};
      bind(node.result, made);
    }
  }
  // Pairwise.
  RegisterId fold_copies(const BodyNode& node, std::vector<RegisterId> made) {
    for (size_t count = made.size(); count > 1; count = (count + 1) / 2) {
      for (size_t i = 0; i < count / 2; ++i) {
        const RegisterId other = made[count - 1 - i];
        write({.op = folding(node.op), .in = {made[i], other}, .out = {made[i]}, .label = label_of(node)});
      }
    }
    return made[0];
  }
  RegisterId fold_lanes(const BodyNode& node, RegisterId accumulator) {
    const RegisterId made = kernel_.add_lanes(body_.values[index(node.result)].element);
    write({.op = "FoldLanes",
           .attributes = {{"by", folding(node.op).str()}},
           .in = {accumulator},
           .out = {made},
           .label = label_of(node)});
    return made;
  }

  const Body& body_;
  const LowerOptions& options_;
  const LowerPlan plan_;
  LinearKernel kernel_;
  std::vector<Instruction> entry_;  // before all loops
  std::vector<Maker> makers_;       // of each value
  std::vector<int> users_;          // of each value: operands of nodes that it is
  std::vector<std::vector<RegisterId>> bound_;
  std::vector<ValueId> bound_order_;
  std::vector<RegisterId> pointers_;  // of each port, in the nest
  std::vector<int> touched_;          // ports
  std::unordered_map<std::string, RegisterId> scalars_;
  std::unordered_map<std::string, int> labels_;
  Place place_;
};

Result<void> check(const Body& body, const LowerOptions& options) {
  if (options.lanes < 1 || options.unroll < 1)
    return error(Code::invalid_argument, "lowering body '", body.name, "' for ", options.lanes, " lanes and ",
                 options.unroll, " copies");
  for (const BodyNode& node : body.nodes) {
    const std::string_view wanted = node.op == "Scalar" ? "bits" : is_reduction(node.op) ? "initial" : "";
    if (wanted.empty()) continue;
    const Attribute* bits = node.attributes.find(wanted);
    if (!bits || !bits->get_if<int64_t>())
      return error(Code::internal, node.op, " (", node.label, ") of body '", body.name, "' has no integer '", wanted,
                   "'");
  }
  return {};
}

}  // namespace

Result<LinearKernel> lower(const Body& body, const LowerOptions& options) {
  TENON_OK(check(body, options));
  return Lowering(body, options).run();
}

Result<InlineCode> lower_inline(const Body& body, LinearKernel& kernel, std::span<const RegisterId> inputs) {
  if (body.reduces()) return error(Code::invalid_argument, "body '", body.name, "' reduces: it needs loops of its own");
  if (inputs.size() != body.inputs.size())
    return error(Code::invalid_argument, "body '", body.name, "' has ", body.inputs.size(), " inputs, ", inputs.size(),
                 " registers are given");
  InlineCode code;
  std::vector<RegisterId> registers(body.values.size(), -1);
  const auto at = [&](ValueId id) -> RegisterId& { return registers[static_cast<size_t>(id)]; };
  for (size_t i = 0; i < inputs.size(); ++i) at(body.inputs[i].value) = inputs[i];
  for (const BodyNode& node : body.nodes) {
    at(node.result) = kernel.add_lanes(body.values[static_cast<size_t>(node.result)].element);
    Instruction made{.op = node.op, .attributes = node.attributes, .out = {at(node.result)}};
    for (const ValueId operand : node.operands) made.in.push_back(at(operand));
    if (!node.label.empty()) {
      const auto found = std::find(kernel.labels.begin(), kernel.labels.end(), node.label);
      made.label = static_cast<int>(found - kernel.labels.begin());
      if (found == kernel.labels.end()) kernel.labels.push_back(node.label);
    }
    (node.op == "Scalar" ? code.invariant : code.body).push_back(std::move(made));
  }
  for (const BodyPort& output : body.outputs) code.outputs.push_back(at(output.value));
  return code;
}

}  // namespace tenon::snippet
