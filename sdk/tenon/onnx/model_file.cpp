#include <tenon/onnx/model_file_internal.hpp>

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>

#include <tenon/onnx/external_data_internal.hpp>

namespace tenon::onnx {
namespace {

// Nesting depth of messages. Each level of subgraphs takes three (graph, node, attribute), so the importer's own limit
// on subgraphs is reached first.
constexpr int kMessageDepth = 1000;

// Protobuf's own limit on a message.
constexpr size_t kLargestMessage = INT_MAX;

// Presents a mapped file in pieces, and releases the memory of each piece when the next is requested, so that the
// message's content is in memory only once.
class DroppingStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  static constexpr size_t kPiece = size_t{1} << 20;
  explicit DroppingStream(const MappedFile& file) : file_(file) {}

  bool Next(const void** data, int* size) override {
    const size_t page_start = at_ / kPiece * kPiece;
    if (page_start > dropped_) {
      madvise(file_.data() + dropped_, page_start - dropped_, MADV_DONTNEED);
      dropped_ = page_start;
    }
    if (at_ >= file_.size()) return false;
    const size_t end = std::min(file_.size(), page_start + kPiece);
    *data = file_.data() + at_;
    *size = static_cast<int>(end - at_);
    at_ = end;
    return true;
  }
  void BackUp(int count) override { at_ -= static_cast<size_t>(count); }
  bool Skip(int count) override {
    at_ = std::min(file_.size(), at_ + static_cast<size_t>(count));
    return at_ < file_.size();
  }
  int64_t ByteCount() const override { return static_cast<int64_t>(at_); }

 private:
  const MappedFile& file_;
  size_t at_ = 0;
  size_t dropped_ = 0;
};

Result<void> parse(google::protobuf::io::ZeroCopyInputStream& stream, size_t size, std::string_view where,
                   google::protobuf::MessageLite& out) {
  if (size > kLargestMessage) {
    return error(Code::resource_exhausted, where, " has ", size, " bytes; a model in one file has at most ",
                 kLargestMessage, ": keep its weights as external data");
  }
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(kMessageDepth);
  bool parsed = false;
  try {
    parsed = out.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage();
  } catch (const std::exception& failure) {
    return error(Code::resource_exhausted, where, " could not be read: ", failure.what());
  }
  if (!parsed) {
    return error(Code::parse, where, " (", size,
                 " bytes) is no ONNX file: it is truncated, damaged or of another format, or nested more than ",
                 kMessageDepth, " messages deep");
  }
  return {};
}

}  // namespace

Result<void> parse_message(std::span<const std::byte> bytes, std::string_view where,
                           google::protobuf::MessageLite& out) {
  const size_t size = bytes.size();
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(std::min(size, kLargestMessage)));
  return parse(stream, size, where, out);
}

Result<void> parse_file(const std::string& path, google::protobuf::MessageLite& out) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return error(Code::io, "opening '", path, "': ", std::strerror(errno));
  TENON_TRY(file, MappedFile::map(descriptor, str("'", path, "'")));
  DroppingStream stream(*file);
  return parse(stream, file->size(), str("'", path, "'"), out);
}

Result<void> write_file(const std::string& path, const google::protobuf::MessageLite& message) {
  if (const size_t size = message.ByteSizeLong(); size > kLargestMessage) {
    return error(Code::resource_exhausted, "'", path, "' would have ", size, " bytes; a model in one file has at most ",
                 kLargestMessage, ": write its weights as external data");
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file || !message.SerializeToOstream(&file) || !file.flush()) {
    return error(Code::io, "writing '", path, "': ", std::strerror(errno));
  }
  return {};
}

}  // namespace tenon::onnx
