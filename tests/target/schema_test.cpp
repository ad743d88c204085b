#include <tenon/target/schema.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <tenon/target/load.hpp>

#include "target_files.hpp"

namespace tenon {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRemedy = "run build/<preset>/bin/tenon-target-schema . in the source folder";

TEST(TargetSchema, CommittedFileIsTheGeneratedOne) {
  EXPECT_EQ(test::read_bytes(test::kSource + "/targets/tenon-target.schema.json"), target_schema_json()) << kRemedy;
}

TEST(TargetSchema, CommittedTablesAreTheGeneratedOnes) {
  EXPECT_THAT(test::read_bytes(test::kSource + "/docs/target-yaml.md"),
              HasSubstr("<!-- keys: begin -->\n" + target_keys_markdown() + "<!-- keys: end -->\n"))
      << kRemedy;
}

// The schema is JSON, and therefore YAML: it is parsed and a target is compared with it.
Setting schema() {
  auto root = parse_yaml(target_schema_json(), "schema.json");
  EXPECT_TRUE(root.ok()) << root.error().to_string();
  return *root;
}

struct Section {
  const char* name;
  const char* before;  // a target file up to the place where a key of this section may stand in braces
  const char* after;
};
constexpr Section kSections[] = {
    {"memory", "memories: {m: {", "}}\n"},
    {"engine", "engines: {e: {", "}}\n"},
    {"dma", "dma: {", "}\n"},
    {"register", "registers: {r: {", "}}\n"},
    {"operator", "operators: {Conv: {", "}}\n"},
    {"constraint", "operators: {Conv: {kernel: {", "}}}\n"},
    {"target", "", ""},
};

// The loader knows each key of the schema: with a value of null it reports the value, not the key.
TEST(TargetSchema, LoaderKnowsEveryKeyOfTheSchema) {
  const auto root = schema();
  const auto& definitions = *root.find("$defs");
  ASSERT_EQ(definitions.items().size(), std::size(kSections));
  for (const auto& section : kSections) {
    const auto* definition = definitions.find(section.name);
    ASSERT_NE(definition, nullptr) << section.name;
    for (const auto& property : definition->find("properties")->items()) {
      if (property.raw() == "false") continue;  // refused by name
      const bool top = section.before[0] == '\0';
      const auto text =
          top ? property.key() + ":\n" : str(test::kHead, section.before, property.key(), ": ", section.after);
      const auto target =
          parse_target(top && property.key() != "tenon_target" ? "tenon_target: 1\n" + text : text, "f");
      ASSERT_FALSE(target.ok()) << text;
      EXPECT_THAT(target.error().message(), ::testing::Not(HasSubstr("unknown key"))) << text;
    }
  }
}

// Conversely, the keys that the loader lists are those of the schema.
TEST(TargetSchema, SchemaHasEveryKeyOfTheLoader) {
  const auto root = schema();
  for (const auto& section : kSections) {
    if (std::string_view(section.name) == "operator") continue;  // takes any key as an attribute
    const bool top = section.before[0] == '\0';
    const auto text = str(test::kHead, section.before, "zzzzzzzzzzzzzz: 1", top ? "\n" : section.after);
    const auto target = parse_target(text, "f");
    ASSERT_FALSE(target.ok());
    std::string listed = "the keys here are [";
    for (const auto& property : root.find("$defs")->find(section.name)->find("properties")->items())
      listed += str(listed.ends_with('[') ? "" : ", ", property.key());
    EXPECT_THAT(target.error().message(), HasSubstr(listed + "]")) << section.name;
  }
}

void collect_keys(const Setting& setting, std::set<std::string>& keys) {
  keys.insert(setting.key());
  for (const auto& item : setting.items()) collect_keys(item, keys);
}

// The template is the starting point for new targets, so it shows every key of every section.
TEST(TargetSchema, TemplateShowsEveryKey) {
  const auto text = parse_yaml(test::read_bytes(test::kSource + "/targets/template.yaml"), "template.yaml");
  ASSERT_TRUE(text.ok());
  std::set<std::string> shown;
  collect_keys(*text, shown);
  const auto root = schema();
  for (const auto& section : root.find("$defs")->items()) {
    for (const auto& property : section.find("properties")->items()) {
      const bool refused = property.raw() == "false";
      EXPECT_TRUE(refused || shown.contains(property.key())) << property.key();
    }
  }
}

}  // namespace
}  // namespace tenon
