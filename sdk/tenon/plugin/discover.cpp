#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <tenon/plugin/layout.hpp>
#include <tenon/plugin/loader_internal.hpp>
#include <tenon/target/load.hpp>

namespace tenon::plugin_room {
namespace {

namespace fs = std::filesystem;

// The files NAME.so of a folder, by name; empty for a folder that does not exist.
std::vector<std::string> libraries_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (entry->path().extension() == ".so") out.push_back(entry->path().string());
  }
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> places(const PluginSearch& search) {
  std::vector<std::string> out, folders;
  for (const std::string& path : search.paths) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      out.push_back(path);
    } else {
      folders.push_back(path);
    }
  }
  std::ranges::copy(search_folders("TENON_PLUGIN_PATH", "lib/tenon/plugins"), std::back_inserter(folders));
  std::set<std::string> seen;
  for (const std::string& folder : folders) {
    std::error_code failed;
    const fs::path real = fs::canonical(folder, failed);
    if (!failed && seen.insert(real.string()).second) std::ranges::copy(libraries_in(folder), std::back_inserter(out));
  }
  return out;
}

// The first candidate for each file, name and target counts.
class Claims {
 public:
  Result<void> claim(const PluginFile& file) {
    const auto [same, fresh] = files_.emplace(std::pair(file.device, file.inode), file.path);
    if (!fresh) return refuse(file, str("is the same file as '", same->second, "', which counts"));
    if (file.name == "reference") return refuse(file, "calls itself 'reference', which is built in");
    const auto name = names_.find(file.name);
    if (name != names_.end())
      return refuse(file, str("calls itself '", file.name, "', as '", name->second, "' does, which counts"));
    for (const std::string& target : file.targets) {
      if (target == "reference") return refuse(file, "drives target 'reference', which is built in");
      const auto taken = targets_.find(target);
      if (taken != targets_.end())
        return refuse(file, str("drives target '", target, "', as '", taken->second, "' does, which counts"));
    }
    names_[file.name] = file.path;
    for (const std::string& target : file.targets) targets_[target] = file.path;
    return {};
  }

 private:
  static Result<void> refuse(const PluginFile& file, const std::string& why) {
    return error(Code::already_exists, "plugin '", file.path, "' ", why);
  }
  std::map<std::pair<uint64_t, uint64_t>, std::string> files_;
  std::map<std::string, std::string> names_, targets_;
};

}  // namespace

std::vector<Candidate> discover(const PluginSearch& search) {
  std::vector<Candidate> out;
  Claims claims;
  for (const std::string& path : places(search)) {
    Candidate& candidate = out.emplace_back();
    candidate.status.path = path;
    auto file = inspect_plugin(path, search.insecure);
    auto usable = file.ok() ? claims.claim(*file) : Result<void>(file.error());
    if (file.ok()) {
      candidate.status.name = file->name;
      candidate.status.vendor = file->vendor;
      candidate.status.version = file->version;
      candidate.status.targets = file->targets;
      const uint64_t hash = file->info.layout_hash[0] | uint64_t{file->info.layout_hash[1]} << 32;
      candidate.status.matched = (file->info.flags & TENON_FLAG_MATCHED) && hash == kLayoutHash;
    }
    if (usable.ok()) {
      candidate.file = *std::move(file);
    } else {
      candidate.status.error = usable.error().message();
    }
  }
  return out;
}

}  // namespace tenon::plugin_room
