// Values in registers.
#include <algorithm>

#include <tenon/snippet/lower/lower_internal.hpp>
#include <tenon/support/check.hpp>
#include <tenon/support/hash.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {

// --- instructions -------------------------------------------------------------------------------------------------

Instruction& Lowering::write(Instruction instruction) {
  kernel_.body.push_back(std::move(instruction));
  return kernel_.body.back();
}

int Lowering::label_of(const BodyNode& node) {
  if (node.label.empty()) return -1;
  if (labelled_.first == &node) return labelled_.second;  // the next unit of the same value
  const auto [at, is_new] = labels_.try_emplace(node.label, static_cast<int>(kernel_.labels.size()));
  if (is_new) kernel_.labels.push_back(node.label);
  labelled_ = {&node, at->second};
  return at->second;
}

RegisterId Lowering::scalar(ElementType element, int64_t bits) {
  const auto [at, is_new] = scalars_.try_emplace(str(element, " ", bits), -1);
  if (is_new) {
    at->second = kernel_.add_lanes(element);
    entry_.push_back({.op = "Scalar", .attributes = {{"bits", bits}}, .out = {at->second}});
  }
  return at->second;
}

ParamId Lowering::add_param(const Param& param) {
  // The limit of a loop over rows is completed later, when its body is known.
  const uint64_t key = hash_mix(hash_mix(static_cast<uint64_t>(param.kind), static_cast<uint64_t>(param.port)),
                                static_cast<uint64_t>(param.loop));
  const auto [first, last] = params_.equal_range(key);
  const auto is_same = [&](const auto& one) { return kernel_.params[index(one.second)] == param; };
  const auto found = std::find_if(first, last, is_same);
  if (found != last) return found->second;
  kernel_.params.push_back(param);
  return params_.emplace(key, static_cast<ParamId>(kernel_.params.size()) - 1)->second;
}

RegisterId Lowering::parameter(const Param& param) {
  const RegisterId made = kernel_.add_general();
  entry_.push_back({.op = "Parameter", .out = {made}, .number = add_param(param)});
  return made;
}

// --- values -------------------------------------------------------------------------------------------------------

std::vector<RegisterId>& Lowering::binding(ValueId id) {
  std::vector<RegisterId>& registers = bound_[index(id)];
  if (registers.empty()) bound_order_.push_back(id);
  return registers;
}

size_t Lowering::place_in_binding(ValueId id, Unit unit) const {
  const int row = in_rows(id) ? unit.row : 0;
  return index(in_lanes(id) ? row * place_.copies + unit.copy : row);
}

void Lowering::bind(ValueId id, std::vector<RegisterId> registers) { binding(id) = std::move(registers); }

void Lowering::bind(ValueId id, Unit unit, RegisterId made) {
  std::vector<RegisterId>& registers = binding(id);
  const size_t at = place_in_binding(id, unit);
  if (registers.size() <= at) registers.resize(at + 1, -1);
  registers[at] = made;
}

RegisterId Lowering::register_of(ValueId id, Unit unit) const {
  TENON_CHECK(is_bound(id, unit), "%", id, " of body '", body_.name, "' is lowered before it is made");
  return bound_[index(id)][place_in_binding(id, unit)];
}

bool Lowering::is_bound(ValueId id, Unit unit) const {
  const std::vector<RegisterId>& registers = bound_[index(id)];
  const size_t at = place_in_binding(id, unit);
  return at < registers.size() && registers[at] >= 0;
}

void Lowering::unbind(size_t bound) {
  while (bound_order_.size() > bound) {
    bound_[index(bound_order_.back())].clear();
    bound_order_.pop_back();
  }
}

void Lowering::make(const std::vector<Access>& reads, const std::vector<ValueId>& values, const StoresByValue& stores,
                    SweepLoops* folds) {
  make_units(reads, values, stores, false, 0, unit_rows());
  const int units = unit_rows() * place_.copies;
  const int most = units == 1 || place_.one_by_one ? 1 : units_together(reads, values, stores);
  // In as few groups as possible, of equal size: two and two share checks and lines that three and one do not.
  const int groups = (units + most - 1) / most, together = (units + groups - 1) / groups;
  // With interleaved rows, the stores of two copies are in one line, which L1 accepts at once as long as no other line
  // is stored in between (docs/performance/lessons/rows.md); with several outputs as well, where vectors are parts of
  // lines.
  if (place_.copies % 2 == 0 && (unit_rows() > 1 ? !stores.all().empty() : stores_parts(stores.all())))
    place_.neighbours = 2;
  for (int first = 0; first < units; first += together) {
    const int last = std::min(first + together, units);
    make_units(reads, values, stores, true, first, last);
    if (folds) fold(*folds, first, last);
  }
  place_.neighbours = 1;
}

// Whether one of them stores vectors that are shorter than a line.
bool Lowering::stores_parts(const std::vector<Access>& stores) const {
  return std::ranges::any_of(stores, [&](const Access& store) {
    return in_lanes(store.value) && options_.lanes * element_of(store.port).bits() < kLineBits;
  });
}

// Values for several tensors are stored at the end, line by line, so that their lines are filled in turn: L2 accepts
// them a tenth faster than several lines of each (docs/performance/lessons/tensors.md).
bool Lowering::stores_late(const std::vector<Access>& reads, const std::vector<ValueId>& values,
                           const StoresByValue& stores) const {
  if (options_.all_copies) return false;
  const auto stored = [&](ValueId id) { return in_lanes(id) && stores.has(id); };
  return std::count_if(values.begin(), values.end(), stored) +
             std::count_if(reads.begin(), reads.end(), [&](const Access& read) { return stored(read.value); }) >
         1;
}

void Lowering::make_units(const std::vector<Access>& reads, const std::vector<ValueId>& values,
                          const StoresByValue& stores, bool lanes, int first, int last) {
  const bool late = lanes && stores_late(reads, values, stores);
  const auto for_units = [&](auto f) {
    for (int number = first; number < last; ++number) f(unit_of(number));
  };
  const auto add = [&](ValueId id, auto make_one) {
    if (in_lanes(id) != lanes) return;
    for_units([&](Unit unit) {
      if (!is_bound(id, unit) || (has_own(id, unit) && !place_.reuses)) bind(id, unit, make_one(unit));
    });
    if (late) return;
    for_units([&](Unit unit) {
      if (has_own(id, unit)) store_if_wanted(id, unit, stores);
    });
  };
  for (const Access& read : reads) add(read.value, [&](Unit unit) { return load(read.port, read.value, unit); });
  for (const ValueId id : values) add(id, [&](Unit unit) { return make_value(id, unit); });
  const auto store = [&](ValueId id, int number) {
    if (in_lanes(id) && has_own(id, unit_of(number))) store_if_wanted(id, unit_of(number), stores);
  };
  for (int line = first; late && line < last; line += place_.neighbours) {
    const auto store_line = [&](ValueId id) {
      for (int number = line; number < std::min(line + place_.neighbours, last); ++number) store(id, number);
    };
    for (const Access& read : reads) store_line(read.value);
    for (const ValueId id : values) store_line(id);
  }
}

// A unit needs as many registers as it has values that are live at once; in addition to these there are values that
// units share, accumulators, and temporaries of emitters.
int Lowering::units_together(const std::vector<Access>& reads, const std::vector<ValueId>& values,
                             const StoresByValue& stores) const {
  constexpr int kMasks = 4;
  if (options_.all_copies) return place_.rows * place_.copies;
  std::unordered_map<ValueId, int> left;  // remaining users
  int alive = 0, most = 1, masks = 0, most_masks = 1;
  const bool late = stores_late(reads, values, stores);
  const auto count = [&](ValueId id, int change) {
    alive += change, most = std::max(most, alive);
    if (lane(id).is_bool()) masks += change, most_masks = std::max(most_masks, masks);
  };
  const auto made = [&](ValueId id) {
    if (!in_lanes(id)) return;
    if (const BodyNode* node = makers_[index(id)].node) {
      for (const ValueId operand : node->operands)
        if (const auto user = left.find(operand); user != left.end() && --user->second == 0) count(operand, -1);
    }
    count(id, 1);
    left[id] = users_[index(id)] + (late && stores.has(id));
    if (left[id] == 0) count(id, -1);
  };
  for (const Access& read : reads) made(read.value);
  for (const ValueId id : values) made(id);
  const int free = options_.vectors - options_.beside - static_cast<int>(place_.accumulators);
  return std::clamp(std::min(free / most, kMasks / most_masks), 1, unit_rows() * place_.copies);
}

RegisterId Lowering::make_value(ValueId id, Unit unit) {
  const Maker& maker = makers_[index(id)];
  if (!maker.node) return load(maker.port, id, unit);
  const BodyNode& node = *maker.node;
  static const Name kScalar("Scalar"), kCount("ReducedCount");
  if (node.op == kScalar) return scalar(lane(id), *node.attributes.find("bits")->get_if<int64_t>());
  if (node.op == kSpread) return register_of(node.operands[0], unit);
  if (node.op == kCount)
    if (const auto count = reduced_count())
      return scalar(lane(id), static_cast<int64_t>(lane_bits(lane(id), static_cast<double>(*count))));
  const RegisterId made = kernel_.add_lanes(lane(id));
  if (node.op == kCount) {
    const ParamId count = add_param({.kind = Param::Kind::count, .element = lane(id)});
    write({.op = "BroadcastParameter", .out = {made}, .number = count, .label = label_of(node)});
    return made;
  }
  Instruction instruction{.op = node.op, .attributes = node.attributes, .out = {made}, .label = label_of(node)};
  for (const ValueId operand : node.operands) instruction.in.push_back(register_of(operand, unit));
  clamp_by_constant(node, instruction);
  write(std::move(instruction));
  return made;
}

// The number of elements that a reduction folds, where it is known.
std::optional<int64_t> Lowering::reduced_count() const {
  int64_t count = 1;
  for (const BodyDim& dim : body_.dims) {
    if (!dim.reduced) continue;
    if (!dim.extent.is_constant()) return std::nullopt;
    count *= dim.extent.constant();
  }
  return count;
}

// A float that is neither NaN nor 0.
bool Lowering::is_plain_constant(ValueId id) const {
  static const Name kScalar("Scalar"), kBits("bits");
  const BodyNode* node = makers_[index(id)].node;
  if (!node || node->op != kScalar || !lane(id).is_float()) return false;
  const auto bits = static_cast<uint64_t>(*node->attributes.find(kBits)->get_if<int64_t>());
  const bool wide = lane(id).bits() == 64;
  const uint64_t magnitude = bits & (wide ? 0x7fffffffffffffff : 0x7fffffff);
  return magnitude != 0 && magnitude <= (wide ? 0x7ff0000000000000 : 0x7f800000);
}

// The maximum of x and such a constant is a clamp of x, bit for bit, and one instruction where the machine's own
// maximum propagates NaN from one side only.
void Lowering::clamp_by_constant(const BodyNode& node, Instruction& instruction) const {
  static const Name kMax("Max"), kMin("Min"), kLow("ClampLow"), kHigh("ClampHigh");
  if (node.op != kMax && node.op != kMin) return;
  for (const size_t constant : {1u, 0u}) {
    if (!is_plain_constant(node.operands[constant])) continue;
    instruction.op = node.op == kMax ? kLow : kHigh;
    if (constant == 0) std::swap(instruction.in[0], instruction.in[1]);
    return;
  }
}

}  // namespace tenon::snippet
