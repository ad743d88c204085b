#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include <tenon/snippet/linear/allocate_internal.hpp>
#include <tenon/snippet/linear/linear_names.hpp>

namespace tenon::snippet {
namespace {

bool makes_again(Name op) {
  static const Name kScalar("Scalar"), kZero("Zero"), kParameter("Parameter"), kBroadcast("BroadcastParameter"),
      kNumber("Number");
  return op == kScalar || op == kZero || op == kParameter || op == kBroadcast || op == kNumber;
}
// Rematerialisation of a load: its memory is not written.
bool loads_again(const Instruction& one) {
  static const Name kLoad("BroadcastLoad");
  return one.op == kLoad && one.memory->index < 0;
}

class Spiller {
 public:
  Spiller(Work& work, const std::vector<RegisterId>& spilled, const NeedsFn& needs)
      : work_(work), kernel_(work.kernel), needs_(needs), spilled_(work.kernel.registers.size(), 0) {
    for (const RegisterId id : spilled) spilled_[index(id)] = 1;
    find_makers();
  }

  Result<void> run() {
    std::vector<Instruction> old = std::exchange(kernel_.body, {});
    std::vector<InstructionNeeds> old_needs = std::exchange(work_.needs, {});
    kernel_.body.reserve(old.size() * 2);
    work_.needs.reserve(old.size() * 2);
    for (size_t i = 0; i < old.size(); ++i) TENON_OK(rewrite(std::move(old[i]), old_needs[i]));
    return {};
  }

 private:
  static size_t index(int id) { return static_cast<size_t>(id); }
  bool is_spilled(RegisterId id) const { return index(id) < spilled_.size() && spilled_[index(id)]; }

  // Finds the instruction that can recompute a register at any place, where there is one.
  void find_makers() {
    static const Name kParameter("Parameter"), kStore("Store");
    std::vector<int> writes(kernel_.registers.size(), 0);
    std::vector<const Instruction*> parameters(kernel_.registers.size(), nullptr);
    for (const Instruction& instruction : kernel_.body) {
      for (const RegisterId id : instruction.out) ++writes[index(id)];
      if (instruction.op == kLoopEnd) ++writes[index(instruction.in[0])];
      if (instruction.op == kParameter) parameters[index(instruction.out[0])] = &instruction;
    }
    // A pointer of unknown origin may alias any memory.
    bool stores_anywhere = false;
    std::vector<int> stored;
    const auto port_of = [&](RegisterId base) {
      const Instruction* parameter = parameters[index(base)];
      return parameter ? kernel_.params[index(static_cast<int>(parameter->number))].port : -1;
    };
    for (const Instruction& instruction : kernel_.body) {
      if (instruction.op != kStore) continue;
      stored.push_back(port_of(instruction.memory->base));
      stores_anywhere |= stored.back() < 0;
    }
    for (const Instruction& instruction : kernel_.body) {
      if (instruction.out.size() != 1 || writes[index(instruction.out[0])] != 1) continue;
      bool again = makes_again(instruction.op);
      if (loads_again(instruction) && !stores_anywhere) {
        const RegisterId base = instruction.memory->base;
        again = parameters[index(base)] && writes[index(base)] == 1 &&
                std::find(stored.begin(), stored.end(), port_of(base)) == stored.end();
        if (again) bases_.emplace(instruction.out[0], *parameters[index(base)]);
      }
      if (again && is_spilled(instruction.out[0])) makers_.emplace(instruction.out[0], instruction);
    }
  }

  RegisterId stand_in(RegisterId id) {
    const Register copy = kernel_.registers[index(id)];
    kernel_.registers.push_back(copy);
    work_.unspillable.resize(kernel_.registers.size(), 0);
    work_.unspillable.back() = 1;
    return static_cast<RegisterId>(kernel_.registers.size()) - 1;
  }
  int slot_of(RegisterId id) {
    if (work_.slots.size() <= index(id)) work_.slots.resize(kernel_.registers.size(), -1);
    int& slot = work_.slots[index(id)];
    if (slot < 0) slot = work_.next_slot++;
    return slot;
  }

  Result<void> append(Instruction&& instruction) {
    TENON_TRY(needs, needs_(kernel_, instruction));
    kernel_.body.push_back(std::move(instruction));
    work_.needs.push_back(needs);
    return {};
  }
  Result<void> store_to_slot(RegisterId value, RegisterId id, int label) {
    return append({.op = kSpill, .in = {value}, .number = slot_of(id), .label = label});
  }
  Result<void> load_from_slot(RegisterId value, RegisterId id, int label) {
    return append({.op = kReload, .out = {value}, .number = slot_of(id), .label = label});
  }

  // `id` in a register of its own, for the next instruction.
  Result<RegisterId> fetch(RegisterId id, int label) {
    const RegisterId made = stand_in(id);
    const auto maker = makers_.find(id);
    if (maker == makers_.end()) {
      TENON_OK(load_from_slot(made, id, label));
      return made;
    }
    Instruction again = maker->second;
    again.out = {made};
    if (const auto base = bases_.find(id); base != bases_.end()) {
      Instruction pointer = base->second;
      pointer.out = {stand_in(base->second.out[0])};
      again.memory->base = pointer.out[0];
      TENON_OK(append(std::move(pointer)));
    }
    TENON_OK(append(std::move(again)));
    return made;
  }

  Result<void> rewrite(Instruction&& instruction, const InstructionNeeds& needs) {
    if ((instruction.op == kLoopBegin || instruction.op == kLoopEnd) && is_spilled(instruction.in[0]))
      return rewrite_loop(std::move(instruction), needs);
    if (instruction.out.size() == 1 && makers_.contains(instruction.out[0])) return {};  // recomputed where it is used
    std::vector<std::pair<RegisterId, RegisterId>> fetched;
    TENON_OK(fetch_operands(instruction, fetched));
    std::vector<std::pair<RegisterId, RegisterId>> kept;
    for (RegisterId& id : instruction.out) {
      if (!is_spilled(id)) continue;
      kept.emplace_back(id, stand_in(id));
      id = kept.back().second;
    }
    const int label = instruction.label;
    kernel_.body.push_back(std::move(instruction));
    work_.needs.push_back(needs);
    for (const auto& [id, made] : kept) TENON_OK(store_to_slot(made, id, label));
    return {};
  }

  Result<void> fetch_operands(Instruction& instruction, std::vector<std::pair<RegisterId, RegisterId>>& fetched) {
    const auto take = [&](RegisterId& id) -> Result<void> {
      if (id < 0 || !is_spilled(id)) return {};
      auto known = std::find_if(fetched.begin(), fetched.end(), [&](const auto& entry) { return entry.first == id; });
      if (known == fetched.end()) {
        TENON_TRY(made, fetch(id, instruction.label));
        known = fetched.insert(known, {id, made});
      }
      id = known->second;
      return {};
    };
    for (RegisterId& id : instruction.in) TENON_OK(take(id));
    if (!instruction.memory) return {};
    TENON_OK(take(instruction.memory->base));
    return take(instruction.memory->index);
  }

  // A spilled counter: one stand-in for both ends of the loop, since the back edge leads from one to the other. It
  // holds the counter after both of them, on all paths.
  Result<void> rewrite_loop(Instruction&& instruction, const InstructionNeeds& needs) {
    const RegisterId counter = instruction.in[0];
    RegisterId made = -1;
    Loop& loop = kernel_.loops[index(static_cast<int>(instruction.number))];
    if (instruction.op == kLoopBegin) {
      made = stand_in(counter);
      work_.pinned.resize(kernel_.registers.size(), 0);
      work_.pinned[index(made)] = 1;
      loop.counter = made;
    } else {
      made = loop.counter;
    }
    const int label = instruction.label;
    TENON_OK(load_from_slot(made, counter, label));
    instruction.in = {made};
    kernel_.body.push_back(std::move(instruction));
    work_.needs.push_back(needs);
    return store_to_slot(made, counter, label);
  }

  Work& work_;
  LinearKernel& kernel_;
  const NeedsFn& needs_;
  std::vector<char> spilled_;
  std::unordered_map<RegisterId, Instruction> makers_, bases_;
};

}  // namespace

std::vector<char> perhaps_moved(const LinearKernel& kernel) {
  constexpr size_t kNobody = ~size_t{0};
  std::vector<char> may(kernel.registers.size(), 0);
  std::vector<size_t> readers(kernel.registers.size(), kNobody);
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& one = kernel.body[i];
    for (const RegisterId id : one.in) {
      size_t& reader = readers[static_cast<size_t>(id)];
      if (reader != kNobody && reader != i) may[static_cast<size_t>(id)] = 0;
      reader = i;
    }
    if (one.out.size() == 1 && (makes_again(one.op) || loads_again(one))) may[static_cast<size_t>(one.out[0])] = 1;
  }
  return may;
}

Result<void> spill(Work& work, const std::vector<RegisterId>& spilled, const NeedsFn& needs) {
  return Spiller(work, spilled, needs).run();
}

}  // namespace tenon::snippet
