// Packs the results of four rows' reductions, and what the same operators compute from them for each row, into four
// lanes of one register. One quotient or root then serves four rows. The lanes are unpacked (SpreadFour) where they are
// read singly.
//
//   %a %b %c %d = FoldRows ...                 %f = FoldFour ...
//   %e = Div %a, %n   ...   %h = Div %d, %n    %g = DivFour %f, %n
//                                              %r = RepeatFour %g
//                                              %e = SpreadFour %r {at = 0}   ...   %h = SpreadFour %r {at = 3}
#include <array>
#include <functional>
#include <map>
#include <ranges>

#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

class FourFinder {
 public:
  explicit FourFinder(LinearKernel& kernel) : kernel_(kernel), uses_(kernel), alike_(kernel, uses_) {}

  void run() {
    for (size_t begin = 0, end = 0; begin < kernel_.body.size(); begin = end) {
      for (end = begin + 1; end < kernel_.body.size() && !is_border(kernel_.body[end].op);) ++end;
      members_.clear();
      // A four with two packed operands may have to be written before the last member of one of these.
      for (size_t before = fours_.size() + 1; before != fours_.size();) {
        before = fours_.size();
        see(begin, end);
      }
    }
    rewrite();
  }

 private:
  struct Four {
    std::array<size_t, 4> at = {};  // positions of the instructions; for a FoldRows, one
    std::array<RegisterId, 4> members = {};
    RegisterId packed = -1;
    std::vector<RegisterId> operands = {};  // packed ones, and uniform ones that all four share
    std::array<int, 4> left = {};           // remaining readers of each member
    bool used = false;                      // as an operand of another four
    bool folded() const { return operands.empty(); }
  };
  struct Member {
    size_t four = 0, place = 0;
  };
  // Operators of which fewer than four have been found, with what they have in common.
  struct Begun {
    std::vector<RegisterId> operands;
    Name op;
    std::array<size_t, 4> at = {};
    std::array<bool, 4> seen = {};
    bool operator==(const Begun& other) const { return operands == other.operands && op == other.op; }
  };

  static size_t at(RegisterId id) { return static_cast<size_t>(id); }
  bool fits(std::span<const RegisterId> out) const {
    return std::ranges::all_of(
        out, [&](RegisterId id) { return uses_.once(id) && kernel_.registers[at(id)].element.is_float(); });
  }

  void add(Four four) {
    four.packed = kernel_.add_lanes(kernel_.registers[at(four.members[0])].element);
    for (size_t place = 0; place < 4; ++place) {
      members_[four.members[place]] = {fours_.size(), place};
      four.left[place] = static_cast<int>(uses_.readers(four.members[place]).size());
    }
    fours_.push_back(std::move(four));
  }

  void see(size_t begin, size_t end) {
    begun_.clear();
    for (size_t i = begin; i < end; ++i) {
      const Instruction& one = kernel_.body[i];
      if (std::ranges::any_of(one.out, [&](RegisterId id) { return members_.contains(id); })) continue;
      if (one.op == kFoldRows && fits(one.out))
        add({.at = {i}, .members = {one.out[0], one.out[1], one.out[2], one.out[3]}});
      else
        see(i);
    }
  }
  // Records instruction `i` as one of four, if it reads the same members of fours, and registers that are written once.
  void see(size_t i) {
    const Instruction& one = kernel_.body[i];
    static const Name kOperators[] = {
        kDiv,        kSqrt,       Name("Add"),  Name("Sub"),      Name("Mul"),      Name("Neg"),
        Name("Fma"), Name("Fms"), Name("Fnma"), Name("ClampLow"), Name("ClampHigh")};
    if (one.memory || one.out.size() != 1 || !fits(one.out) ||
        std::ranges::find(kOperators, one.op) == std::end(kOperators))
      return;
    Begun begun{.operands = {}, .op = one.op};
    int place = -1;
    for (const RegisterId id : one.in) {
      const auto member = members_.find(id);
      if (member == members_.end()) {
        // A vector that all four rows share, such as a scale of each column, must be uniform.
        if (!alike_.holds(id)) return;
        begun.operands.push_back(id);
        continue;
      }
      if (place >= 0 && place != static_cast<int>(member->second.place)) return;
      place = static_cast<int>(member->second.place);
      begun.operands.push_back(fours_[member->second.four].packed);
    }
    if (place < 0) return;
    auto found = std::ranges::find(begun_, begun);
    if (found == begun_.end()) found = begun_.insert(found, std::move(begun));
    if (std::exchange(found->seen[static_cast<size_t>(place)], true)) return;
    found->at[static_cast<size_t>(place)] = i;
    if (!std::ranges::all_of(found->seen, std::identity())) return;
    Four four{.at = found->at, .operands = found->operands};
    for (size_t k = 0; k < 4; ++k) {
      const Instruction& made = kernel_.body[four.at[k]];
      four.members[k] = made.out[0];
      for (const RegisterId id : made.in)
        if (const auto member = members_.find(id); member != members_.end()) {
          --fours_[member->second.four].left[k];
          fours_[member->second.four].used = true;
        }
    }
    begun_.erase(found);
    add(std::move(four));
  }

  // Writes the packed instruction of `four`, and its members where any of them is still read.
  void write(const Four& four, std::vector<Instruction>& body) {
    const Instruction& first = kernel_.body[four.at[0]];
    Instruction packed = first;
    packed.out = {four.packed};
    if (four.folded()) {
      packed.op = kFoldFour;
    } else {
      packed.op = first.op == kDiv ? kDivFour : first.op == kSqrt ? kSqrtFour : first.op;
      packed.in = {four.operands.begin(), four.operands.end()};
    }
    body.push_back(std::move(packed));
    if (std::ranges::all_of(four.left, [](int readers) { return readers == 0; })) return;
    const RegisterId repeated = kernel_.add_lanes(kernel_.registers[at(four.packed)].element);
    body.push_back({.op = kRepeatFour, .in = {four.packed}, .out = {repeated}, .label = first.label});
    for (size_t place = 0; place < 4; ++place) {
      if (four.left[place] == 0) continue;
      body.push_back({.op = kSpreadFour,
                      .attributes = {{"at", static_cast<int64_t>(place)}},
                      .in = {repeated},
                      .out = {four.members[place]},
                      .label = first.label});
    }
  }

  void rewrite() {
    std::vector<char> gone(kernel_.body.size(), 0);
    std::map<size_t, const Four*> made;  // by the position of the first of four
    for (const Four& four : fours_) {
      if (four.folded() && !four.used) continue;
      for (const size_t i : four.at)
        if (!four.folded() || i == four.at[0]) gone[i] = 1;
      made[four.folded() ? four.at[0] : std::ranges::min(four.at)] = &four;
    }
    if (made.empty()) return;
    std::vector<Instruction> body;
    body.reserve(kernel_.body.size());
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      if (const auto four = made.find(i); four != made.end()) write(*four->second, body);
      if (!gone[i]) body.push_back(kernel_.body[i]);
    }
    kernel_.body = std::move(body);
  }

  LinearKernel& kernel_;
  const Uses uses_;
  const Alike alike_;
  std::vector<Four> fours_;
  std::map<RegisterId, Member> members_;
  std::vector<Begun> begun_;
};

}  // namespace

void pack_fours(LinearKernel& kernel) {
  if (has_any(kernel, {kFoldRows})) FourFinder(kernel).run();
}

}  // namespace tenon::x86
