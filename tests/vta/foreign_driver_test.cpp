// The plugin on a driver that shares no code with it (strict_driver/): every stream is checked literally there, and a
// fault in a driver is an error that leaves the process intact. TENON_VTA_STRICT_CASES: the number of random operators
// (400).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "fused_ops.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

int cases() {
  const char* text = std::getenv("TENON_VTA_STRICT_CASES");
  return text ? std::atoi(text) : 400;
}

int log_of(int64_t value) { return std::countr_zero(static_cast<uint64_t>(value)); }

// The options of the strict driver for this machine.
std::string words_for(const Hardware& h, const std::string& more = "") {
  const auto bytes = [&](Memory memory) { return log_of(h.depth(memory) * h.element_bytes(memory)); };
  return str("batch=", log_of(h.batch), " block=", log_of(h.block), " uop=", bytes(Memory::uop),
             " inp=", bytes(Memory::inp), " wgt=", bytes(Memory::wgt), " acc=", bytes(Memory::acc), " ", more);
}

Result<std::shared_ptr<Driver>> strict(const Hardware& h, const std::string& more = "") {
  setenv("STRICT_VTA", words_for(h, more).c_str(), 1);
  return open_library_driver(VTA_STRICT_DRIVER);
}

// The faults that the driver has found since the last call.
std::string fault() {
  void* library = dlopen(VTA_STRICT_DRIVER, RTLD_NOW | RTLD_LOCAL);
  const auto said = reinterpret_cast<const char* (*)()>(dlsym(library, "strict_vta_fault"));
  const std::string text = said ? said() : "no strict driver";
  dlclose(library);
  return text;
}

OneOp random_op(std::mt19937& r) {
  switch (pick(r, 0, 9)) {
    case 0: return random_dense(r);
    case 1: return random_addition(r);
    case 2: return random_average(r);
    case 3: return random_max(r);
    default: return random_convolution(r);
  }
}

class ForeignDriver : public ::testing::Test {
 protected:
  void SetUp() override { fault(); }
  void TearDown() override { unsetenv("STRICT_VTA"); }

  const Hardware h = default_hardware();
};

TEST_F(ForeignDriver, RunsEveryOperatorBitForBit) {
  const auto targets = machines();
  int ran = 0;
  for (int seed = 0; seed < cases(); ++seed) {
    std::mt19937 r(static_cast<uint32_t>(seed) + 90000);
    const OneOp one = random_op(r);
    const TargetDescription& target = targets[static_cast<size_t>(seed) % targets.size()];
    const Hardware hardware = *Hardware::of(target);
    const auto program = compile_one(one, target);
    if (!program.ok() && program.error().code() == Code::unsupported) continue;
    ASSERT_TRUE(program.ok()) << "seed " << seed << ": " << program.error().to_string();
    const auto driver = strict(hardware, str("seed=", seed, seed % 2 ? " always_cached=1" : ""));
    ASSERT_TRUE(driver.ok()) << driver.error().to_string();
    const auto y = run_program(*program, one, *driver);
    ASSERT_TRUE(y.ok()) << "seed " << seed << ", " << one.what << ": " << y.error().to_string() << ": " << fault();
    ASSERT_EQ(fault(), "") << "seed " << seed << ", " << one.what;
    const auto wanted = on_reference(one);
    ASSERT_TRUE(wanted.ok()) << wanted.error().to_string();
    ASSERT_TRUE(y->identical(*wanted)) << "seed " << seed << ", " << hardware.name << ", " << one.what;
    ++ran;
  }
  EXPECT_GE(ran, cases() * 9 / 10);
}

// ---- That it is strict ----

// A product in the driver's memory, whose stream can be corrupted before it is written.
class SpoiledStream : public ForeignDriver {
 protected:
  // The driver's complaint about the stream after `spoil` has changed its words or its position.
  std::string said(const std::function<void(std::vector<uint64_t>&)>& spoil, uint32_t skipped = 0,
                   uint32_t wait_cycles = 1000) {
    const auto driver = strict(h, str("seed=", ++seed_));
    Dram scratch(h.dram_bytes);
    PlacedProduct placed(h, scratch, {3, 3}, 4);
    std::vector<DriverMemory> buffers;
    const auto place = [&](uint32_t& at, Memory memory, int64_t elements) {
      const auto bytes = static_cast<uint64_t>(h.element_bytes(memory));
      const auto size = static_cast<uint64_t>(elements) * bytes;
      // Room for the first aligned element.
      auto made = DriverMemory::allocate(*driver, size + bytes);
      const auto begin = static_cast<uint32_t>((made->address() + bytes - 1) / bytes * bytes);
      EXPECT_TRUE(made->write(begin - made->address(), *scratch.at(at * bytes, size)).ok());
      at = begin / static_cast<uint32_t>(bytes);
      buffers.push_back(*std::move(made));
    };
    Product& p = placed.product;
    place(p.inp_at, Memory::inp, p.tiles * p.rows), place(p.wgt_at, Memory::wgt, p.tiles);
    place(p.uop_at, Memory::uop, 2 * p.rows), place(p.out_at, Memory::out, p.rows);
    std::vector<uint64_t> words = words_of(p.stream(), h);
    spoil(words);
    auto stream = DriverMemory::allocate(*driver, words.size() * 8 + 32);
    const uint32_t begin = (16 - stream->address() % 16) % 16 + skipped;
    EXPECT_TRUE(stream->write(begin, std::as_bytes(std::span(words))).ok());
    const auto count = static_cast<uint32_t>(words.size() / 2);
    const auto done = (*driver)->run(stream->address() + begin, count, wait_cycles);
    const std::string text = fault();
    EXPECT_EQ(done.ok(), text.empty());
    return text;
  }
  std::string said_of(size_t word, uint64_t bits) {
    return said([&](std::vector<uint64_t>& words) { words.at(word) ^= bits; });
  }

 private:
  int seed_ = 0;
};

TEST_F(SpoiledStream, IsRefusedWithTheInstruction) {
  const auto nothing = [](std::vector<uint64_t>&) {};
  EXPECT_EQ(said(nothing), "");
  EXPECT_THAT(said(nothing, 8), HasSubstr("instructions at"));
  EXPECT_EQ(said(nothing, 0, 0), "wait_cycles 0");
  EXPECT_THAT(said_of(0, uint64_t{1} << 60), HasSubstr("instruction 0: bits are set that belong to no field"));
  EXPECT_THAT(said_of(2, uint64_t{1} << 63), HasSubstr("instruction 1: bits are set that belong to no field"));
  EXPECT_THAT(said_of(0, uint64_t{7}), HasSubstr("instruction 0"));
  // The buffers are apart by more than what one bit of an address moves.
  EXPECT_THAT(said_of(4, uint64_t{1} << 50), HasSubstr("which no buffer holds"));
  EXPECT_THAT(said_of(4, uint64_t{1} << 25), HasSubstr("instruction 2: INP"));
  EXPECT_THAT(said([](std::vector<uint64_t>& words) { words.resize(words.size() - 2); }), HasSubstr("FINISH ends"));
  // Without its tokens a product has no operands.
  EXPECT_THAT(said([](std::vector<uint64_t>& words) { words[6] &= ~uint64_t{64}; }), HasSubstr("wait for tokens"));
  EXPECT_THAT(said([](std::vector<uint64_t>& words) { words[words.size() - 2] &= ~uint64_t{16}; }),
              ::testing::AnyOf(HasSubstr("FINISH runs before"), HasSubstr("tokens are left over")));
}

// ---- Drivers that fail ----

struct Case {
  OneOp one;
  std::shared_ptr<const DeviceProgram> program;
};
Case some_case() {
  std::mt19937 r(3);
  Case made{random_convolution(r), nullptr};
  made.program = *compile_one(made.one, default_target());
  return made;
}

TEST_F(ForeignDriver, ARunThatDoesNotEndIsAnErrorAndTheNextOneWorks) {
  const Case c = some_case();
  const auto driver = strict(h, "timeout_run=1");
  const auto late = run_program(c.program, c.one, *driver);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code(), Code::cancelled);
  EXPECT_THAT(late.error().to_string(), AllOf(HasSubstr("did not finish"), HasSubstr(VTA_STRICT_DRIVER)));
  const auto again = run_program(c.program, c.one, *driver);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_TRUE(again->identical(*on_reference(c.one)));
  EXPECT_EQ(fault(), "");
}

TEST_F(ForeignDriver, WhatADriverThrowsIsAnError) {
  const Case c = some_case();
  const auto driver = strict(h, "throw_run=1");
  const auto thrown = run_program(c.program, c.one, *driver);
  EXPECT_THAT(thrown.error().to_string(), AllOf(HasSubstr("VTADeviceRun"), HasSubstr("threw: thrown on purpose")));
  EXPECT_TRUE(run_program(c.program, c.one, *driver).ok());
}

TEST_F(ForeignDriver, NoMemoryAndNoDeviceAreErrors) {
  const Case c = some_case();
  for (const int at : {1, 2}) {
    const auto driver = strict(h, str("no_memory_at=", at));
    const auto y = run_program(c.program, c.one, *driver);
    ASSERT_FALSE(y.ok()) << "allocation " << at;
    EXPECT_EQ(y.error().code(), Code::resource_exhausted);
    EXPECT_THAT(y.error().to_string(), HasSubstr("has no memory for a buffer of"));
    unsetenv("STRICT_VTA");
    EXPECT_TRUE(run_program(c.program, c.one, *driver).ok());
  }
  EXPECT_THAT(strict(h, "no_device=1").error().to_string(), HasSubstr("gives no device"));
  EXPECT_FALSE(DriverMemory::allocate(*strict(h), Dram::kMaxBufferBytes + 1).ok());
  EXPECT_TRUE(DriverMemory::allocate(*strict(h), Dram::kMaxBufferBytes).ok());
}

// ---- Where the library comes from ----

class DriverFile : public ForeignDriver {
 protected:
  void SetUp() override {
    ForeignDriver::SetUp();
    unsetenv("TENON_VTA_DRIVER");
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "drivers");
    std::filesystem::copy_file(VTA_STRICT_DRIVER, library_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string wrong(const std::string& driver) {
    TargetDescription target = default_target();
    target.source = (folder_ / "mine.yaml").string();
    target.driver = driver;
    const auto opened = open_driver(target, h);
    return opened.ok() ? "" : opened.error().to_string();
  }

  const std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) / "tenon-vta-driver-file";
  const std::filesystem::path library_ = folder_ / "drivers" / "libmine.so";
};

TEST_F(DriverFile, IsRelativeToTheTargetFile) {
  EXPECT_EQ(wrong("drivers/libmine.so"), "");
  EXPECT_EQ(wrong("./drivers/../drivers/libmine.so"), "");
  EXPECT_EQ(wrong(library_.string()), "");
  EXPECT_THAT(wrong("drivers/other.so"), AllOf(HasSubstr("drivers/other.so"), HasSubstr("No such file")));
  EXPECT_THAT(wrong("libtenon-no-such-driver.so"), HasSubstr("'driver' of target 'vta-default'"));
}

TEST_F(DriverFile, IsNotWritableByEverybody) {
  ASSERT_EQ(chmod(library_.c_str(), 0666), 0);
  EXPECT_THAT(wrong("drivers/libmine.so"), HasSubstr("the library"));
  EXPECT_THAT(wrong("drivers/libmine.so"), HasSubstr("can be written by everybody; chmod o-w it"));
  ASSERT_EQ(chmod(library_.c_str(), 0644), 0);
  ASSERT_EQ(chmod(library_.parent_path().c_str(), 0777), 0);
  EXPECT_THAT(wrong("drivers/libmine.so"), HasSubstr("the folder"));
  ASSERT_EQ(chmod(library_.parent_path().c_str(), 01777), 0);  // as /tmp: only the owner of a file may replace it
  EXPECT_EQ(wrong("drivers/libmine.so"), "");
}

}  // namespace
}  // namespace tenon::vta
