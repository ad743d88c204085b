// Def-use information of a linear kernel: where registers are written and read; and clean-up for passes: removing code
// whose results nobody reads. Imports names as internal.hpp does.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "x86/passes/internal.hpp"

namespace tenon::x86 {

// Positions refer to the body as it was at construction. Answers about a register stay valid while other registers are
// substituted for it.
class Uses {
 public:
  explicit Uses(const LinearKernel& kernel);

  // Whether exactly one instruction writes it.
  bool once(RegisterId id) const { return writers_.of(id).size() == 1; }
  int writes(RegisterId id) const { return static_cast<int>(writers_.of(id).size()); }
  std::optional<size_t> maker(RegisterId id) const {
    return once(id) ? std::optional(writers_.of(id)[0]) : std::nullopt;
  }
  // The instructions that read it as operand or address, in order; an instruction that reads it twice is listed twice.
  std::span<const size_t> readers(RegisterId id) const { return readers_.of(id); }
  // Registers added later count as unread.
  bool is_read(RegisterId id) const { return static_cast<size_t>(id) < readers_.ranges.size() && !readers(id).empty(); }
  // Whether it is written once and read once.
  bool is_for_one(RegisterId id) const { return once(id) && readers(id).size() == 1; }
  // Whether no loop, tail or when begins or ends between the two.
  bool in_one_stretch(size_t one, size_t other) const { return borders_[one] == borders_[other]; }
  // By an instruction after `one` and before `other`.
  bool is_written_between(RegisterId id, size_t one, size_t other) const {
    return is_one_between(writers_.of(id), one, other);
  }
  bool stores_between(size_t one, size_t other) const { return is_one_between(stores_, one, other); }

 private:
  // Positions by register, ascending: first all are counted, then space is reserved, then all are added.
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
  std::vector<int> borders_;  // number of borders up to each instruction
};

// The only reader of `id` (which must be read once), if it comes after `at` and nothing in between interferes: no
// border, no write to a register in `kept`, and, with `stores`, no store; otherwise null. Stays valid for instructions
// not yet visited while a pass, from the beginning to the end of the body, substitutes into readers the operands of
// what they read.
Instruction* reader_of(LinearKernel& kernel, const Uses& uses, size_t at, RegisterId id,
                       std::span<const RegisterId> kept, bool stores);
// Erases the instructions at which `gone` is set.
void erase_marked(LinearKernel& kernel, const std::vector<char>& gone);
// Dead code elimination: erases instructions that only load or compute lanes that are no longer read, and those
// that were needed only for them.
void drop_unread(LinearKernel& kernel, const Uses& before);

}  // namespace tenon::x86
