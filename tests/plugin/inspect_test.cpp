// Files that are not plugins, or damaged ones: each gives its own error, and none of their code runs.
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include <tenon/plugin/inspect.hpp>

#include "plugin/plugin_test.hpp"

namespace tenon {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InspectTest : public testing::PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    good_ = read(fixture("c_only"));
    ASSERT_GT(good_.size(), 4096u);
  }
  static std::string sentence(const std::string& path, Code code = Code::plugin, bool insecure = false) {
    auto file = inspect_plugin(path, insecure);
    if (file.ok()) return "";
    EXPECT_EQ(file.error().code(), code) << file.error().message();
    EXPECT_THAT(file.error().message(), HasSubstr(std::filesystem::path(path).filename().string()));
    return file.error().message();
  }
  // The good plugin with every copy of its info (note and symbol) changed.
  std::string with_info(const std::function<void(tenon_plugin_info&)>& change) const {
    std::string bytes = good_;
    int found = 0;
    for (size_t at = 0; (at = bytes.find(TENON_MAGIC, at)) != bytes.npos; at += 8) {
      tenon_plugin_info info;
      if (bytes.size() - at < sizeof info) break;
      std::memcpy(&info, bytes.data() + at, sizeof info);
      if (info.struct_size != sizeof info) continue;
      change(info);
      std::memcpy(bytes.data() + at, &info, sizeof info);
      ++found;
    }
    EXPECT_EQ(found, 2);
    return bytes;
  }
  std::string with_header(const std::function<void(Elf64_Ehdr&)>& change) const {
    std::string bytes = good_;
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    change(header);
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }
  std::string good_;
};

TEST_F(InspectTest, ReadsFactsOfAGoodPlugin) {
  auto file = inspect_plugin(fixture("c_only"));
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ(file->name, "c-only");
  EXPECT_EQ(file->vendor, "Tenon tests");
  EXPECT_EQ(file->version, "1.0");
  EXPECT_THAT(file->targets, ElementsAre("c-only", "c-only-b"));
  EXPECT_EQ(file->info.flags, uint32_t{TENON_FLAG_PLAIN});
}

TEST_F(InspectTest, WhatIsNoLibrary) {
  EXPECT_THAT(sentence((folder_ / "missing.so").string(), Code::io), HasSubstr("No such file"));
  EXPECT_THAT(sentence(write("text.so", "int main() {}\n")), HasSubstr("not an ELF file"));
  EXPECT_THAT(sentence(write("short.so", "\x7f")), HasSubstr("cut off"));
  EXPECT_THAT(sentence(write("empty.so", "")), HasSubstr("empty"));
  std::filesystem::create_directory(folder_ / "folder.so");
  EXPECT_THAT(sentence((folder_ / "folder.so").string()), HasSubstr("a folder"));
  ASSERT_EQ(mkfifo((folder_ / "fifo.so").c_str(), 0600), 0);
  EXPECT_THAT(sentence((folder_ / "fifo.so").string()), HasSubstr("a FIFO"));
  std::filesystem::create_symlink(folder_ / "a.so", folder_ / "b.so");
  std::filesystem::create_symlink(folder_ / "b.so", folder_ / "a.so");
  EXPECT_THAT(sentence((folder_ / "a.so").string(), Code::io), HasSubstr("symbolic links"));
}

TEST_F(InspectTest, OtherMachinesAreNamed) {
  EXPECT_THAT(sentence(write("arm.so", with_header([](auto& header) { header.e_machine = EM_AARCH64; }))),
              HasSubstr("arm64"));
  EXPECT_THAT(sentence(write("narrow.so", with_header([](auto& header) {
                               header.e_ident[EI_CLASS] = ELFCLASS32;
                               header.e_machine = EM_386;
                             }))),
              HasSubstr("32-bit"));
  EXPECT_THAT(sentence(write("big.so", with_header([](auto& header) { header.e_ident[EI_DATA] = ELFDATA2MSB; }))),
              HasSubstr("big-endian"));
  EXPECT_THAT(sentence(write("object.so", with_header([](auto& header) { header.e_type = ET_REL; }))),
              HasSubstr("no shared library"));
}

TEST_F(InspectTest, CutOffAnywhere) {
  for (size_t size = 512; size < good_.size(); size += 512) {
    const std::string text = sentence(write("cut.so", good_.substr(0, size)));
    EXPECT_THAT(text, HasSubstr("cut off")) << size << " of " << good_.size();
  }
}

TEST_F(InspectTest, HeadersThatLie) {
  for (const auto& change : std::vector<std::function<void(Elf64_Ehdr&)>>{
           [](auto& header) { header.e_phoff = UINT64_MAX - 8; }, [](auto& header) { header.e_phnum = 0xfffe; },
           [](auto& header) { header.e_phnum = 0; }, [](auto& header) { header.e_phentsize = 1; },
           [](auto& header) { header.e_shoff = UINT64_MAX; }}) {
    EXPECT_NE(sentence(write("lie.so", with_header(change))), "");
  }
  // Segments that reach beyond the file, whatever field says so.
  Elf64_Ehdr header;
  std::memcpy(&header, good_.data(), sizeof header);
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    std::memcpy(&segment, good_.data() + at, sizeof segment);
    if (segment.p_type != PT_LOAD && segment.p_type != PT_NOTE && segment.p_type != PT_DYNAMIC) continue;
    for (const bool offset : {false, true}) {
      Elf64_Phdr lying = segment;
      (offset ? lying.p_offset : lying.p_filesz) = UINT64_MAX - 16;
      std::string bytes = good_;
      std::memcpy(bytes.data() + at, &lying, sizeof lying);
      EXPECT_THAT(sentence(write("lie.so", bytes)), HasSubstr("cut off"));
    }
  }
}

TEST_F(InspectTest, RandomBytesAreSurvived) {
  std::mt19937 random(20240229);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good_;
    // Where headers and notes are.
    for (int k = 0; k < 4; ++k) bytes[random() % 2048] = static_cast<char>(random());
    auto file = inspect_plugin(write("random.so", bytes));
    if (file.ok()) {
      EXPECT_FALSE(file->targets.empty());
    }
  }
}

TEST_F(InspectTest, VersionsOfTheInterface) {
  for (const uint32_t major : {0u, TENON_ABI_MAJOR - 1, TENON_ABI_MAJOR, TENON_ABI_MAJOR + 1, UINT32_MAX}) {
    const auto text = sentence(write("major.so", with_info([&](auto& info) { info.abi_major = major; })));
    if (major == TENON_ABI_MAJOR) {
      EXPECT_EQ(text, "");
    } else {
      EXPECT_THAT(text, HasSubstr(str("speaks version ", major)));
      EXPECT_THAT(text, HasSubstr(major < TENON_ABI_MAJOR ? "rebuild" : "newer Tenon"));
    }
  }
  for (const uint32_t minor : {0u, TENON_ABI_MINOR, TENON_ABI_MINOR + 1, UINT32_MAX}) {
    EXPECT_EQ(sentence(write("minor.so", with_info([&](auto& info) { info.abi_minor = minor; }))), "");
    const auto text = sentence(write("least.so", with_info([&](auto& info) { info.min_core_minor = minor; })));
    if (minor <= TENON_ABI_MINOR) {
      EXPECT_EQ(text, "");
    } else {
      EXPECT_THAT(text, HasSubstr("newer Tenon"));
    }
  }
}

TEST_F(InspectTest, FactsThatMakeNoSense) {
  const auto with = [&](const std::function<void(tenon_plugin_info&)>& change) {
    return sentence(write("odd.so", with_info(change)));
  };
  EXPECT_THAT(with([](auto& info) { std::memset(info.targets, 0, sizeof info.targets); }),
              HasSubstr("names no target"));
  EXPECT_THAT(with([](auto& info) {
                std::memset(info.targets, ' ', 8);
                info.targets[8] = 0;
              }),
              HasSubstr("names no target"));
  EXPECT_THAT(with([](auto& info) { std::memset(info.name, 'x', sizeof info.name); }), HasSubstr("name is no text"));
  EXPECT_THAT(with([](auto& info) { info.vendor[0] = '\xff'; }), HasSubstr("vendor is no text"));
  EXPECT_THAT(with([](auto& info) { info.name[0] = 0; }), HasSubstr("name is empty"));
  EXPECT_THAT(with([](auto& info) { info.flags = 0; }), HasSubstr("neither plain slots nor a C++ side"));
  EXPECT_THAT(with([](auto& info) { info.struct_size = 12; }), HasSubstr("12 bytes of facts"));
  EXPECT_THAT(with([](auto& info) { info.sanitizer = TENON_SANITIZER_THREAD; }), HasSubstr("sanitizer"));
  EXPECT_THAT(with([](auto& info) { info.magic[0] = 'X'; }), HasSubstr("other bytes"));
  EXPECT_THAT(sentence(fixture("no_note")), HasSubstr("no Tenon plugin"));
}

TEST_F(InspectTest, WhatOthersMayWriteIsRefused) {
  const auto path = install("c_only");
  ASSERT_EQ(sentence(path), "");
  ASSERT_EQ(chmod(path.c_str(), 0646), 0);
  EXPECT_THAT(sentence(path), AllOf(HasSubstr("the file can be written by everybody"), HasSubstr("--insecure")));
  EXPECT_EQ(sentence(path, Code::plugin, true), "");
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  EXPECT_THAT(sentence(path), HasSubstr("its folder can be written by everybody"));
  EXPECT_EQ(sentence(path, Code::plugin, true), "");
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  EXPECT_THAT(sentence(path), HasSubstr("belongs to user 12345"));
}

}  // namespace
}  // namespace tenon
