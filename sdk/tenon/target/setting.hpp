// A tree of settings: the content of a YAML file, with the place of every value, so that errors can name it. A plugin
// reads its own part of a target file (`options:`) through the typed accessors below:
//
//   TENON_OK(options.allow_keys({"inp_width", "buffers"}));
//   TENON_TRY(width, options.integer("inp_width", 1, 32));                // an error if it is absent
//   TENON_TRY(buffers, options.map("buffers"));
//   TENON_TRY(bytes, buffers->quantity("inp", Unit::bytes, 1, 1 << 25));
//   TENON_TRY(depth, options.integer_or("depth", 512, 1, 4096));          // absent: 512
//
// A Setting is a value: copies share nothing but the file's name. Const members may be called from any thread.
#pragma once
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/target/quantity.hpp>

namespace tenon {

// Lines and columns count from 1, columns in bytes.
struct TENON_API Place {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;
  // "vta.yaml:12:7: ", the opening of an error; "" for a setting that a program made.
  std::string prefix() const;
};

class TENON_API Setting {
 public:
  enum class Kind : uint8_t { none, scalar, list, map };

  // `none`: YAML's `~`, `null`, or an empty value.
  Setting() = default;
  // A scalar: a number, a word, true or false. Text that YAML would not parse as written becomes text().
  static Setting word(std::string text);
  // A scalar in quotes: never read as a number or a truth value.
  static Setting text(std::string text);
  static Setting list();
  static Setting map();
  // Appends to a list, or to a map that does not contain `key` yet; returns *this.
  Setting& add(Setting item);
  Setting& add(std::string key, Setting value);

  Kind kind() const { return kind_; }
  bool is_quoted() const { return quoted_; }
  // The text of a scalar; empty otherwise.
  const std::string& raw() const { return text_; }
  // The items of a list, or the values of a map in the order of the file.
  std::span<const Setting> items() const { return items_; }
  // The key of a map's value; empty for anything else.
  const std::string& key() const { return key_; }
  const Place& place() const { return place_; }
  // The place of the key; of the value for anything else.
  Place key_place() const { return key_line_ > 0 ? Place{place_.file, key_line_, key_column_} : place_; }
  // The value of `key`; null when absent or when this is not a map. Borrowed from this setting.
  const Setting* find(std::string_view key) const;

  // This setting as a value of one type. Errors start with the place and name the key.
  Result<int64_t> as_integer(int64_t min = std::numeric_limits<int64_t>::min(),
                             int64_t max = std::numeric_limits<int64_t>::max()) const;
  Result<uint64_t> as_quantity(Unit unit, uint64_t min = 0, uint64_t max = std::numeric_limits<uint64_t>::max()) const;
  Result<Bandwidth> as_bandwidth() const;
  Result<double> as_real() const;  // finite
  Result<bool> as_bool() const;    // `true` or `false` only
  Result<std::string> as_text() const;
  Result<void> expect(Kind kind) const;

  // The value of a key of this map; an absent key is an error naming it.
  Result<const Setting*> get(std::string_view key) const;
  Result<const Setting*> map(std::string_view key) const;
  Result<const Setting*> list(std::string_view key) const;
  Result<int64_t> integer(std::string_view key, int64_t min, int64_t max) const;
  Result<uint64_t> quantity(std::string_view key, Unit unit, uint64_t min, uint64_t max) const;
  Result<std::string> text_of(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  // The same with a default for an absent key. A key that is present and invalid is still an error.
  Result<int64_t> integer_or(std::string_view key, int64_t fallback, int64_t min, int64_t max) const;
  Result<uint64_t> quantity_or(std::string_view key, Unit unit, uint64_t fallback, uint64_t min, uint64_t max) const;
  Result<std::string> text_or(std::string_view key, std::string_view fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;

  // Checks that a map has no key outside `known`; otherwise an error at the first such key, with the nearest known one.
  Result<void> allow_keys(const std::vector<std::string>& known) const;
  // The same for the words of a list.
  Result<void> allow_words(const std::vector<std::string>& known) const;

  // An error at this place: "vta.yaml:12:7: <parts>".
  template <class... Parts>
  Error fault(const Parts&... parts) const {
    return error(Code::invalid_argument, place_.prefix(), parts...);
  }
  // "'size'", or "this value" if there is no key: the name of this setting in sentences.
  std::string subject() const;

  // Compares neither places nor the key of this setting itself, but the keys inside.
  bool operator==(const Setting& other) const;

 private:
  friend class SettingBuilder;
  static Setting scalar(std::string text, bool quoted);

  Kind kind_ = Kind::none;
  bool quoted_ = false;
  std::string text_;
  std::string key_;
  std::vector<Setting> items_;
  Place place_;
  int key_line_ = 0, key_column_ = 0;
};

// Limits on a file, so that no small input can use much time, memory or stack.
inline constexpr size_t kMaxYamlBytes = size_t{1} << 20;
inline constexpr int kMaxYamlDepth = 64;  // of nested maps and lists; the outermost has depth 1
inline constexpr size_t kMaxYamlKeyBytes = 128;

// Parses one YAML document. `file` names it in errors. Refused, with line and column: aliases and anchors, tags,
// duplicate keys, keys that are not scalars, a second document, bytes that are not UTF-8, control bytes, and anything
// beyond the limits.
TENON_API Result<Setting> parse_yaml(std::string_view text, std::string_view file);
// Reads a regular file of at most kMaxYamlBytes; never blocks on a FIFO or a device.
TENON_API Result<std::string> read_small_file(const std::string& path, size_t max_bytes = kMaxYamlBytes);

// Text that parse_yaml reads as an equal setting.
TENON_API std::string to_yaml(const Setting& setting);
// JSON, indented by two: quoted scalars are strings; words are written unchanged and must be JSON literals.
TENON_API std::string to_json(const Setting& setting);

}  // namespace tenon
