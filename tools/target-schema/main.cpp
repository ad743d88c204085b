// tenon-target-schema SOURCE_FOLDER: writes what is generated from the table of target keys to a source tree: the JSON
// schema, and the part of docs/target-yaml.md between its two marks. To be run after changes of keys_internal.hpp.
#include <cstdio>
#include <fstream>
#include <string>

#include <tenon/support/result.hpp>
#include <tenon/target/schema.hpp>
#include <tenon/target/setting.hpp>

namespace tenon {
namespace {

constexpr std::string_view kBegin = "<!-- keys: begin -->\n";
constexpr std::string_view kEnd = "<!-- keys: end -->\n";

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? Result<void>() : error(Code::io, "cannot write ", path);
}

Result<void> generate(const std::string& source) {
  TENON_OK(write_file(source + "/targets/tenon-target.schema.json", target_schema_json()));
  const auto page_path = source + "/docs/target-yaml.md";
  TENON_TRY(page, read_small_file(page_path));
  const auto begin = page.find(kBegin), end = page.find(kEnd);
  if (begin == page.npos || end == page.npos || end < begin)
    return error(Code::parse, page_path, " lacks the marks ", trim(kBegin), " and ", trim(kEnd));
  page.replace(begin + kBegin.size(), end - begin - kBegin.size(), target_keys_markdown());
  return write_file(page_path, page);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tenon-target-schema SOURCE_FOLDER\n");
    return 2;
  }
  if (auto done = tenon::generate(argv[1]); !done.ok()) {
    std::fprintf(stderr, "tenon-target-schema: %s\n", done.error().to_string().c_str());
    return 1;
  }
}
