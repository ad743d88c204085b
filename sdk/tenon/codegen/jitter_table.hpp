// JitterTable: the emitters of a target, by instruction. Planning asks it before it decides; "no row" is a valid
// answer.
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

// The signature of an instruction, by which its row is chosen: lane types of operands and results. Borrowed.
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
  std::string feature = {};  // required, of TargetDescription::features; empty: any machine
  std::string without = {};  // only where the machine does not have this feature
  ScratchNeeds scratch = {};
  bool early_result = false;  // results are written before all operands are read: they share no register
  double cycles = 1;          // per vector, as throughput in a stream of vectors; for planning
  double max_ulp = 0;  // largest error of an f32 result in units in the last place; 0: correctly rounded, or exact
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
  // A table with only the rows that the machine can run: it answers as this one does, without checking features.
  JitterTable of_machine(const TargetDescription& target) const;
  bool has_rows_of(Name op) const { return rows_.contains(op); }
  // All rows, by operator name, in their order: for documentation and for tests that iterate over them.
  std::vector<const JitterRow*> rows() const;

 private:
  std::string kind_;
  std::unordered_map<Name, std::vector<JitterRow>> rows_;
};

}  // namespace tenon::codegen
