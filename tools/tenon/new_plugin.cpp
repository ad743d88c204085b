// tenon new-plugin: makes a new plugin from plugins/template, with another name.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "new_plugin_texts.hpp"
#include "session.hpp"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

struct NewPlugin {
  std::string name, folder, vendor;
};

// The name is used for targets, libraries and files.
Result<void> check_name(const std::string& name) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto fits = [&](char c) { return is_lower(c) || (c >= '0' && c <= '9') || c == '-' || c == '_'; };
  if (!name.empty() && name.size() <= 64 && is_lower(name[0]) && std::ranges::all_of(name, fits)) return {};
  return error(Code::invalid_argument, "'", name, "' cannot be the name of a plugin and its target: ",
               "a letter first, then letters, digits, '-' and '_', all in lower case and at most 64");
}

// acme-npu2 -> AcmeNpu2
std::string class_name(const std::string& name) {
  std::string out;
  bool first = true;
  for (const char c : name) {
    if (c == '-' || c == '_')
      first = true;
    else
      out += first ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c, first = false;
  }
  return out;
}

// Escapes text for a C++ string: a vendor's name may be anything.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

std::string renamed(std::string text, const NewPlugin& plugin) {
  text = replaced(std::move(text), "\"Tenon\"", "\"" + escaped(plugin.vendor) + "\"");
  text = replaced(std::move(text), "tenon_template", plugin.name);
  text = replaced(std::move(text), "Template", class_name(plugin.name));
  return replaced(std::move(text), "template", plugin.name);
}

Result<void> make_empty_folder(const fs::path& folder) {
  std::error_code failed;
  const bool is_new = fs::create_directories(folder, failed);
  if (failed) return error(Code::invalid_argument, "folder '", folder.string(), "': ", failed.message());
  const bool is_empty = is_new || fs::is_empty(folder, failed);
  if (failed) return error(Code::invalid_argument, "folder '", folder.string(), "': ", failed.message());
  if (is_empty) return {};
  return error(Code::invalid_argument, "folder '", folder.string(),
               "' has files in it, which are not written over: name one that is empty or not there yet");
}

Result<std::vector<std::string>> write(const NewPlugin& plugin) {
  TENON_OK(check_name(plugin.name));
  if (std::ranges::any_of(plugin.vendor, [](unsigned char c) { return std::iscntrl(c); }))
    return error(Code::invalid_argument, "the vendor's name is more than a line of text");
  TENON_OK(make_empty_folder(plugin.folder));
  std::vector<std::string> files;
  for (const auto& [file, text] : kNewPluginTexts) {
    files.push_back((fs::path(plugin.folder) / renamed(std::string(file), plugin)).string());
    TENON_OK(write_text(files.back(), renamed(std::string(text), plugin)));
  }
  return files;
}

}  // namespace

void add_new_plugin(CLI::App& app, Session& session, int& exit_code) {
  auto* command =
      app.add_subcommand("new-plugin", "Write a plugin to start from: it builds, runs one operator, and is tested");
  auto plugin = std::make_shared<NewPlugin>();
  command->add_option("NAME", plugin->name, "Of the plugin and of its target")->required();
  command->add_option("DIR", plugin->folder, "A folder that is empty or not there yet")->required()->check(file_name());
  command->add_option("--vendor", plugin->vendor, "Who makes it; the same as NAME");
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, plugin] {
    if (plugin->vendor.empty()) plugin->vendor = plugin->name;
    const auto files = write(*plugin);
    if (!files.ok()) {
      exit_code = session.fail(files.error());
      return;
    }
    for (const std::string& file : *files) session.say(file);
    session.say(str("\nIt runs Abs and says where to go on. Where Tenon is installed in PREFIX:\n  cmake -S ",
                    plugin->folder, " -B ", plugin->folder, "/build -DCMAKE_PREFIX_PATH=PREFIX && cmake --build ",
                    plugin->folder, "/build && ctest --test-dir ", plugin->folder, "/build"));
    session.result({{"name", plugin->name}, {"folder", plugin->folder}, {"vendor", plugin->vendor}, {"files", *files}});
    exit_code = kDone;
  });
}

}  // namespace tenon::cli
