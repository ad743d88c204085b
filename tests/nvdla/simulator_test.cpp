// The simulated machine: hand-written commands, what it refuses, what it counts, and that no register value can cause
// anything worse than a refusal. TENON_NVDLA_MUTATIONS: the number of corrupted commands (4,000).
#include "nvdla/simulator.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>

#include "layers.hpp"
#include "nvdla/emit.hpp"
#include "nvdla/place.hpp"

namespace tenon::nvdla {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// nvdla-small with 4 banks of 8 entries: 256 bytes.
Hardware machine() {
  auto made = Hardware::of(with_buffer(target_of("nvdla-small"), 4, 8));
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
  return *made;
}

// An image of 2 x 2 pixels of 8 channels at 0, one kernel of 8 channels at 64, the result at 128.
struct OneConvolution {
  std::vector<std::byte> dram = std::vector<std::byte>(256);
  Command load{.kind = Kind::load_data,
               .src_line = 16,
               .src_surface = 32,
               .width = 2,
               .height = 2,
               .surfaces = 1,
               .rows = 2,
               .row_entries = 2};
  Command weights{.kind = Kind::load_weights, .weight_address = 64, .weight_bytes = 8, .weight_entry = 8};
  Command conv{.kind = Kind::convolve,
               .width = 2,
               .height = 2,
               .surfaces = 1,
               .rows = 2,
               .row_entries = 2,
               .weight_entry = 8,
               .group_entries = 1};

  OneConvolution() {
    for (int i = 0; i < 32; ++i) dram[static_cast<size_t>(i)] = static_cast<std::byte>(i / 8 + 1);  // pixel p: p + 1
    for (int i = 0; i < 8; ++i) dram[static_cast<size_t>(64 + i)] = static_cast<std::byte>(i < 3 ? 2 : 0);
    conv.channels = 8, conv.kernels = 1, conv.kernel_height = conv.kernel_width = 1;
    conv.stride_y = conv.stride_x = conv.dilation_y = conv.dilation_x = 1;
    conv.out_rows = conv.out_height = conv.out_width = 2;
    conv.low = static_cast<uint32_t>(-128), conv.high = 20;
    conv.dst_address = 128, conv.dst_line = 16, conv.dst_surface = 32;
  }
  Result<Counters> run(const std::vector<Command>& commands) {
    std::vector<Words> words;
    for (const Command& command : commands) words.push_back(encode(command));
    return Simulator(machine()).run(words, dram);
  }
  Result<Counters> run() { return run({{.kind = Kind::begin}, load, weights, conv}); }
  std::string refusal() {
    const auto done = run();
    return done.ok() ? "" : done.error().message();
  }
  int result(size_t pixel) const { return static_cast<int8_t>(dram[128 + pixel * 8]); }
};

TEST(Simulator, Convolves) {
  OneConvolution one;
  const auto counted = one.run();
  ASSERT_TRUE(counted.ok()) << counted.error().to_string();
  EXPECT_EQ(one.result(0), 6);  // three channels of 1, times 2
  EXPECT_EQ(one.result(1), 12);
  EXPECT_EQ(one.result(2), 18);
  EXPECT_EQ(one.result(3), 20) << "24, bounded";
}

TEST(Simulator, Counts) {
  OneConvolution one;
  const auto counted = one.run();
  ASSERT_TRUE(counted.ok());
  EXPECT_EQ(counted->commands, 4);
  EXPECT_EQ(counted->data_bytes, 32);
  EXPECT_EQ(counted->weight_bytes, 8);
  EXPECT_EQ(counted->stored_bytes, 4);
  EXPECT_EQ(counted->macs, 4 * 8);
  EXPECT_EQ(counted->mac_cycles, 4) << "one block of channels by one of kernels, four pixels";
  EXPECT_EQ(counted->buffer_bytes, 4 * 8 + 8);
  // 32 and 8 bytes at 8 a cycle, then four pixels.
  EXPECT_EQ(counted->cycles, 4 + 1 + 4);
}

// Two alternating groups: the second load does not wait for the first product.
TEST(Simulator, LoadsWhileItWorks) {
  OneConvolution one;
  Command second = one.weights, third = one.conv;
  second.weight_entry = third.weight_entry = 16;
  const auto apart = one.run({{.kind = Kind::begin}, one.load, one.weights, one.conv, second, third});
  ASSERT_TRUE(apart.ok()) << apart.error().to_string();
  const auto same = one.run({{.kind = Kind::begin}, one.load, one.weights, one.conv, one.weights, one.conv});
  ASSERT_TRUE(same.ok()) << same.error().to_string();
  EXPECT_LT(apart->cycles, same->cycles);
}

TEST(Simulator, Pools) {
  OneConvolution one;
  Command pool{.kind = Kind::pool, .src_line = 16, .src_surface = 32, .width = 2, .height = 2, .surfaces = 1};
  pool.low = static_cast<uint32_t>(-128), pool.high = 127;
  pool.pool_kernel_height = pool.pool_kernel_width = 2, pool.pool_stride_y = pool.pool_stride_x = 1;
  pool.pool_rows = pool.pool_width = 1, pool.dst_address = 128, pool.dst_line = 8, pool.dst_surface = 8;
  ASSERT_TRUE(one.run({pool}).ok());
  EXPECT_EQ(one.result(0), 4);
  pool.average = 1, pool.multiplier = 1, pool.shift = 2;  // (1 + 2 + 3 + 4 + 2) >> 2
  ASSERT_TRUE(one.run({pool}).ok());
  EXPECT_EQ(one.result(0), 3);
}

// ---- Refusals ----

using Change = std::function<void(OneConvolution&)>;
std::string refused(const Change& change) {
  OneConvolution one;
  change(one);
  return one.refusal();
}

TEST(Simulator, RefusesEntriesThatAreNotLoaded) {
  EXPECT_EQ(refused([](auto& c) { c.conv.data_entry = 1; }), "data: entry 4 (bank 0) is not loaded");
  EXPECT_EQ(refused([](auto& c) { c.conv.weight_entry = 9; }), "weights: entry 9 (bank 1) is not loaded");
  EXPECT_EQ(refused([](auto& c) { c.conv.weight_entry = 0; }), "weights: entry 0 (bank 0) is not loaded")
      << "what is there is data";
  EXPECT_EQ(refused([](auto& c) { c.conv.kernels = 2; }), "weights: entry 9 (bank 1) is not loaded");
  OneConvolution one;
  const auto forgotten = one.run({one.load, one.weights, {.kind = Kind::begin}, one.conv});
  ASSERT_FALSE(forgotten.ok());
  EXPECT_EQ(forgotten.error().message(), "data: entry 0 (bank 0) is not loaded");
  EXPECT_THAT(forgotten.error().to_string(), HasSubstr("command 3, convolve"));
}

TEST(Simulator, RefusesRowsThatAreNotThere) {
  EXPECT_EQ(refused([](auto& c) { c.conv.rows = 1; }), "row 1 of the image is not in the buffer, which holds [0, 1)");
  EXPECT_EQ(refused([](auto& c) { c.load.first_row = 1; }), "rows [1, 3) are not in an image of 2");
  EXPECT_EQ(refused([](auto& c) { c.conv.pad_top = 1; }), "") << "padding is nowhere";
  EXPECT_EQ(refused([](auto& c) { c.conv.out_first = 1; }), "rows [1, 3) are not in a result of 2");
}

TEST(Simulator, RefusesWhatLeavesTheBuffer) {
  EXPECT_EQ(refused([](auto& c) { c.load.data_entry = 30; }), "load_data: entries [30, 34) leave the buffer of 32");
  EXPECT_EQ(refused([](auto& c) { c.weights.weight_entry = 32; }),
            "load_weights: entries [32, 33) leave the buffer of 32");
  EXPECT_EQ(refused([](auto& c) { c.load.row_entries = 1; }), "a row of 16 bytes in 1 entries");
  EXPECT_EQ(refused([](auto& c) { c.weights.weight_entry = 7; }), "load_weights: bank 0 holds data already");
}

TEST(Simulator, RefusesWhatLeavesDram) {
  EXPECT_EQ(refused([](auto& c) { c.load.src_address = 232; }), "the image [232, 264) leaves DRAM of 256 bytes");
  EXPECT_EQ(refused([](auto& c) { c.load.src_address = 224; }), "");
  EXPECT_EQ(refused([](auto& c) { c.load.src_address = 4; }), "the image at 4 is not aligned to 8 bytes");
  EXPECT_EQ(refused([](auto& c) { c.weights.weight_address = 256; }), "weights [256, 264) leaves DRAM of 256 bytes");
  EXPECT_EQ(refused([](auto& c) { c.conv.dst_address = 4294967288u; }),
            "the result [4294967288, 4294967320) leaves DRAM of 256 bytes");
  EXPECT_EQ(refused([](auto& c) { c.conv.dst_line = 8; }), "the result: lines of 16 bytes lie 8 apart");
  EXPECT_EQ(refused([](auto& c) { c.conv.bias = 1, c.conv.bias_address = 254; }),
            "the bias at 254 is not aligned to 4 bytes");
}

TEST(Simulator, RefusesNumbersThatNoUnitHas) {
  EXPECT_EQ(refused([](auto& c) { c.conv.channels = 9; }), "9 channels are not 1 surfaces");
  EXPECT_EQ(refused([](auto& c) { c.conv.stride_x = 0; }), "stride_x 0 is not in 1 to 1048576");
  EXPECT_EQ(refused([](auto& c) { c.conv.out_rows = c.conv.out_height = c.conv.out_width = 1 << 20; }),
            "1099511627776 pixels of 1 kernels are more than DRAM would hold as f32");
  EXPECT_EQ(refused([](auto& c) { c.conv.shift = 31; }), "shifts 31, 0 and 0 are not within 30, 23 and 23");
  EXPECT_EQ(refused([](auto& c) { c.conv.low = 21; }), "bounds 21 and 20 are not within i8");
}

TEST(Simulator, RefusesWordsWithoutMeaning) {
  Words words = encode({.kind = Kind::begin});
  words[7] = 1;
  EXPECT_EQ(decode(words).error().message(), "word 7 of a command 'begin' is 1, where it has no register");
  words[0] = kKinds;
  EXPECT_EQ(decode(words).error().message(), str("a command of kind ", kKinds, ", there are ", kKinds));
  EXPECT_FALSE(decode(std::span(words).first(3)).ok());
}

TEST(Command, ReadsBackWhatItWrote) {
  std::mt19937 r(3);
  for (uint32_t kind = 0; kind < kKinds; ++kind) {
    Words words{};
    words[0] = kind;
    for (size_t i = 0; i < registers().size(); ++i)
      if (registers()[i].kinds >> kind & 1) words[i + 1] = static_cast<uint32_t>(r());
    const auto command = decode(words);
    ASSERT_TRUE(command.ok()) << command.error().to_string();
    EXPECT_EQ(encode(*command), words);
    EXPECT_THAT(print(*command), HasSubstr(kind_name(command->kind)));
  }
}

// ---- Spoiled commands ----

struct Stream {
  Hardware hardware;
  std::vector<Words> commands;
  std::vector<std::byte> dram;
};

// A small network on a small machine that uses everything that commands can express.
Stream stream_of(const char* target, bool half) {
  std::mt19937 r(17);
  Net net;
  const ElementType element = half ? kF16 : kI8;
  const TargetDescription description = with_buffer(target_of(target), 8, half ? 8 : 64);
  Value* x = net.input(random_tensor(r, element, {1, 20, 9, 7}));
  Value* w = net.constant(random_tensor(r, element, {20, 20, 3, 3}));
  Value* y =
      half ? net.op("Conv", {x, w, net.constant(random_tensor(r, kF16, {20}))}, {{"pads", Integers{1, 1, 1, 1}}})
           : net.op("fused.QConv", {x, w, nullptr, x}, {{"pads", Integers{1, 1, 1, 1}}, {"shift", 7}, {"clip_min", 0}});
  if (half) y = net.op("Relu", {y});
  y = net.op(half ? "MaxPool" : "fused.QMaxPool", {y}, {{"kernel_shape", Integers{2, 2}}, {"strides", Integers{2, 2}}});
  y = half ? net.op("Add", {y, y}) : net.op("fused.QAdd", {y, y});
  y = half ? net.op("AveragePool", {y}, {{"kernel_shape", Integers{2, 2}}})
           : net.op("fused.QAvgPool", {y}, {{"kernel_shape", Integers{2, 2}}, {"shift", 2}});
  net.output(y);
  auto backend = create_backend(description);
  EXPECT_TRUE(backend.ok());
  const auto done = run_phases(**backend, *net.graph);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
  Stream stream{
      *Hardware::of(description), {}, std::vector<std::byte>(static_cast<size_t>(places_of(*net.graph)->dram_bytes))};
  for (const Op& op : net.graph->body())
    if (auto words = words_of(op); words.ok())
      stream.commands.insert(stream.commands.end(), words->begin(), words->end());
  return stream;
}

uint32_t spoiled(std::mt19937& r, uint32_t word) {
  switch (r() % 6) {
    case 0: return word ^ (1u << r() % 32);
    case 1: return word + 1;
    case 2: return word - 1;
    case 3: return static_cast<uint32_t>(r());
    case 4: return static_cast<uint32_t>(r() % 64);
    default: return word * 2;
  }
}

int mutations() {
  const char* text = std::getenv("TENON_NVDLA_MUTATIONS");
  return text ? std::atoi(text) : 4000;
}

TEST(Simulator, SpoiledCommandsAreRefusedOrRun) {
  for (const bool half : {true, false}) {
    const Stream good = stream_of(half ? "nvdla-full" : "nvdla-small", half);
    ASSERT_GT(good.commands.size(), 6u);
    std::vector<std::byte> dram = good.dram;
    Simulator simulator(good.hardware);
    ASSERT_TRUE(simulator.run(good.commands, dram).ok());
    int refused = 0;
    for (int seed = 0; seed < mutations() / 2; ++seed) {
      std::mt19937 r(static_cast<uint32_t>(seed));
      std::vector<Words> commands = good.commands;
      for (uint32_t n = r() % 3; n < 3; ++n) {
        uint32_t& word = commands[r() % commands.size()][r() % (registers().size() + 1)];
        word = spoiled(r, word);
      }
      refused += simulator.run(commands, dram).ok() ? 0 : 1;
    }
    EXPECT_GT(refused, mutations() / 8) << "most registers matter";
    EXPECT_LT(refused, mutations() / 2) << "some may have any value";
    dram = good.dram;
    EXPECT_TRUE(simulator.run(good.commands, dram).ok()) << "nothing stays behind";
  }
}

}  // namespace
}  // namespace tenon::nvdla
