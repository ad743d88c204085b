// Interned names: one pointer wide, compared by address, read as text. The table lives once in libtenon_runtime.so, so
// a name made in a plugin equals the same name made in the core. Entries are never freed: intern the names of
// operators, attributes and domains, not those of values.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include <tenon/support/export.hpp>

namespace tenon {

class TENON_API Name {
 public:
  Name() : Name(std::string_view()) {}
  Name(std::string_view text);  // any thread
  Name(const char* text) : Name(std::string_view(text)) {}
  Name(const std::string& text) : Name(std::string_view(text)) {}

  const std::string& str() const { return *text_; }
  std::string_view view() const { return *text_; }
  bool empty() const { return text_->empty(); }
  const std::string& to_string() const { return *text_; }
  bool operator==(const Name& other) const { return text_ == other.text_; }
  // By text, so that sorted output is the same in every process.
  bool operator<(const Name& other) const { return text_ != other.text_ && *text_ < *other.text_; }
  size_t hash() const { return reinterpret_cast<size_t>(text_) >> 4; }

 private:
  const std::string* text_;
};

}  // namespace tenon

template <>
struct std::hash<tenon::Name> {
  size_t operator()(const tenon::Name& name) const { return name.hash(); }
};
