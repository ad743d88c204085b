// The first group of checks: the file, before and after loading.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <elf.h>

#include <tenon/plugin/layout.hpp>

#include "certify.hpp"

namespace tenon::cli {
namespace {

constexpr char kGroup[] = "file";
constexpr double kLoadSeconds = 10;  // as in the loader's own attempt

template <class T>
std::optional<T> read_at(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Names of the symbols that others can bind to. Nothing: the file has no section table, or an invalid one.
std::optional<std::vector<std::string>> exported_symbols(std::string_view bytes) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || header->e_shentsize != sizeof(Elf64_Shdr)) return std::nullopt;
  const auto section = [&](uint64_t number) {
    return read_at<Elf64_Shdr>(bytes, header->e_shoff + number * sizeof(Elf64_Shdr));
  };
  for (uint64_t number = 0; number < header->e_shnum; ++number) {
    const auto symbols = section(number);
    if (!symbols) return std::nullopt;
    if (symbols->sh_type != SHT_DYNSYM) continue;
    const auto texts = section(symbols->sh_link);
    if (!texts) return std::nullopt;
    std::vector<std::string> out;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(bytes, symbols->sh_offset + at);
      if (!symbol) return std::nullopt;
      const bool hidden =
          ELF64_ST_VISIBILITY(symbol->st_other) == STV_HIDDEN || ELF64_ST_VISIBILITY(symbol->st_other) == STV_INTERNAL;
      if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) == STB_LOCAL || hidden) continue;
      const uint64_t name = texts->sh_offset + symbol->st_name;
      if (name >= bytes.size()) return std::nullopt;
      out.emplace_back(bytes.data() + name, strnlen(bytes.data() + name, bytes.size() - name));
    }
    return out;
  }
  return std::nullopt;
}

// Symbols that linkers export by themselves, and gcc's AddressSanitizer for each exported variable.
bool is_tools(const std::string& name) {
  constexpr std::string_view kNames[] = {"_init", "_fini", "__bss_start", "_edata", "_end"};
  return std::ranges::find(kNames, name) != std::end(kNames) || name.starts_with("__odr_asan.");
}

Check check_symbols(const PluginFile& file) {
  const auto bytes = read_text(file.path);
  if (!bytes.ok()) return {kGroup, "symbols", Verdict::failed, bytes.error().to_string()};
  auto exported = exported_symbols(*bytes);
  if (!exported)
    return {kGroup, "symbols", Verdict::not_applicable, "the file has no table of dynamic symbols that can be read"};
  const bool own = std::erase(*exported, TENON_PLUGIN_SYMBOL) > 0;
  std::erase_if(*exported, is_tools);
  if (!own) {
    return {
        kGroup, "symbols", Verdict::failed,
        str("'" TENON_PLUGIN_SYMBOL "' is not exported; use TENON_PLUGIN or TENON_EXPORT_PLUGIN, once per library")};
  }
  if (exported->empty()) return {kGroup, "symbols", Verdict::passed, "'" TENON_PLUGIN_SYMBOL "' alone is exported"};
  return {
      kGroup, "symbols", Verdict::failed,
      str(exported->size(), exported->size() == 1 ? " symbol" : " symbols",
          " besides '" TENON_PLUGIN_SYMBOL "' exported, the first is '", exported->front(),
          "': other libraries may bind to it; compile with -fvisibility=hidden -fvisibility-inlines-hidden, or link "
          "with a version script")};
}

// What dlopen does: run constructors and bind every symbol.
Result<void> open_library(const PluginFile& file, const Stages& stages) {
  stages.set(0, "a constructor of the library");
  void* library = dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return error(Code::plugin, "cannot be opened: ", dlerror());
  const auto* plugin = static_cast<const tenon_plugin*>(dlsym(library, TENON_PLUGIN_SYMBOL));
  if (!plugin) return error(Code::plugin, "lacks the symbol '" TENON_PLUGIN_SYMBOL "'");
  if (std::memcmp(&plugin->info, &file.info, sizeof file.info) != 0)
    return error(Code::plugin, "its symbol states other facts than its note; both come from one TENON_PLUGIN");
  return {};
}

// Everything that the loader does: the slots, the C++ side, extensions.
Result<void> start(const PluginFile& file, const PluginSearch& search) {
  TargetDescription description;
  description.name = file.targets.front();
  description.plugin = file.name;
  return TargetRegistry(search).check(description);
}

}  // namespace

Acceptance acceptance_of(const PluginFile& file, const PluginSearch& search) {
  const auto usable = inspect_plugin(file.path, search.insecure);
  if (!usable.ok()) return {.reason = usable.error().message()};
  // The error that discovery reports: a name or target that is already in use.
  const auto plugins = TargetRegistry(search).plugins();
  if (!plugins.empty() && !plugins.front().error.empty()) return {.reason = plugins.front().error};
  const uint64_t hash = file.info.layout_hash[0] | uint64_t{file.info.layout_hash[1]} << 32;
  const bool plain = (file.info.flags & TENON_FLAG_PLAIN) != 0, cpp = (file.info.flags & TENON_FLAG_MATCHED) != 0;
  if (cpp && hash == kLayoutHash) return {.taken = true, .side = "C++"};
  if (!cpp) return {.taken = true, .side = "plain"};
  const std::string_view library(file.info.standard_library,
                                 strnlen(file.info.standard_library, sizeof file.info.standard_library));
  const std::string difference = library != TENON_STANDARD_LIBRARY
                                     ? str("it uses ", library, ", this Tenon " TENON_STANDARD_LIBRARY)
                                     : std::string("its layout hash is another one");
  const std::string reason =
      str("its C++ side is not that of this Tenon (", difference,
          "); build it with this Tenon and its compiler flags: loading it names the first difference");
  return {.taken = plain, .side = "plain", .reason = reason};
}

std::unique_ptr<PluginFile> certify_file(const Certification& run) {
  run.progress("file: inspecting");
  const auto add = [&](std::string name, Verdict verdict, std::string sentence) {
    run.report({kGroup, std::move(name), verdict, std::move(sentence)});
  };
  const auto add_result = [&](std::string name, const Result<void>& done, std::string good) {
    add(std::move(name), done.ok() ? Verdict::passed : Verdict::failed,
        done.ok() ? std::move(good) : done.error().to_string());
    return done.ok();
  };
  const auto file = inspect_plugin(run.path, /*insecure=*/true);
  if (!file.ok()) {
    add("note", Verdict::failed, file.error().message());
    return nullptr;
  }
  add("note", Verdict::passed,
      str("plugin '", file->name, "' ", file->version, " of ", quote(file->vendor), " for targets ", file->targets,
          ", interface ", file->info.abi_major, ".", file->info.abi_minor));
  const auto safe = inspect_plugin(run.path, /*insecure=*/false);
  if (!safe.ok() && run.search.insecure)
    add("permissions", Verdict::not_applicable, str("--insecure: ", safe.error().message()));
  else
    add_result("permissions", safe.ok() ? Result<void>() : Result<void>(safe.error()),
               "only root and its owner, root or you, may write it and its folder");
  run.report(check_symbols(*file));
  if (!safe.ok() && !run.search.insecure) return nullptr;
  const Acceptance acceptance = acceptance_of(*file, run.search);
  add("interface", acceptance.taken ? Verdict::passed : Verdict::failed,
      !acceptance.taken ? acceptance.reason
                        : str("this core uses its ", acceptance.side, " side", acceptance.reason.empty() ? "" : "; ",
                              acceptance.reason));
  run.progress("file: loading");
  const double seconds = std::min(run.timeout_s, kLoadSeconds);
  const bool opened =
      add_result("opens", try_apart(seconds, [&](const Stages& stages) { return open_library(*file, stages); }),
                 "every symbol is bound, and its constructors return");
  if (!opened) return nullptr;
  // The loader has a limit of its own, which should expire first.
  const bool started = add_result(
      "starts", try_apart(2 * kLoadSeconds + run.timeout_s, [&](const Stages&) { return start(*file, run.search); }),
      "its slots are filled and its extensions registered, in a child process and then for good");
  return acceptance.taken && started ? std::make_unique<PluginFile>(*file) : nullptr;
}

}  // namespace tenon::cli
