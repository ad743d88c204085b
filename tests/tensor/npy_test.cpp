#include <tenon/tensor/npy.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace tenon {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class Npy : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / str("tenon_npy_", getpid(), "_", info->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name = "a.npy") const { return (folder_ / name).string(); }
  std::string file(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary) << bytes;
    return path();
  }
  Result<Tensor> read(const std::string& bytes) const { return read_npy(file(bytes)); }

  fs::path folder_;
};

// A file as NumPy writes it.
std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>(dict.size() >> (8 * i));
  return out + dict + data;
}
std::string dict(const std::string& descr, bool fortran, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape +
         ", }\n";
}

template <class T>
std::string raw(std::vector<T> values, bool reversed = false) {
  std::string out(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  if (reversed)
    for (size_t i = 0; i < out.size(); i += sizeof(T))
      std::reverse(out.begin() + static_cast<std::ptrdiff_t>(i),
                   out.begin() + static_cast<std::ptrdiff_t>(i + sizeof(T)));
  return out;
}

TEST_F(Npy, RoundTripsEveryType) {
  for (const ElementType element :
       {kF64, kF32, kF16, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool, kC64, kC128}) {
    for (const Dims& dims : {Dims{}, Dims{3}, Dims{2, 3}, Dims{2, 0, 3}}) {
      auto tensor = *Tensor::zeros(element, dims);
      for (size_t i = 0; i < tensor.bytes(); ++i)
        tensor.mutable_data()[i] = static_cast<std::byte>(element.is_bool() ? i & 1 : i * 37 + 1);
      ASSERT_TRUE(write_npy(path(), tensor).ok());
      const auto back = read_npy(path());
      ASSERT_TRUE(back.ok()) << back.error().to_string();
      EXPECT_TRUE(back->identical(tensor)) << tensor.to_string();
    }
  }
}

TEST_F(Npy, WritesWhatNumpyWrites) {
  ASSERT_TRUE(write_npy(path(), Tensor::of<float>({2}, {1, 2})).ok());
  std::ifstream in(path(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(bytes.size(), 128u + 8u);
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\1\0\x76\0", 10));
  EXPECT_THAT(bytes, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, ), }"));
  EXPECT_EQ(bytes[127], '\n');
}

TEST_F(Npy, VersionsAndByteOrders) {
  for (const int version : {1, 2, 3}) {
    EXPECT_EQ(read(npy(dict("<i4", false, "(2,)"), raw<int32_t>({7, -8}), version))->to_ints(),
              (std::vector<int64_t>{7, -8}));
  }
  EXPECT_EQ(read(npy(dict(">i4", false, "(2,)"), raw<int32_t>({7, -8}, true)))->to_ints(),
            (std::vector<int64_t>{7, -8}));
  EXPECT_EQ(read(npy(dict(">f8", false, "()"), raw<double>({1.5}, true)))->double_at(0), 1.5);
  EXPECT_EQ(read(npy(dict("|u1", false, "(1,)"), "\x07"))->int_at(0), 7);
  // Big-endian complex: each part is swapped.
  const auto complex = read(npy(dict(">c8", false, "(1,)"), raw<float>({1, 2}, true)));
  EXPECT_EQ(complex->as<std::complex<float>>()[0], std::complex<float>(1, 2));
  EXPECT_EQ(read(npy(dict("|b1", false, "(2,)"), std::string("\0\x05", 2)))->as<uint8_t>()[1], 1);
}

TEST_F(Npy, FortranOrder) {
  const auto matrix = read(npy(dict("<i4", true, "(2, 3)"), raw<int32_t>({1, 4, 2, 5, 3, 6})));
  ASSERT_TRUE(matrix.ok());
  EXPECT_EQ(matrix->to_ints(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  std::vector<int16_t> values;
  for (int16_t k = 0; k < 4; ++k)
    for (int16_t j = 0; j < 3; ++j)
      for (int16_t i = 0; i < 2; ++i) values.push_back(static_cast<int16_t>(i * 12 + j * 4 + k));
  const auto cube = read(npy(dict("<i2", true, "(2,3,4)"), raw(values)));
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(cube->int_at(i), i);
  EXPECT_EQ(read(npy(dict("<i4", true, "(0, 9223372036854775807, 4)"), ""))->size(), 0);
}

TEST_F(Npy, HeadersInOtherSpellings) {
  const std::string header = "{ \"shape\":(2L,),\"fortran_order\" : False , \"descr\":\"<i4\"}";
  EXPECT_EQ(read(npy(header, raw<int32_t>({1, 2})))->to_ints(), (std::vector<int64_t>{1, 2}));
}

TEST_F(Npy, BadFilesAreRefused) {
  const std::string ok = dict("<f4", false, "(2,)"), data(8, '\0');
  ASSERT_TRUE(read(npy(ok, data)).ok());
  struct Row {
    std::string bytes;
    const char* message;
  };
  const Row rows[] = {
      {"", "ends within its first 8 bytes"},
      {"\x93NUM", "ends within its first 8 bytes"},
      {"PK\3\4 not an array", "no .npy file"},
      {npy(ok, data, 4), "format version 4"},
      {std::string("\x93NUMPY\1\0\xff", 9), "header length"},
      {std::string("\x93NUMPY\1\0\xff\xff{}", 12), "ends within its header"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12), "header's length is 4294967295"},
      {npy("", ""), "where \"{\" should be"},
      {npy("{", ""), "should be"},
      {npy("{}", ""), "lacks one of"},
      {npy("{'descr': '<f4', 'shape': (2,)}", data), "lacks one of"},
      {npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}", data), "True or False"},
      {npy("{'descr': '<f4", data), "a string"},
      {npy("{'more': 1}", data), "unknown key \"more\""},
      {npy(dict("<f4", false, "(2"), data), "should be"},
      {npy(dict("<f4", false, "(-2,)"), data), "a dim from 0"},
      {npy(dict("<f4", false, "(99999999999999999999,)"), data), "a dim from 0"},
      {npy(dict("<f4", false, "(9223372036854775807, 4)"), data), "more than 2^63 - 1 elements"},
      {npy(dict("<f4", false, "(9223372036854775807,)"), data), "2^63 - 1 bytes"},
      {npy(dict("<f4", false, "(1000000000000,)"), data), "truncated"},
      {npy(ok, "\0\0\0"), "truncated"},
      {npy(dict("<f16", false, "(1,)"), data + data), "the dtype \"<f16\""},
      {npy(dict("|O", false, "(1,)"), data), "the dtype \"|O\""},
      {npy(dict("", false, "(1,)"), data), "the dtype"},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", data), "structured"},
  };
  for (const Row& row : rows) {
    const auto refused = read(row.bytes);
    ASSERT_FALSE(refused.ok()) << row.message;
    EXPECT_THAT(refused.error().to_string(), testing::AllOf(HasSubstr(row.message), HasSubstr(path())));
  }
}

TEST_F(Npy, EveryTruncationIsRefused) {
  const std::string whole = npy(dict("<f4", false, "(2,)"), std::string(8, '\0'));
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(read(whole.substr(0, size)).ok()) << size;
}

TEST_F(Npy, ManyDimsAreRefused) {
  std::string shape = "(";
  for (int i = 0; i < 65; ++i) shape += "1,";
  EXPECT_THAT(read(npy(dict("<f4", false, shape + ")"), std::string(4, '\0'))).error().message(), HasSubstr("64 dims"));
}

TEST_F(Npy, PathsThatAreNoFiles) {
  EXPECT_EQ(read_npy(path("missing.npy")).error().code(), Code::io);
  EXPECT_THAT(read_npy(folder_.string()).error().message(), HasSubstr("no regular file"));
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(read_npy(path("fifo")).error().message(), HasSubstr("no regular file"));
  EXPECT_EQ(write_npy(path("no/such/folder.npy"), Tensor::scalar<float>(1)).error().code(), Code::io);
  EXPECT_EQ(write_npy("/dev/full", *Tensor::zeros(kF32, {100000})).error().code(), Code::io);
}

TEST_F(Npy, TypesThatNumpyLacks) {
  for (const ElementType element : {kBF16, kF8E5M2, kI4, kString}) {
    const auto refused = write_npy(path(), *Tensor::zeros(element, {2}));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Code::unsupported);
    EXPECT_THAT(refused.error().message(), HasSubstr(element.to_string()));
    EXPECT_FALSE(fs::exists(path()));
  }
}

}  // namespace
}  // namespace tenon
