// Compares every row of the table with an oracle: one kernel per type, with an output for each operator.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include <snippet/bodies.hpp>
#include <support_lib/lane_oracles.hpp>
#include <support_lib/lane_samples.hpp>

#include "opencl_support.hpp"

namespace tenon::opencl::testing {
namespace {

using namespace tenon::test;
using codegen::JitterRow;
using snippet::test::BodyBuilder;

constexpr uint32_t kSeed = 20261122;

Bytes packed(const Column& column, ElementType memory) {
  const size_t bytes = static_cast<size_t>(memory.bits()) / 8;
  Bytes made(column.bits.size() * bytes);
  for (size_t i = 0; i < column.bits.size(); ++i) std::memcpy(&made[i * bytes], &column.bits[i], bytes);
  return made;
}
uint64_t bits_at(const Bytes& bytes, ElementType memory, size_t i) {
  const size_t size = static_cast<size_t>(memory.bits()) / 8;
  uint64_t bits = 0;
  std::memcpy(&bits, &bytes[i * size], size);
  return bits;
}

std::string hex(uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(bits));
  return text;
}

// The values of `type` with which unary functions are tested, and a second column for pairs.
std::vector<Column> columns_of(ElementType type) {
  std::vector<Column> columns = sample_columns(type, 3, kSeed);
  if (type != kF32) return columns;
  const size_t pairs = columns[0].bits.size();
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 131071) columns[0].bits.push_back(bits);
  for (uint64_t exponent = 0; exponent < 512; ++exponent)
    for (uint64_t step = 0; step < 8; ++step) columns[0].bits.push_back(((exponent << 23) - 4 + step) & 0xffffffffu);
  for (size_t c = 1; c < columns.size(); ++c)
    for (size_t i = pairs; i < columns[0].bits.size(); ++i) columns[c].bits.push_back(columns[c].bits[i % pairs]);
  return columns;
}

// One output of the kernel.
struct Trial {
  std::string_view op, form;
  const ExactCase* exact = nullptr;
  const MathCase* math = nullptr;
  const JitterRow* row = nullptr;
  ElementType result;
};

class OpenclRows : public OpenclTest {
 protected:
  // `form` is in the notation of ExactCase.
  const JitterRow* row_of(std::string_view op, std::string_view form, const Attributes& attributes, ElementType type) {
    std::vector<ElementType> in;
    for (size_t i = 0; i < form.find('>'); ++i) in.push_back(form[i] == 'b' ? kBool : type);
    const ElementType out[] = {form.back() == 'b' ? kBool : type};
    return table->find({Name(op), in, out, attributes}, target);
  }

  std::vector<Trial> trials_of(ElementType type) {
    std::vector<Trial> trials;
    for (const MathCase& math : math_cases()) {
      if (!type.is_float()) break;
      const std::string_view form = math.unary ? "T>T" : "TT>T";
      if (const JitterRow* row = row_of(math.op, form, math.attributes, type))
        trials.push_back({math.op, form, nullptr, &math, row, type});
    }
    for (const ExactCase& exact : exact_cases()) {
      if (type.is_float() && exact.op == "Pow") continue;  // tested as one of math_cases()
      const JitterRow* row = row_of(exact.op, exact.form, {}, type);
      const ElementType result = exact.form.back() == 'b' ? kBool : type;
      if (row) trials.push_back({exact.op, exact.form, &exact, nullptr, row, result});
    }
    return trials;
  }

  void try_type(ElementType type) {
    SCOPED_TRACE(str("lanes of ", type, ", seed ", kSeed));
    const std::vector<Trial> trials = trials_of(type);
    const std::vector<Column> columns = columns_of(type);
    const Column chosen{kBool, sample(kBool, columns[0].bits.size(), kSeed + 9)};
    BodyBuilder build(str("rows_", type), "k");
    std::vector<snippet::ValueId> values;
    std::vector<Bytes> inputs;
    for (const Column& column : columns) {
      values.push_back(build.input(1, type));
      inputs.push_back(packed(column, type));
    }
    const snippet::ValueId condition = build.input(1, kBool);
    inputs.push_back(packed(chosen, kBool));
    for (const Trial& trial : trials) {
      std::vector<snippet::ValueId> operands;
      for (size_t i = 0; i < trial.form.find('>'); ++i)
        operands.push_back(trial.form[i] == 'b' ? condition : values[i]);
      const Attributes attributes = trial.math ? trial.math->attributes : Attributes();
      build.output(build.op(std::string(trial.op).c_str(), operands, attributes, trial.result));
      tried_.insert(trial.row);
    }
    // Few lanes, because the device's compiler is slow for so many functions in one kernel.
    const Compiler compiler(target, *table, {.lanes = 8, .work_group = 1, .max_ports = 1000});
    const auto outputs = run_body(*stream, compiler, build.take(), {static_cast<int64_t>(chosen.bits.size())}, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
    for (size_t t = 0; t < trials.size(); ++t) {
      if (trials[t].exact)
        expect_exact(trials[t], type, columns, chosen, (*outputs)[t]);
      else
        expect_close(trials[t], type, columns, (*outputs)[t]);
    }
  }

  static void expect_exact(const Trial& trial, ElementType type, const std::vector<Column>& columns,
                           const Column& chosen, const Bytes& got) {
    for (size_t at = 0; at < chosen.bits.size(); ++at) {
      uint64_t in[3] = {};
      for (size_t i = 0; i < trial.form.find('>'); ++i)
        in[i] = trial.form[i] == 'b' ? chosen.bits[at] : columns[i].bits[at];
      const uint64_t expected = trial.exact->exact(type, in), bits = bits_at(got, trial.result, at);
      if (bits == expected || (is_nan(trial.result, bits) && is_nan(trial.result, expected))) continue;
      ADD_FAILURE() << trial.op << " (" << hex(in[0]) << ", " << hex(in[1]) << ", " << hex(in[2]) << ") gave "
                    << hex(bits) << " instead of " << hex(expected);
      return;
    }
  }

  // For f64 the oracle itself is exact only to a few units.
  static double error_of(ElementType type, uint64_t bits, double exact) {
    if (type == kF32) return ulp_error(std::bit_cast<float>(static_cast<uint32_t>(bits)), exact);
    const auto got = std::bit_cast<double>(bits);
    if (std::isnan(exact) || std::isinf(exact))
      return std::isnan(exact) ? (std::isnan(got) ? 0 : INFINITY) : got == exact ? 0 : INFINITY;
    return std::abs(got - exact) / std::max(std::abs(exact), 0x1p-1000) * 0x1p52;
  }
  static double value_of(ElementType type, uint64_t bits) {
    return type == kF32 ? std::bit_cast<float>(static_cast<uint32_t>(bits)) : std::bit_cast<double>(bits);
  }

  static void expect_close(const Trial& trial, ElementType type, const std::vector<Column>& columns, const Bytes& got) {
    // The tail of Gelu magnifies the rounding error of its argument by the square of the argument.
    const double most_of_doubles = trial.op == "Gelu" ? 4096 : 64;
    double worst = 0;
    size_t worst_at = 0;
    for (size_t at = 0; at < columns[0].bits.size(); ++at) {
      const double x = value_of(type, columns[0].bits[at]), y = value_of(type, columns[1].bits[at]);
      const double exact = trial.math->unary ? trial.math->unary(x) : trial.math->binary(x, y);
      const double error = error_of(type, bits_at(got, type, at), exact);
      if (error > worst) worst = error, worst_at = at;
    }
    EXPECT_LE(worst, type == kF32 ? trial.row->max_ulp : most_of_doubles)
        << trial.op << " of " << value_of(type, columns[0].bits[worst_at]) << " = " << hex(columns[0].bits[worst_at])
        << ", " << value_of(type, columns[1].bits[worst_at]) << " gave "
        << value_of(type, bits_at(got, type, worst_at));
    if (std::getenv("TENON_EMITTER_REPORT"))
      std::printf("%-10s %-4s worst %.3f ulp at %s\n", std::string(trial.op).c_str(), type.to_string().c_str(), worst,
                  hex(columns[0].bits[worst_at]).c_str());
  }

  bool applies(const JitterRow& row) const { return row.feature.empty() || target.has_feature(row.feature); }
  static bool holds(const JitterRow& row, const JitterRow& other) {
    return std::all_of(kLaneNumbers.begin(), kLaneNumbers.end(),
                       [&](ElementType type) { return row.types.contains(type) || !other.types.contains(type); });
  }

  std::set<const JitterRow*> tried_;
};

TEST_F(OpenclRows, ComputeWhatTheOraclesDo) {
  for (const ElementType type : kLaneNumbers) try_type(type);
  try_type(kBool);
  static const std::set<std::string_view> kElsewhere{
      "Convert",       "Round",     "Wrap",    "BitCast",  "Parameter",          "Zero",
      "AddParameter",  "Copy",      "Move",    "Scalar",   "BroadcastParameter", "LoopBegin",
      "LoopEnd",       "TailBegin", "TailEnd", "FillTail", "FoldLanes",          "Load",
      "BroadcastLoad", "Store"};
  const std::vector<const JitterRow*> rows = table->rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (kElsewhere.contains(rows[i]->op.view()) || !applies(*rows[i])) continue;
    // On this device, earlier rows may match everything that this row matches.
    const bool shadowed =
        std::any_of(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(i), [&](const JitterRow* first) {
          return first->op == rows[i]->op && applies(*first) && !first->accepts && holds(*first, *rows[i]);
        });
    EXPECT_TRUE(shadowed || tried_.contains(rows[i])) << rows[i]->op.str() << " has a row that no oracle has tried";
  }
}

TEST_F(OpenclRows, ConvertAsTheTensorLibrary) {
  const Compiler compiler(target, *table, {.lanes = 16, .work_group = 1, .max_ports = 1000});
  for (const ElementType from : {kF32, kF64, kI32, kU32, kI64, kU64, kBool}) {
    const Column column{from, sample(from, 4099, kSeed)};
    BodyBuilder build(str("convert_", from), "k");
    const snippet::ValueId x = build.input(1, from);
    std::vector<std::pair<std::vector<ElementType>, ElementType>> routes;  // through these types, to the last
    const auto add = [&](const char* op, std::vector<ElementType> route, ElementType to) {
      Attributes attributes;
      if (op != std::string_view("Convert")) attributes = {{"to", route[0].to_string()}};
      build.output(build.op(op, {x}, attributes, to), to);
      routes.emplace_back(std::move(route), to);
    };
    for (const ElementType to : kLaneNumbers)
      if (to != from) add("Convert", {to}, to);
    if (from.is_float())
      for (const ElementType to : {kF16, kBF16}) add("Round", {to, from}, from);
    for (const ElementType to : {kI8, kI16, kU8, kU16})
      if (from.is_int() && from.bits() == 32 && to.is_signed_int() == from.is_signed_int())
        add("Wrap", {to, from}, from);
    const auto outputs =
        run_body(*stream, compiler, build.take(), {static_cast<int64_t>(column.bits.size())}, {packed(column, from)});
    ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
    for (size_t r = 0; r < routes.size(); ++r) {
      const std::vector<uint64_t> expected = converted(column, routes[r].first);
      for (size_t i = 0; i < expected.size(); ++i) {
        const uint64_t bits = bits_at((*outputs)[r], routes[r].second, i);
        if (bits == expected[i] || (is_nan(routes[r].second, bits) && is_nan(routes[r].second, expected[i]))) continue;
        ADD_FAILURE() << str(from, " to ", routes[r].first[0], ": ") << hex(column.bits[i]) << " gave " << hex(bits)
                      << " instead of " << hex(expected[i]);
        break;
      }
    }
  }
}

// Every bit pattern of 16-bit elements, loaded and stored; partial vectors at the end.
TEST_F(OpenclRows, LoadAndStoreNarrowElements) {
  const Compiler compiler(target, *table, {.lanes = 16, .work_group = 1, .max_ports = 1000});
  constexpr size_t kCount = 65536 + 7;
  BodyBuilder build("narrow", "k");
  std::vector<Bytes> inputs;
  std::vector<ElementType> types{kF16, kBF16, kI8, kU8, kI16, kU16, kBool};
  for (const ElementType type : types) {
    const snippet::ValueId x = build.input(1, type);
    Column column{type, std::vector<uint64_t>(kCount)};
    for (size_t i = 0; i < kCount; ++i) column.bits[i] = type.is_bool() ? i % 3 == 0 : i;
    inputs.push_back(packed(column, type));
    build.output(x, type);
  }
  const auto outputs = run_body(*stream, compiler, build.take(), {kCount}, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  for (size_t t = 0; t < types.size(); ++t)
    for (size_t i = 0; i < kCount; ++i) {
      const uint64_t in = bits_at(inputs[t], types[t], i), out = bits_at((*outputs)[t], types[t], i);
      const uint64_t infinity = types[t] == kF16 ? 0x7c00 : 0x7f80;
      // NaN stays NaN.
      if (types[t].is_float() && (in & 0x7fff) > infinity)
        ASSERT_GT(out & 0x7fff, infinity) << types[t].to_string() << " " << hex(in);
      else
        ASSERT_EQ(out, in) << types[t].to_string();
    }
}

}  // namespace
}  // namespace tenon::opencl::testing
