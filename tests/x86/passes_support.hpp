// Kernels in text form for the tests of passes, and functions that run the results on the machine.
#pragma once
#include <cctype>
#include <cstring>
#include <map>
#include <random>
#include <support/guard_pages.hpp>

#include <tenon/snippet/linear/allocate.hpp>
#include <tenon/snippet/linear/emit.hpp>

#include "x86/kernel_support.hpp"
#include "x86/passes/passes.hpp"

namespace tenon::x86::testing {

using snippet::LinearKernel;
using test::GuardedBuffer;

inline LinearKernel parsed(const std::string& text) {
  auto kernel = snippet::parse_linear(text);
  EXPECT_TRUE(kernel.ok()) << (kernel.ok() ? "" : kernel.error().to_string()) << "\n" << text;
  return kernel.ok() ? *std::move(kernel) : LinearKernel();
}

// `text` with its values %10 and above renumbered from `next` on, because registers must be numbered without gaps.
inline std::string renumbered(const std::string& text, int& next) {
  std::map<std::string, int> numbers;
  std::string done;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (text[at] == '%' && end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    const std::string word = text.substr(at, end - at);
    if (word.size() < 3) {
      done += word;
    } else {
      const auto [number, is_new] = numbers.try_emplace(word, next);
      next += is_new;
      done += str("%", number->second);
    }
    at = end;
  }
  return done;
}

// A kernel that stores %20, which `inside` computes from the row x and the element w, in the loop and in the tail.
inline std::string row_kernel(int lanes, const std::string& inside, std::string_view element = "f32") {
  int next = 6;
  const auto part = [&](std::string_view touched, std::string_view tail) {
    std::string text = inside;
    for (size_t at; (at = text.find("@")) != std::string::npos;) text.replace(at, 1, touched);
    for (size_t at; (at = text.find("!")) != std::string::npos;) text.replace(at, 1, tail);
    return renumbered(str(text, "    Store", touched, " ", element, " [%1 + %3], %20", tail, "\n"), next);
  };
  const std::string loop = part("", ""), tail = part(".partial", ", %4, %5");
  return str("kernel @row lanes ", lanes,
             " {\n  #0 = pointer 0\n  #1 = pointer 2\n  #2 = pointer 1\n  #3 = limit loop 0\n  #4 = limit loop 1\n"
             "  %0:g = Parameter #0\n  %1:g = Parameter #1\n  %2:g = Parameter #2\n  %3:g = Zero\n"
             "  loop 0 d0 dim 0 %3 vector step ",
             lanes, " limit #3 {\n", loop, "  }\n  tail 1 d0 dim 0 %3 limit #4 -> %4:bool, %5:g {\n", tail, "  }\n}\n");
}

inline std::string load(std::string_view element) {
  return str("    %10:", element, " = Load@ ", element, " [%0 + %3]!\n");
}
inline std::string weight(std::string_view element) {
  return str("    %11:", element, " = BroadcastLoad ", element, " [%2]\n");
}

inline int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

class Passes : public MachineTest {
 protected:
  LinearKernel optimised(const std::string& text, const FormPasses& options = {}) {
    return optimised(parsed(text), options);
  }
  LinearKernel optimised(LinearKernel kernel, FormPasses options) {
    options.isa = GetParam().isa;
    const auto done = optimise(kernel, options);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
    return kernel;
  }

  std::shared_ptr<const JitCode> compiled(LinearKernel kernel) {
    const TargetDescription target = target_of(GetParam().isa);
    const auto fail = [](const Error& e) { ADD_FAILURE() << e.to_string(); };
    if (const auto done = allocate(kernel, register_pool(GetParam().isa), snippet::needs_of(full_table(), target));
        !done.ok())
      return fail(done.error()), nullptr;
    auto object = assemble(kernel, full_table(), target);
    if (!object.ok()) return fail(object.error()), nullptr;
    auto code = JitMemory::shared().add(std::make_shared<CodeObject>(*std::move(object)));
    if (!code.ok()) return fail(code.error()), nullptr;
    return *code;
  }

  // y for the row x, with guard pages after both.
  template <class T>
  std::vector<T> run(const JitCode& code, const std::vector<T>& x, T w) {
    GuardedBuffer from(x.size() * sizeof(T)), to(x.size() * sizeof(T), 0xa5, output_), one(sizeof(T));
    if (!x.empty()) std::memcpy(from.data(), x.data(), from.bytes());
    std::memcpy(one.data(), &w, sizeof w);
    const auto width = static_cast<int64_t>(x.size());
    std::vector<int64_t> params = {reinterpret_cast<int64_t>(from.data()), reinterpret_cast<int64_t>(to.data()),
                                   reinterpret_cast<int64_t>(one.data()), width - GetParam().lanes, width};
    params.insert(params.end(), extra_params_.begin(), extra_params_.end());
    code.function()(params.data());
    std::vector<T> y(x.size());
    if (!x.empty()) std::memcpy(y.data(), to.data(), to.bytes());
    return y;
  }

  // Copies values that are valid in all types of this size, including booleans.
  template <class T>
  void check_copy(const JitCode& code) {
    for (const int64_t width : widths(GetParam().lanes)) {
      std::vector<T> x(static_cast<size_t>(width));
      for (size_t i = 0; i < x.size(); ++i) x[i] = sizeof(T) == 1 ? i % 2 : static_cast<T>(0x3c00 + 37 * i);
      EXPECT_EQ(run<T>(code, x, T{}), x);
    }
  }

  std::vector<int64_t> extra_params_;  // those that a pass adds
  tenon::testing::GuardAt output_ = tenon::testing::GuardAt::end;

  // Expects the results of `expected` at all widths.
  template <class T, class Expected>
  void check(const JitCode& code, Expected expected) {
    std::mt19937 random(3);
    for (const int64_t width : widths(GetParam().lanes)) {
      std::vector<T> x(static_cast<size_t>(width));
      for (T& value : x) value = static_cast<T>(static_cast<int>(random() % 20001) - 10000) / static_cast<T>(7);
      const T w = static_cast<T>(static_cast<int>(random() % 201) - 100) / static_cast<T>(3);
      const std::vector<T> y = run(code, x, w);
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(y[i], expected(x[i], w)) << "x " << x[i] << ", w " << w << ", element " << i << " of " << width;
    }
  }
};

}  // namespace tenon::x86::testing
