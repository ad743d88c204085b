// From bytes to the messages of the format, within limits.
#pragma once
#include <onnx.pb.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tenon/support/result.hpp>

namespace tenon::onnx {

namespace format = ::tenon::onnx_format;

// Parses one message. An error of Code::parse when the bytes are none (truncated, garbage, nested too deep).
Result<void> parse_message(std::span<const std::byte> bytes, std::string_view where,
                           google::protobuf::MessageLite& out);
// The same from a file; its pages leave memory as they have been read.
Result<void> parse_file(const std::string& path, google::protobuf::MessageLite& out);
Result<void> write_file(const std::string& path, const google::protobuf::MessageLite& message);

}  // namespace tenon::onnx
