// The second group of checks, for each target: its description, its backend and its device. Also the ONNX cases on it.
#include <algorithm>
#include <string>
#include <vector>

#include <conformance.hpp>

#include <tenon/target/load.hpp>

#include "cases.hpp"
#include "certify.hpp"

namespace tenon::cli {
namespace {

// Copies bytes to the device and back, in each of its memories that the host may copy to.
Result<void> round_trip(Device& device) {
  std::vector<std::byte> there(1000), back(1000);
  for (size_t i = 0; i < there.size(); ++i) there[i] = static_cast<std::byte>(i * 7 + 1);
  const auto memories = device.memories();
  if (memories.empty()) return error(Code::plugin, "device '", device.name(), "' names no memory");
  TENON_TRY(buffer, device.allocate(memories.front(), there.size()), "allocating 1000 bytes in '", memories.front(),
            "'");
  if (buffer->bytes() < there.size())
    return error(Code::plugin, "a buffer of ", buffer->bytes(), " bytes was given where 1000 were asked for");
  TENON_TRY(stream, device.create_stream(false), "creating a stream");
  TENON_TRY(copied, stream->copy_to_device(*buffer, 0, there), "copying to the device");
  TENON_OK(copied->wait(), "copying to the device");
  TENON_TRY(returned, stream->copy_to_host(back, *buffer, 0), "copying to the host");
  TENON_OK(returned->wait(), "copying to the host");
  const auto [mine, other] = std::ranges::mismatch(there, back);
  if (mine == there.end()) return {};
  return error(Code::plugin, "byte ", mine - there.begin(), " of 1000 came back from memory '", memories.front(),
               "' as ", static_cast<int>(*other), ", ", static_cast<int>(*mine), " was stored");
}

// A device may fill in what it knows about the machine; what the file states must be kept.
Result<void> keeps_description(const TargetDescription& kept, TargetDescription given) {
  given.clock_hz = kept.clock_hz;
  given.features = kept.features;
  given.memories = kept.memories;
  given.engines = kept.engines;
  given.dma = kept.dma;
  given.registers = kept.registers;
  if (given.driver.empty()) given.driver = kept.driver;
  const std::string texts[] = {to_yaml(kept), to_yaml(given)};
  const auto there = split(texts[0], '\n'), here = split(texts[1], '\n');
  const auto [mine, other] = std::ranges::mismatch(there, here);
  if (mine == there.end() && other == here.end()) return {};
  const auto line = [](const auto& at, const auto& all) { return at == all.end() ? "nothing" : quote(*at); };
  return error(Code::plugin, "description() is not what was given to create_backend(): line ", mine - there.begin() + 1,
               " says ", line(mine, there), ", given was ", line(other, here));
}

Result<TargetDescription> described(const Certification& run, const PluginFile& file, const std::string& target) {
  TENON_TRY(description, find_target(target));
  if (description.plugin != file.name) {
    return error(Code::invalid_argument, "'", target, "' is described for plugin '", description.plugin,
                 "', this one is '", file.name, "'; the key 'plugin' says whose it is");
  }
  TENON_OK(try_apart(run.timeout_s, [&](const Stages& stages) {
    stages.set(0, "checking the description");
    return TargetRegistry(run.search).check(description);
  }));
  return description;
}

}  // namespace

bool certify_target(const Certification& run, const PluginFile& file, const std::string& target) {
  const std::string group = str(target, ", target");
  run.progress(str(group, ": opening"));
  const auto add = [&](std::string name, Verdict verdict, std::string sentence) {
    run.report({group, std::move(name), verdict, std::move(sentence)});
    return verdict == Verdict::passed;
  };
  const auto description = described(run, file, target);
  if (!description.ok()) return add("description", Verdict::failed, description.error().to_string());
  add("description", Verdict::passed, "found, and all that it says is known");

  const auto opened = try_apart(run.timeout_s, [&](const Stages& stages) -> Result<void> {
    stages.set(0, "create_backend()");
    TENON_OK(TargetRegistry(run.search).open(target));
    return {};
  });
  if (!opened.ok()) {
    // The only code for an absent device; any other is a failure.
    const bool absent = opened.error().code() == Code::unsupported;
    return add("backend", absent ? Verdict::not_applicable : Verdict::failed,
               str(absent ? "no device, nothing can be run: " : "", opened.error().to_string()));
  }
  add("backend", Verdict::passed, "opens");
  const auto same = try_apart(run.timeout_s, [&](const Stages& stages) -> Result<void> {
    stages.set(0, "description()");
    TENON_TRY(backend, TargetRegistry(run.search).open(target));
    return keeps_description(backend->description(), *description);
  });
  add("kept", same.ok() ? Verdict::passed : Verdict::failed,
      same.ok() ? "description() is what was given, but for what the machine says of itself"
                : same.error().to_string());
  const auto device = try_apart(run.timeout_s, [&](const Stages& stages) -> Result<void> {
    stages.set(0, "device()");
    TENON_TRY(backend, TargetRegistry(run.search).open(target));
    const auto first = backend->device(), second = backend->device();
    if (first != second) return error(Code::plugin, "device() gave two devices; it is always the same one");
    if (first->name().empty()) return error(Code::plugin, "its device has an empty name");
    stages.set(0, "copying to the device and back");
    return round_trip(*first);
  });
  add("device", device.ok() ? Verdict::passed : Verdict::failed,
      device.ok() ? "always the same one; 1000 bytes came back as they went" : device.error().to_string());
  return true;
}

void certify_cases(const Certification& run, const std::string& target) {
  const std::string group = str(target, ", ONNX cases");
  run.progress(str(group, ": looking"));
  const auto skip = [&](Verdict verdict, const std::string& why) { run.report({group, "all", verdict, why}); };
  const auto folder = run.data.empty() ? conformance::default_folder("../shared") : Result<std::string>(run.data);
  if (!folder.ok()) return skip(Verdict::not_applicable, str(folder.error().message(), ", or name them by --data"));
  auto cases = conformance::find_cases(*folder);
  if (!cases.ok()) return skip(Verdict::failed, cases.error().to_string());
  std::erase_if(*cases, [&](const conformance::Case& one) { return !std::regex_search(one.name, run.filter); });
  if (cases->empty()) return skip(Verdict::not_applicable, "--filter finds none of them");
  for (const bool fallback : {true, false}) {
    const char* name = fallback ? "with fallback" : "without fallback";
    size_t passed = 0, unsupported = 0, done = 0;
    std::vector<std::string> failed;
    std::unique_ptr<TargetRegistry> registry;
    const auto in_the_process = [&] {
      if (!registry) {
        drop_standard_output();
        registry = std::make_unique<TargetRegistry>(run.search);
      }
      return registry.get();
    };
    const CaseRun how{.target = target, .jobs = run.jobs, .timeout_s = run.timeout_s, .no_fallback = !fallback};
    run_cases(*cases, how, in_the_process, [&](size_t i, const conformance::Outcome& outcome) {
      run.progress(str(group, ": ", name, " ", ++done, "/", cases->size(), " ", (*cases)[i].name));
      passed += outcome.status == conformance::Status::passed;
      unsupported += outcome.status == conformance::Status::unsupported;
      if (outcome.status == conformance::Status::failed)
        failed.push_back(str((*cases)[i].suite, "/", (*cases)[i].name, ": ", outcome.reason));
    });
    const std::string counts = str(passed, " passed, ", failed.size(), " failed, ", unsupported, " unsupported");
    run.report({group, name, failed.empty() ? Verdict::passed : Verdict::failed,
                failed.empty() ? counts
                               : str(counts, "; the first is ", failed.front(), "; tenon conformance ", *folder,
                                     " --target ", target, fallback ? "" : " --no-fallback", " shows them all")});
  }
}

}  // namespace tenon::cli
