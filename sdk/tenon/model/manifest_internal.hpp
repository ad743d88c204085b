// Inside the room: the manifest of an artefact, read so that each fault is reported with its place.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace tenon::detail {

// Thrown by functions that read a manifest, and caught by their caller.
struct ManifestFault {
  std::string what;  // "'segments[2].blob' is missing"
};

// A value of the manifest, identified by its path from the root.
class ManifestField {
 public:
  using Json = nlohmann::json;

  ManifestField(const Json& json, std::string way) : json_(json), way_(std::move(way)) {}

  // Of a map; of a list.
  ManifestField at(std::string_view key) const;
  ManifestField at(size_t i) const;
  bool has(std::string_view key) const { return json_.is_object() && json_.contains(key); }
  std::vector<ManifestField> entries() const;  // of a list

  std::string text() const;
  uint64_t count() const;
  int64_t whole() const;
  double number() const;
  bool flag() const;
  std::vector<size_t> counts() const;
  std::vector<std::string> texts() const;
  const std::string& way() const { return way_; }

 private:
  [[noreturn]] void refuse(std::string_view wanted) const;

  const Json& json_;
  std::string way_;
};

}  // namespace tenon::detail
