// Loops, and the pointers that advance with them.
#include <algorithm>

#include <tenon/snippet/lower/lower_internal.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {

int copies_for(size_t instructions, size_t accumulators, int most, size_t most_accumulators) {
  constexpr size_t kInstructions = 96;
  int copies = std::max(most, 1);
  while (copies > 1 && (static_cast<size_t>(copies) * instructions > kInstructions ||
                        static_cast<size_t>(copies) * accumulators > most_accumulators))
    copies /= 2;
  return copies;
}

// As vector_loops() reduces them: fewer where the dim is known to be so short that the loop would never run.
int Lowering::copies_within(int dim, int copies) const {
  const Expr& extent = body_.dims[index(dim)].extent;
  if (!extent.is_constant()) return copies;
  while (copies > 1 && extent.constant() < int64_t{options_.lanes} * copies) copies /= 4;
  return std::max(copies, 1);
}

// Loops that end at the same counter value share their limit, except for loops over several rows, whose limit depends
// on more.
ParamId Lowering::limit_of(const Loop& loop, LoopId id) {
  if (loop.kind == Loop::Kind::scalar && loop.increment > 1) return add_param({.kind = Param::Kind::limit, .loop = id});
  for (const Loop& other : kernel_.loops) {
    if (other.limit >= 0 && other.dim == loop.dim && other.increment == loop.increment && other.kind == loop.kind)
      return other.limit;
  }
  return add_param({.kind = Param::Kind::limit, .loop = id});
}

LoopId Lowering::begin_loop(Loop::Kind kind, int dim, RegisterId counter, int64_t increment) {
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

void Lowering::end_loop(LoopId id) {
  const Loop& loop = kernel_.loops[index(id)];
  if (loop.kind == Loop::Kind::tail)
    write({.op = "TailEnd", .number = id});
  else
    write({.op = "LoopEnd", .in = {loop.counter}, .number = id});
}

// The output whose vectors a loop over `dim` that stores `stores` aligns: the first with its elements in lanes; -1:
// none.
int Lowering::head_port(int dim, const std::vector<Access>& stores) const {
  const auto in_lanes = [&](const Access& store) {
    return !scratch_of(store.port) && contains(varies_of(store.port), dim);
  };
  const auto first = std::find_if(stores.begin(), stores.end(), in_lanes);
  return !options_.heads || place_.rows > 1 || first == stores.end() ? -1 : first->port;
}

// Afterwards the position is that after the head's lanes, whose number is returned. vector_loops() limits it.
RegisterId Lowering::begin_head(int dim, int port) {
  place_.vector = dim, place_.counter = -1, place_.copies = 1;
  const Memory memory{.element = element_of(port), .base = pointer_of(port)};
  place_.count = kernel_.add_general();
  write({.op = "HeadLanes", .out = {place_.count}, .memory = memory});
  place_.mask = kernel_.add_lanes(kBool);
  write({.op = "FirstLanes", .in = {place_.count}, .out = {place_.mask}});
  return place_.count;
}

RegisterId Lowering::zero() {
  const RegisterId counter = kernel_.add_general();
  write({.op = "Zero", .out = {counter}});
  return counter;
}

// Moves the pointers of `ports`, and for skewed rows those of the previous row, in the loops `ids` over `dims`,
// outermost first. Each pointer moves by its stride minus what inner loops have moved it; a loop over which the port
// does not vary undoes that. `rewound`: afterwards they are back at their initial values.
void Lowering::move_pointers(const std::vector<int>& ports, const std::vector<int>& dims,
                             const std::vector<LoopId>& ids, bool rewound) {
  for (const int port : ports) {
    std::vector<RegisterId> pointers{pointers_[index(port)]};
    if (const auto rows = row_pointers_.find(port); rewound && plan_.skewed_with && rows != row_pointers_.end())
      pointers.insert(pointers.end(), rows->second.begin(), rows->second.end());
    LoopId inner = -1;
    for (size_t i = ids.size(); i-- > 0;) {
      const bool varies = contains(varies_of(port), dims[i]);
      if (!varies && inner < 0) continue;
      const ParamId each = add_param({.kind = Param::Kind::shift, .port = port, .loop = ids[i], .inner = inner});
      for (const RegisterId pointer : pointers)
        kernel_.loops[index(ids[i])].shifts.push_back({.pointer = pointer, .each = each});
      inner = varies ? ids[i] : -1;
    }
    if (!rewound || inner < 0) continue;
    const ParamId back = add_param({.kind = Param::Kind::rewind, .port = port, .loop = inner});
    std::vector<Loop::Shift>& shifts = kernel_.loops[index(inner)].shifts;
    for (auto shift = shifts.end() - static_cast<std::ptrdiff_t>(pointers.size()); shift != shifts.end(); ++shift)
      shift->rewind = back;
  }
}

}  // namespace tenon::snippet
