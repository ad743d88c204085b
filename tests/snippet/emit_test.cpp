// A minimal target, whose code is C-like text: it shows all that a target must provide.
#include <tenon/snippet/linear/emit.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

#include <tenon/support/str.hpp>

namespace tenon::snippet::test {
namespace {

using codegen::Emission;
using codegen::EmitAddress;
using codegen::EmitContext;
using codegen::JitterRow;
using codegen::JitterTable;
using codegen::kAnyLanes;
using ::testing::HasSubstr;

class TextContext : public EmitContext {
 public:
  explicit TextContext(codegen::ConstantPool& constants, std::string_view kind = "toy")
      : EmitContext(constants), kind_(kind) {}
  std::string_view kind() const override { return kind_; }
  void mark(std::string_view label, std::string_view) override {
    if (!label.empty() && label != last_) code += str("// ", label, "\n");
    if (!label.empty()) last_ = label;
  }
  std::string code;

 private:
  std::string_view kind_;
  std::string last_;
};

std::string at(codegen::PhysicalRegister place) {
  return str(codegen::register_file_name(place.file)[0], place.number);
}
std::string at(const EmitAddress& address) {
  return str(address.element, "(", at(address.base), address.index ? " + " + at(*address.index) : "",
             address.displacement_bytes ? str(" + ", address.displacement_bytes, "b") : "", ")");
}
int64_t number(const Emission& emission, const char* name) {
  return *emission.attributes.find(name)->get_if<int64_t>();
}

std::string text_of(const Emission& e) {
  const auto in = [&](size_t i) { return at(e.in[i].at); };
  const auto out = [&](size_t i = 0) { return at(e.out[i].at); };
  const std::string_view op = e.op;
  const std::string lanes = e.touched == codegen::Lanes::partial ? str("[:", in(e.in.size() - 1), "]")
                            : e.touched == codegen::Lanes::one   ? "[0]"
                                                                 : "";
  if (op == "Parameter") return str(out(), " = params[", e.number, "];");
  if (op == "Zero") return str(out(), " = 0;");
  if (op == "AddParameter") return str(out(), " = ", in(0), " + params[", e.number, "];");
  if (op == "Scalar") return str(out(), " = pool;");
  if (op == "Load" || op == "BroadcastLoad") return str(out(), lanes, " = ", op, " ", at(*e.memory), ";");
  if (op == "Store") return str("Store ", at(*e.memory), lanes, " = ", in(0), ";");
  if (op == "LoopBegin") return str("for (; ", in(0), " <= params[", number(e, "limit"), "];) {");
  if (op == "LoopEnd") return str(in(0), " += ", number(e, "increment"), "; }");
  if (op == "TailBegin")
    return str("if (", out(1), " = params[", number(e, "limit"), "] - ", in(0), ") { ", out(0), " = mask(", out(1),
               ");");
  if (op == "TailEnd") return "}";
  return str(out(), " = ", op, "(", in(0), e.in.size() > 1 ? ", " + in(1) : "", ");");
}

class TextEmitter : public codegen::Emitter {
 public:
  Result<void> emit_code(EmitContext& context, const Emission& emission) const override {
    static_cast<TextContext&>(context).code += text_of(emission) + "\n";
    return {};
  }
  void emit_data(codegen::ConstantPool& pool, const Emission& emission) const override {
    if (emission.op == "Scalar") pool.add(emission.out[0].element, static_cast<uint64_t>(number(emission, "bits")));
  }
};

JitterTable toy_table() {
  JitterTable table("toy");
  for (const char* op : {"Parameter", "Scalar", "Zero", "AddParameter", "Load", "BroadcastLoad", "Store", "LoopBegin",
                         "LoopEnd", "TailBegin", "TailEnd", "Spill", "Reload"})
    EXPECT_TRUE(table.add({.op = op, .types = kAnyLanes, .make = codegen::make_emitter<TextEmitter>}).ok());
  EXPECT_TRUE(table.add({.op = "Mul", .types = codegen::kF32Lanes, .make = codegen::make_emitter<TextEmitter>}).ok());
  return table;
}

TargetDescription toy_target() {
  TargetDescription target;
  target.name = "toy";
  return target;
}

LinearKernel scale_kernel(const char* op = "Mul") {
  BodyBuilder build("scale", "k");
  const ValueId x = build.input(1), two = build.scalar(2);
  build.output(build.op(op, {x, two}));
  return *lower(build.take(), {.lanes = 4, .unroll = 2});
}

TEST(Emit, ToyTarget) {
  const JitterTable table = toy_table();
  const TargetDescription target = toy_target();
  LinearKernel kernel = scale_kernel();
  codegen::RegisterPool pool;
  pool.registers = {std::vector<int>{0, 1, 2, 3}, std::vector<int>{0}, std::vector<int>{0, 1, 2, 3}};
  ASSERT_TRUE(allocate(kernel, pool, needs_of(table, target)).ok());
  codegen::ConstantPool constants;
  TextContext context(constants);
  const auto emitted = emit(kernel, table, target, context);
  ASSERT_TRUE(emitted.ok()) << emitted.error().to_string();
  EXPECT_EQ(context.code, R"(v0 = pool;
g0 = params[1];
g1 = params[2];
g2 = 0;
for (; g2 <= params[0];) {
v1 = Load f32(g0 + g2);
v2 = Load f32(g0 + g2 + 16b);
// Mul n2
v1 = Mul(v1, v0);
v2 = Mul(v2, v0);
Store f32(g1 + g2) = v1;
Store f32(g1 + g2 + 16b) = v2;
g2 += 8; }
for (; g2 <= params[3];) {
v1 = Load f32(g0 + g2);
v1 = Mul(v1, v0);
Store f32(g1 + g2) = v1;
g2 += 4; }
if (g3 = params[4] - g2) { m0 = mask(g3);
v1[:g3] = Load f32(g0 + g2);
v0 = Mul(v1, v0);
Store f32(g1 + g2)[:g3] = v0;
}
)");
  EXPECT_EQ(constants.bytes().size(), 4u);
}

TEST(Emit, TablesOfAMachineAnswerAsTheWholeTable) {
  const auto make = codegen::make_emitter<TextEmitter>;
  JitterTable table("toy");
  ASSERT_TRUE(table.add({.op = "Mul", .types = codegen::kF32Lanes, .feature = "wide", .cycles = 1, .make = make}).ok());
  ASSERT_TRUE(table.add({.op = "Mul", .types = codegen::kF32Lanes, .without = "wide", .cycles = 2, .make = make}).ok());
  ASSERT_TRUE(table.add({.op = "Mul", .types = kAnyLanes, .cycles = 3, .make = make}).ok());
  ASSERT_TRUE(table.add({.op = "Exp", .types = codegen::kF32Lanes, .feature = "wide", .make = make}).ok());
  const ElementType floats[] = {kF32, kF32}, integers[] = {kI32, kI32}, masks[] = {kBool, kBool}, halves[] = {kF16};
  const Attributes none;
  for (const bool wide : {true, false}) {
    TargetDescription target = toy_target();
    if (wide) target.features.push_back("wide");
    const JitterTable own = table.of_machine(target);
    const auto cycles = [&](const JitterTable& of, Name op, std::span<const ElementType> types) {
      const codegen::JitterRow* row = of.find({op, types, types.first(1), none}, target);
      return row ? row->cycles : 0;
    };
    EXPECT_EQ(cycles(own, "Mul", floats), wide ? 1 : 2);
    EXPECT_EQ(own.has_rows_of("Exp"), wide);
    for (const std::span<const ElementType> types : {std::span(floats), std::span(integers), std::span(masks)})
      for (const Name op : {"Mul", "Exp", "Add"})
        EXPECT_EQ(cycles(own, op, types), cycles(table, op, types)) << op.str();
    EXPECT_EQ(cycles(own, "Mul", halves), 0) << "no lane type";
  }
}

TEST(Emit, ConstantsAndTablesStandOnce) {
  codegen::ConstantPool pool;
  const uint32_t one[] = {1, 2, 3}, other[] = {1, 2, 4}, shorter[] = {1, 2};
  const size_t at = pool.add_table(one);
  EXPECT_EQ(pool.add_table(std::vector<uint32_t>{1, 2, 3}), at);
  EXPECT_NE(pool.add_table(other), at);
  EXPECT_NE(pool.add_table(shorter), at);
  EXPECT_EQ(pool.add_table(one), at);
  EXPECT_EQ(pool.add(kF32, 7), pool.add(kI32, 7));
}

TEST(Emit, NoRowIsAnErrorThatNamesTheOperator) {
  const JitterTable table = toy_table();
  const TargetDescription target = toy_target();
  LinearKernel kernel = scale_kernel("Add");
  const auto allocated = allocate(kernel, test_machine(4, true, false).pool, needs_of(table, target));
  ASSERT_FALSE(allocated.ok());
  EXPECT_EQ(allocated.error().code(), Code::unsupported);
  EXPECT_EQ(allocated.error().message(),
            "the toy jitter table has no row for Add of [f32, f32] to [f32] on target 'toy'");
}

TEST(Emit, WantsPlacesAndAContextOfItsKind) {
  const JitterTable table = toy_table();
  codegen::ConstantPool constants;
  TextContext context(constants), other(constants, "x86");
  EXPECT_THAT(emit(scale_kernel(), table, toy_target(), context).error().message(),
              HasSubstr("before its registers are allocated"));
  EXPECT_THAT(emit(scale_kernel(), table, toy_target(), other).error().message(), HasSubstr("write no x86 code"));
}

}  // namespace
}  // namespace tenon::snippet::test
