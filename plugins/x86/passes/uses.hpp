// Where registers of a linear kernel are written and read, and passes' ends: what they leave to nobody. Brings names as
// internal.hpp does.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "x86/passes/internal.hpp"

namespace tenon::x86 {

// By places in the body, as it was when this was made; what is said of registers stays true while others take their
// place.
class Uses {
 public:
  explicit Uses(const LinearKernel& kernel);

  // Does one instruction write it, and no other?
  bool once(RegisterId id) const { return writers_.of(id).size() == 1; }
  int writes(RegisterId id) const { return static_cast<int>(writers_.of(id).size()); }
  std::optional<size_t> maker(RegisterId id) const {
    return once(id) ? std::optional(writers_.of(id)[0]) : std::nullopt;
  }
  // As operand or address, in their order; who reads it twice is there twice.
  std::span<const size_t> readers(RegisterId id) const { return readers_.of(id); }
  // Not registers that came later.
  bool is_read(RegisterId id) const { return static_cast<size_t>(id) < readers_.ranges.size() && !readers(id).empty(); }
  // Is it made once, and for one reader alone?
  bool is_for_one(RegisterId id) const { return once(id) && readers(id).size() == 1; }
  // Does no loop or tail begin or end between the two?
  bool in_one_stretch(size_t one, size_t other) const { return borders_[one] == borders_[other]; }
  // By an instruction behind `one` and before `other`.
  bool is_written_between(RegisterId id, size_t one, size_t other) const {
    return is_one_between(writers_.of(id), one, other);
  }
  bool stores_between(size_t one, size_t other) const { return is_one_between(stores_, one, other); }

 private:
  // Of each register, ascending. First all are counted, then room is made, then all are added.
  struct Places {
    struct Range {
      size_t begin = 0, end = 0;
    };
    void count(RegisterId id) { ++ranges[static_cast<size_t>(id)].end; }
    void reserve();
    void add(RegisterId id, size_t place) { places[ranges[static_cast<size_t>(id)].end++] = place; }
    std::span<const size_t> of(RegisterId id) const {
      const Range& range = ranges[static_cast<size_t>(id)];
      return {places.data() + range.begin, places.data() + range.end};
    }

    std::vector<Range> ranges;
    std::vector<size_t> places;
  };
  static bool is_one_between(std::span<const size_t> places, size_t one, size_t other);

  Places writers_, readers_;
  std::vector<size_t> stores_;
  std::vector<int> borders_;  // up to each instruction
};

// The instruction that reads `id`, which is for one, when it comes after `at` with no border, and no write to one of
// `kept`, and, where `stores` says so, no store between them; else null. Stays true of what is not yet looked at while
// readers take what their operands are made of, from the body's begin to its end.
Instruction* reader_of(LinearKernel& kernel, const Uses& uses, size_t at, RegisterId id,
                       std::span<const RegisterId> kept, bool stores);
// The instructions at which `gone` is set.
void erase_marked(LinearKernel& kernel, const std::vector<char>& gone);
// What does nothing but make lanes that nobody reads any more, and what was made for that alone.
void drop_unread(LinearKernel& kernel, const Uses& before);

}  // namespace tenon::x86
