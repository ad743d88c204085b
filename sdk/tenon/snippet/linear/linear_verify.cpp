// One traversal for both forms of a kernel. A "place" is the storage of a register: before allocation each register is
// its own place, afterwards its place is the machine register. A read is valid when its register is the one last
// written to its place, on every path. This covers both reads of undefined registers and two live registers that share
// a place.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include <tenon/snippet/linear/linear.hpp>
#include <tenon/snippet/linear/linear_names.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

using codegen::RegisterFile;

constexpr RegisterId kNothing = -1;
using Held = std::pair<size_t, RegisterId>;  // a place, and the register whose value it has

// Operands and results of instructions that are not operators: g general, v lanes, m lanes of booleans, x any.
struct Rule {
  std::string_view in, out;
  enum class Number : uint8_t { none, param, loop, slot } number = Number::none;
  bool memory = false;
};

const Rule* rule_of(Name op) {
  using enum Rule::Number;
  static const std::unordered_map<Name, Rule> kRules{
      {"Parameter", {"", "g", param}},
      {"BroadcastParameter", {"", "v", param}},
      {"Scalar", {"", "v"}},
      {"Zero", {"", "g"}},
      {"Number", {"", "g"}},
      {"AddParameter", {"g", "g", param}},
      {"Copy", {"x", "x"}},
      {"Load", {"", "v", none, true}},
      {"BroadcastLoad", {"", "v", none, true}},
      {"Store", {"v", "", none, true}},
      {"LoopBegin", {"g", "", loop}},
      {"LoopEnd", {"g", "", loop}},
      {"TailBegin", {"g", "mg", loop}},
      {"TailEnd", {"", "", loop}},
      {"WhenBegin", {"m", ""}},
      {"WhenEnd", {"", ""}},
      {"HeadLanes", {"", "g", param, true}},
      {"FirstLanes", {"g", "m"}},
      {"FillTail", {"vm", "v"}},
      {"FoldLanes", {"v", "v"}},
      {"FoldRows", {"vvvv", "vvvv"}},
      {"Spill", {"x", "", slot}},
      {"Reload", {"", "x", slot}},
      {"Move", {"g", "g"}},
  };
  const auto found = kRules.find(op);
  return found == kRules.end() ? nullptr : &found->second;
}

bool is_loop(Name op) { return op == kLoopBegin || op == kLoopEnd; }
bool is_when(Name op) { return op == kWhenBegin || op == kWhenEnd; }

class Verifier {
 public:
  explicit Verifier(const LinearKernel& kernel) : kernel_(kernel), allocated_(!kernel.places.empty()) {}

  Result<void> run() {
    TENON_OK(check_places());
    for (const Instruction& instruction : kernel_.body) TENON_OK(check_form(instruction), where(instruction));
    TENON_OK(check_nesting());
    TENON_OK(check_tensors(), "the params of linear kernel '", kernel_.name, "'");
    TENON_OK(check_blocks(), "the blocks of linear kernel '", kernel_.name, "'");
    summarize();
    contents_.assign(place_count_, kNothing);
    size_t region = 0;
    for (const Instruction& instruction : kernel_.body) TENON_OK(follow(instruction, region), where(instruction));
    return {};
  }

 private:
  std::string where(const Instruction& instruction) const {
    return str("instruction '", print(kernel_, instruction), "' of linear kernel '", kernel_.name, "'");
  }
  const Register& reg(RegisterId id) const { return kernel_.registers[static_cast<size_t>(id)]; }
  bool known(RegisterId id) const { return id >= 0 && static_cast<size_t>(id) < kernel_.registers.size(); }

  size_t place_of(RegisterId id) const {
    if (!allocated_) return static_cast<size_t>(id);
    return place_of(kernel_.places[static_cast<size_t>(id)].file, kernel_.places[static_cast<size_t>(id)].number);
  }
  size_t place_of(RegisterFile file, int number) const {
    return static_cast<size_t>(file) * file_size_ + static_cast<size_t>(number);
  }

  Result<void> check_places() {
    place_count_ = kernel_.registers.size();
    if (!allocated_) return {};
    for (const codegen::PhysicalRegister& place : kernel_.places) widen(place.number);
    for (const Instruction& instruction : kernel_.body)
      for (const auto* scratch : {&instruction.vectors, &instruction.masks, &instruction.generals})
        for (const int number : *scratch) widen(number);
    place_count_ = codegen::kRegisterFiles * file_size_;
    if (kernel_.places.size() != kernel_.registers.size())
      return error(Code::internal, "linear kernel '", kernel_.name, "' has places for ", kernel_.places.size(), " of ",
                   kernel_.registers.size(), " registers");
    return {};
  }

  // Numbers are small, but a target that emits text has an unlimited number of variables.
  void widen(int number) { file_size_ = std::max(file_size_, static_cast<size_t>(std::max(number, 0)) + 1); }

  Result<void> check_place(RegisterId id) const {
    if (!allocated_) return {};
    const codegen::PhysicalRegister& place = kernel_.places[static_cast<size_t>(id)];
    if (place.number < 0) return error(Code::internal, "%", id, " has no place");
    const RegisterFile file = reg(id).file;
    // Lanes of booleans may be in vectors.
    if (place.file == file || (file == RegisterFile::mask && place.file == RegisterFile::vector)) return {};
    return error(Code::internal, "%", id, " is in a ", register_file_name(place.file), " register");
  }

  bool fits(char wanted, const Register& reg) const {
    switch (wanted) {
      case 'g': return reg.file == RegisterFile::general;
      case 'v': return reg.file != RegisterFile::general;
      case 'm': return reg.file == RegisterFile::mask;
      default: return true;
    }
  }

  // The registers must match the letters in `wanted`, and then those in `more`.
  Result<void> check_side(const RegisterIds& ids, std::string_view wanted, std::string_view more,
                          const char* side) const {
    const size_t count = wanted.size() + more.size();
    if (ids.size() != count) return error(Code::internal, ids.size(), " ", side, " where ", count, " belong");
    for (size_t i = 0; i < count; ++i) {
      const char letter = i < wanted.size() ? wanted[i] : more[i - wanted.size()];
      if (!fits(letter, reg(ids[i]))) return misplaced(ids[i]);
    }
    return {};
  }
  Result<void> check_lanes(const RegisterIds& ids) const {
    for (const RegisterId id : ids)
      if (!fits('v', reg(id))) return misplaced(id);
    return {};
  }
  Error misplaced(RegisterId id) const {
    return error(Code::internal, "%", id, " is a ", register_file_name(reg(id).file), " register");
  }

  Result<void> check_form(const Instruction& instruction) const {
    for (const RegisterIds* side : {&instruction.in, &instruction.out}) {
      for (const RegisterId id : *side) {
        if (!known(id)) return error(Code::internal, "%", id, " is no register");
        if (allocated_) TENON_OK(check_place(id));
      }
    }
    if (instruction.label >= static_cast<int>(kernel_.labels.size()))
      return error(Code::internal, "label ", instruction.label, " is not there");
    const Rule* rule = rule_of(instruction.op);
    if (rule && instruction.memory.has_value() != rule->memory)
      return error(Code::internal, instruction.memory ? "memory does not belong here" : "memory is missing");
    if (instruction.memory) TENON_OK(check_memory(*instruction.memory));
    if (!rule) return check_operator(instruction);
    const bool partial = instruction.touched == codegen::Lanes::partial;
    TENON_OK(check_side(instruction.in, rule->in, partial ? "mg" : "", "operands"));
    TENON_OK(check_side(instruction.out, rule->out, "", "results"));
    return check_number(instruction, *rule);
  }

  // An operator of the body, or one made by a target's pass: with a memory operand, or a prefetch. Such an operator
  // with memory may give an address; one with only register operands may give several results.
  Result<void> check_operator(const Instruction& instruction) const {
    TENON_OK(check_lanes(instruction.in));
    const bool none = instruction.out.empty() && (instruction.memory || instruction.in.empty());
    if (none) return {};
    if (instruction.memory) return check_side(instruction.out, "x", "", "results");
    return instruction.out.empty() ? check_side(instruction.out, "v", "", "results") : check_lanes(instruction.out);
  }

  Result<void> check_memory(const Memory& memory) const {
    for (const RegisterId id : {memory.base, memory.index}) {
      if (id == kNothing && id == memory.index) continue;
      if (!known(id) || reg(id).file != RegisterFile::general)
        return error(Code::internal, "%", id, " is no address register");
      TENON_OK(check_place(id));
    }
    return {};
  }

  Result<void> check_number(const Instruction& instruction, const Rule& rule) const {
    size_t limit = 0;
    switch (rule.number) {
      case Rule::Number::none: return {};
      case Rule::Number::param: limit = kernel_.params.size(); break;
      case Rule::Number::loop: limit = kernel_.loops.size(); break;
      case Rule::Number::slot: limit = static_cast<size_t>(kernel_.frame_slots); break;
    }
    if (instruction.number < 0 || static_cast<size_t>(instruction.number) >= limit)
      return error(Code::internal, "number ", instruction.number, " is not below ", limit);
    return {};
  }

  Result<void> check_nesting() const {
    std::vector<const Instruction*> open;
    std::vector<char> seen(kernel_.loops.size(), 0);
    for (const Instruction& instruction : kernel_.body) {
      if (begins_region(instruction.op)) {
        if (!is_when(instruction.op)) TENON_OK(check_loop(instruction, seen), where(instruction));
        open.push_back(&instruction);
      } else if (ends_region(instruction.op)) {
        const bool loop = is_loop(instruction.op);
        if (is_when(instruction.op) && (open.empty() || !is_when(open.back()->op)))
          return error(Code::internal, "a when of linear kernel '", kernel_.name,
                       "' ends where it is not the innermost region");
        if (open.empty() || open.back()->number != instruction.number || is_loop(open.back()->op) != loop ||
            is_when(open.back()->op) != is_when(instruction.op) || (loop && open.back()->in != instruction.in))
          return error(Code::internal, "loop ", instruction.number, " of linear kernel '", kernel_.name,
                       "' ends where it is not the innermost one");
        open.pop_back();
      }
    }
    if (open.empty()) return {};
    return error(Code::internal, where(*open.back()), " never ends");
  }

  Result<void> check_loop(const Instruction& begin, std::vector<char>& seen) const {
    const Loop& loop = kernel_.loops[static_cast<size_t>(begin.number)];
    if (std::exchange(seen[static_cast<size_t>(begin.number)], 1))
      return error(Code::internal, "loop ", begin.number, " begins twice");
    if ((loop.kind == Loop::Kind::tail) == is_loop(begin.op))
      return error(Code::internal, "loop ", begin.number, " is of another kind");
    if (loop.limit < 0 || static_cast<size_t>(loop.limit) >= kernel_.params.size())
      return error(Code::internal, "loop ", begin.number, " has no limit");
    if (loop.increment <= 0) return error(Code::internal, "loop ", begin.number, " does not advance");
    return {};
  }

  // Loops over dims that the body does not have, and those that move a pointer less than inner loops do, may be of any
  // tensor.
  Result<void> check_tensors() const {
    for (const Param& param : kernel_.params) {
      if (param.kind != Param::Kind::shift || param.inner >= 0 ||
          static_cast<size_t>(param.loop) >= kernel_.loops.size())
        continue;
      const int dim = kernel_.loops[static_cast<size_t>(param.loop)].dim;
      const auto port = static_cast<size_t>(param.port);
      if (port >= kernel_.varies.size() || static_cast<size_t>(dim) >= kernel_.extents.size()) continue;
      if (!(kernel_.varies[port] >> dim & 1))
        return error(Code::internal, "port ", param.port, " moves along dim ", dim, ", over which it does not vary");
    }
    return {};
  }

  Result<void> check_blocks() const {
    const LinearKernel::Blocks& blocks = kernel_.blocks;
    const auto walks = [&](const Loop& loop) {
      return loop.dim == (blocks.inside ? blocks.block() : blocks.dim) && loop.kind != Loop::Kind::scalar;
    };
    if (blocks.dim >= 0 && std::none_of(kernel_.loops.begin(), kernel_.loops.end(), walks))
      return error(Code::internal, "no vector loop is over dim ", blocks.dim);
    if (blocks.dim < 0 && (blocks.again || blocks.inside || !blocks.sizes.empty()))
      return error(Code::internal, "they are along no dim");
    for (const LinearKernel::Blocks::Size& size : blocks.sizes) {
      if (size.elements <= 0 || size.elements % kLineElements != 0)
        return error(Code::internal, size.elements, " elements are no multiple of ", kLineElements);
      const bool last = &size == &blocks.sizes.back();
      if (last ? size.within_bytes != 0 : size.within_bytes <= 0)
        return error(Code::internal, size.elements, " elements within ", size.within_bytes,
                     " bytes: all sizes but the last have a bound");
    }
    return {};
  }

  // For each region, the possible new contents of its places afterwards: a register, or nothing certain.
  void summarize() {
    std::vector<size_t> open;
    writes_.clear();
    std::vector<size_t> begin;  // of each open region, in writes_
    last_.assign(place_count_, kNone);
    for (const Instruction& instruction : kernel_.body) {
      if (begins_region(instruction.op)) {
        open.push_back(summaries_.size());
        begin.push_back(writes_.size());
        summaries_.emplace_back();
      }
      if (ends_region(instruction.op)) {
        std::vector<Held>& inner = summaries_[open.back()];
        inner = last_writes(begin.back());
        writes_.resize(begin.back());
        open.pop_back(), begin.pop_back();
        if (open.empty()) continue;
        for (const auto& [place, id] : inner) writes_.push_back({place, id, true});
      }
      if (!open.empty()) note_writes(instruction);
    }
  }

  void note_writes(const Instruction& instruction) {
    for_scratch(instruction, [&](size_t place) { writes_.push_back({place, kNothing, false}); });
    for (const RegisterId id : instruction.out) writes_.push_back({place_of(id), id, false});
  }

  // The writes from `begin` on, each place once.
  std::vector<Held> last_writes(size_t begin) {
    std::vector<Held> made;
    for (size_t i = begin; i < writes_.size(); ++i) {
      const auto& [place, id, perhaps] = writes_[i];
      size_t& at = last_[place];
      if (at == kNone) {
        at = made.size();
        made.emplace_back(place, id);
      } else if (!perhaps) {
        made[at].second = id;
      } else if (made[at].second != id) {
        made[at].second = kNothing;
      }
    }
    for (const auto& [place, id] : made) last_[place] = kNone;
    return made;
  }

  template <class F>
  void for_scratch(const Instruction& instruction, F f) const {
    for (const int number : instruction.vectors) f(place_of(RegisterFile::vector, number));
    for (const int number : instruction.masks) f(place_of(RegisterFile::mask, number));
    for (const int number : instruction.generals) f(place_of(RegisterFile::general, number));
  }

  Result<void> read(RegisterId id) const {
    const RegisterId held = contents_[place_of(id)];
    if (held == id) return {};
    if (held == kNothing || !allocated_)
      return error(Code::internal, "%", id, " is read, but not written before on every path");
    return error(Code::internal, "%", id, " is read, but %", held, " has its place");
  }

  Result<void> check_scratch(const Instruction& instruction) const {
    if (!allocated_) return {};
    InlineVector<size_t, 16> used;
    for (const RegisterIds* side : {&instruction.in, &instruction.out})
      for (const RegisterId id : *side) used.push_back(place_of(id));
    if (instruction.memory) {
      used.push_back(place_of(instruction.memory->base));
      if (instruction.memory->index >= 0) used.push_back(place_of(instruction.memory->index));
    }
    bool shared = false;
    for_scratch(instruction, [&](size_t place) {
      shared |= std::find(used.begin(), used.end(), place) != used.end();
      used.push_back(place);
    });
    if (shared) return error(Code::internal, "a scratch register is an operand, a result, or named twice");
    for (size_t i = 0; i < instruction.out.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (place_of(instruction.out[i]) == place_of(instruction.out[j]))
          return error(Code::internal, "two results share a place");
    return {};
  }

  Result<void> follow(const Instruction& instruction, size_t& region) {
    TENON_OK(check_scratch(instruction));
    for (const RegisterId id : instruction.in) TENON_OK(read(id));
    if (instruction.memory) {
      TENON_OK(read(instruction.memory->base));
      if (instruction.memory->index >= 0) TENON_OK(read(instruction.memory->index));
    }
    if (instruction.op == kReload && !spilled_[instruction.number])
      return error(Code::internal, "slot ", instruction.number, " is read, but never written before");
    if (instruction.op == kSpill) spilled_[instruction.number] = true;
    if (begins_region(instruction.op)) enter(region++, instruction.op == kLoopBegin);
    if (ends_region(instruction.op)) leave();
    for_scratch(instruction, [&](size_t place) { contents_[place] = kNothing; });
    for (const RegisterId id : instruction.out) contents_[place_of(id)] = id;
    return {};
  }

  // A loop may be entered from its own end: contents that differ there are not certain.
  void enter(size_t region, bool loop) {
    std::vector<Held> before;
    before.reserve(summaries_[region].size());
    for (const auto& [place, id] : summaries_[region]) {
      if (loop && contents_[place] != id) contents_[place] = kNothing;
      before.emplace_back(place, contents_[place]);
    }
    entered_.push_back(std::move(before));
  }
  // The region may not have run at all.
  void leave() {
    for (const auto& [place, id] : entered_.back())
      if (contents_[place] != id) contents_[place] = kNothing;
    entered_.pop_back();
  }

  const LinearKernel& kernel_;
  bool allocated_;
  size_t file_size_ = 1, place_count_ = 0;
  struct Write {
    size_t place;
    RegisterId id;
    bool perhaps;  // in an inner region, which may not run
  };
  static constexpr size_t kNone = ~size_t{0};
  std::vector<Write> writes_;                 // of open regions
  std::vector<size_t> last_;                  // by place: index in the result of last_writes()
  std::vector<std::vector<Held>> summaries_;  // of regions, in order of their beginning
  std::vector<RegisterId> contents_;          // by place: the register whose value it holds
  std::vector<std::vector<Held>> entered_;
  std::unordered_map<int64_t, bool> spilled_;
};

}  // namespace

Result<void> verify(const LinearKernel& kernel) { return Verifier(kernel).run(); }

}  // namespace tenon::snippet
