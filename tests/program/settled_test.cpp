// Settled runs: lists of code to call, with everything looked up in advance.
#include <gmock/gmock.h>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/ir/settled.hpp>

#include "program/kernels.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;

// words: from, to, elements, what is added
void add_words(const int64_t* words) {
  const auto* from = reinterpret_cast<const int32_t*>(words[0]);
  auto* to = reinterpret_cast<int32_t*>(words[1]);
  for (int64_t i = 0; i < words[2]; ++i) to[i] = from[i] + static_cast<int32_t>(words[3]);
}

// Adds its scalar; a call that adds 0 cannot be settled.
class Adding final : public KernelState, public SettlingState {
 public:
  void look_at(const CallContext& context) {
    const BufferView& from = context.operands[0];
    words_ = {static_cast<int64_t>(reinterpret_cast<intptr_t>(from.base)),
              static_cast<int64_t>(reinterpret_cast<intptr_t>(context.operands[1].base)), from.elements(),
              context.scalars[0]};
  }
  Result<bool> settle(const CallContext& context, std::vector<SettledCall>& calls) override {
    look_at(context);
    if (context.scalars[0] < 0) return error(Code::invalid_argument, "less than nothing is added");
    if (context.scalars[0] == 0) return false;
    calls.push_back({add_words, words_.data()});
    return true;
  }
  const int64_t* words() const { return words_.data(); }

 private:
  std::array<int64_t, 4> words_ = {};
};

KernelTable adding_kernels() {
  auto adding = std::make_shared<Kernel>();
  adding->name = "adding";
  adding->make_state = [] { return std::make_unique<Adding>(); };
  adding->run_in_state = [](CallContext& context) -> Result<void> {
    auto& state = static_cast<Adding&>(*context.state);
    state.look_at(context);
    add_words(state.words());
    return {};
  };
  adding->run = adding->run_in_state;
  KernelTable table = kernels();
  table["adding"] = adding;
  return table;
}

class Settled : public ::testing::Test {
 protected:
  void SetUp() override {
    data_.add("in", {16});
    data_.add("out", {16});
    for (int i = 0; i < 16; ++i) data_["in"][static_cast<size_t>(i)] = i;
  }
  BoundProgram bound(const std::string& body, const BindOptions& options = {}) {
    const auto program =
        parse_program("program @p() { input %in : i32 rank 1 output %out : i32 rank 1 " + body + "}", adding_kernels());
    EXPECT_TRUE(program.ok()) << program.error().to_string();
    return *BoundProgram::bind(*program, data_.arguments(), options);
  }
  Result<std::vector<SettledCall>> settle(BoundProgram& program, const RunWith& with = {}) {
    return program.settle(std::vector<std::byte*>{data_.view("in").base, data_.view("out").base}, with);
  }
  size_t settled(const std::string& body, const BindOptions& options = {}) {
    BoundProgram program = bound(body, options);
    const auto calls = settle(program);
    EXPECT_TRUE(calls.ok()) << calls.error().to_string();
    return calls->size();
  }
  Data data_;
};

constexpr const char* kTwo =
    "allocate %a : i32[0 +: 16] { call adding(in %in, out %a; 3) call adding(in %a, out %out; 4) }";

TEST_F(Settled, CallsDoWhatARunDoes) {
  for (const bool of_runs : {false, true}) {
    BoundProgram program = bound(kTwo, {.arena_of_runs = of_runs});
    std::vector<int64_t> words(16);
    const RunWith with{.arena = std::as_writable_bytes(std::span(words))};
    const auto calls = settle(program, with);
    ASSERT_TRUE(calls.ok());
    ASSERT_EQ(calls->size(), 2u);
    for (const int first : {5, -100}) {
      data_["in"][0] = first;
      for (const SettledCall& call : *calls) call.run(call.words);
      EXPECT_EQ(data_["out"][0], first + 7);
      EXPECT_EQ(data_["out"][15], 22);
    }
  }
}

TEST_F(Settled, OtherMemoryIsSettledAnew) {
  BoundProgram program = bound(kTwo);
  ASSERT_EQ(settle(program)->size(), 2u);
  Data other;
  other.add("in", {16});
  other.add("out", {16});
  other["in"][15] = 15;
  data_["out"][15] = 0;
  const auto calls = program.settle(std::vector<std::byte*>{other.view("in").base, other.view("out").base}, {});
  ASSERT_EQ(calls->size(), 2u);
  for (const SettledCall& call : *calls) call.run(call.words);
  EXPECT_EQ(other["out"][15], 22);
  EXPECT_EQ(data_["out"][15], 0);
}

TEST_F(Settled, CopiesAreMoves) {
  for (const auto& [map, first] : {std::pair("%in(x)", 0), {"%in(15 - x)", 15}, {"%in(x + 1) pad 0x00000000", 1}}) {
    BoundProgram program = bound(str("copy %out(x) = ", map).c_str());
    const auto calls = settle(program);
    ASSERT_TRUE(calls.ok()) << calls.error().to_string();
    ASSERT_EQ(calls->size(), 1u) << map;
    data_["out"][0] = -1;
    (*calls)[0].run((*calls)[0].words);
    EXPECT_EQ(data_["out"][0], data_["in"][static_cast<size_t>(first)]) << map;
  }
}

TEST_F(Settled, MoreThanCallsIsNot) {
  EXPECT_EQ(settled("call adding(in %in, out %out; 1)"), 1u);
  EXPECT_EQ(settled("call adding(in %in, out %out; 0)"), 0u) << "the state refuses";
  EXPECT_EQ(settled("call add1(in %in, out %out)"), 0u) << "a kernel without such a state";
  EXPECT_EQ(settled("call adding(in %in, out %out; 1) copy %out(x) = %in(x)"), 2u) << "a copy whose boxes are known";
  EXPECT_EQ(settled("call adding(in %in, out %out; 1) copy %out(x) = %in(x * x mod 16)"), 0u)
      << "one that looks at rows";
  EXPECT_EQ(settled("for i in [0, 3) { call adding(in %in, out %out; i + 1) }"), 0u);
  EXPECT_EQ(settled("call adding(in %in, out %out; 1)", {.statistics = true}), 0u);
}

TEST_F(Settled, ErrorsNameTheProgram) {
  BoundProgram program = bound("call adding(in %in, out %out; -1)");
  const auto calls = settle(program);
  ASSERT_FALSE(calls.ok());
  EXPECT_THAT(calls.error().to_string(),
              ::testing::AllOf(::testing::HasSubstr("less than nothing"), ::testing::HasSubstr("'p'")));
  const auto few = program.settle(std::vector<std::byte*>{nullptr}, {});
  ASSERT_FALSE(few.ok());
  EXPECT_THAT(few.error().message(), ::testing::HasSubstr("2 buffers, 1 are given"));
}

}  // namespace
}  // namespace tenon::program
