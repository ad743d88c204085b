// Output generated from the table of keys: the JSON schema for editors (targets/tenon-target.schema.json) and the
// reference tables of docs/target-yaml.md. tools/target-schema writes both; a test compares them with the committed
// files.
#pragma once
#include <string>

#include <tenon/support/export.hpp>

namespace tenon {

// JSON schema, draft 2020-12. It is as strict as the loader about keys, types, units and words; what a pattern cannot
// express (ranges of quantities, a size that is a multiple of its element) is checked only by the loader.
TENON_API std::string target_schema_json();
// One Markdown table per section.
TENON_API std::string target_keys_markdown();

}  // namespace tenon
