// Tensor data in files separate from the model.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include <tenon/support/result.hpp>

namespace tenon::onnx {

// A file mapped for reading, which is unmapped with its last reference.
class MappedFile {
 public:
  // Closes `descriptor`. `name` is for messages.
  static Result<std::shared_ptr<MappedFile>> map(int descriptor, const std::string& name);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  MappedFile() = default;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Opens files of one folder only. A location must be relative, without "..", and no part of it may be a symbolic link;
// the file must be a regular one with a single name (no hard links). Each file is mapped once.
class ExternalData {
 public:
  static Result<std::unique_ptr<ExternalData>> open(const std::string& folder);
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  Result<std::shared_ptr<MappedFile>> file(const std::string& location);
  const std::string& folder() const { return folder_; }

 private:
  ExternalData(std::string folder, int descriptor) : folder_(std::move(folder)), descriptor_(descriptor) {}
  std::string folder_;
  int descriptor_;
  std::map<std::string, std::shared_ptr<MappedFile>> files_;
};

}  // namespace tenon::onnx
