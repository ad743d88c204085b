// JitterTable: which emitter a target has for an instruction. Planning asks it before it decides: no row is an answer.
//
//   JitterTable table("x86");
//   TENON_OK(table.add({.op = "Exp", .types = kF32Lanes, .feature = "avx512f", .scratch = {.vectors = 2},
//                       .cycles = 8, .max_ulp = 2, .make = make_emitter<ExpEmitter>}));
//   const JitterRow* row = table.find({"Exp", in, out, attributes}, description);   // null: no row
#pragma once
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <tenon/codegen/emitter.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/name.hpp>
#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>

namespace tenon::codegen {

// What an instruction is, for choosing its row: lane types of operands and results. Borrowed.
struct Signature {
  Name op;
  std::span<const ElementType> in, out;
  const Attributes& attributes;
};

struct ScratchNeeds {
  int vectors = 0, masks = 0, generals = 0;
};

struct JitterRow {
  Name op;
  LaneTypes types;           // of every operand and result that is not bool, and of those alone if all are bool
  std::string feature = {};  // of TargetDescription::features; empty: any machine
  std::string without = {};  // not where the machine has this one
  ScratchNeeds scratch = {};
  bool early_result = false;  // results are written before all operands are read: they share no register
  double cycles = 1;          // of one vector in a stream of them, for planning
  double max_ulp = 0;  // largest error of an f32 result in units in the last place; 0: rounded correctly, or exact
  std::unique_ptr<Emitter> (*make)(const Attributes&) = nullptr;
  // Further conditions, on attributes or single types; null: none.
  bool (*accepts)(const Signature&) = nullptr;

  TENON_API bool matches(const Signature& signature) const;
};

template <class E>
std::unique_ptr<Emitter> make_emitter(const Attributes& attributes) {
  if constexpr (std::is_constructible_v<E, const Attributes&>)
    return std::make_unique<E>(attributes);
  else
    return std::make_unique<E>();
}

// Filled once, then read by any thread.
class TENON_API JitterTable {
 public:
  explicit JitterTable(std::string kind) : kind_(std::move(kind)) {}
  const std::string& kind() const { return kind_; }  // EmitContext::kind of its emitters

  // Rows added first win. A row without a name, an emitter or types is an error.
  Result<void> add(JitterRow row);
  Result<void> add(std::vector<JitterRow> rows);

  // The first row that matches and that the machine can run; null when there is none.
  const JitterRow* find(const Signature& signature, const TargetDescription& target) const;
  // The rows that the machine can run: answers as this table does, without a look at its features.
  JitterTable of_machine(const TargetDescription& target) const;
  bool has_rows_of(Name op) const { return rows_.contains(op); }
  // All rows, by operator's name, in their order: for documentation and tests that walk them.
  std::vector<const JitterRow*> rows() const;

 private:
  std::string kind_;
  std::unordered_map<Name, std::vector<JitterRow>> rows_;
};

}  // namespace tenon::codegen
