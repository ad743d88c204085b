// The kernels of examples/binary_convolution.hpp, and the graph of generic operators, on the cases of
// tests/fixtures/layout/bconv.yaml.
#include <examples/binary_convolution_graph.hpp>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/support/hash.hpp>
#include <tenon/tensor/reorder.hpp>

namespace example {
namespace {

using tenon::Layout;

// SplitMix64; each element takes the highest bit.
class Bits {
 public:
  explicit Bits(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (z ^ z >> 31) >> 63;
  }
  // Row-major, the first one in the lowest bit of the first byte.
  std::vector<std::byte> tensor(const tenon::Dims& shape) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    std::vector<std::byte> out(static_cast<size_t>((count + 7) / 8));
    for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(i / 8)] |= static_cast<std::byte>(next() << (i % 8));
    return out;
  }

 private:
  uint64_t state_;
};

Layout layout(const std::string& text, const std::string& dims, const tenon::Dims& shape, int64_t bits) {
  return Layout::parse(text, dims, shape, bits).value();
}

// Converted to another layout; bits without an element start as `before`, and keep that if the fill is undefined.
std::vector<std::byte> reordered(const BitTensor& from, const Layout& to, std::byte before = std::byte{0}) {
  std::vector<std::byte> out(static_cast<size_t>(to.bytes()), before);
  const auto plan = tenon::plan_reorder(from.layout(), to).value();
  EXPECT_TRUE(plan.run(from.bytes(), out).ok());
  return out;
}

std::string hex_of(const std::vector<std::byte>& bytes) {
  std::string out;
  for (const std::byte byte : bytes) {
    out += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
    out += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
  }
  return out;
}

uint64_t hash_of(std::span<const std::byte> bytes) {
  return tenon::fnv1a({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

uint64_t number(const YAML::Node& node) { return std::stoull(node.as<std::string>(), nullptr, 16); }

// B in a layout of its own.
class Result {
 public:
  Result(const BinaryConvolution& p, const std::string& text)
      : layout_(layout(text, "NCHW", p.b_shape(), 32)), values_(static_cast<size_t>(layout_.bytes() / 4)) {}
  auto place() {
    return
        [this](auto... index) -> int32_t& { return values_[static_cast<size_t>(bit_offset(layout_, index...) / 32)]; };
  }
  const std::vector<int32_t>& values() const { return values_; }
  uint64_t hash() const { return hash_of(std::as_bytes(std::span(values_))); }

 private:
  Layout layout_;
  std::vector<int32_t> values_;
};

class BinaryConvolutionCase : public ::testing::TestWithParam<YAML::Node> {
 protected:
  void SetUp() override {
    const YAML::Node row = GetParam(), sizes = row["params"];
    const auto size = [&](const char* key) { return sizes[key].as<int64_t>(); };
    p_ = {size("bs"), size("ic"), size("ih"), size("iw"), size("oc"), size("kh"), size("kw")};
    ASSERT_EQ(p_.oh(), size("oh"));
    ASSERT_EQ(p_.ow(), size("ow"));
    ASSERT_EQ(p_.length(), size("L"));
    Bits bits(row["seed"].as<uint64_t>());
    a_bytes_ = bits.tensor(p_.a_shape());
    f_bytes_ = bits.tensor(p_.f_shape());
    packed_a_layout_ = layout(row["A_packed"]["layout"].as<std::string>(), "NCHW", p_.a_shape(), 1);
    packed_f_layout_ = layout(row["F_packed"]["layout"].as<std::string>(), "OIHW", p_.f_shape(), 1);
  }
  BitTensor a() const { return {layout("NCHW", "NCHW", p_.a_shape(), 1), a_bytes_}; }
  BitTensor f() const { return {layout("OIHW", "OIHW", p_.f_shape(), 1), f_bytes_}; }

  void expect_result(const Result& nchw, const Result& nhwc) const {
    const YAML::Node& row = GetParam();
    EXPECT_EQ(nchw.hash(), number(row["B_nchw_fnv1a64"]));
    EXPECT_EQ(nhwc.hash(), number(row["B_nhwc_fnv1a64"]));
    if (row["B_nchw"]) {
      EXPECT_EQ(nchw.values(), row["B_nchw"].as<std::vector<int32_t>>());
      EXPECT_EQ(nhwc.values(), row["B_nhwc"].as<std::vector<int32_t>>());
    }
  }
  // How many results differ from those of the plain algorithm.
  int64_t wrong(const Result& result) const {
    Result right(p_, "NCHW");
    binary_convolution(p_, a(), f(), right.place());
    int64_t count = 0;
    for (size_t i = 0; i < right.values().size(); ++i) count += right.values()[i] != result.values()[i];
    return count;
  }

  BinaryConvolution p_;
  std::vector<std::byte> a_bytes_, f_bytes_;
  Layout packed_a_layout_, packed_f_layout_;
};

TEST_P(BinaryConvolutionCase, DataOfTheSeed) {
  const YAML::Node& row = GetParam();
  for (const auto& [key, bits, shape] :
       {std::tuple("A_bits", a(), p_.a_shape()), std::tuple("F_bits", f(), p_.f_shape())}) {
    if (!row[key]) continue;
    std::string text;
    const int64_t count = shape[0] * shape[1] * shape[2] * shape[3];
    for (int64_t i = 0; i < count; ++i) text += static_cast<char>('0' + read_bits(bits.bytes().data(), i, 1));
    EXPECT_EQ(text, row[key].as<std::string>());
  }
}

TEST_P(BinaryConvolutionCase, PackedImages) {
  for (const auto& [key, bits, to] :
       {std::tuple("A_packed", a(), packed_a_layout_), std::tuple("F_packed", f(), packed_f_layout_)}) {
    const YAML::Node image = GetParam()[key];
    const std::vector<std::byte> packed = reordered(bits, to);
    EXPECT_EQ(static_cast<int64_t>(packed.size()), image["bytes"].as<int64_t>());
    EXPECT_EQ(hash_of(packed), number(image["fnv1a64"]));
    if (image["hex"]) {
      EXPECT_EQ(hex_of(packed), image["hex"].as<std::string>());
    }
    EXPECT_EQ(reordered(BitTensor(to, packed), bits.layout()), std::vector(bits.bytes().begin(), bits.bytes().end()));
  }
}

// The algorithm as written, on any layout of A, F and B.
TEST_P(BinaryConvolutionCase, OneAlgorithmForAllLayouts) {
  for (const std::string text :
       {"NCHW", "NHWC", "NHWC<6c:8>", "NHWC<32c:32>;lane=msb", "[2h]NCHW{3c}", "NCHW;off(W)=3"}) {
    SCOPED_TRACE(text);
    const Layout laid_out = layout(text, "NCHW", p_.a_shape(), 1);
    const std::vector<std::byte> bytes = reordered(a(), laid_out), packed_f = reordered(f(), packed_f_layout_);
    Result nchw(p_, "NCHW"), nhwc(p_, "NHWC");
    binary_convolution(p_, BitTensor(laid_out, bytes), f(), nchw.place());
    binary_convolution(p_, BitTensor(laid_out, bytes), BitTensor(packed_f_layout_, packed_f), nhwc.place());
    expect_result(nchw, nhwc);
  }
}

TEST_P(BinaryConvolutionCase, BothPackedImplementations) {
  const std::vector<std::byte> a_bytes = reordered(a(), packed_a_layout_), f_bytes = reordered(f(), packed_f_layout_);
  const BitTensor a(packed_a_layout_, a_bytes), f(packed_f_layout_, f_bytes);
  const ChannelGroups groups = ChannelGroups::of(packed_a_layout_, p_.ic);
  Result nchw(p_, "NCHW"), nhwc(p_, "NHWC");
  popcount_convolution(p_, groups, WordVectors(a), WordVectors(f), nchw.place());
  popcount_convolution(p_, groups, WordVectors(a), WordVectors(f), nhwc.place());
  expect_result(nchw, nhwc);
  const auto a_integers = GroupIntegers::view(a), f_integers = GroupIntegers::view(f);
  ASSERT_TRUE(a_integers.ok() && f_integers.ok());
  popcount_convolution(p_, groups, *a_integers, *f_integers, nchw.place());
  popcount_convolution(p_, groups, *a_integers, *f_integers, nhwc.place());
  expect_result(nchw, nhwc);
}

// The words of channels as integers of a graph, on each available target; bits without a channel are ones.
TEST_P(BinaryConvolutionCase, GenericOperatorsOnEveryTarget) {
  const auto a_words = channel_words(a(), "NCHW", std::byte{0xff}), f_words = channel_words(f(), "OIHW");
  ASSERT_TRUE(a_words.ok() && f_words.ok());
  Result right(p_, "NCHW");
  binary_convolution(p_, a(), f(), right.place());
  tenon::TargetRegistry registry;
  int targets = 0;
  for (const tenon::TargetStatus& target : registry.targets()) {
    if (!target.available || (target.name != "reference" && !target.name.starts_with("x86-"))) continue;
    SCOPED_TRACE(target.name);
    auto graph = tenon::parse_graph(popcount_graph(p_));
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    const auto model = tenon::compile(*std::move(graph), registry, {.targets = {target.name}, .no_fallback = true});
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    const auto outputs = (*model)->run(std::vector<tenon::Datum>{*a_words, *f_words});
    ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
    const auto values = (*outputs)[0].tensor().as<int32_t>();
    EXPECT_EQ(std::vector(values.begin(), values.end()), right.values());
    ++targets;
  }
  EXPECT_GE(targets, 1);
}

// Padding may have any value: the mask excludes it from the sums. Without a mask, all results would be wrong.
TEST_P(BinaryConvolutionCase, DirtyPadLanes) {
  const YAML::Node dirty = GetParam()["dirty_pad_lanes"];
  const std::string text = packed_a_layout_.to_string();
  const Layout keeps = layout(text + ";fill=undef", "NCHW", p_.a_shape(), 1);
  ASSERT_EQ(dirty["poison"].as<int>(), 1);
  const std::vector<std::byte> a_bytes = reordered(a(), keeps, std::byte{0xff}),
                               f_bytes = reordered(f(), packed_f_layout_);
  ASSERT_NE(a_bytes, reordered(a(), packed_a_layout_)) << "nothing was poisoned";
  const BitTensor a(packed_a_layout_, a_bytes), f(packed_f_layout_, f_bytes);
  ChannelGroups groups = ChannelGroups::of(packed_a_layout_, p_.ic);
  Result masked(p_, "NCHW"), integers(p_, "NCHW"), unmasked(p_, "NCHW");
  popcount_convolution(p_, groups, WordVectors(a), WordVectors(f), masked.place());
  popcount_convolution(p_, groups, *GroupIntegers::view(a), *GroupIntegers::view(f), integers.place());
  EXPECT_EQ(wrong(masked), dirty["wrong_with_mask"].as<int64_t>());
  EXPECT_EQ(wrong(integers), dirty["wrong_with_mask"].as<int64_t>());
  // Whole words, as if every lane and the slack bits held channels.
  const int64_t count = groups.count(), bits = packed_a_layout_.word_bits();
  const auto whole_words = [&](int64_t n, int64_t c, int64_t h, int64_t w) {
    int64_t differ = 0;
    for (int64_t group = 0; group < count; ++group) {
      for (int64_t r = 0; r < p_.kh * p_.kw; ++r) {
        differ += std::popcount(WordVectors(a)(n, group, h + r / p_.kw, w + r % p_.kw) ^
                                WordVectors(f)(c, group, r / p_.kw, r % p_.kw));
      }
    }
    unmasked.place()(n, c, h, w) = static_cast<int32_t>(p_.length() - 2 * differ);
  };
  ASSERT_LE(bits, 64);
  for_each_output(p_, whole_words);
  EXPECT_EQ(wrong(unmasked), dirty["wrong_without_mask"].as<int64_t>());
  EXPECT_EQ(static_cast<int64_t>(unmasked.values().size()), dirty["of"].as<int64_t>());
}

std::vector<YAML::Node> cases() {
  std::vector<YAML::Node> out;
  for (const auto& row : YAML::LoadFile(TENON_SOURCE_DIR "/tests/fixtures/layout/bconv.yaml")["cases"]) {
    out.push_back(row);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Design, BinaryConvolutionCase, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param["name"].template as<std::string>(); });

}  // namespace
}  // namespace example
