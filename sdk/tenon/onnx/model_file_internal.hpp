// Parses and writes the messages of the format, within limits.
#pragma once
#include <onnx.pb.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tenon/support/result.hpp>

namespace tenon::onnx {

namespace format = ::tenon::onnx_format;

// Parses one message. Code::parse for invalid bytes (truncated, garbage, nested too deeply).
Result<void> parse_message(std::span<const std::byte> bytes, std::string_view where,
                           google::protobuf::MessageLite& out);
// The same from a file; its pages are released as they have been read.
Result<void> parse_file(const std::string& path, google::protobuf::MessageLite& out);
Result<void> write_file(const std::string& path, const google::protobuf::MessageLite& message);

}  // namespace tenon::onnx
