#include "vta/driver.hpp"

#include <gmock/gmock.h>

#include "vta/streams.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// The product through a driver, as a plugin would run it.
std::vector<int8_t> run_product(const std::shared_ptr<Driver>& driver, const Hardware& h, std::vector<int8_t>& wanted) {
  Dram scratch(h.dram_bytes);
  PlacedProduct placed(h, scratch, {5, 4}, 9);
  wanted = placed.wanted;
  const auto copy = [&](uint64_t address, uint64_t bytes) {
    auto made = DriverMemory::allocate(driver, bytes);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    EXPECT_TRUE(made->write(0, *scratch.at(address, bytes)).ok());
    return *std::move(made);
  };
  Product& p = placed.product;
  const auto place = [&](uint32_t& at, Memory memory, int64_t elements) {
    const auto bytes = static_cast<uint64_t>(h.element_bytes(memory));
    DriverMemory made = copy(at * bytes, static_cast<uint64_t>(elements) * bytes);
    at = made.address() / static_cast<uint32_t>(bytes);
    return made;
  };
  const DriverMemory inp = place(p.inp_at, Memory::inp, p.tiles * p.rows), wgt = place(p.wgt_at, Memory::wgt, p.tiles);
  const DriverMemory uop = place(p.uop_at, Memory::uop, 2 * p.rows), out = place(p.out_at, Memory::out, p.rows);
  const std::vector<uint64_t> words = words_of(p.stream(), h);
  auto stream = DriverMemory::allocate(driver, words.size() * 8);
  EXPECT_TRUE(stream->write(0, std::as_bytes(std::span(words))).ok());
  const auto done = driver->run(stream->address(), static_cast<uint32_t>(words.size() / 2), 1000000);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
  std::vector<int8_t> values(wanted.size());
  EXPECT_TRUE(out.read(0, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

TEST(VtaDriver, TheEmbeddedSimulatorAndALibraryGiveTheSame) {
  const Hardware h = default_hardware();
  std::vector<int8_t> wanted;
  const auto embedded = make_embedded_driver(h);
  EXPECT_EQ(run_product(embedded, h, wanted), wanted);
  ASSERT_TRUE(embedded->last_run().has_value());
  EXPECT_GT(embedded->last_run()->counters.gemm_cycles, 0);
  ASSERT_EQ(setenv("TENON_VTA_TARGET", default_path().c_str(), 1), 0);
  const auto library = open_library_driver(VTA_DRIVER_LIBRARY);
  ASSERT_TRUE(library.ok()) << library.error().to_string();
  EXPECT_EQ(run_product(*library, h, wanted), wanted);
  EXPECT_FALSE((*library)->last_run().has_value());
}

TEST(VtaDriver, TheEnvironmentWinsOverTheTargetFile) {
  TargetDescription target = default_target();
  const Hardware h = default_hardware();
  EXPECT_EQ((*open_driver(target, h))->name(), "embedded simulator");
  target.driver = "/nowhere/vta.so";
  EXPECT_THAT(open_driver(target, h).error().to_string(), HasSubstr("'driver' of target 'vta-default'"));
  ASSERT_EQ(setenv("TENON_VTA_TARGET", default_path().c_str(), 1), 0);
  ASSERT_EQ(setenv("TENON_VTA_DRIVER", VTA_DRIVER_LIBRARY, 1), 0);
  EXPECT_EQ((*open_driver(target, h))->name(), VTA_DRIVER_LIBRARY);
  ASSERT_EQ(setenv("TENON_VTA_DRIVER", "libm.so.6", 1), 0);
  EXPECT_THAT(open_driver(target, h).error().to_string(), HasSubstr("it has no VTADeviceAlloc"));
  unsetenv("TENON_VTA_DRIVER");
}

TEST(VtaDriver, RunsThatFailOrTakeTooLongAreErrors) {
  const Hardware h = default_hardware();
  const auto driver = make_embedded_driver(h);
  auto memory = DriverMemory::allocate(driver, 1024);
  ASSERT_TRUE(memory.ok());
  const auto words = words_of(std::vector<Instruction>{load(Memory::inp, 0, memory->address() / 16, 32)}, h);
  ASSERT_TRUE(memory->write(512, std::as_bytes(std::span(words))).ok());
  EXPECT_TRUE(driver->run(memory->address() + 512, 1, 1000).ok());
  EXPECT_THAT(driver->run(memory->address() + 512, 1, 100).error().message(),
              HasSubstr("instruction 0 is done after 128 cycles, more than 100"));
  EXPECT_THAT(driver->run(memory->address() + 1024, 1, 100).error().to_string(), HasSubstr("lies in no buffer"));
  EXPECT_FALSE(memory->write(1020, std::as_bytes(std::span(words))).ok());
  EXPECT_FALSE(DriverMemory::allocate(driver, Dram::kMaxBufferBytes + 1).ok());
}

}  // namespace
}  // namespace tenon::vta
