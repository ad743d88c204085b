// The worked layouts of tests/fixtures/layout/vectors.yaml.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <span>

#include <tenon/support/hash.hpp>
#include <tenon/support/str.hpp>
#include <tenon/tensor/layout.hpp>

#include "reorder_testing.hpp"

namespace tenon {
namespace {

YAML::Node vectors() { return YAML::LoadFile(TENON_SOURCE_DIR "/tests/fixtures/layout/vectors.yaml"); }

Result<Layout> layout_of(const YAML::Node& row, const std::string& key, int64_t bits) {
  return Layout::parse(row[key].as<std::string>(), row["dims"].as<std::string>(), row["shape"].as<Dims>(), bits);
}
Result<Layout> layout_of(const YAML::Node& row) { return layout_of(row, "layout", row["element_bits"].as<int64_t>()); }

void check_digits(const YAML::Node& rows, const Layout& layout) {
  ASSERT_EQ(rows.size(), layout.digits().size());
  for (size_t j = 0; j < rows.size(); ++j) {
    const LayoutDigit& digit = layout.digits()[j];
    EXPECT_EQ(rows[j][0].as<char>(), layout.variables()[static_cast<size_t>(digit.variable)].name) << "digit " << j;
    EXPECT_EQ(rows[j][1].as<int64_t>(), digit.place) << "digit " << j;
    EXPECT_EQ(rows[j][2].as<int64_t>(), digit.extent) << "digit " << j;
    EXPECT_EQ(rows[j][3].as<std::string>(), layout_space_name(digit.space)) << "digit " << j;
    if (rows[j][4].as<std::string>() == "ragged") {
      EXPECT_TRUE(layout.is_ragged());
    } else {
      EXPECT_EQ(rows[j][4].as<int64_t>(), digit.stride) << "digit " << j;
    }
  }
}

void check_points(const YAML::Node& row, const Layout& layout) {
  Dims back(layout.shape().size());
  for (const auto& point : row["points"]) {
    const Dims index = point["index"].as<Dims>();
    const LayoutPosition expected{point["bank"].as<int64_t>(), point["slot"].as<int64_t>(), point["bit"].as<int64_t>()};
    EXPECT_EQ(layout.apply(index), expected) << ::testing::PrintToString(index);
    ASSERT_TRUE(layout.inverse(expected.bank, expected.slot, back));
    if (layout.injective()) {
      EXPECT_EQ(back, index);
    }
  }
  for (const auto& pad : row["pad_slots"]) {
    EXPECT_FALSE(layout.inverse(pad[0].as<int64_t>(), pad[1].as<int64_t>(), back));
  }
}

TEST(LayoutVectors, Layouts) {
  for (const auto& row : vectors()["layouts"]) {
    SCOPED_TRACE(row["name"].as<std::string>());
    const auto parsed = layout_of(row);
    ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
    const Layout& layout = *parsed;
    check_digits(row["digits"], layout);
    EXPECT_EQ(layout.banks(), row["banks"].as<int64_t>());
    EXPECT_EQ(layout.lanes(), row["lanes"].as<int64_t>());
    EXPECT_EQ(layout.word_bits(), row["word_bits"].as<int64_t>());
    EXPECT_EQ(layout.words_per_bank(), row["words_per_bank"].as<int64_t>());
    EXPECT_EQ(layout.valid_elements(), row["valid_elements"].as<int64_t>());
    EXPECT_EQ(layout.physical_elements(), row["physical_elements"].as<int64_t>());
    EXPECT_EQ(layout.padding(), row["padding"].as<int64_t>());
    EXPECT_EQ(layout.span_words(), row["span_words"].as<int64_t>());
    EXPECT_EQ(layout.bytes(), row["bytes"].as<int64_t>());
    EXPECT_EQ(layout.injective(), row["injective"].as<bool>());
    EXPECT_EQ(layout.run().variable, row["run"][0].as<std::string>());
    EXPECT_EQ(layout.run().length, row["run"][1].as<int64_t>());
    if (row["fnv1a64"]) {
      EXPECT_EQ(layout.fnv1a64(), std::stoull(row["fnv1a64"].as<std::string>(), nullptr, 16));
    }
    check_points(row, layout);
    EXPECT_TRUE(layout.verify().ok()) << layout.verify().error().to_string();
    const auto again = Layout::parse(layout.to_string(), layout.dims(), layout.shape(), layout.element_bits());
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(*again, layout) << layout.to_string();
    const std::string text = row["layout"].as<std::string>();
    EXPECT_EQ(layout.to_string().substr(0, layout.to_string().find(';')), text.substr(0, text.find(';')))
        << "the digits print as they were written";
  }
}

// Stores two's complement values in the banks of a layout; returns them as hex.
std::vector<std::string> image_of(const Layout& layout, const std::vector<int64_t>& values) {
  std::vector<std::vector<uint8_t>> banks(static_cast<size_t>(layout.banks()),
                                          std::vector<uint8_t>(static_cast<size_t>(layout.bytes_per_bank())));
  Dims index(layout.shape().size());
  for (const int64_t value : values) {
    const LayoutPosition at = layout.apply(index);
    for (int64_t b = 0; b < layout.element_bits(); ++b) {
      const int64_t bit = at.bit + b;
      const auto set = static_cast<unsigned>(value >> b & 1) << (bit % 8);
      banks[static_cast<size_t>(at.bank)].at(static_cast<size_t>(bit / 8)) |= static_cast<uint8_t>(set);
    }
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < layout.shape()[d]) break;
      index[d] = 0;
    }
  }
  std::vector<std::string> out;
  for (const auto& bank : banks) {
    std::string hex;
    for (const uint8_t byte : bank) {
      hex += "0123456789abcdef"[byte >> 4];
      hex += "0123456789abcdef"[byte & 15];
    }
    out.push_back(hex);
  }
  return out;
}

TEST(LayoutVectors, ByteImages) {
  for (const auto& row : vectors()["bytes"]) {
    SCOPED_TRACE(row["name"].as<std::string>());
    const auto layout = layout_of(row);
    ASSERT_TRUE(layout.ok()) << layout.error().to_string();
    EXPECT_EQ(image_of(*layout, row["values"].as<std::vector<int64_t>>()),
              row["banks_hex"].as<std::vector<std::string>>());
  }
}

TEST(LayoutVectors, Equal) {
  for (const auto& row : vectors()["equal"]) {
    const auto a = layout_of(row, "a", 32), b = layout_of(row, "b", 32);
    ASSERT_TRUE(a.ok() && b.ok());
    const bool equal = row["equal"].as<bool>();
    EXPECT_EQ(a->same_function(*b), equal) << a->to_string() << " and " << b->to_string();
    EXPECT_EQ(a->normal().fnv1a64() == b->normal().fnv1a64(), equal);
    EXPECT_EQ(a->fingerprint() == b->fingerprint(), equal);
    EXPECT_NE(*a, *b) << "names stay as labels";
  }
}

TEST(LayoutVectors, Rejected) {
  for (const auto& row : vectors()["rejected"]) {
    const auto layout = layout_of(row);
    ASSERT_FALSE(layout.ok()) << row["layout"];
    EXPECT_EQ(layout_error_code(layout.error()), row["error"].as<std::string>()) << layout.error().to_string();
  }
}

// Every slot of the source holds its number, so the destination shows where each came from: FNV-1a over the slots of
// source and destination of every index.
uint64_t pairs_hash(const ReorderPlan& reorder) {
  std::vector<uint32_t> source(static_cast<size_t>(reorder.from().bytes() / 4)),
      destination(static_cast<size_t>(reorder.to().bytes() / 4));
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint32_t>(i);
  EXPECT_TRUE(reorder.run(std::as_bytes(std::span(source)), std::as_writable_bytes(std::span(destination))).ok());
  std::vector<uint64_t> pairs;
  for_each_index_backwards(reorder.to().shape(), [&](const Dims& index) {
    const int64_t slot = reorder.to().apply(index).slot;
    pairs.insert(pairs.begin(), {destination[static_cast<size_t>(slot)], static_cast<uint64_t>(slot)});
  });
  return fnv1a({reinterpret_cast<const char*>(pairs.data()), pairs.size() * 8});
}

using Loops = std::vector<std::vector<int64_t>>;  // count and strides in elements

TEST(LayoutVectors, Reorders) {
  const YAML::Node rows = vectors()["reorders"];
  ASSERT_EQ(rows.size(), 5u);
  for (const auto& row : rows) {
    SCOPED_TRACE(row["name"].as<std::string>());
    const auto from = layout_of(row, "from", 32), to = layout_of(row, "to", 32);
    ASSERT_TRUE(from.ok() && to.ok());
    const ReorderPlan reorder = plan_reorder(*from, *to).value();
    EXPECT_EQ(reorder.kind() == ReorderKind::no_op, row["noop"].as<bool>());
    EXPECT_EQ(pairs_hash(reorder), std::stoull(row["pairs_fnv1a64"].as<std::string>(), nullptr, 16));
    if (row["loops"].IsMap()) {
      ASSERT_EQ(reorder.pieces().size(), 1u) << reorder.to_string();
      EXPECT_EQ(reorder.pieces()[0].period, row["loops"]["period"].as<int64_t>());
      EXPECT_EQ(reorder.pieces()[0].pieces, (row["loops"]["pieces"].as<std::vector<std::pair<int64_t, int64_t>>>()));
      continue;
    }
    Loops loops;
    for (const ReorderLoop& loop : reorder.loops()) {
      loops.push_back({loop.count, loop.from_bits / 32, loop.to_bits / 32});
    }
    EXPECT_EQ(loops, row["loops"].as<Loops>()) << reorder.to_string();
    EXPECT_EQ(reorder.has_tail(), row["tail"].as<bool>());
    EXPECT_TRUE(reorder.pieces().empty());
  }
}

}  // namespace
}  // namespace tenon
