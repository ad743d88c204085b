#include <tenon/target/setting.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tenon {
namespace {

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Whether YAML parses `text` without quotes as the same scalar in every context, flow maps included. Narrower than
// YAML's own rule, but wide enough for every number and quantity.
bool is_plain(std::string_view text) {
  constexpr std::string_view kInside = "_./+- ";
  if (text.empty() || text == "null" || text == "Null" || text == "NULL") return false;
  const bool negative = text.front() == '-' && text.size() > 1 && text[1] >= '0' && text[1] <= '9';
  if (!is_alnum(text.front()) && text.front() != '_' && !negative) return false;
  if (text.back() == ' ') return false;
  return std::ranges::all_of(text, [&](char c) { return is_alnum(c) || kInside.find(c) != kInside.npos; });
}

// Enough of a value to recognise it in a sentence.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return quote(text);
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a UTF-8 sequence
  return str(quote(text.substr(0, end)), "...");
}

const char* kind_name(Setting::Kind kind) {
  switch (kind) {
    case Setting::Kind::none: return "empty";
    case Setting::Kind::scalar: return "a single value";
    case Setting::Kind::list: return "a list";
    case Setting::Kind::map: return "a map";
  }
  return "";
}

// The text of a scalar that may be parsed as something other than text.
Result<std::string_view> bare(const Setting& setting, const char* wanted) {
  TENON_OK(setting.expect(Setting::Kind::scalar));
  if (setting.is_quoted())
    return setting.fault(setting.subject(), " is the text ", shown(setting.raw()), "; expected ", wanted,
                         ", without quotes");
  return std::string_view(setting.raw());
}

// Errors of the number parsers have no place; this adds the one of `setting`.
template <class T>
Result<T> placed(const Setting& setting, Result<T> result) {
  if (result.ok()) return result;
  return setting.fault(result.error().message());
}

template <class T>
Result<T> in_range(const Setting& setting, T value, T min, T max) {
  if (value >= min && value <= max) return value;
  return setting.fault(setting.subject(), " is ", setting.raw(), ", outside [", min, ", ", max, "]");
}

}  // namespace

std::string Place::prefix() const { return file ? str(*file, ":", line, ":", column, ": ") : ""; }

Setting Setting::scalar(std::string text, bool quoted) {
  Setting setting;
  setting.kind_ = Kind::scalar;
  setting.quoted_ = quoted || !is_plain(text);
  setting.text_ = std::move(text);
  return setting;
}
Setting Setting::word(std::string text) { return scalar(std::move(text), false); }
Setting Setting::text(std::string text) { return scalar(std::move(text), true); }
Setting Setting::list() {
  Setting setting;
  setting.kind_ = Kind::list;
  return setting;
}
Setting Setting::map() {
  Setting setting;
  setting.kind_ = Kind::map;
  return setting;
}
Setting& Setting::add(Setting item) {
  TENON_CHECK(kind_ == Kind::list, "adding an item to a setting that is ", kind_name(kind_));
  items_.push_back(std::move(item));
  return *this;
}
Setting& Setting::add(std::string key, Setting value) {
  TENON_CHECK(kind_ == Kind::map, "adding the key '", key, "' to a setting that is ", kind_name(kind_));
  value.key_ = std::move(key);
  items_.push_back(std::move(value));
  return *this;
}

const Setting* Setting::find(std::string_view key) const {
  if (kind_ != Kind::map) return nullptr;
  const auto found = std::ranges::find(items_, key, &Setting::key_);
  return found == items_.end() ? nullptr : &*found;
}

std::string Setting::subject() const { return key_.empty() ? "this value" : str("'", key_, "'"); }

Result<void> Setting::expect(Kind kind) const {
  if (kind_ == kind) return {};
  return fault(subject(), " is ", kind_name(kind_), "; expected ", kind_name(kind));
}

Result<int64_t> Setting::as_integer(int64_t min, int64_t max) const {
  TENON_TRY(text, bare(*this, "a whole number"));
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc::result_out_of_range) return fault(subject(), " is ", shown(text), ", beyond 64 bits");
  if (code != std::errc() || end != text.data() + text.size())
    return fault(subject(), " is ", shown(text), "; expected a whole number");
  return in_range(*this, value, min, max);
}

Result<uint64_t> Setting::as_quantity(Unit unit, uint64_t min, uint64_t max) const {
  // With a unit it cannot be mistaken, so quotes are allowed: in YAML both forms are the same string.
  if (unit == Unit::none) TENON_OK(bare(*this, "a number"));
  TENON_TRY(text, as_text());
  TENON_TRY(value, placed(*this, parse_quantity(text, unit, subject())));
  if (unit == Unit::none || (value >= min && value <= max)) return in_range(*this, value, min, max);
  return fault(subject(), " is ", text, ", outside [", format_quantity(min, unit), ", ", format_quantity(max, unit),
               "]");
}

Result<Bandwidth> Setting::as_bandwidth() const {
  TENON_TRY(text, as_text());
  return placed(*this, parse_bandwidth(text, subject()));
}

Result<double> Setting::as_real() const {
  TENON_TRY(text, bare(*this, "a number"));
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return fault(subject(), " is ", shown(text), "; expected a finite number");
  return value;
}

Result<bool> Setting::as_bool() const {
  TENON_TRY(text, bare(*this, "true or false"));
  if (text == "true") return true;
  if (text == "false") return false;
  return fault(subject(), " is ", shown(text), "; expected true or false");
}

Result<std::string> Setting::as_text() const {
  TENON_OK(expect(Kind::scalar));
  return text_;
}

Result<const Setting*> Setting::get(std::string_view key) const {
  TENON_OK(expect(Kind::map));
  if (const auto* found = find(key)) return found;
  return fault(key_.empty() ? "" : str(subject(), " "), key_.empty() ? "the key '" : "lacks the key '", key,
               key_.empty() ? "' is missing" : "'");
}

namespace {
Result<const Setting*> get_kind(const Setting& map, std::string_view key, Setting::Kind kind) {
  TENON_TRY(found, map.get(key));
  TENON_OK(found->expect(kind));
  return found;
}
}  // namespace

Result<const Setting*> Setting::map(std::string_view key) const { return get_kind(*this, key, Kind::map); }
Result<const Setting*> Setting::list(std::string_view key) const { return get_kind(*this, key, Kind::list); }
Result<int64_t> Setting::integer(std::string_view key, int64_t min, int64_t max) const {
  TENON_TRY(found, get(key));
  return found->as_integer(min, max);
}
Result<uint64_t> Setting::quantity(std::string_view key, Unit unit, uint64_t min, uint64_t max) const {
  TENON_TRY(found, get(key));
  return found->as_quantity(unit, min, max);
}
Result<std::string> Setting::text_of(std::string_view key) const {
  TENON_TRY(found, get(key));
  return found->as_text();
}
Result<bool> Setting::boolean(std::string_view key) const {
  TENON_TRY(found, get(key));
  return found->as_bool();
}
Result<int64_t> Setting::integer_or(std::string_view key, int64_t fallback, int64_t min, int64_t max) const {
  return find(key) ? integer(key, min, max) : fallback;
}
Result<uint64_t> Setting::quantity_or(std::string_view key, Unit unit, uint64_t fallback, uint64_t min,
                                      uint64_t max) const {
  return find(key) ? quantity(key, unit, min, max) : fallback;
}
Result<std::string> Setting::text_or(std::string_view key, std::string_view fallback) const {
  return find(key) ? text_of(key) : std::string(fallback);
}
Result<bool> Setting::boolean_or(std::string_view key, bool fallback) const {
  return find(key) ? boolean(key) : fallback;
}

namespace {
std::string hint_of(const std::string& given, const std::vector<std::string>& known, std::string_view what) {
  if (known.empty()) return str("there are no ", what, " here");
  const auto hint = nearest(given, known);
  return hint.empty() ? str("the ", what, " here are ", known) : str("did you mean '", hint, "'?");
}
}  // namespace

Result<void> Setting::allow_keys(const std::vector<std::string>& known) const {
  TENON_OK(expect(Kind::map));
  for (const auto& item : items_) {
    if (std::ranges::find(known, item.key_) != known.end()) continue;
    return error(Code::invalid_argument, item.key_place().prefix(), "unknown key ", shown(item.key_),
                 key_.empty() ? "" : str(" in ", subject()), "; ", hint_of(item.key_, known, "keys"));
  }
  return {};
}

Result<void> Setting::allow_words(const std::vector<std::string>& known) const {
  TENON_OK(expect(Kind::list));
  for (const auto& item : items_) {
    TENON_TRY(word, item.as_text());
    if (std::ranges::find(known, word) != known.end()) continue;
    return item.fault("unknown word ", shown(word), " in ", subject(), "; ", hint_of(word, known, "words"));
  }
  return {};
}

bool Setting::operator==(const Setting& other) const {
  const auto same_entry = [](const Setting& a, const Setting& b) { return a.key_ == b.key_ && a == b; };
  return kind_ == other.kind_ && quoted_ == other.quoted_ && text_ == other.text_ &&
         std::ranges::equal(items_, other.items_, same_entry);
}

namespace {

// quote() writes control bytes as \xNN, which YAML allows and JSON does not.
std::string json_quote(std::string_view text) {
  const std::string quoted = quote(text);
  std::string out;
  for (size_t i = 0; i < quoted.size(); ++i) {
    out += quoted[i];
    if (quoted[i] != '\\') continue;
    const char escape = quoted[++i];
    out += escape == 'x' ? "u00" : std::string(1, escape);
  }
  return out;
}

// A scalar or an empty value in one of the two languages.
std::string leaf_text(const Setting& setting, const char* none, std::string (*quoted)(std::string_view)) {
  if (setting.kind() == Setting::Kind::none) return none;
  return setting.is_quoted() ? quoted(setting.raw()) : setting.raw();
}
bool is_leaf(const Setting& setting) {
  return setting.kind() == Setting::Kind::none || setting.kind() == Setting::Kind::scalar;
}

std::string yaml_key(const std::string& key) { return is_plain(key) ? key : quote(key); }

void write_flow(std::string& out, const Setting& setting) {
  if (is_leaf(setting)) {
    out += leaf_text(setting, "~", quote);
    return;
  }
  const bool is_map = setting.kind() == Setting::Kind::map;
  out += is_map ? '{' : '[';
  bool first = true;
  for (const auto& item : setting.items()) {
    if (!first) out += ", ";
    first = false;
    if (is_map) out += yaml_key(item.key()) + ": ";
    write_flow(out, item);
  }
  out += is_map ? '}' : ']';
}

// A map that contains maps is spread over lines, down to the third level; everything else is on one line.
void write_block(std::string& out, const Setting& map, size_t level) {
  for (const auto& item : map.items()) {
    out.append(2 * level, ' ');
    out += yaml_key(item.key());
    const auto is_map = [](const Setting& value) { return value.kind() == Setting::Kind::map; };
    if (is_map(item) && level < 2 && std::ranges::any_of(item.items(), is_map)) {
      out += ":\n";
      write_block(out, item, level + 1);
    } else {
      out += ": ";
      write_flow(out, item);
      out += '\n';
    }
  }
}

void write_json(std::string& out, const Setting& setting, size_t level) {
  if (is_leaf(setting)) {
    out += leaf_text(setting, "null", json_quote);
    return;
  }
  const bool is_map = setting.kind() == Setting::Kind::map;
  // A list of scalars reads better on one line.
  const bool spread = is_map || !std::ranges::all_of(setting.items(), is_leaf);
  out += is_map ? '{' : '[';
  bool first = true;
  for (const auto& item : setting.items()) {
    if (!first) out += spread ? "," : ", ";
    first = false;
    if (spread) out += '\n', out.append(2 * (level + 1), ' ');
    if (is_map) out += json_quote(item.key()) + ": ";
    write_json(out, item, level + 1);
  }
  if (spread && !first) out += '\n', out.append(2 * level, ' ');
  out += is_map ? '}' : ']';
}

}  // namespace

std::string to_yaml(const Setting& setting) {
  std::string out;
  if (setting.kind() == Setting::Kind::map && !setting.items().empty()) {
    write_block(out, setting, 0);
  } else {
    write_flow(out, setting);
    out += '\n';
  }
  return out;
}

std::string to_json(const Setting& setting) {
  std::string out;
  write_json(out, setting, 0);
  return out + '\n';
}

}  // namespace tenon
