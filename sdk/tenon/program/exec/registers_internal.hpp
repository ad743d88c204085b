// Inside the room: expressions of a bound program as registers of its frame.
//
// A level is the program or a loop around the code that is being generated. An expression belongs to the deepest level
// whose symbol it contains, and is computed there, once: as a register that a serial loop increments by a
// loop-invariant amount (also modulo a constant), or by code at the beginning of each iteration.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/expr/bounds.hpp>
#include <tenon/program/exec/code_internal.hpp>

namespace tenon::program::detail {

class Registers {
 public:
  Registers(ByteCode& code, const Assumptions& assumptions);

  // Levels ----------------------------------------------------------------------------------------------------

  // A loop around the code that follows. `stepped`: a serial loop, which steps registers.
  void enter(const std::string& symbol, Place place, const Expr& begin, const Expr& step, bool stepped);
  // Its code: the preheader, the beginning of an iteration, the code of the statements, and the steps.
  struct LevelCode {
    std::vector<Instr> entry, header, body;
    std::vector<Increment> increments;
    std::vector<RingStep> ring_steps;
    std::vector<Value> ring_begins;  // of each, before the loop
    std::vector<BesideStep> beside_steps;
  };
  LevelCode leave();
  LevelCode leave_program();
  // Where the code of statements is emitted.
  std::vector<Instr>& body() { return levels_.back().code.body; }
  size_t depth() const { return levels_.size() - 1; }

  // A symbol whose register is set elsewhere before the iterations of the level: an address, a worker.
  void define(const std::string& symbol, Place place, size_t level);
  // An instruction at the beginning of each iteration of the level.
  void set_at_begin(Instr instr, size_t level) { emit(level, std::move(instr)); }
  // The level of the expression, 0 when it has no symbol of a loop.
  size_t level_of(const Expr& e) const;

  // Expressions -----------------------------------------------------------------------------------------------

  Place new_word();
  Place new_words(size_t count);
  // The place of the value, valid here and in all loops within the expression's level.
  Value value(const Expr& e);
  // How often value() returned it.
  int64_t times_given(Place place) const { return given_[word_of(place)]; }
  // Computes the value at a place of the caller's.
  void into(const Expr& e, Place place);
  // The first error: an expression whose value may not exist.
  const Result<void>& status() const { return status_; }
  // Addresses may have any value; other numbers must be within int64.
  bool is_address(const Expr& e) const;

 private:
  struct Level {
    std::string symbol;
    Expr begin, step;
    bool stepped = false;
    LevelCode code;
    std::unordered_map<Expr, Value> known;
    std::vector<std::string> symbols;  // defined here
  };
  struct Definition {
    Place place;
    size_t level;
  };

  static size_t word_of(Place place) { return static_cast<size_t>(place) / sizeof(int64_t); }
  const Value* find(const Expr& e) const;
  Value give(const Value& value);
  void check(const Expr& e);
  void make(const Expr& e, Place place, size_t level);
  bool step(const Expr& e, Place place, size_t level);
  bool step_modulo(const Expr& e, Place place, size_t level);
  bool step_beside_modulo(const Expr& e, Place place, size_t level);
  void compute(const Expr& e, Place place, size_t level);
  void compute_sum(const Expr& e, Place place, size_t level);
  void compute_chain(const Expr& e, Place place, size_t level, Op op);
  void emit(size_t level, Instr instr) { levels_[level].code.header.push_back(std::move(instr)); }
  void set_before(size_t level, Place place, const Value& value);

  ByteCode& code_;
  const Assumptions& assumptions_;
  std::vector<Level> levels_;
  std::unordered_map<std::string, Definition> definitions_;
  std::vector<int32_t> given_;  // by word of the frame
  Result<void> status_;
};

// Symbols of addresses begin with this; no text can contain it.
inline constexpr std::string_view kAddressPrefix = "address.";

}  // namespace tenon::program::detail
