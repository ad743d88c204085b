#include <tenon/target/description.hpp>

#include <algorithm>
#include <iterator>
#include <tuple>

#include <tenon/target/keys_internal.hpp>

namespace tenon {
namespace {

template <class T>
const T* find_named(const std::vector<T>& entries, std::string_view name) {
  const auto found = std::ranges::find(entries, name, &T::name);
  return found == entries.end() ? nullptr : &*found;
}

template <class... Parts>
Error refusal(const TargetDescription& target, const Parts&... parts) {
  return error(Code::unsupported, parts..., " on target ", target.name);
}

std::string choice_text(const Choice& choice) {
  return std::visit([](const auto& value) { return str(value); }, choice);
}

template <class T>
std::string one_of_text(const T& list) {
  return list.size() == 1 ? str("is not ", list.front()) : str("is not one of ", list);
}

Result<void> check_choice(const TargetDescription& target, const Constraint& constraint, const Choice& value) {
  if (constraint.one_of.empty() || std::ranges::find(constraint.one_of, value) != constraint.one_of.end()) return {};
  std::vector<std::string> allowed;
  std::ranges::transform(constraint.one_of, std::back_inserter(allowed), choice_text);
  return refusal(target, constraint.name, " ", choice_text(value), " ", one_of_text(allowed));
}

Result<void> check_value(const TargetDescription& target, const Constraint& constraint, int64_t value) {
  if (constraint.max && value > *constraint.max)
    return refusal(target, constraint.name, " ", value, " exceeds ", *constraint.max);
  if (constraint.min && value < *constraint.min)
    return refusal(target, constraint.name, " ", value, " is below ", *constraint.min);
  if (constraint.multiple_of && value % *constraint.multiple_of != 0)
    return refusal(target, constraint.name, " ", value, " is not a multiple of ", *constraint.multiple_of);
  return check_choice(target, constraint, value);
}

Result<void> check_word(const TargetDescription& target, std::string_view operator_name, const char* what,
                        const std::vector<std::string>& allowed, std::string_view value) {
  if (allowed.empty() || std::ranges::find(allowed, value) != allowed.end()) return {};
  return refusal(target, what, " ", value, " of ", operator_name, " ", one_of_text(allowed));
}

}  // namespace

const MemorySpace* TargetDescription::memory(std::string_view name) const { return find_named(memories, name); }
const Engine* TargetDescription::engine(std::string_view name) const { return find_named(engines, name); }
const RegisterClass* TargetDescription::register_class(std::string_view name) const {
  return find_named(registers, name);
}
const OperatorLimits* TargetDescription::limits(std::string_view operator_name) const {
  return find_named(operators, operator_name);
}
bool TargetDescription::has_feature(std::string_view name) const {
  return std::ranges::find(features, name) != features.end();
}

Result<void> TargetDescription::check(std::string_view operator_name) const {
  const auto* entry = limits(operator_name);
  if (!entry || entry->supported) return {};
  return refusal(*this, "operator ", operator_name, " is not available");
}

Result<void> TargetDescription::check(std::string_view operator_name, std::string_view attribute,
                                      std::span<const int64_t> values) const {
  TENON_OK(check(operator_name));
  const auto* entry = limits(operator_name);
  const auto* constraint = entry ? find_named(entry->attributes, attribute) : nullptr;
  if (!constraint) return {};
  for (const int64_t value : values) TENON_OK(check_value(*this, *constraint, value));
  return {};
}

Result<void> TargetDescription::check(std::string_view operator_name, std::string_view attribute, int64_t value) const {
  return check(operator_name, attribute, std::span(&value, 1));
}

Result<void> TargetDescription::check(std::string_view operator_name, std::string_view attribute,
                                      std::string_view value) const {
  TENON_OK(check(operator_name));
  const auto* entry = limits(operator_name);
  const auto* constraint = entry ? find_named(entry->attributes, attribute) : nullptr;
  return constraint ? check_choice(*this, *constraint, std::string(value)) : Result<void>();
}

Result<void> TargetDescription::check_type(std::string_view operator_name, std::string_view type) const {
  TENON_OK(check(operator_name));
  const auto* entry = limits(operator_name);
  return entry ? check_word(*this, operator_name, "type", entry->types, type) : Result<void>();
}

Result<void> TargetDescription::check_layout(std::string_view operator_name, std::string_view layout) const {
  TENON_OK(check(operator_name));
  const auto* entry = limits(operator_name);
  return entry ? check_word(*this, operator_name, "layout", entry->layouts, layout) : Result<void>();
}

bool TargetDescription::operator==(const TargetDescription& other) const {
  const auto facts = [](const TargetDescription& t) {
    return std::tie(t.version, t.name, t.plugin, t.driver, t.clock_hz, t.features, t.memories, t.engines, t.dma,
                    t.registers, t.operators, t.layouts, t.value_layouts, t.options);
  };
  return facts(*this) == facts(other);
}

namespace {

using target_keys::Key;

Setting words_setting(const std::vector<std::string>& words) {
  auto list = Setting::list();
  for (const auto& word : words) list.add(Setting::word(word));
  return list;
}

// A word that parses as a number is quoted, so that it stays a word.
Setting choices_setting(const std::vector<Choice>& choices) {
  auto list = Setting::list();
  for (const auto& choice : choices) {
    const auto* word = std::get_if<std::string>(&choice);
    auto plain = Setting::word(choice_text(choice));
    list.add(word && plain.as_integer().ok() ? Setting::text(*word) : std::move(plain));
  }
  return list;
}

template <class T>
Setting write_section(T& section);

Setting write_entry(Constraint& constraint) {
  if (constraint == Constraint{constraint.name}) return Setting::word("any");
  if (constraint == Constraint{.name = constraint.name, .one_of = constraint.one_of})
    return choices_setting(constraint.one_of);
  return write_section(constraint);
}
Setting write_entry(OperatorLimits& limits) {
  if (!limits.supported) return Setting::word("none");
  if (limits == OperatorLimits{limits.name}) return Setting::word("any");
  return write_section(limits);
}
template <class T>
Setting write_entry(T& section) {
  return write_section(section);
}

// Every key of one section.
class Writer {
 public:
  void key(const Key& k, uint64_t& value) { add(k, Setting::word(format_quantity(value, k.unit))); }
  void key(const Key& k, std::optional<int64_t>& value) {
    if (value) add(k, Setting::word(str(*value)));
  }
  void key(const Key& k, std::optional<Bandwidth>& value) {
    if (value) add(k, Setting::word(format_bandwidth(*value)));
  }
  void key(const Key& k, std::string& value) { add(k, Setting::word(value)); }
  void key(const Key& k, std::vector<std::string>& value) { add(k, words_setting(value)); }
  void key(const Key& k, std::vector<Choice>& value) { add(k, choices_setting(value)); }
  void key(const Key& k, std::map<std::string, std::string>& value) {
    auto map = Setting::map();
    for (const auto& [name, word] : value) map.add(name, Setting::word(word));
    add(k, std::move(map));
  }
  void key(const Key& k, Setting& value) { add(k, value); }
  template <class T>
  void section(const Key& k, T& value) {
    add(k, write_section(value));
  }
  template <class T>
  void sections(const Key& k, std::vector<T>& values) {
    auto map = Setting::map();
    for (auto& value : values) map.add(value.name, write_entry(value));
    add(k, std::move(map));
  }
  void others(const Key&, std::vector<Constraint>& values) {
    for (auto& value : values) map_.add(value.name, write_entry(value));
  }
  Setting take() { return std::move(map_); }

 private:
  void add(const Key& k, Setting setting) { map_.add(std::string(k.name), std::move(setting)); }
  Setting map_ = Setting::map();
};

template <class T>
Setting write_all(T& section) {
  Writer writer;
  target_keys::visit_keys(writer, section);
  return writer.take();
}

// The required keys, and those that differ from a default-constructed section.
template <class T>
Setting write_section(T& section) {
  T untouched;
  const Setting defaults = write_all(untouched);
  const Setting all = write_all(section);
  const auto is_required = [](const std::string& name) {
    const auto& keys = target_keys::section_info<T>().keys;
    return std::ranges::any_of(keys, [&](const auto& info) { return info.key.name == name && info.key.required; });
  };
  auto map = Setting::map();
  for (const auto& item : all.items()) {
    const auto* usual = defaults.find(item.key());
    if (!usual || *usual != item || is_required(item.key())) map.add(item.key(), item);
  }
  return map;
}

// The description in the form in which it is read.
Setting written(const TargetDescription& description) {
  auto copy = description;  // visitors take sections they could change
  return write_section(copy);
}

}  // namespace

std::string TargetDescription::place_of(std::initializer_list<std::string_view> keys) const {
  std::string place = source.empty() ? "" : str(source, ": ");
  const Setting* at = stated.get();
  for (const std::string_view key : keys) {
    at = at ? at->find(key) : nullptr;
    if (at) place = at->key_place().prefix();
  }
  return place;
}

Result<void> TargetDescription::allow_names(std::string_view key, const std::vector<std::string>& known) const {
  const Setting made = stated ? Setting() : written(*this);
  const Setting* section = (stated ? *stated : made).find(key);
  if (!section) return {};
  return section->kind() == Setting::Kind::list ? section->allow_words(known) : section->allow_keys(known);
}

std::string to_yaml(const TargetDescription& description) { return to_yaml(written(description)); }

}  // namespace tenon
