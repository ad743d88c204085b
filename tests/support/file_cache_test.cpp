#include <tenon/support/file_cache.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <tenon/support/str.hpp>

namespace tenon {
namespace {

namespace fs = std::filesystem;

const FileCache::Options kOptions{.folder = "things", .suffix = ".thing"};
const std::vector<std::byte> kBytes(100, std::byte{7});

// A folder of its own, removed after the test.
class FileCacheTest : public ::testing::Test {
 protected:
  FileCacheTest() {
    std::string text = (fs::temp_directory_path() / "tenon-cache-XXXXXX").string();
    folder_ = mkdtemp(text.data());
  }
  ~FileCacheTest() override { fs::remove_all(folder_); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_ + "/things")) found.push_back(entry.path());
    return found;
  }
  std::string folder_;
  const ContentKey key_ = ContentKey::of("thing");
};

TEST_F(FileCacheTest, GivesBackWhatWasStored) {
  const FileCache cache(folder_, kOptions);
  EXPECT_FALSE(cache.load(key_).has_value());
  cache.store(key_, kBytes);
  EXPECT_EQ(FileCache(folder_, kOptions).load(key_), kBytes);
  EXPECT_FALSE(cache.load(ContentKey::of("other")).has_value());
  EXPECT_FALSE(cache.load(ContentKey::of("thing", 1)).has_value()) << "another seed";
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(files()[0].filename(), key_.to_string() + ".thing");
}

TEST_F(FileCacheTest, FoldersAndFilesThatOthersMayWriteAreNotTrusted) {
  const FileCache cache(folder_, kOptions);
  cache.store(key_, kBytes);
  const std::string file = files()[0];
  chmod(file.c_str(), 0622);
  EXPECT_FALSE(cache.load(key_).has_value());
  chmod(file.c_str(), 0600);
  EXPECT_TRUE(cache.load(key_).has_value());
  chmod((folder_ + "/things").c_str(), 0777);
  EXPECT_FALSE(cache.load(key_).has_value());
  chmod((folder_ + "/things").c_str(), 0700);
  fs::rename(file, folder_ + "/elsewhere");
  fs::create_symlink(folder_ + "/elsewhere", file);
  EXPECT_FALSE(cache.load(key_).has_value()) << "a link";
  if (geteuid() != 0) return;
  fs::remove(file);
  fs::rename(folder_ + "/elsewhere", file);
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(cache.load(key_).has_value()) << "another user's file";
  ASSERT_EQ(chown((folder_ + "/things").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(cache.load(key_).has_value()) << "another user's folder";
}

TEST_F(FileCacheTest, AFolderThatCannotBeMadeIsNoError) {
  std::ofstream(folder_ + "/file") << "no folder";
  const FileCache cache(folder_ + "/file", kOptions);
  cache.store(key_, kBytes);
  EXPECT_FALSE(cache.load(key_).has_value());
  FileCache("", kOptions).store(key_, kBytes);
}

TEST_F(FileCacheTest, TheFilesStayBelowTheirBound) {
  constexpr uint64_t kBound = 20000;
  const FileCache cache(folder_, {.folder = "things", .suffix = ".thing", .max_bytes = kBound});
  for (int i = 0; i < 60; ++i) {
    cache.store(ContentKey::of(str("thing", i)), std::vector<std::byte>(1000));
    uint64_t total = 0;
    for (const fs::path& file : files()) total += fs::file_size(file);
    ASSERT_LE(total, kBound);
  }
  EXPECT_TRUE(cache.load(ContentKey::of("thing59")).has_value());
  EXPECT_FALSE(cache.load(ContentKey::of("thing0")).has_value());
}

}  // namespace
}  // namespace tenon
