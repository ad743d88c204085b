// parse_yaml: converts the events of yaml-cpp to a Setting. The library's own node tree is not used: it silently keeps
// the first of two equal keys, follows aliases, and drops positions.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>

#include <tenon/target/setting.hpp>

namespace tenon {
namespace {

// Carries an Error out of the library's parser to parse_yaml; never leaves this file.
struct Refused {
  Error error;
};

constexpr std::string_view kNoAliases = "aliases are not allowed: write the value out again";

struct Where {
  int line, column;  // from 1
};
Where where(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

// The first byte that is not allowed: not UTF-8, or a control byte (tab, line feed, carriage return and U+0085, which
// YAML treats as a line break, are allowed).
std::optional<size_t> first_bad_byte(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c0 = byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0 && next != 0x85;
    if (c0 || c1 || byte == 0x7f) return i;
  }
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (!is_utf8(text.substr(i, length))) return i;
    i += length;
  }
  return std::nullopt;
}

// Whether the quote at the start of `text` is closed. The library accepts the end of the file as a closing quote after
// a line break.
bool is_closed(std::string_view text) {
  const char quote = text.front();
  for (size_t i = 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      const bool doubled = quote == '\'' && i + 1 < text.size() && text[i + 1] == quote;
      if (!doubled) return true;
      ++i;
    }
  }
  return false;
}

}  // namespace

// Builds the tree. A friend of Setting (setting.hpp), so that it may set places.
class SettingBuilder final : public YAML::EventHandler {
 public:
  SettingBuilder(std::string_view text, std::string_view file)
      : text_(text), file_(std::make_shared<const std::string>(file)) {
    place(root_, {1, 1});  // for a text without a document
  }

  Setting take() { return std::move(root_); }

  template <class... Parts>
  [[noreturn]] void refuse(Where at, const Parts&... parts) const {
    throw Refused{error(Code::parse, Place{file_, at.line, at.column}.prefix(), parts...)};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0)
      refuse(where(mark), "a second YAML document starts here; a target file holds one, so remove the '---' before it");
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    refuse(where(mark), "the anchor ", quote(clipped(name)), " is not allowed: write the value out where it is needed");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(where(mark), kNoAliases); }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { value(where(mark), Setting()); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& text) override {
    // "?" is the tag of a scalar without quotes, "!" of one with quotes.
    check_tag(mark, tag);
    if (first_bad_byte(text))
      refuse(where(mark), "an escape in this text stands for a control character, which is not allowed");
    const auto source = text_.substr(std::min(static_cast<size_t>(mark.pos), text_.size()));
    if (source.starts_with('!')) refuse(where(mark), "the tag \"!\" is not allowed: remove it");
    if ((source.starts_with('"') || source.starts_with('\'')) && !is_closed(source))
      refuse(where(mark), "the quote that opens here is never closed");
    value(where(mark), Setting::scalar(text, tag == "!"));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, Setting::list());
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, tag, Setting::map());
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    Setting setting;
    std::optional<std::string> key;  // in a map: a key that has been read, and whose value follows
    Where key_at{};
    std::unordered_map<std::string, Where> keys;
  };

  static std::string clipped(const std::string& text) { return text.substr(0, kMaxYamlKeyBytes); }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(where(mark), "the tag ", quote(clipped(tag)), " is not allowed: remove it");
  }

  void open(const YAML::Mark& mark, const std::string& tag, Setting setting) {
    check_tag(mark, tag);
    const Where at = where(mark);
    if (levels_.size() >= static_cast<size_t>(kMaxYamlDepth))
      refuse(at, "maps and lists are nested deeper than ", kMaxYamlDepth, " levels here");
    if (expects_key()) refuse(at, "a map or list cannot be a key: use a single word");
    place(setting, at);
    levels_.push_back({std::move(setting), std::nullopt, {}, {}});
  }

  void close() {
    Setting done = std::move(levels_.back().setting);
    levels_.pop_back();
    attach(std::move(done));
  }

  bool expects_key() const {
    return !levels_.empty() && levels_.back().setting.kind() == Setting::Kind::map && !levels_.back().key;
  }

  void value(Where at, Setting setting) {
    if (expects_key()) return take_key(at, setting);
    place(setting, at);
    attach(std::move(setting));
  }

  void take_key(Where at, const Setting& setting) {
    Level& level = levels_.back();
    const std::string& key = setting.raw();
    if (setting.kind() == Setting::Kind::none || key.empty()) refuse(at, "a key is missing before ':'");
    if (key.size() > kMaxYamlKeyBytes)
      refuse(at, "a key of ", key.size(), " bytes; at most ", kMaxYamlKeyBytes, " are allowed");
    if (key == "<<") refuse(at, "merge keys ('<<') are not allowed: write the keys out");
    const auto [earlier, fresh] = level.keys.emplace(key, at);
    if (!fresh)
      refuse(at, "the key ", quote(key), " stands here a second time; it is first at line ", earlier->second.line,
             ", so remove one of them");
    level.key = key;
    level.key_at = at;
  }

  void place(Setting& setting, Where at) const { setting.place_ = {file_, at.line, at.column}; }

  void attach(Setting setting) {
    if (levels_.empty()) {
      root_ = std::move(setting);
      return;
    }
    Level& level = levels_.back();
    if (level.key) {
      setting.key_ = *std::move(level.key);
      setting.key_line_ = level.key_at.line;
      setting.key_column_ = level.key_at.column;
      // The library gives an empty value the position of the next token.
      if (setting.kind() == Setting::Kind::none) place(setting, level.key_at);
      level.key.reset();
    }
    level.setting.items_.push_back(std::move(setting));
  }

  std::string_view text_;
  std::shared_ptr<const std::string> file_;
  Setting root_;
  std::vector<Level> levels_;
  int documents_ = 0;
};

Result<Setting> parse_yaml(std::string_view text, std::string_view file) {
  if (text.size() > kMaxYamlBytes)
    return error(Code::resource_exhausted, file, ": ", text.size(), " bytes; a target file may have at most ",
                 kMaxYamlBytes);
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  SettingBuilder builder(text, file);
  try {
    if (const auto bad = first_bad_byte(text)) {
      const auto before = text.substr(0, *bad);
      const auto line_start = before.rfind('\n') + 1;  // npos + 1 is 0
      const Where at{static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
                     static_cast<int>(*bad - line_start) + 1};
      const auto byte = static_cast<unsigned char>(text[*bad]);
      if (byte < 0x80) builder.refuse(at, "the control byte ", int{byte}, " is not allowed");
      builder.refuse(at, "the byte ", int{byte}, " starts no printable UTF-8 character; save the file as UTF-8");
    }
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {}
    return builder.take();
  } catch (Refused& refused) {
    return std::move(refused.error);
  } catch (const YAML::Exception& fault) {
    const Where at = fault.mark.is_null() ? Where{1, 1} : where(fault.mark);
    // Anchors are always refused, so every alias refers to an unknown anchor.
    const bool is_alias = fault.msg.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR);
    return error(Code::parse, file, ":", at.line, ":", at.column, ": ",
                 is_alias ? str(kNoAliases) : str("this is not YAML: ", fault.msg));
  } catch (const std::exception& fault) {
    return error(Code::parse, file, ": the YAML reader failed: ", fault.what());
  }
}

Result<std::string> read_small_file(const std::string& path, size_t max_bytes) {
  struct Descriptor {
    int fd;
    ~Descriptor() {
      if (fd >= 0) ::close(fd);
    }
  };
  // Non-blocking, because opening a FIFO for reading would wait for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)};
  if (file.fd < 0)
    return error(errno == ENOENT ? Code::not_found : Code::io, path, ": cannot be opened: ", std::strerror(errno));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) return error(Code::io, path, ": ", std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    return error(Code::io, path, ": ", S_ISDIR(status.st_mode) ? "a folder" : "not a regular file", "; name a file");
  std::string text;
  // One byte more than allowed shows that the file is too large, whatever its stated size.
  text.resize(max_bytes + 1);
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error(Code::io, path, ": cannot be read: ", std::strerror(errno));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > max_bytes)
    return error(Code::resource_exhausted, path, ": more than ", max_bytes, " bytes; a target file is far smaller");
  text.resize(size);
  return text;
}

}  // namespace tenon
