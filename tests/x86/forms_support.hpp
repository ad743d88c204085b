// Compilation for the tests of forms: bodies of graphs, for a machine with small, stated memories.
#pragma once
#include "x86/forms/forms.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <tenon/ir/text.hpp>
#include <tenon/snippet/canonical/canonical.hpp>

#include "x86/body_of.hpp"
#include "x86/code/code_cache.hpp"
#include "x86/compiler.hpp"
#include "x86/kernel_support.hpp"
#include "x86/passes_support.hpp"

namespace tenon::x86 {

class Forms : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  TargetDescription target() const {
    TargetDescription target = testing::target_of(GetParam());
    target.memories = {{.name = "l2", .size_bytes = 100'000},
                       {.name = "l3", .size_bytes = 1'000'000, .prefetch_reads = 7, .prefetch_writes = 5},
                       {.name = "host", .size_bytes = 1'000'000'000, .prefetch_reads = 9, .streams = 3}};
    return target;
  }
  // y = x + number, for `rows` rows. Bodies with different numbers have different code.
  static snippet::Body body(std::string_view rows, int number) {
    return body_of(str("f32[", rows, ",64]"),
                   str("%c = Constant {value = dense<f32[]: ", number, ".0>}\n  %y = Add %x, %c"));
  }
  // The body of the operator that computes y.
  static snippet::Body body_of(std::string_view type, std::string_view operators) {
    const auto graph = parse_graph(str("graph @g(%x: ", type, ") -> %y {\n  ", operators, "\n}"));
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
    auto body = snippet::make_body(*(*graph)->body().output(0)->producer());
    EXPECT_TRUE(body.ok()) << (body.ok() ? "" : body.error().to_string());
    return *std::move(body);
  }
  static size_t made() { return CodeCache::shared().counts().made; }
};

}  // namespace tenon::x86
