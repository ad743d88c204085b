// Reading, finding and listing target files.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>

namespace tenon {

// Parses the description in `text`; `file` names it in errors ("vta.yaml:12:7: unknown key ..."). Never throws; time
// and memory are proportional to the text, whatever it contains.
TENON_API Result<TargetDescription> parse_target(std::string_view text, std::string_view file);
TENON_API Result<TargetDescription> load_target(const std::string& path);

// The folders in which Tenon searches, in order: those of the environment variable `variable` (joined by ':'; read with
// secure_getenv; an entry that is not absolute is ignored with a warning, so that nothing is found in the working
// directory), then the folder `below` under the prefix of the program's installation and of the library's.
TENON_API std::vector<std::string> search_folders(const char* variable, std::string_view below);
// The folders of target files: TENON_TARGET_PATH and share/tenon/targets.
TENON_API std::vector<std::string> target_search_paths();

// `name` is a path if it contains a '/' or ends in .yaml or .yml; otherwise NAME.yaml in the first of `folders` that
// has one, whose key `name` must agree. Code::not_found lists the folders and the nearest name.
TENON_API Result<TargetDescription> find_target(std::string_view name,
                                                const std::vector<std::string>& folders = target_search_paths());

struct FoundTarget {
  std::string name;  // from the file name
  std::string path;
  Result<TargetDescription> description;
};
// Every NAME.yaml in `folders`, by name; if two have the same name, the one that find_target takes. Invalid files are
// listed with their error; folders that cannot be read count as empty.
TENON_API std::vector<FoundTarget> list_targets(const std::vector<std::string>& folders = target_search_paths());

}  // namespace tenon
