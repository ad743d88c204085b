#include <tenon/target/schema.hpp>

#include <algorithm>
#include <vector>

#include <tenon/target/keys_internal.hpp>

namespace tenon {
namespace {

using target_keys::Form;
using target_keys::Key;
using target_keys::KeyInfo;
using target_keys::section_info;
using target_keys::SectionInfo;
using target_keys::Shape;

// Every section, after those that it uses.
std::vector<const SectionInfo*> all_sections() {
  return {&section_info<MemorySpace>(),      &section_info<Engine>(),     &section_info<Dma>(),
          &section_info<RegisterClass>(),    &section_info<Constraint>(), &section_info<OperatorLimits>(),
          &section_info<TargetDescription>()};
}

Setting json_text(std::string_view text) { return Setting::text(std::string(text)); }
Setting json_word(std::string_view text) { return Setting::word(std::string(text)); }
template <class... Items>
Setting json_list(const Items&... items) {
  auto list = Setting::list();
  (list.add(items), ...);
  return list;
}
Setting typed(std::string_view type) { return Setting::map().add("type", json_text(type)); }
Setting reference(std::string_view section) { return Setting::map().add("$ref", json_text(str("#/$defs/", section))); }

std::string form_pattern(const Form& form) {
  return str("^[", form.first, "][", form.rest, "]{0,", form.max_bytes - 1, "}$");
}
// YAML does not parse a word such as 123 or true as text; the loader takes it as a word.
Setting word_schema(const Form& form) {
  if (*form.first == '\0')
    return Setting::map().add("type", json_list(json_text("string"), json_text("number"), json_text("boolean")));
  return typed("string").add("pattern", json_text(form_pattern(form)));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '/' ? std::string("\\/") : std::string(1, c);
  return out;
}
Setting quantity_schema(std::span<const UnitName> units) {
  std::string names;
  for (const auto& unit : units) names += str(names.empty() ? "" : "|", escaped(unit.text));
  return typed("string").add("pattern", json_text(str("^[0-9]+(\\.[0-9]+)? *(", names, ")$")));
}
Setting list_schema(Setting item) { return typed("array").add("items", std::move(item)); }
Setting map_schema(const Form& names, Setting value) {
  return typed("object")
      .add("propertyNames", Setting::map().add("pattern", json_text(form_pattern(names))))
      .add("additionalProperties", std::move(value));
}
Setting choice_schema() { return Setting::map().add("type", json_list(json_text("integer"), json_text("string"))); }

// A section as an entry of a map of sections: operators and constraints have short forms, too.
Setting entry_schema(const SectionInfo& section) {
  const auto whole = reference(section.name);
  if (&section == &section_info<OperatorLimits>()) {
    const auto words = Setting::map().add("enum", json_list(json_text("any"), json_text("none")));
    return Setting::map().add("oneOf", json_list(words, whole));
  }
  if (&section != &section_info<Constraint>()) return whole;
  return Setting::map().add(
      "oneOf", json_list(choice_schema(), list_schema(choice_schema()).add("minItems", json_word("1")), whole));
}

Setting number_schema(const Key& key) {
  if (key.unit != Unit::none) return quantity_schema(unit_names(key.unit));
  return typed("integer").add("minimum", json_word(str(key.min))).add("maximum", json_word(str(key.max)));
}

Setting value_schema(const KeyInfo& info) {
  switch (info.shape) {
    case Shape::number: return number_schema(info.key);
    case Shape::integer: return typed("integer");
    case Shape::bandwidth: return quantity_schema(bandwidth_unit_names());
    case Shape::word: return word_schema(info.key.form);
    case Shape::words: return list_schema(word_schema(info.key.form));
    case Shape::choices: return list_schema(choice_schema()).add("minItems", json_word("1"));
    case Shape::word_map: return map_schema(info.key.names, word_schema(info.key.form));
    case Shape::free_map: return typed("object");
    case Shape::section: return reference(info.section->name);
    case Shape::sections: return map_schema(info.key.form, entry_schema(*info.section));
    case Shape::others: return entry_schema(*info.section);
  }
  return Setting::map();
}

// Draft 2020-12 allows other keywords next to "$ref".
Setting described(const KeyInfo& info) { return value_schema(info).add("description", json_text(info.key.summary)); }

Setting section_schema(const SectionInfo& section) {
  auto properties = Setting::map();
  auto required = Setting::list();
  auto others = json_word("false");
  for (const auto& info : section.keys) {
    if (info.shape == Shape::others) {
      others = described(info);
      continue;
    }
    properties.add(std::string(info.key.name), described(info));
    if (info.key.required) required.add(json_text(info.key.name));
  }
  if (section.open)
    for (const auto& misspelt : target_keys::kMisspelt) properties.add(std::string(misspelt.wrong), json_word("false"));
  auto schema = typed("object").add("properties", properties);
  if (!required.items().empty()) schema.add("required", required);
  if (&section == &section_info<Engine>()) {
    const auto needs = [](std::string_view key) { return Setting::map().add("required", json_list(json_text(key))); };
    schema.add("anyOf", json_list(needs("macs_per_cycle"), needs("lanes")));
  }
  return schema.add("additionalProperties", std::move(others));
}

// The notation of a key's value in the documentation.
std::string value_words(const KeyInfo& info) {
  const auto units = [](std::span<const UnitName> names) {
    std::string list;
    for (const auto& unit : names) list += str(list.empty() ? "" : ", ", unit.text);
    return list;
  };
  const Key& key = info.key;
  switch (info.shape) {
    case Shape::number: {
      const auto range = str(format_quantity(key.min, key.unit), " to ", format_quantity(key.max, key.unit));
      return key.unit == Unit::none ? str("whole number, ", range)
                                    : str("number with ", units(unit_names(key.unit)), "; ", range);
    }
    case Shape::integer: return "whole number, 64 bits";
    case Shape::bandwidth: return str("number with ", units(bandwidth_unit_names()));
    case Shape::word: return key.form.noun;
    case Shape::words: return str("list; each ", key.form.noun);
    case Shape::choices: return "list of whole numbers and words";
    case Shape::word_map: return str("map from ", key.names.noun, " to ", key.form.noun);
    case Shape::free_map: return "map";
    case Shape::section: return str("map: see [", info.section->name, "](#keys-of-", info.section->name, ")");
    case Shape::sections:
      return str("map from ", key.form.noun, " to [", info.section->name, "](#keys-of-", info.section->name, ")");
    case Shape::others: return str("see [", info.section->name, "](#keys-of-", info.section->name, ")");
  }
  return "";
}

// The value of a number in a default-constructed section, unless it is trivial.
class Defaults {
 public:
  explicit Defaults(std::string_view wanted) : wanted_(wanted) {}
  void key(const Key& k, const uint64_t& value) {
    if (k.name == wanted_ && value != 0) text = format_quantity(value, k.unit);
  }
  template <class T>
  void key(const Key&, const T&) {}
  template <class T>
  void section(const Key&, const T&) {}
  template <class T>
  void sections(const Key&, const T&) {}
  template <class T>
  void others(const Key&, const T&) {}

  std::string text = "not stated";

 private:
  std::string_view wanted_;
};

template <class T>
void append_tables(std::string& out) {
  T section;
  const auto& info = section_info<T>();
  out += str("### Keys of ", info.name, "\n\n| key | value | default | example | meaning |\n|---|---|---|---|---|\n");
  for (const auto& entry : info.keys) {
    Defaults defaults(entry.key.name);
    target_keys::visit_keys(defaults, section);
    const bool other = entry.shape == Shape::others;
    const auto example = other ? str("kernel: ", entry.key.example) : str(entry.key.name, ": ", entry.key.example);
    out += str("| `", entry.key.name, "` | ", value_words(entry), " | ",
               entry.key.required ? "required" : defaults.text, " | `", example, "` | ", entry.key.summary, " |\n");
  }
  out += '\n';
}

}  // namespace

std::string target_schema_json() {
  auto definitions = Setting::map();
  for (const auto* section : all_sections()) definitions.add(std::string(section->name), section_schema(*section));
  return to_json(Setting::map()
                     .add("$schema", json_text("https://json-schema.org/draft/2020-12/schema"))
                     .add("title", json_text("Tenon target description"))
                     .add("$ref", json_text("#/$defs/target"))
                     .add("$defs", definitions));
}

std::string target_keys_markdown() {
  std::string out;
  append_tables<TargetDescription>(out);
  append_tables<MemorySpace>(out);
  append_tables<Engine>(out);
  append_tables<Dma>(out);
  append_tables<RegisterClass>(out);
  append_tables<OperatorLimits>(out);
  append_tables<Constraint>(out);
  return out;
}

}  // namespace tenon
