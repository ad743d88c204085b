// Functions of one byte by tables: the rows of the emitter table for every byte, the bodies that get tables, and graphs
// compared with the reference at all widths.
#include "x86/body/byte_tables.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include <support_lib/environment.hpp>
#include <support_lib/on_reference.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon/tensor/compare.hpp>

#include "emitters_support.hpp"
#include "x86/body_of.hpp"
#include "x86/emitters/byte_tables.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::Body;
using snippet::BodyNode;
using tenon::testing::on_reference;
using testing::GuardedGraph;

constexpr uint32_t kSeed = 20261129;

std::vector<uint64_t> drawn_entries(std::mt19937& random) {
  std::vector<uint64_t> entries(kTableEntries);
  for (uint64_t& entry : entries) entry = random() & 255;
  return entries;
}
int32_t extended(uint64_t entry, bool is_signed) {
  return is_signed ? static_cast<int8_t>(entry) : static_cast<int32_t>(entry);
}

// ---- Rows ----

// Each entry, with arbitrary other bits in the lane.
TEST(ByteTableRows, LookUpEveryByte) {
  std::mt19937 random(kSeed);
  size_t rows = 0;
  for (const codegen::JitterRow* row : test::elementwise_table().rows()) {
    const bool of_bytes = row->op == "ByteTableBytes";
    if (!of_bytes && row->op != kByteTable) continue;
    const Isa isa = test::isa_of(*row);
    if (!machine_has(isa) || (row->feature == kVbmi && !machine_has_vbmi())) continue;
    ++rows;
    for (const bool is_signed : {false, true}) {
      const std::vector<uint64_t> entries = drawn_entries(random);
      test::Column x{kI32, {}};
      for (uint64_t i = 0; i < 512; ++i)
        x.bits.push_back(of_bytes ? random() : i % 256 | (i < 256 ? 0 : ~uint64_t{255}));
      for (uint64_t& bits : x.bits) bits &= 0xffffffff;
      const int full = lanes_of(isa, kI32);
      for (const int lanes : of_bytes ? std::vector{full} : std::vector{full, full / 2}) {
        for (const int result_in : {-1, 0}) {
          const auto got =
              test::run_row({row, isa, lanes, {.result_in = result_in}, byte_table(entries, is_signed)}, {&x, 1}, kI32);
          ASSERT_TRUE(got.ok()) << got.error().message();
          for (size_t i = 0; i < x.bits.size(); ++i) {
            uint32_t expected = 0;
            for (int byte = 0; byte < (of_bytes ? 4 : 1); ++byte)
              expected |= static_cast<uint32_t>(entries[x.bits[i] >> 8 * byte & 255]) << 8 * byte;
            if (!of_bytes) expected = static_cast<uint32_t>(extended(entries[x.bits[i] & 255], is_signed));
            ASSERT_EQ(got->bits[i], expected) << row->op.str() << " of " << row->feature << ", " << lanes
                                              << " lanes, of " << x.bits[i] << ", seed " << kSeed;
          }
        }
      }
    }
  }
  EXPECT_GE(rows, 2u);
}

TEST(ByteTableRows, SayTheirRange) {
  std::vector<uint64_t> entries(kTableEntries, 7);
  entries[3] = 200, entries[200] = 5;
  EXPECT_EQ(range_of_table(byte_table(entries, false)), std::pair(5, 200));
  EXPECT_EQ(range_of_table(byte_table(entries, true)), std::pair(-56, 7));
}

// ---- Bodies ----

// Cycles of a vector for with_byte_tables(): ByteTableBytes costs 8, operators on floats 1, others 4.
double dear_functions(const Body& body, const BodyNode& node) {
  if (node.op == "ByteTableBytes") return 8;
  const bool is_float = body.values[static_cast<size_t>(node.result)].element == kF32 ||
                        body.values[static_cast<size_t>(node.operands[0])].element == kF32;
  return is_float ? 1 : 4;
}

// Computes y from x by `operators`, with DequantizeLinear of scale 1/32 before; %t is the scale 1/64 of a result.
std::string quantised(const std::string& operators, const std::string& element = "u8", const std::string& n = "N",
                      const std::string& results = "%y") {
  return str("graph @g(%x: ", element, "[", n, "], %z: ", element, "[", n, "], %f: f32[", n, "]) -> ", results,
             " {\n%s = Constant {value = dense<f32[]: 0.03125>}\n%p = Constant {value = dense<", element,
             "[]: ", element == "u8" ? "128" : "3", ">}\n%t = Constant {value = dense<f32[]: 0.015625>}\n",
             "%a = DequantizeLinear %x, %s, %p\n", operators, "\n}");
}
Body tabulated(const std::string& text) { return with_byte_tables(testing::body_of(text), dear_functions); }
int64_t tables(const Body& body) { return testing::nodes(body, "ByteTable"); }

TEST(ByteTables, TakeThePlaceOfAll) {
  const Body body = tabulated(quantised("%b = Sigmoid %a\n%y = QuantizeLinear %b, %t, %p"));
  ASSERT_EQ(body.nodes.size(), 1u) << body.to_string();
  EXPECT_EQ(body.nodes[0].op, kByteTable);
  EXPECT_EQ(body.nodes[0].operands[0], body.inputs[0].value);
  EXPECT_EQ(body.nodes[0].result, body.outputs[0].value);
  EXPECT_TRUE(snippet::verify(body).ok());
  // y = 128 + 64 / (1 + e^-((x - 128) / 32)), rounded.
  const TableWords words = words_of_table(body.nodes[0].attributes);
  const auto entry = [&](size_t i) { return words[i / 4] >> 8 * (i % 4) & 255; };
  EXPECT_EQ(entry(0), 129u);
  EXPECT_EQ(entry(128), 160u);
  EXPECT_EQ(entry(255), 191u);
  EXPECT_EQ(range_of_table(body.nodes[0].attributes), std::pair(129, 191));
}

TEST(ByteTables, AreOfOneByteAlone) {
  EXPECT_EQ(
      tables(tabulated(quantised("%b = Mul %a, %a\n%c = Tanh %b\n%d = Sub %c, %a\n%y = QuantizeLinear %d, %t, %p"))),
      1);
  EXPECT_EQ(
      tables(tabulated(quantised("%c = DequantizeLinear %z, %s, %p\n%b = Mul %a, %c\n%y = QuantizeLinear %b, %t, %p"))),
      0);
  EXPECT_EQ(tables(tabulated(quantised("%b = Mul %a, %f\n%y = QuantizeLinear %b, %t, %p"))), 0);
  // An expression that continues with other values begins with a table.
  const Body both =
      tabulated(quantised("%b = Tanh %a\n%q = QuantizeLinear %b, %t, %p\n%d = DequantizeLinear %q, %t, "
                          "%p\n%e = Mul %d, %f\n%y = QuantizeLinear %e, %t, %p"));
  EXPECT_EQ(tables(both), 1);
  EXPECT_EQ(testing::nodes(both, "Tanh"), 0);
  EXPECT_EQ(testing::nodes(both, "Mul"), 2) << "DequantizeLinear, and that by %f";
}

TEST(ByteTables, AreOfResultsThatAByteHolds) {
  const std::string squares = "%i = Cast %x {to = type<i32[*]>}\n%j = Mul %i, %i\n%k = Mul %j, %i\n%l = Mul %k, %i\n";
  EXPECT_EQ(tables(tabulated(quantised(squares + "%y = Add %l, %i"))), 0);
  EXPECT_EQ(tables(tabulated(quantised(squares + "%y = BitwiseAnd %l, %i", "i8"))), 0) << "0 to 255 and -128";
  EXPECT_EQ(tables(tabulated(quantised(squares + "%m = BitwiseAnd %l, %i\n%y = Cast %m {to = type<u8[*]>}", "i8"))), 1);
  EXPECT_EQ(tables(tabulated(quantised(squares + "%y = Cast %l {to = type<i8[*]>}"))), 1);
}

TEST(ByteTables, HaveToPay) {
  EXPECT_EQ(tables(tabulated("graph @g(%x: u8[N]) -> %y {\n%a = BitwiseNot %x\n%y = Neg %a\n}")), 0);
  // Values with other readers are computed anyway, so a table saves less.
  const std::string sigmoid = "%b = Sigmoid %a\n%y = QuantizeLinear %b, %t, %p";
  const auto dear = [](const Body& body, const BodyNode& node) {
    return node.op == "ByteTableBytes" ? 28 : dear_functions(body, node);
  };
  EXPECT_EQ(tables(with_byte_tables(testing::body_of(quantised(sigmoid)), dear)), 1);
  EXPECT_EQ(tables(with_byte_tables(testing::body_of(quantised(sigmoid, "u8", "N", "(%y, %b)")), dear)), 0);
  EXPECT_EQ(tables(with_byte_tables(testing::body_of(quantised(sigmoid, "u8", "N", "(%y, %a)")), dear)), 0);
}

// ---- Graphs ----

struct Machine {
  Isa isa;
  bool vbmi;
};

class ByteTableGraphs : public ::testing::TestWithParam<Machine> {
 protected:
  void SetUp() override {
    const auto [isa, vbmi] = GetParam();
    if (!machine_has(isa) || (vbmi && !machine_has_vbmi()))
      GTEST_SKIP() << "this machine has no " << (vbmi ? kVbmi : isa_name(isa));
  }
  TargetDescription target() const {
    TargetDescription made = testing::target_of(GetParam().isa);
    if (GetParam().vbmi) made.features.emplace_back(kVbmi);
    return made;
  }
  // The number of such instructions in the first form.
  int64_t count(const std::string& text, std::string_view op) const {
    const FormMaker maker(target(), **jitter_table(), {});
    const Body body = testing::body_of(text);
    const auto form = maker.make(body, maker.tiers_of(body).front());
    TENON_CHECK(form.ok(), form.ok() ? "" : form.error().to_string());
    return std::ranges::count_if(form->kernel.body,
                                 [&](const snippet::Instruction& one) { return one.op.view() == op; });
  }
};

TEST_P(ByteTableGraphs, AreTheReference) {
  const std::string kBodies[] = {
      "%b = Sigmoid %a\n%y = QuantizeLinear %b, %t, %p",
      "%b = Sigmoid %a\n%c = Mul %a, %b\n%y = QuantizeLinear %c, %t, %p",
      "%b = Tanh %a\n%c = Exp %b\n%d = Sub %c, %a\n%y = QuantizeLinear %d, %t, %p",
      "%b = Erf %a\n%c = Log %b\n%y = QuantizeLinear %c, %t, %p",
      "%b = Tanh %a\n%q = QuantizeLinear %b, %t, %p\n%d = DequantizeLinear %q, %t, %p\n%e = Mul %d, %f\n%y = "
      "QuantizeLinear %e, %t, %p",
      "%b = Mish %a\n%q = QuantizeLinear %b, %t, %p\n%y = Add %q, %z",
  };
  const int64_t lanes = lanes_of(GetParam().isa, kI32);
  std::mt19937 random(kSeed);
  for (const char* element : {"u8", "i8"}) {
    const ElementType type = *ElementType::parse(element);
    const int64_t low = type == kI8 ? -128 : 0;
    for (const std::string& body : kBodies) {
      EXPECT_GT(count(quantised(body, element), "ByteTableBytes") + count(quantised(body, element), "ByteTable"), 0);
      for (const int64_t n : {int64_t{0}, int64_t{1}, lanes - 1, lanes, lanes + 1, 4 * lanes - 1, 4 * lanes,
                              4 * lanes + 1, int64_t{4096}, int64_t{20011}}) {
        const std::string text = quantised(body, element, str(n));
        Tensor x = *Tensor::zeros(type, {n});
        for (int64_t i = 0; i < n; ++i) x.set_int(i, low + i % 256);
        const Tensor z = tenon::testing::random_tensor(random, type, {n}, low, low + 255);
        const Tensor f = tenon::testing::random_tensor(random, kF32, {n}, -2, 2);
        auto graph = testing::graph_of(text);
        const std::vector<Tensor> expected = on_reference(*graph, {Datum(x), Datum(z), Datum(f)});
        // With small caches, code of all forms is used.
        for (const bool small_caches : {false, true}) {
          auto run = testing::graph_of(text);
          GuardedGraph runner(target(), {.contract = false, .bounds = false, .small_caches = small_caches});
          ASSERT_EQ(runner.tokenize(*run), 1u) << text;
          const std::vector<Tensor> got = runner.run(*run, {Datum(x), Datum(z), Datum(f)}, random);
          const Comparison comparison = compare(got[0], expected[0], {.rtol = 0, .atol = 0});
          ASSERT_TRUE(comparison.equal) << comparison.difference << "\n" << text << ", seed " << kSeed;
        }
      }
    }
  }
}

// Random chains of operators that begin and end with a byte.
TEST_P(ByteTableGraphs, DrawnOnesAreTheReference) {
  const char* const kFloats[] = {"Sigmoid %", "Tanh %",    "Exp %",     "Abs %",      "Neg %",
                                 "Floor %",   "Erf %",     "Mul %t, %", "Add %s, %",  "Max %t, %",
                                 "Sub %s, %", "Mul %a, %", "Relu %",    "HardSwish %"};
  const uint32_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(40);
  size_t tabulated = 0;
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    std::mt19937 random(seed);
    const ElementType type = random() % 2 ? kU8 : kI8;
    std::string operators;
    for (uint32_t i = 0, count = 1 + random() % 7; i < count; ++i)
      operators += str("%v", i + 1, " = ", kFloats[random() % std::size(kFloats)], i == 0 ? "a" : str("v", i), "\n");
    const std::string last = str("%v", std::ranges::count(operators, '\n'));
    operators +=
        random() % 3 ? str("%y = QuantizeLinear ", last, ", %t, %p") : str("%y = Cast ", last, " {to = type<i8[*]>}");
    const std::string text = quantised(operators, type == kU8 ? "u8" : "i8", "256");
    tabulated += tables(with_byte_tables(testing::body_of(text), dear_functions)) > 0;
    Tensor x = *Tensor::zeros(type, {256});
    for (int64_t i = 0; i < 256; ++i) x.set_int(i, type == kI8 ? i - 128 : i);
    const std::vector<Datum> inputs{Datum(x), Datum(x), Datum(*Tensor::zeros(kF32, {256}))};
    auto graph = testing::graph_of(text);
    const std::vector<Tensor> expected = on_reference(*graph, inputs);
    GuardedGraph runner(target(), {.contract = false, .bounds = false, .small_caches = false});
    runner.tokenize(*graph);
    const Comparison comparison = compare(runner.run(*graph, inputs, random)[0], expected[0], {.rtol = 0, .atol = 0});
    ASSERT_TRUE(comparison.equal) << comparison.difference << "\n" << text;
  }
  EXPECT_GT(tabulated, seeds / 2);
}

// Processes a whole vector of bytes at once; beyond the caches, several stretches in parallel.
TEST_P(ByteTableGraphs, GoAsBytes) {
  const std::string text = quantised("%b = Sigmoid %a\n%y = QuantizeLinear %b, %t, %p");
  EXPECT_EQ(count(text, "ByteTableBytes"), 1);
  EXPECT_EQ(count(text, "Sigmoid"), 0);
  EXPECT_EQ(count(quantised("%b = Sigmoid %a\n%q = QuantizeLinear %b, %t, %p\n%y = Cast %q {to = type<i32[*]>}"),
                  "ByteTableBytes"),
            1)
      << "unpacked";
  const FormMaker maker(testing::with_small_caches(target()), **jitter_table(), {});
  const Body body = testing::body_of(text);
  const auto tiers = maker.tiers_of(body);
  const auto streaming = std::ranges::find(tiers, ".streaming", &FormMaker::Tier::suffix);
  ASSERT_NE(streaming, tiers.end());
  const auto form = maker.make(body, *streaming);
  ASSERT_TRUE(form.ok()) << form.error().to_string();
  const auto stores = [&](std::string_view op) {
    return std::ranges::count_if(form->kernel.body, [&](const auto& one) { return one.op.view() == op; });
  };
  const int64_t a_line = GetParam().isa == Isa::avx512 ? 1 : 2;
  EXPECT_EQ(stores("StoreBytesStreaming"), 4 * a_line + 1) << "four stretches, and the rest";
  EXPECT_EQ(stores("StoreBytes"), 0);
}

INSTANTIATE_TEST_SUITE_P(Isa, ByteTableGraphs,
                         ::testing::Values(Machine{Isa::avx2, false}, Machine{Isa::avx512, false},
                                           Machine{Isa::avx512, true}),
                         [](const auto& info) {
                           return str(isa_name(info.param.isa), info.param.vbmi ? "_vbmi" : "");
                         });

}  // namespace
}  // namespace tenon::x86
