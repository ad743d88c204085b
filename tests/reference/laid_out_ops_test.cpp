// Every operator on values with layouts: the same bits as without, whatever the content of padding, run as stated in
// the table "How each operator runs" of docs/layouts.md. A new operator that the table lacks fails by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include <op-cases/draw.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/layout_kernel.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/ops/layout.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon {
namespace {

using testing::DrawnOp;
using testing::DrawOp;
using testing::Integers;
using testing::pick;
using testing::R;

constexpr uint32_t kInstances = 20;  // of each case
const PoisonPadding kPoisons[] = {PoisonPadding::ones, PoisonPadding::nan};

// ---- The table -----------------------------------------------------------------------------------------------------

// Over all slots, padding included; over padded extents; if both are false, in logical indices.
struct Ways {
  bool drawn = false, laid_out = false, reorders = false, slots = false, padded = false;
  std::string text() const {
    if (!drawn) return "elsewhere";
    if (!laid_out) return "no layouts";
    if (reorders) return "reorder";
    return slots && padded ? "slots, padded" : slots ? "slots" : padded ? "padded" : "logical";
  }
};

struct Row {
  std::string ways;
  std::string padding;  // what the padding of operands has to hold where an operator runs over padded extents
  bool takes_any() const { return padding == "any" || padding == "-"; }
};

std::vector<std::string> fields(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string field; std::getline(stream, field, separator);) {
    const size_t first = field.find_first_not_of(" `"), last = field.find_last_not_of(" `");
    out.push_back(first == std::string::npos ? "" : field.substr(first, last - first + 1));
  }
  return out;
}

std::multimap<std::string, Row> read_table() {
  std::ifstream file(TENON_SOURCE_DIR "/docs/layouts.md");
  std::multimap<std::string, Row> rows;
  std::string line;
  while (std::getline(file, line) && line != "## How each operator runs") {}
  while (std::getline(file, line) && !line.starts_with("## ")) {
    const std::vector<std::string> cells = fields(line, '|');
    if (cells.size() < 5 || cells[1] == "operators" || cells[1].starts_with("---")) continue;
    for (const std::string& name : fields(cells[1], ',')) rows.emplace(name, Row{cells[2], cells[3]});
  }
  return rows;
}
const std::multimap<std::string, Row>& table() {
  static const std::multimap<std::string, Row> rows = read_table();
  return rows;
}

// ---- Instances -----------------------------------------------------------------------------------------------------

// Operators without a bounds rule whose results still depend only on their operands: random ones with a seed.
std::multimap<std::string, DrawOp> seeded_cases() {
  std::multimap<std::string, DrawOp> cases;
  for (const char* name : {"RandomNormal", "RandomUniform"}) {
    cases.emplace(name, [](R& r) -> DrawnOp {
      return {{}, {{"shape", Integers(testing::random_dims(r, 1, 3))}, {"seed", 7.f}}};
    });
  }
  for (const char* name : {"RandomNormalLike", "RandomUniformLike"}) {
    cases.emplace(name, [](R& r) -> DrawnOp {
      return {{testing::floats(testing::random_dims(r, 1, 3))}, {{"seed", 7.f}}};
    });
  }
  cases.emplace("Bernoulli", [](R& r) -> DrawnOp {
    const Dims dims = testing::random_dims(r, 1, 3);
    return {{testing::DrawnOperand{[dims](R& random) {
              Tensor x = *Tensor::zeros(kF32, dims);
              for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(pick(random, 0, 8)) / 8);
              return x;
            }}},
            {{"seed", 7.f}}};
  });
  cases.emplace("Multinomial", [](R& r) -> DrawnOp {
    return {{testing::floats({pick(r, 1, 3), pick(r, 2, 5)})}, {{"seed", 7.f}, {"sample_size", 3}}};
  });
  return cases;
}

const std::multimap<std::string, DrawOp>& all_cases() {
  static const std::multimap<std::string, DrawOp> all = [] {
    std::multimap<std::string, DrawOp> cases = seeded_cases();
    for (const auto& one : testing::op_cases()) cases.insert(one);
    return cases;
  }();
  return all;
}

// Multiples of 1/8, whose sums are exact in any order: a sum over padded channels groups its terms differently.
Tensor rounded(Tensor tensor) {
  for (int64_t i = 0; tensor.element() == kF32 && i < tensor.size(); ++i) {
    tensor.set_double(i, std::round(tensor.double_at(i) * 8) / 8);
  }
  return tensor;
}

// One operator with operands, as a graph whose values may get layouts.
struct Instance {
  Graph graph{"laid_out"};
  Op* op = nullptr;
  std::vector<Datum> inputs;
  std::vector<Datum> wanted;

  Result<void> draw(Name name, const DrawnOp& drawn, bool exact, R& random) {
    Builder builder(graph.body());
    std::vector<Value*> values;
    for (size_t i = 0; i < drawn.operands.size(); ++i) {
      if (!drawn.operands[i].draw) {
        values.push_back(nullptr);
        continue;
      }
      Tensor tensor = drawn.operands[i].draw(random);
      if (drawn.operands[i].constant) {
        values.push_back(builder.constant(std::move(tensor)));
        continue;
      }
      inputs.emplace_back(exact ? rounded(std::move(tensor)) : std::move(tensor));
      values.push_back(graph.body().add_input(str("x", i), inputs.back().type()));
    }
    TENON_TRY(results, builder.ops(name, values, drawn.results, drawn.attributes));
    op = results[0]->producer();
    for (size_t i = 0; i < results.size(); ++i) graph.body().add_output(results[i], str("y", i));
    TENON_TRY(plain, run(PoisonPadding::none));
    wanted = std::move(plain);
    return {};
  }

  Result<std::vector<Datum>> run(PoisonPadding poison) const {
    TENON_OK(verify(graph));
    TENON_TRY(interpreter, Interpreter::prepare(graph, {.poison_padding = poison}));
    return interpreter->run(inputs);
  }
};

// ---- Layouts -------------------------------------------------------------------------------------------------------

// The smallest block size from `least` on that leaves a remainder, so that the dim has padding. Empty dims have none.
int64_t block_of(int64_t extent, int64_t least) {
  while (extent > 0 && extent % least == 0) ++least;
  return least;
}

// Every dim in blocks: "AB{2a3b}" for the extents 5 and 4; `apart` "BA{3a5b}", with different slots.
std::string blocked(const Dims& dims, bool apart) {
  std::string order, blocks;
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto letter = static_cast<char>('A' + d);
    order.insert(apart ? 0 : order.size(), 1, letter);
    const int64_t narrow = block_of(dims[d], 2);
    blocks += str(apart ? block_of(dims[d], narrow + 1) : narrow, static_cast<char>('a' + d));
  }
  return dims.empty() ? "" : str(order, "{", blocks, "}");
}

uint64_t bits_of(ElementType element, double value) {
  Tensor one = *Tensor::zeros(element, {1});
  one.set_double(0, value);
  return load_bits(one.data(), element.bits(), 0);
}

struct Padding {
  PadState state = PadState::dirty;
  uint64_t bits = 0;
};

// False if the value can have no layout, or none with padding.
bool lay_out(Value& value, const Dims& dims, bool apart, const Padding& padding) {
  if (dims.empty() || !set_layout(value, blocked(dims, apart), std::string("ABCDEFG").substr(0, dims.size())).ok()) {
    return false;
  }
  ValueLayout layout = *value.layout();
  layout.pad = padding.state, layout.pad_bits = padding.bits;
  value.set_layout(std::make_shared<const ValueLayout>(std::move(layout)));
  return true;
}

// The layouts in one run of an instance.
struct Arrangement {
  bool padded = false;   // asks for padded extents, and gives results layouts of their own
  bool some = false;     // leaves some values row-major, and lays out constants
  std::string operands;  // what their padding holds; nothing: anything
  Padding results;
};

Padding padding_of(const Arrangement& arrangement, ElementType element) {
  if (arrangement.operands.empty()) return {};
  return {PadState::value, bits_of(element, std::stod(arrangement.operands))};
}

// Returns the number of values that have got layouts.
int arrange(Instance& instance, const Arrangement& arrangement, uint32_t seed) {
  R random(seed);
  int count = 0;
  const auto wanted = [&] { return !arrangement.some || pick(random, 0, 3) > 0; };
  for (size_t i = 0; i < instance.op->operand_count(); ++i) {
    Value* value = instance.op->operand(i);
    if (!value || (value->producer() && !arrangement.some) || !wanted()) continue;
    const auto dims = value->type().shape().static_dims();
    const Padding padding = padding_of(arrangement, value->type().element());
    count += dims && lay_out(*value, *dims, false, padding);
  }
  for (size_t i = 0; i < instance.op->result_count(); ++i) {
    const Datum& made = instance.wanted[i];
    if (!made.is_tensor() || !wanted()) continue;
    count += lay_out(*instance.op->result(i), made.tensor().dims(), arrangement.padded, arrangement.results);
  }
  if (arrangement.padded)
    instance.op->attributes().set(std::string(kLayoutKernelAttribute), std::string(kPaddedKernel));
  return count;
}

void strip(Instance& instance) {
  for (size_t i = 0; i < instance.op->operand_count(); ++i) {
    if (instance.op->operand(i)) instance.op->operand(i)->set_layout(nullptr);
  }
  for (size_t i = 0; i < instance.op->result_count(); ++i) instance.op->result(i)->set_layout(nullptr);
  instance.op->attributes().erase(std::string(kLayoutKernelAttribute));
}

// ---- Checks --------------------------------------------------------------------------------------------------------

bool same_bits(const std::vector<Datum>& a, const std::vector<Datum>& b) {
  return std::ranges::equal(a, b, [](const Datum& x, const Datum& y) { return x.tensor().identical(y.tensor()); });
}

// With each poison; a run that must give the same bits reports failures.
bool runs_as_plain(Instance& instance, const Arrangement& arrangement, uint32_t seed, bool must) {
  bool same = true;
  strip(instance);
  arrange(instance, arrangement, seed);
  for (const PoisonPadding poison : kPoisons) {
    const auto got = instance.run(poison);
    same = same && got.ok() && same_bits(*got, instance.wanted);
    if (!must) continue;
    EXPECT_TRUE(got.ok()) << got.error().to_string() << "\n" << print(instance.graph);
    EXPECT_TRUE(!got.ok() || same_bits(*got, instance.wanted))
        << "other bits with poison " << static_cast<int>(poison) << " of\n"
        << print(instance.graph);
  }
  return same;
}

// Whether the operator has written the padding of its results, as over slots and padded extents. In logical indices,
// padding holds what is promised, and anything else violates one of two promises.
bool writes_padding(Instance& instance, Arrangement arrangement, uint32_t seed) {
  for (const uint64_t bits : {0x5a5a5a5a5a5a5a5aull, 0xa5a5a5a5a5a5a5a5ull}) {
    strip(instance);
    arrangement.results = {PadState::value, bits};
    arrange(instance, arrangement, seed);
    const auto got = instance.run(PoisonPadding::ones);
    if (got.ok()) continue;
    EXPECT_THAT(got.error().to_string(), ::testing::HasSubstr("that was promised")) << print(instance.graph);
    return true;
  }
  return false;
}

struct Outcome {
  Ways ways;
  bool padding_matters = false;
};

void check(Instance& instance, const Row& row, uint32_t seed, Outcome& outcome) {
  const bool scrubs = isa<LayoutScrub>(*instance.op);  // operand and result lie alike, as it demands
  const bool some = seed % 2 && !scrubs;
  const Arrangement alike{.some = some}, padded{.padded = !scrubs, .some = some};
  outcome.ways.laid_out |= arrange(instance, alike, seed) > 0;
  runs_as_plain(instance, alike, seed, true);
  outcome.padding_matters |= !runs_as_plain(instance, padded, seed, row.takes_any());
  Arrangement neutral = padded;
  if (!row.takes_any()) neutral.operands = row.padding;
  if (!row.takes_any()) runs_as_plain(instance, neutral, seed, true);
  outcome.ways.reorders = scrubs || isa<LayoutReorder>(*instance.op);
  if (outcome.ways.reorders) return;  // writes the padding that is promised, or that of its attribute
  outcome.ways.slots |= writes_padding(instance, alike, seed);
  outcome.ways.padded |= writes_padding(instance, neutral, seed);
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const OpDef* def : all_ops()) names.emplace_back(def->name().view());
  return names;
}

class LaidOutOp : public ::testing::TestWithParam<std::string> {};

TEST_P(LaidOutOp, RunsAsTheTableSays) {
  const std::string& name = GetParam();
  const auto found = table().find(name);
  const Row row = found == table().end() ? Row{"nothing", "any"} : found->second;
  const auto [first, last] = all_cases().equal_range(name);
  Outcome outcome;
  outcome.ways.drawn = first != last;
  for (auto one = first; one != last; ++one) {
    for (uint32_t seed = 0; seed < kInstances && !HasFailure(); ++seed) {
      SCOPED_TRACE(str("case ", std::distance(first, one), " of ", name, ", seed ", seed));
      R random(seed * 7919 + 29);
      Instance instance;
      const auto drawn = instance.draw(name, one->second(random), !row.takes_any(), random);
      ASSERT_TRUE(drawn.ok()) << drawn.error().to_string();
      check(instance, row, seed, outcome);
    }
  }
  EXPECT_EQ(row.ways, outcome.ways.text()) << "docs/layouts.md";
  EXPECT_EQ(row.padding == "-", !outcome.ways.padded) << "padding in docs/layouts.md: " << row.padding;
  EXPECT_EQ(outcome.padding_matters, !row.takes_any()) << "padding in docs/layouts.md: " << row.padding;
}

INSTANTIATE_TEST_SUITE_P(Ops, LaidOutOp, ::testing::ValuesIn(all_names()), [](const auto& info) {
  std::string out = info.param;
  std::ranges::replace(out, '.', '_');
  return out;
});

TEST(LaidOutOps, TheTableNamesEachOperatorOnceAndNoOther) {
  const std::vector<std::string> names = all_names();
  for (const std::string& name : names) EXPECT_EQ(table().count(name), 1u) << name << " in docs/layouts.md";
  for (const auto& [name, row] : table()) EXPECT_TRUE(std::ranges::count(names, name)) << name << " is no operator";
}

}  // namespace
}  // namespace tenon
