#include <tenon/model/manifest_internal.hpp>

#include <tenon/support/str.hpp>

namespace tenon::detail {
namespace {

// Containers are not written out, which would use stack in proportion to their nesting.
std::string shown(const nlohmann::json& json) {
  if (json.is_structured() && !json.empty()) return json.is_array() ? "[...]" : "{...}";
  constexpr size_t kMostBytes = 40;
  std::string text = json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMostBytes) text = text.substr(0, kMostBytes) + " ...";
  return text;
}

}  // namespace

void ManifestField::refuse(std::string_view wanted) const {
  throw ManifestFault{str("'", way_, "' is ", shown(json_), ", no ", wanted)};
}

ManifestField ManifestField::at(std::string_view key) const {
  if (!json_.is_object()) refuse("map");
  const std::string way = way_.empty() ? std::string(key) : str(way_, ".", key);
  const auto found = json_.find(key);
  if (found == json_.end()) throw ManifestFault{str("'", way, "' is missing")};
  return ManifestField(*found, way);
}

ManifestField ManifestField::at(size_t i) const {
  if (!json_.is_array()) refuse("list");
  if (i >= json_.size()) throw ManifestFault{str("'", way_, "' has ", json_.size(), " entries, more are needed")};
  return ManifestField(json_[i], str(way_, "[", i, "]"));
}

std::vector<ManifestField> ManifestField::entries() const {
  if (!json_.is_array()) refuse("list");
  std::vector<ManifestField> out;
  for (size_t i = 0; i < json_.size(); ++i) out.push_back(at(i));
  return out;
}

std::string ManifestField::text() const {
  if (!json_.is_string()) refuse("text");
  return json_.get<std::string>();
}

uint64_t ManifestField::count() const {
  if (!json_.is_number_unsigned()) refuse("whole number from 0 on");
  return json_.get<uint64_t>();
}

int64_t ManifestField::whole() const {
  if (!json_.is_number_integer()) refuse("whole number");
  return json_.get<int64_t>();
}

double ManifestField::number() const {
  if (!json_.is_number()) refuse("number");
  return json_.get<double>();
}

bool ManifestField::flag() const {
  if (!json_.is_boolean()) refuse("true or false");
  return json_.get<bool>();
}

std::vector<size_t> ManifestField::counts() const {
  std::vector<size_t> out;
  for (const ManifestField& entry : entries()) out.push_back(entry.count());
  return out;
}

std::vector<std::string> ManifestField::texts() const {
  std::vector<std::string> out;
  for (const ManifestField& entry : entries()) out.push_back(entry.text());
  return out;
}

}  // namespace tenon::detail
