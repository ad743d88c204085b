// Compares every row of the table of elementwise operators with an oracle, in every placement of operands and result.
#include <bit>
#include <cmath>

#include "emitters_support.hpp"

namespace tenon::x86::test {
namespace {

using codegen::JitterRow;

constexpr uint32_t kSeed = 20261122;

// The lanes of full vectors; for 32-bit lanes also half of these, as in bodies with 64-bit lanes.
std::vector<int> lane_counts(Isa isa, ElementType type) {
  const int full = lanes_of(isa, type);
  if (type.bits() == 64) return {full};
  return {full, full / 2};
}

std::vector<Placement> placements(size_t operands, ElementType result, std::span<const Column> columns) {
  std::vector<Placement> out{{}};
  for (size_t i = 0; i < operands; ++i)
    if (columns[i].element == result) out.push_back({static_cast<int>(i)});
  bool alike = operands > 1;
  for (size_t i = 0; i < operands; ++i) alike = alike && columns[i].element == columns[0].element;
  if (alike) out.push_back({-1, true});
  if (alike && columns[0].element == result) out.push_back({0, true});
  return out;
}

bool same(ElementType element, uint64_t a, uint64_t b) {
  if (a == b) return true;
  if (element == kF32)
    return std::isnan(std::bit_cast<float>(static_cast<uint32_t>(a))) &&
           std::isnan(std::bit_cast<float>(static_cast<uint32_t>(b)));
  return element == kF64 && std::isnan(std::bit_cast<double>(a)) && std::isnan(std::bit_cast<double>(b));
}

std::string hex(uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(bits));
  return text;
}

// Some rows of extrema have weaker guarantees (x86/body/spared.hpp): not for NaN and zeros, or not for floats with a
// sign. Whether the row with `attributes` guarantees the result of these operands.
const Name kNumbers("numbers"), kMagnitudes("magnitudes");
bool is_asked(const Attributes& attributes, std::span<const uint64_t> in) {
  const auto as = [](uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); };
  const bool zeros = as(in[0]) == 0 && as(in[1]) == 0;
  return !attributes.has(kNumbers) || !(std::isnan(as(in[0])) || std::isnan(as(in[1])) || zeros);
}
// The attributes that the row requires to accept operands.
Attributes attributes_of(const JitterRow& row, ElementType type) {
  if (!row.accepts) return {};
  const std::vector<ElementType> in(2, type), out(1, type);
  for (const Name name : {kNumbers, kMagnitudes}) {
    Attributes attributes;
    attributes.set(name, 1);
    if (!row.accepts({row.op, in, out, {}}) && row.accepts({row.op, in, out, attributes})) return attributes;
  }
  return {};
}

void expect_exact(const RowRun& run, const ExactCase& oracle, ElementType type) {
  const size_t operands = oracle.form.find('>');
  const ElementType result = oracle.form.back() == 'b' ? kBool : type;
  std::vector<Column> columns = sample_columns(type, operands, kSeed);
  if (run.attributes.has(kMagnitudes))
    for (Column& column : columns)
      for (uint64_t& bits : column.bits) bits &= 0x7fffffff;
  for (size_t i = 0; i < operands; ++i)
    if (oracle.form[i] == 'b') columns[i] = {kBool, sample(kBool, columns[i].bits.size(), kSeed + 9)};
  for (const Placement& placement : placements(operands, result, columns)) {
    RowRun placed = run;
    placed.placement = placement;
    std::vector<Column> given = columns;
    if (placement.shared) std::fill(given.begin(), given.end(), columns[0]);
    const auto got = run_row(placed, given, result);
    ASSERT_TRUE(got.ok()) << describe(placed) << ": " << got.error().message();
    for (size_t at = 0; at < given[0].bits.size(); ++at) {
      uint64_t in[3] = {};
      for (size_t i = 0; i < operands; ++i) in[i] = given[i].bits[at];
      if (!is_asked(run.attributes, in)) continue;
      const uint64_t expected = oracle.exact(type, in);
      ASSERT_TRUE(same(result, got->bits[at], expected))
          << describe(placed) << ", " << type.to_string() << ": (" << hex(in[0]) << ", " << hex(in[1]) << ", "
          << hex(in[2]) << ") gave " << hex(got->bits[at]) << " instead of " << hex(expected) << ", seed " << kSeed;
    }
  }
}

float as_float(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

void expect_close(const RowRun& run, const MathCase& oracle, std::span<const Column> columns) {
  const auto got = run_row(run, columns, kF32);
  ASSERT_TRUE(got.ok()) << describe(run) << ": " << got.error().message();
  for (size_t at = 0; at < got->bits.size(); ++at) {
    const double x = as_float(columns[0].bits[at]);
    const double exact = oracle.unary ? oracle.unary(x) : oracle.binary(x, as_float(columns[1].bits[at]));
    ASSERT_LE(ulp_error(as_float(got->bits[at]), exact), run.row->max_ulp)
        << describe(run) << ": of " << hex(columns[0].bits[at]) << ", " << hex(columns.back().bits[at]) << " got "
        << hex(got->bits[at]) << " = " << as_float(got->bits[at]) << ", seed " << kSeed;
  }
}

// Placements and widths differ only in registers, so special values and a few others suffice. The accuracy of functions
// is tested by emitters_accuracy_test.cpp.
void expect_math(const RowRun& run, const MathCase& oracle) {
  static const std::vector<Column> pairs = sample_columns(kF32, 2, kSeed);
  RowRun given = run;
  given.attributes = oracle.attributes;
  const std::span<const Column> few(pairs.data(), oracle.unary ? 1 : 2);
  for (const Placement& placement : placements(few.size(), kF32, few)) {
    given.placement = placement;
    if (placement.shared) continue;
    expect_close(given, oracle, few);
  }
}

// With one scratch register less than it requests, the row must fail in at least one of `runs`.
void expect_scratch_needed(const JitterRow& row, std::span<const RowRun> runs, std::span<const Column> columns,
                           ElementType result) {
  if (row.scratch.vectors == 0) return;
  bool refused = false;
  for (RowRun run : runs) {
    run.missing_scratch = 1;
    refused = refused || !run_row(run, columns, result).ok();
  }
  EXPECT_TRUE(refused) << row.op.str() << " asks for " << row.scratch.vectors << " scratch vectors, and needs fewer";
}

bool takes(const JitterRow& row, const MathCase& math) { return math_row(math, isa_of(row)) == &row; }

const MathCase* find_math(std::string_view op) {
  for (const MathCase& c : math_cases())
    if (c.op == op) return &c;
  return nullptr;
}
const ExactCase* find_exact(std::string_view op) {
  for (const ExactCase& c : exact_cases())
    if (c.op == op) return &c;
  return nullptr;
}
// Rows that passes use, tested by bytes_test.cpp, byte_tables_test.cpp, divisor_rows_test.cpp, passes_test.cpp and
// passes_quotients_test.cpp.
bool of_a_pass(std::string_view op) {
  return op.ends_with("Bytes") || op.starts_with("UnpackBytes") || op == "SpreadByte" || op == "SpreadMask" ||
         op == "PackMask" || op == "ConvertInRange" || op == "RoundInRange" || op == "ClampLowOfNaN" ||
         op == "ByteTable" || op == "OddDivisor" || op == "DivStanding" || op.starts_with("DivOdd") ||
         op == "MulByPower" || op == "SqrtByProducts" || op == "Keep" || op == "Drop" || op == "NegAbs";
}
// Also rows for several vectors (emitters_in_turn_test.cpp) and by tables (tabulated_test.cpp).
bool has_own_test(std::string_view op) {
  return op == "Convert" || op == "Round" || op == "Wrap" || op == "PowBy" || op.starts_with("Tabulated") ||
         of_a_pass(op) || op.find("InTurn") != op.npos;
}

std::vector<ElementType> types_of(const JitterRow& row) {
  std::vector<ElementType> types;
  for (const ElementType type : kLaneNumbers)
    if (row.types.contains(type)) types.push_back(type);
  if (types.empty()) types.push_back(kBool);
  return types;
}

class EmitterRows : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  std::vector<const JitterRow*> rows() const {
    std::vector<const JitterRow*> out;
    for (const JitterRow* row : elementwise_table().rows())
      if (isa_of(*row) == GetParam()) out.push_back(row);
    return out;
  }
};

TEST_P(EmitterRows, EachHasAnOracle) {
  for (const JitterRow* row : rows())
    EXPECT_TRUE(find_math(row->op.view()) || find_exact(row->op.view()) || has_own_test(row->op.view()))
        << row->op.str();
}

TEST_P(EmitterRows, ComputeWhatTheOracleDoes) {
  for (const JitterRow* row : rows()) {
    const ExactCase* const exact = find_exact(row->op.view());
    for (const ElementType type : types_of(*row)) {
      if (row->max_ulp > 0.5 && type == kF32) {
        for (const MathCase& math : math_cases())
          if (takes(*row, math))
            for (const int lanes : lane_counts(GetParam(), type)) expect_math({row, GetParam(), lanes}, math);
        continue;
      }
      if (row->max_ulp > 0.5 && type == kF64) continue;  // emitters_wide_test.cpp
      ASSERT_TRUE(exact || has_own_test(row->op.view())) << row->op.str();
      if (!exact) continue;
      for (const int lanes : lane_counts(GetParam(), type))
        expect_exact({row, GetParam(), lanes, {}, attributes_of(*row, type)}, *exact, type);
    }
  }
}

TEST_P(EmitterRows, AskForTheScratchRegistersThatTheyNeed) {
  for (const JitterRow* row : rows()) {
    if (has_own_test(row->op.view())) continue;
    const MathCase* const math = find_math(row->op.view());
    const ExactCase* const exact = find_exact(row->op.view());
    const std::string_view form = exact ? exact->form : math->unary ? "T>T" : "TT>T";
    std::vector<Column> columns;
    std::vector<RowRun> runs;
    const ElementType type = types_of(*row)[0];
    for (size_t i = 0; i < form.find('>'); ++i)
      columns.push_back({form[i] == 'b' ? kBool : type, std::vector<uint64_t>(64)});
    for (const int lanes : lane_counts(GetParam(), type)) {
      runs.push_back({row, GetParam(), lanes});
      // Some rows need scratch registers only if the result is in an operand's register.
      if (form.starts_with('T') && form.ends_with('T')) runs.push_back({row, GetParam(), lanes, {0}});
      for (const MathCase& c : math_cases())
        if (takes(*row, c)) runs.push_back({row, GetParam(), lanes, {}, c.attributes});
    }
    expect_scratch_needed(*row, runs, columns, form.back() == 'b' ? kBool : type);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, EmitterRows, testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86::test
