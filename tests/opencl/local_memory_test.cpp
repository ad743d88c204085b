// On devices with little local memory, kernels request no more than is available. No device is needed: the declarations
// of a source are evaluated from its text.
#include <gtest/gtest.h>

#include <cctype>
#include <map>

#include <tenon/ir/text.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compiler.hpp"
#include "opencl/device_info.hpp"
#include "opencl/emitters/emitters.hpp"

namespace tenon::opencl::testing {
namespace {

constexpr const char* kGraphs[] = {
    "graph @g(%x: T[1,24,40,40], %w: T[40,24,3,3]) -> %y { %y = Conv %x, %w {pads = [1, 1, 1, 1]} }",
    "graph @g(%x: T[1,3,64,64], %w: T[16,3,7,7]) -> %y { %y = Conv %x, %w {pads = [3, 3, 3, 3], strides = [2, 2]} }",
    "graph @g(%x: T[1,64,30,30], %w: T[32,64,1,1]) -> %y { %y = Conv %x, %w }",
    "graph @g(%x: T[1,24,40,40], %w: T[24,1,5,5]) -> %y { %y = Conv %x, %w {group = 24, strides = [3, 3]} }",
    "graph @g(%x: T[1,8,50,50]) -> %y { %y = AveragePool %x {kernel_shape = [3, 3], strides = [3, 3]} }",
    "graph @g(%a: T[197,770], %b: T[770,330]) -> %y { %y = MatMul %a, %b }",
    "graph @g(%a: T[300,5000], %b: T[330,5000]) -> %y { %y = Gemm %a, %b {transB = 1} }",
    "graph @g(%a: T[2,770], %b: T[770,330]) -> %y { %y = MatMul %a, %b }",
    "graph @g(%a: T[8,770], %b: T[330,770]) -> %y { %y = Gemm %a, %b {transB = 1} }",
    "graph @g(%q: T[1,4,50,64], %k: T[1,4,70,64], %v: T[1,4,70,64]) -> %y { %y = Attention %q, %k, %v }",
    "graph @g(%x: T[5,2,40], %w: T[1,192,40], %r: T[1,192,48]) -> (%y, %h) { %y, %h = LSTM %x, %w, %r {hidden_size = "
    "48} }",
};

// Evaluates the definitions of a source: numbers, names, + - * / and brackets.
class Expression {
 public:
  Expression(std::string_view text, const std::map<std::string, std::string>& defines)
      : text_(text), defines_(defines) {}
  int64_t value() { return sum(); }

 private:
  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool takes(char c) { return next() == c && ++at_; }
  int64_t sum() {
    int64_t made = product();
    while (next() == '+' || next() == '-') made += text_[at_++] == '+' ? product() : -product();
    return made;
  }
  int64_t product() {
    int64_t made = term();
    while (next() == '*' || next() == '/')
      if (text_[at_++] == '*')
        made *= term();
      else
        made /= term();
    return made;
  }
  int64_t term() {
    if (takes('(')) {
      const int64_t made = sum();
      EXPECT_TRUE(takes(')')) << text_;
      return made;
    }
    std::string word;
    for (char c = next(); std::isalnum(static_cast<unsigned char>(c)) || c == '_';
         c = at_ < text_.size() ? text_[at_] : '\0')
      word += c, ++at_;
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0]))) return std::stoll(word);
    const auto defined = defines_.find(word);
    if (defined != defines_.end()) return Expression(defined->second, defines_).value();
    ADD_FAILURE() << "what is '" << word << "' in " << text_;
    return 1;
  }

  std::string_view text_;
  const std::map<std::string, std::string>& defines_;
  size_t at_ = 0;
};

// The size of "float", "double8" ...
int64_t bytes_of(const std::string& type) {
  const size_t digit = type.find_first_of("0123456789");
  const std::string scalar = type.substr(0, digit);
  const int64_t lanes = digit == std::string::npos ? 1 : std::stoll(type.substr(digit));
  return lanes * (scalar == "double" || scalar.ends_with("long") ? 8
                  : scalar == "float" || scalar.ends_with("int") ? 4
                                                                 : 1);
}

// The local memory of a source's kernel.
int64_t local_bytes(std::string_view source) {
  constexpr std::string_view kDefine = "#define ", kLocal = "  __local ";
  std::map<std::string, std::string> defines;
  int64_t bytes = 0;
  while (!source.empty()) {
    const std::string line(source.substr(0, source.find('\n')));
    source.remove_prefix(std::min(line.size() + 1, source.size()));
    if (line.starts_with(kDefine)) {
      const size_t end = line.find(' ', kDefine.size());
      if (end != std::string::npos) defines[line.substr(kDefine.size(), end - kDefine.size())] = line.substr(end + 1);
    }
    if (!line.starts_with(kLocal)) continue;
    const size_t type_end = line.find(' ', kLocal.size());
    std::string type = line.substr(kLocal.size(), type_end - kLocal.size());
    while (defines.contains(type)) type = defines[type];
    for (size_t open = line.find('['); open != std::string::npos; open = line.find('[', open + 1))
      bytes += bytes_of(type) *
               Expression(std::string_view(line).substr(open + 1, line.find(']', open) - open - 1), defines).value();
  }
  return bytes;
}

TEST(OpenclLocalMemory, IsCounted) {
  EXPECT_EQ(local_bytes("#define N (2 + 3 * 2)\n#define TV double4\nvoid k() {\n  __local TV a[N * 2], b[N / 4 - 1];\n "
                        " __local int c[3];\n}"),
            32 * (16 + 1) + 12);
}

TEST(OpenclLocalMemory, OfKernelsIsThere) {
  TargetDescription target;
  target.name = "opencl-some";
  target.features = {std::string(kFp64)};
  size_t sources = 0;
  for (const char* form : kGraphs)
    for (const char* element : {"f32", "f64"}) {
      std::string text = form;
      for (size_t at = 0; (at = text.find("T[", at)) != std::string::npos;) text.replace(at, 1, element);
      const auto graph = parse_graph(text);
      ASSERT_TRUE(graph.ok()) << graph.error().to_string();
      const Op& op = *(*graph)->body().begin();
      for (const int64_t most : {16 << 10, 32 << 10, 48 << 10, 64 << 10, 1 << 20})
        for (const int64_t group : {1, 6, 64, 256})
          for (const int lanes : {4, 16}) {
            const Compiler compiler(target, **jitter_table(),
                                    {.lanes = lanes, .work_group = group, .local_bytes = most});
            const auto made = compiler.forms(irgen::request_for(op), std::nullopt);
            if (!made.ok() && made.error().code() == Code::unsupported) continue;
            ASSERT_TRUE(made.ok()) << made.error().to_string();
            ++sources;
            EXPECT_LE(local_bytes(made->front()->source), most)
                << text << " in groups of " << group << ", " << lanes << " lanes";
          }
    }
  EXPECT_GT(sources, 400u);
}

}  // namespace
}  // namespace tenon::opencl::testing
