#include "x86/code/code_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <support_lib/spoilt.hpp>

#include <tenon/support/hash.hpp>

namespace tenon::x86 {
namespace {

namespace fs = std::filesystem;

CodeObject sample(const std::string& name, size_t bytes = 100) {
  CodeObject object{.name = name, .isa = Isa::avx512};
  for (size_t i = 0; i < bytes; ++i) object.bytes.push_back(static_cast<std::byte>(i * 7));
  object.code_bytes = bytes / 2;
  object.marks = {{0, "Exp a/exp", "%1:f32 = Exp %0"}, {9, "frame", "leave"}};
  return object;
}

// Each test has its own folder, which is removed afterwards.
class CodeCacheTest : public ::testing::Test {
 protected:
  CodeCacheTest() {
    std::string text = (fs::temp_directory_path() / "tenon-cache-XXXXXX").string();
    folder_ = mkdtemp(text.data());
  }
  ~CodeCacheTest() override { fs::remove_all(folder_); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_ + "/x86")) found.push_back(entry.path());
    return found;
  }
  std::string folder_;
  const CodeKey key_ = code_key("kernel", Isa::avx512);
};

TEST(CodeKey, TellsContentAndIsaApart) {
  EXPECT_EQ(code_key("a", Isa::avx2), code_key("a", Isa::avx2));
  EXPECT_NE(code_key("a", Isa::avx2), code_key("a", Isa::avx512));
  EXPECT_NE(code_key("a", Isa::avx2), code_key("b", Isa::avx2));
  EXPECT_NE(code_key("", Isa::avx2), code_key(std::string_view("\0", 1), Isa::avx2));
  EXPECT_EQ(code_key("a", Isa::avx2).to_string().size(), 32u);
}

TEST_F(CodeCacheTest, AFileHoldsWhatWasStored) {
  const CodeFiles cache(folder_);
  EXPECT_FALSE(cache.load(key_).has_value());
  cache.store(key_, sample("a"));
  EXPECT_EQ(cache.load(key_), sample("a"));
  EXPECT_FALSE(cache.load(code_key("other", Isa::avx512)).has_value());
  ASSERT_EQ(files().size(), 1u) << "no draft is left";
  struct stat info {};
  ASSERT_EQ(stat((folder_ + "/x86").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  cache.store(key_, sample("b"));
  EXPECT_EQ(cache.load(key_)->name, "b") << "a new file takes the old one's place";
}

TEST_F(CodeCacheTest, EveryDamageIsNoticed) {
  const std::vector<std::byte> good = write_code_object(sample("a"), key_);
  ASSERT_TRUE(read_code_object(good, key_).ok());
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<std::byte> bad = good;
    bad[i] ^= std::byte{1};
    EXPECT_FALSE(read_code_object(bad, key_).ok()) << "byte " << i;
    EXPECT_FALSE(read_code_object(std::span(good).first(i), key_).ok()) << "cut at " << i;
  }
  EXPECT_FALSE(read_code_object(good, code_key("other", Isa::avx512)).ok()) << "a file under another's name";
}

// Corrupted files with a valid hash, as an attacker would write them. Their code is not run here.
TEST(CodeFile, SpoiltOnesAreReadOrRefused) {
  const CodeKey key = code_key("kernel", Isa::avx512);
  tenon::testing::Spoilt files;
  for (const size_t size : {0, 10, 100}) {
    const std::vector<std::byte> bytes = write_code_object(sample("a", size), key);
    files.good.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size() - sizeof(uint64_t));
  }
  tenon::testing::read_spoilt(files, 5000, [&](std::string text) {
    const uint64_t hash = hash_bytes(std::as_bytes(std::span(text)));
    text.append(reinterpret_cast<const char*>(&hash), sizeof hash);
    const auto object = read_code_object(std::as_bytes(std::span(text)), key);
    if (!object.ok()) return false;
    EXPECT_LE(object->code_bytes, object->bytes.size());
    const auto again = read_code_object(write_code_object(*object, key), key);
    EXPECT_TRUE(again.ok() && *again == *object);
    return true;
  });
}

TEST_F(CodeCacheTest, ADamagedFileIsMadeAnew) {
  JitMemory memory;
  int made = 0;
  const auto make = [&]() -> Result<CodeObject> { return ++made, sample("a"); };
  const auto get = [&](CodeCache& cache) { ASSERT_TRUE(cache.get(key_, make).ok()); };
  {
    CodeCache cache(CodeFiles(folder_), memory);
    get(cache);
    get(cache);
    EXPECT_EQ(cache.counts().from_process, 1u);
  }
  EXPECT_EQ(made, 1);
  {
    CodeCache cache(CodeFiles(folder_), memory);
    get(cache);
    EXPECT_EQ(cache.counts().from_files, 1u);
  }
  EXPECT_EQ(made, 1);
  std::ofstream(files()[0], std::ios::app) << "x";
  CodeCache cache(CodeFiles(folder_), memory);
  get(cache);
  EXPECT_EQ(made, 2);
  EXPECT_TRUE(CodeFiles(folder_).load(key_).has_value());
}

TEST_F(CodeCacheTest, TheProcessKeepsWhatWasUsedLast) {
  JitMemory memory;
  const size_t one = sample("0", 1000).footprint();
  EXPECT_GT(one, 1000 + sizeof(CodeObject) + sample("0").marks.footprint() - 1) << "marks count, too";
  CodeCache cache{CodeFiles(""), memory, 5 * one + one / 2};
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(
        cache.get(code_key(str(i), Isa::avx2), [&]() -> Result<CodeObject> { return sample(str(i), 1000); }).ok());
  EXPECT_EQ(memory.usage().kernels, 5u);
  const auto refuse = []() -> Result<CodeObject> { return error(Code::internal, "made again"); };
  EXPECT_TRUE(cache.get(code_key("19", Isa::avx2), refuse).ok());
  EXPECT_FALSE(cache.get(code_key("0", Isa::avx2), refuse).ok());
}

}  // namespace
}  // namespace tenon::x86
