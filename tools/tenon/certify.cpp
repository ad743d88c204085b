// tenon certify: the vendor's conformance kit.
#include "certify.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tenon/plugin/layout.hpp>

namespace tenon::cli {

std::string_view verdict_name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"passed", "failed", "not applicable"};
  return kNames[static_cast<size_t>(verdict)];
}

// ---- Processes of their own ----------------------------------------------------------------------------------------

namespace {
constexpr size_t kStageBytes = 512;
}  // namespace

Stages::Stages(size_t tasks) : bytes_(tasks * kStageBytes) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  texts_ = memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}
Stages::~Stages() {
  if (texts_) munmap(texts_, bytes_);
}
void Stages::set(size_t task, std::string_view text) const {
  if (!texts_) return;
  const size_t length = std::min(text.size(), kStageBytes - 1);
  std::memcpy(texts_ + task * kStageBytes, text.data(), length);
  texts_[task * kStageBytes + length] = 0;
}
std::string Stages::of(size_t task) const {
  const char* text = texts_ ? texts_ + task * kStageBytes : "";
  return std::string(text, strnlen(text, kStageBytes));
}

void drop_standard_output() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  close(nowhere);
}

void run_silently(size_t tasks, const ApartOptions& options, const std::function<std::string(size_t)>& work,
                  const std::function<void(size_t, ApartAnswer)>& done) {
  const pid_t parent = getpid();
  run_apart(
      tasks, options,
      [&](size_t task) {
        if (getpid() != parent) drop_standard_output();
        return work(task);
      },
      done);
}

Result<void> try_apart(double timeout_s, const std::function<Result<void>(const Stages& stages)>& work) {
  const Stages stages(1);
  Result<void> out;
  run_silently(
      1, {.jobs = 1, .timeout_s = timeout_s},
      [&](size_t) {
        const Result<void> done = work(stages);
        return done.ok() ? std::string() : str(static_cast<char>(done.error().code()), done.error().to_string());
      },
      [&](size_t, ApartAnswer answer) {
        const std::string stage = stages.of(0);
        if (!answer.failure.empty())
          out = error(Code::plugin, answer.failure, stage.empty() ? "" : " in ", stage);
        else if (!answer.text.empty())
          out = Error(static_cast<Code>(answer.text[0]), answer.text.substr(1));
      });
  return out;
}

namespace {

// ---- The command ---------------------------------------------------------------------------------------------------

struct CertifyCommand {
  std::string path, filter, data;
  std::vector<std::string> targets, models;
  double timeout_s = 60;
  int jobs = 0;  // 0: as many as the process has threads
  bool inspect = false;
};

uint64_t layout_hash_of(const PluginFile& file) {
  return file.info.layout_hash[0] | uint64_t{file.info.layout_hash[1]} << 32;
}
std::string hex(uint64_t value) {
  char text[19];
  std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(value));
  return text;
}

// Reports the content of the note, and whether this core accepts it.
bool inspect(const CertifyCommand& command, const PluginSearch& search, Session& session) {
  const auto file = inspect_plugin(command.path, /*insecure=*/true);
  Acceptance acceptance;
  Json document = {{"plugin", command.path}};
  if (!file.ok()) {
    acceptance.reason = file.error().message();
  } else {
    acceptance = acceptance_of(*file, search);
    const std::string interface = str(file->info.abi_major, ".", file->info.abi_minor);
    const std::string build_id(file->info.build_id, strnlen(file->info.build_id, sizeof file->info.build_id));
    const bool cpp = (file->info.flags & TENON_FLAG_MATCHED) != 0;
    document.update({{"name", file->name},
                     {"vendor", file->vendor},
                     {"version", file->version},
                     {"targets", file->targets},
                     {"interface", interface},
                     {"layout_hash", cpp ? Json(hex(layout_hash_of(*file))) : Json()},
                     {"core_layout_hash", hex(kLayoutHash)},
                     {"build_id", build_id}});
    session.say(str("name:        ", file->name));
    session.say(str("vendor:      ", file->vendor));
    session.say(str("version:     ", file->version));
    session.say(str("targets:     ", file->targets));
    session.say(str("interface:   ", interface, " (this core: ", TENON_ABI_MAJOR, ".", TENON_ABI_MINOR, ")"));
    session.say(str("layout hash: ", cpp ? hex(layout_hash_of(*file)) : std::string("none, it has no C++ side"),
                    " (this core: ", hex(kLayoutHash), ")"));
    session.say(str("build id:    ", build_id));
  }
  document["taken"] = acceptance.taken;
  document["side"] = acceptance.taken ? Json(acceptance.side) : Json();
  document["reason"] = acceptance.reason.empty() ? Json() : Json(acceptance.reason);
  session.say(acceptance.taken ? str("taken:       yes, by its ", acceptance.side, " side",
                                     acceptance.reason.empty() ? "" : "; ", acceptance.reason)
                               : str("taken:       no: ", acceptance.reason));
  session.result(document);
  return acceptance.taken;
}

// Progress lines on standard error: on a terminal, one line that is overwritten; otherwise one for each group, and one
// every ten seconds.
class Progress {
 public:
  void show(const std::string& text) {
    if (live_) {
      std::fprintf(stderr, "\r\033[K%s", text.c_str());
      return;
    }
    const std::string group = text.substr(0, text.find(':'));
    const auto now = std::chrono::steady_clock::now();
    if (group == group_ && now - said_ < std::chrono::seconds(10)) return;
    std::fprintf(stderr, "%s ...\n", group == group_ ? text.c_str() : group.c_str());
    group_ = group;
    said_ = now;
  }
  void clear() {
    if (live_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  const bool live_ = isatty(STDERR_FILENO) != 0;
  std::string group_;
  std::chrono::steady_clock::time_point said_;
};

Result<bool> certify(const CertifyCommand& command, PluginSearch search, Session& session) {
  Certification run;
  try {
    run.filter = std::regex(command.filter);
  } catch (const std::regex_error& thrown) {
    return error(Code::invalid_argument, "--filter '", command.filter, "' is no regular expression: ", thrown.what());
  }
  run.path = command.path;
  run.search = std::move(search);
  run.data = command.data;
  run.models = command.models;
  run.timeout_s = command.timeout_s;
  run.jobs = command.jobs > 0 ? command.jobs : ThreadPool(0).threads();
  Progress progress;
  run.progress = [&](const std::string& text) { progress.show(text); };
  std::map<Verdict, int> counts;
  std::string group;
  Json checks = Json::array();
  run.report = [&](const Check& check) {
    ++counts[check.verdict];
    progress.clear();
    if (check.group != group) session.say(check.group);
    group = check.group;
    session.say(str("  ", verdict_name(check.verdict), "  ", check.name, ": ", check.sentence));
    if (!session.json) std::fflush(stdout);
    checks.push_back({{"group", check.group},
                      {"name", check.name},
                      {"status", verdict_name(check.verdict)},
                      {"sentence", check.sentence}});
  };
  std::vector<std::string> targets;
  if (const auto file = certify_file(run)) {
    targets = command.targets.empty() ? file->targets : command.targets;
    for (const std::string& target : targets) {
      if (!certify_target(run, *file, target)) continue;
      certify_operators(run, target);
      if (!run.models.empty()) certify_models(run, target);
      certify_cases(run, target);
    }
  }
  progress.clear();
  const int passed = counts[Verdict::passed], failed = counts[Verdict::failed],
            not_applicable = counts[Verdict::not_applicable];
  session.say(str(failed == 0 ? "certified" : "NOT certified", ": ", passed, " passed, ", failed, " failed, ",
                  not_applicable, " not applicable"));
  session.result({{"plugin", command.path},
                  {"targets", targets},
                  {"certified", failed == 0},
                  {"passed", passed},
                  {"failed", failed},
                  {"not_applicable", not_applicable},
                  {"checks", checks}});
  return failed == 0;
}

Result<bool> run(const CertifyCommand& command, Session& session) {
  PluginSearch search = session.search();
  search.paths.insert(search.paths.begin(), command.path);
  if (command.inspect) return inspect(command, search, session);
  return certify(command, std::move(search), session);
}

}  // namespace

void add_certify(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("certify", "Check a plugin against all that Tenon asks of one");
  auto options = std::make_shared<CertifyCommand>();
  command->add_option("PLUGIN", options->path, "The plugin's file")->required();
  auto* inspect = command->add_flag("--inspect", options->inspect,
                                    "Only what the file tells, without running any of it; exit code 0: it is taken");
  command->add_option("--target", options->targets, "Targets to check, names or files; all that the plugin states")
      ->excludes(inspect);
  command
      ->add_option("--filter", options->filter,
                   "Only operators and ONNX cases whose name this regular expression finds")
      ->excludes(inspect);
  command
      ->add_option("--model", options->models,
                   "Models of your own, ONNX or text IR, to ask the same of: operators and passes that no other has")
      ->type_name("FILE")
      ->excludes(inspect);
  command
      ->add_option("--data", options->data,
                   "The folder of ONNX backend cases; else that of TENON_SHARED or libonnx-testdata")
      ->excludes(inspect);
  command->add_option("--timeout", options->timeout_s, "Seconds that one operator or case may take")
      ->check(number_in(1e-6, 1e6))
      ->capture_default_str()
      ->excludes(inspect);
  command
      ->add_option("--jobs", options->jobs,
                   "Operators or cases at a time, each in a process of its own; 0: as many as threads")
      ->check(CLI::Range(0, 256))
      ->capture_default_str()
      ->excludes(inspect);
  Session::add_json(*command, session);
  command->footer(
      "Each check passes, fails or is not applicable, with a sentence. Exit code 0: none failed; 1: one did, or an\n"
      "error; 2: usage. A check that the plugin crashes or hangs has failed; those behind it still run.");
  command->callback([&session, &exit_code, options] {
    const auto done = run(*options, session);
    exit_code = !done.ok() ? session.fail(done.error()) : *done ? kDone : kFailed;
  });
}

}  // namespace tenon::cli
