#include <tenon/target/load.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <tenon/support/log.hpp>
#include <tenon/target/keys_internal.hpp>
#include <tenon/tensor/element_type.hpp>
#include <tenon/tensor/layout_text.hpp>

namespace tenon {
namespace {

using target_keys::Form;
using target_keys::Key;
using target_keys::section_info;

// Whether `c` is in a set written as in a regular expression's brackets; a final '-' stands for itself.
bool in_set(char c, std::string_view set) {
  for (size_t i = 0; i < set.size(); ++i) {
    const bool range = i + 2 < set.size() && set[i + 1] == '-';
    if (range ? (c >= set[i] && c <= set[i + 2]) : c == set[i]) return true;
    if (range) i += 2;
  }
  return false;
}

// The word, if it has the form `form`. `at` gives the place of the error.
Result<std::string> formed(const Setting& at, const std::string& word, const Form& form) {
  if (word.empty()) return at.fault(at.subject(), " is empty; expected ", form.noun);
  if (word.size() > form.max_bytes)
    return at.fault(form.noun, " of ", word.size(), " bytes; at most ", form.max_bytes, " are allowed");
  if (*form.first == '\0') return word;
  const std::string_view rest = std::string_view(word).substr(1);
  const bool is_formed =
      in_set(word.front(), form.first) && std::ranges::all_of(rest, [&](char c) { return in_set(c, form.rest); });
  if (is_formed && form.is_element_type && !ElementType::parse(word))
    return at.fault("there is no element type ", quote(word),
                    "; write one such as bool, i8, u4, i32, f16, bf16 or f32");
  if (is_formed && form.is_layout) {
    if (const auto sound = check_layout_text(word); !sound.ok()) return at.fault(sound.error().message());
  }
  if (is_formed) return word;
  return at.fault(quote(word), " is not ", form.noun, ": it starts with one of ", form.first,
                  " and goes on with any of ", form.rest);
}

Result<std::string> read_word(const Setting& setting, const Form& form) {
  TENON_TRY(word, setting.as_text());
  return formed(setting, word, form);
}

Result<std::vector<std::string>> read_words(const Setting& setting, const Form& form) {
  TENON_OK(setting.expect(Setting::Kind::list));
  std::vector<std::string> words;
  for (const auto& item : setting.items()) {
    TENON_TRY(word, read_word(item, form));
    words.push_back(std::move(word));
  }
  return words;
}

Result<Choice> read_choice(const Setting& setting) {
  if (!setting.is_quoted() && !setting.raw().empty() && in_set(setting.raw().front(), "0-9-")) {
    TENON_TRY(value, setting.as_integer());
    return Choice(value);
  }
  TENON_TRY(word, read_word(setting, target_keys::kAnyText));
  return Choice(std::move(word));
}

Result<std::vector<Choice>> read_choices(const Setting& setting) {
  TENON_OK(setting.expect(Setting::Kind::list));
  if (setting.items().empty())
    return setting.fault(setting.subject(), " lists no value, which would refuse everything");
  std::vector<Choice> choices;
  for (const auto& item : setting.items()) {
    TENON_TRY(choice, read_choice(item));
    choices.push_back(std::move(choice));
  }
  return choices;
}

// Conditions between the keys of one section.
template <class T>
Result<void> check_section(const Setting&, const T&) {
  return {};
}
Result<void> check_section(const Setting& setting, const MemorySpace& memory) {
  if (memory.element_bytes == 0 || memory.size_bytes % memory.element_bytes == 0) return {};
  return setting.find("size")->fault("'size' is ", memory.size_bytes, " B, not a multiple of the ",
                                     memory.element_bytes, " B of its 'element'");
}
Result<void> check_section(const Setting& setting, const Engine& engine) {
  if (engine.macs_per_cycle || engine.lanes) return {};
  return setting.fault("the engine ", setting.subject(), " states neither 'macs_per_cycle' nor 'lanes'; add one");
}
Result<void> check_section(const Setting& setting, const Constraint& constraint) {
  if (constraint.multiple_of && *constraint.multiple_of <= 0)
    return setting.find("multiple_of")->fault("'multiple_of' is ", *constraint.multiple_of, "; it must be above 0");
  if (!constraint.min || !constraint.max || *constraint.min <= *constraint.max) return {};
  return setting.find("max")->fault("'max' is ", *constraint.max, ", below 'min', which is ", *constraint.min);
}

template <class T>
Result<void> read_section(const Setting& setting, T& section);

// Reads an entry of a map of sections; operators and attributes also have one-word forms.
template <class T>
Result<void> read_entry(const Setting& setting, T& section) {
  return read_section(setting, section);
}
Result<void> read_entry(const Setting& setting, OperatorLimits& limits) {
  if (setting.kind() != Setting::Kind::scalar) return read_section(setting, limits);
  limits.supported = setting.raw() != "none";
  if (setting.raw() == "any" || setting.raw() == "none") return {};
  return setting.fault(setting.subject(), " is ", quote(setting.raw()), "; write any, none or a map of limits");
}
Result<void> read_entry(const Setting& setting, Constraint& constraint) {
  if (setting.kind() == Setting::Kind::map) return read_section(setting, constraint);
  if (setting.kind() == Setting::Kind::list) {
    TENON_TRY(choices, read_choices(setting));
    constraint.one_of = std::move(choices);
    return {};
  }
  if (setting.raw() == "any" && !setting.is_quoted()) return {};
  TENON_TRY(choice, read_choice(setting), "the limit ", setting.subject());
  constraint.one_of = {std::move(choice)};
  return {};
}

// The visitor that fills a section. Stops at the first error.
class Reader {
 public:
  explicit Reader(const Setting& map) : map_(map) {}

  void key(const Key& k, uint64_t& value) {
    take(k, [&](const Setting& setting) -> Result<void> {
      TENON_TRY(number, setting.as_quantity(k.unit, k.min, k.max));
      if (k.power_of_two && (number & (number - 1)) != 0)
        return setting.fault(setting.subject(), " is ", setting.raw(), ", which is not a power of two");
      value = number;
      return {};
    });
  }
  void key(const Key& k, std::optional<int64_t>& value) {
    store(k, value, [](const Setting& setting) { return setting.as_integer(); });
  }
  void key(const Key& k, std::optional<Bandwidth>& value) {
    store(k, value, [](const Setting& setting) { return setting.as_bandwidth(); });
  }
  void key(const Key& k, std::string& value) {
    store(k, value, [&](const Setting& setting) { return read_word(setting, k.form); });
  }
  void key(const Key& k, std::vector<std::string>& value) {
    store(k, value, [&](const Setting& setting) { return read_words(setting, k.form); });
  }
  void key(const Key& k, std::vector<Choice>& value) { store(k, value, read_choices); }
  void key(const Key& k, std::map<std::string, std::string>& value) {
    take(k, [&](const Setting& setting) -> Result<void> {
      TENON_OK(setting.expect(Setting::Kind::map));
      for (const auto& item : setting.items()) {
        TENON_OK(formed(item, item.key(), k.names));
        TENON_TRY(word, read_word(item, k.form));
        value.emplace(item.key(), std::move(word));
      }
      return {};
    });
  }
  void key(const Key& k, Setting& value) {
    take(k, [&](const Setting& setting) -> Result<void> {
      TENON_OK(setting.expect(Setting::Kind::map));
      value = setting;
      return {};
    });
  }
  template <class T>
  void section(const Key& k, T& value) {
    take(k, [&](const Setting& setting) { return read_section(setting, value); });
  }
  template <class T>
  void sections(const Key& k, std::vector<T>& values) {
    take(k, [&](const Setting& setting) -> Result<void> {
      TENON_OK(setting.expect(Setting::Kind::map));
      for (const auto& item : setting.items()) TENON_OK(append(item, k.form, values));
      return {};
    });
  }
  void others(const Key& k, std::vector<Constraint>& values) {
    if (error_) return;
    const auto& listed = section_info<OperatorLimits>().keys;
    for (const auto& item : map_.items()) {
      const auto is_listed = [&](const auto& info) { return info.key.name == item.key(); };
      if (std::ranges::any_of(listed, is_listed)) continue;
      if (auto done = append(item, k.form, values); !done.ok()) {
        error_ = std::move(done).error();
        return;
      }
    }
  }

  std::optional<Error> take_error() { return std::move(error_); }

 private:
  template <class T>
  static Result<void> append(const Setting& item, const Form& form, std::vector<T>& values) {
    T section;
    TENON_TRY(name, formed(item, item.key(), form));
    section.name = std::move(name);
    TENON_OK(read_entry(item, section));
    values.push_back(std::move(section));
    return {};
  }

  template <class Read>
  void take(const Key& k, Read read) {
    if (error_) return;
    const Setting* setting = map_.find(k.name);
    if (!setting && k.required)
      error_ = map_.fault("the key '", k.name, "' is missing", map_.key().empty() ? "" : str(" in ", map_.subject()),
                          "; add for example `", k.name, ": ", k.example, "`");
    if (!setting) return;
    if (auto done = read(*setting); !done.ok()) error_ = std::move(done).error();
  }
  template <class T, class Read>
  void store(const Key& k, T& value, Read read) {
    take(k, [&](const Setting& setting) -> Result<void> {
      TENON_TRY(result, read(setting));
      value = std::move(result);
      return {};
    });
  }

  const Setting& map_;
  std::optional<Error> error_;
};

template <class T>
Result<void> read_section(const Setting& setting, T& section) {
  const auto& info = section_info<T>();
  TENON_OK(setting.expect(Setting::Kind::map));
  if (info.open) {
    for (const auto& [wrong, right] : target_keys::kMisspelt)
      if (const auto* item = setting.find(wrong))
        return item->fault("unknown key ", quote(wrong), " in ", setting.subject(), "; did you mean '", right, "'?");
  } else {
    std::vector<std::string> names;
    for (const auto& key : info.keys) names.emplace_back(key.key.name);
    TENON_OK(setting.allow_keys(names));
  }
  Reader reader(setting);
  target_keys::visit_keys(reader, section);
  if (auto error = reader.take_error()) return *std::move(error);
  return check_section(setting, section);
}

// Called first, so that a file of a later format is reported as such and not as full of unknown keys.
Result<void> check_version(const Setting& root) {
  constexpr std::string_view kRemedy = "; a target file is a map of keys and starts with `tenon_target: 1`";
  if (root.kind() == Setting::Kind::none) return root.fault("the file is empty", kRemedy);
  if (root.kind() != Setting::Kind::map) return root.fault("the keys are missing", kRemedy);
  const auto* version = root.find("tenon_target");
  if (!version) return root.fault("the key 'tenon_target' is missing", kRemedy);
  TENON_TRY(number, version->as_integer());
  if (number != 1)
    return version->fault("this is version ", number, " of the target format, and this Tenon reads version 1");
  return {};
}

bool is_path(std::string_view name) {
  return name.find('/') != name.npos || name.ends_with(".yaml") || name.ends_with(".yml");
}

constexpr std::string_view kSuffix = ".yaml";

// Names of the target files in `folder`, sorted.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  auto entry = std::filesystem::directory_iterator(folder, ignored);
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored))
    if (entry->path().extension() == kSuffix) names.push_back(entry->path().stem().string());
  std::ranges::sort(names);
  return names;
}

std::string path_in(const std::string& folder, std::string_view name) { return str(folder, "/", name, kSuffix); }

Result<TargetDescription> load_named(const std::string& path, std::string_view name) {
  TENON_TRY(target, load_target(path));
  if (target.name == name) return target;
  return error(Code::invalid_argument, path, ": holds the target '", target.name, "'; rename the file ", target.name,
               kSuffix, " or the target ", name);
}

// Adds the folder `below` of the installation that the file `binary` belongs to, which is in PREFIX/bin, PREFIX/lib or
// PREFIX/lib/<machine>.
void add_installed(std::vector<std::string>& folders, const std::filesystem::path& binary, std::string_view below) {
  auto prefix = binary.parent_path();
  for (int level = 0; level < 2; ++level) {
    prefix = prefix.parent_path();
    const auto folder = prefix / below;
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored)) continue;
    if (std::ranges::find(folders, folder.string()) == folders.end()) folders.push_back(folder.string());
  }
}

const char kAnchor = 0;  // an address in this library, for dladdr

}  // namespace

Result<TargetDescription> parse_target(std::string_view text, std::string_view file) {
  TENON_TRY(root, parse_yaml(text, file));
  TENON_OK(check_version(root));
  TargetDescription target;
  TENON_OK(read_section(root, target));
  // So that errors about absent keys can name the place of `options`.
  if (!root.find("options")) target.options = Setting::map().add("options", Setting::map()).items().front();
  target.source = file;
  target.stated = std::make_shared<const Setting>(std::move(root));
  return target;
}

Result<TargetDescription> load_target(const std::string& path) {
  TENON_TRY(text, read_small_file(path));
  return parse_target(text, path);
}

std::vector<std::string> search_folders(const char* variable, std::string_view below) {
  std::vector<std::string> folders;
  if (const char* listed = ::secure_getenv(variable)) {
    for (const auto piece : split(listed, ':')) {
      if (piece.starts_with('/')) {
        folders.emplace_back(piece);
      } else if (!piece.empty()) {
        log(LogLevel::warning, variable, ": ignoring '", piece, "', which is not an absolute path");
      }
    }
  }
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!ignored) add_installed(folders, program, below);
  Dl_info library{};
  if (::dladdr(&kAnchor, &library) != 0 && library.dli_fname) {
    const auto path = std::filesystem::canonical(library.dli_fname, ignored);
    if (!ignored) add_installed(folders, path, below);
  }
  return folders;
}

std::vector<std::string> target_search_paths() { return search_folders("TENON_TARGET_PATH", "share/tenon/targets"); }

Result<TargetDescription> find_target(std::string_view name, const std::vector<std::string>& folders) {
  if (is_path(name)) return load_target(std::string(name));
  std::vector<std::string> known;
  for (const auto& folder : folders) {
    auto names = names_in(folder);
    if (std::ranges::binary_search(names, name)) return load_named(path_in(folder, name), name);
    std::ranges::move(names, std::back_inserter(known));
  }
  const auto hint = nearest(name, known);
  return error(Code::not_found, "no target '", name, "' in ", folders.empty() ? "any folder" : str(folders),
               hint.empty() ? "; name a YAML file, or set TENON_TARGET_PATH" : str("; did you mean '", hint, "'?"));
}

std::vector<FoundTarget> list_targets(const std::vector<std::string>& folders) {
  std::vector<FoundTarget> targets;
  for (const auto& folder : folders) {
    for (auto& name : names_in(folder)) {
      if (std::ranges::find(targets, name, &FoundTarget::name) != targets.end()) continue;
      const auto path = path_in(folder, name);
      targets.push_back({name, path, load_named(path, name)});
    }
  }
  std::ranges::sort(targets, {}, &FoundTarget::name);
  return targets;
}

}  // namespace tenon
