#include <tenon/passes/pass_manager.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <shared_mutex>

#include <tenon/ir/verify.hpp>

namespace tenon {
namespace {

struct Registry {
  std::shared_mutex mutex;
  std::map<std::string, std::unique_ptr<const Pass>, std::less<>> passes;
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::string listed(const std::vector<Pass>& passes) {
  std::string out;
  for (const Pass& pass : passes) out += str(out.empty() ? "" : ", ", pass.name);
  return out;
}

}  // namespace

Result<void> register_pass(Pass pass) {
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  const std::string name = pass.name;
  if (!r.passes.emplace(name, std::make_unique<const Pass>(std::move(pass))).second) {
    return error(Code::already_exists, "a pass named '", name, "' is registered already");
  }
  return {};
}

const Pass* find_pass(std::string_view name) {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  const auto found = r.passes.find(name);
  return found == r.passes.end() ? nullptr : found->second.get();
}

std::vector<const Pass*> all_passes() {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  std::vector<const Pass*> out;
  for (const auto& [name, pass] : r.passes) out.push_back(pass.get());
  return out;
}

PassRegistration::PassRegistration(std::vector<Pass> passes) {
  for (Pass& pass : passes) {
    const auto registered = register_pass(std::move(pass));
    TENON_CHECK(registered.ok(), registered.error().to_string());
  }
}

Result<size_t> PassManager::position(std::string_view name) const {
  for (size_t i = 0; i < passes_.size(); ++i) {
    if (passes_[i].name == name) return i;
  }
  return error(Code::not_found, "no pass '", name, "' in '", name_, "', which has: ", listed(passes_));
}

Result<void> PassManager::resolve(const Pass& pass, size_t at, std::vector<std::string>& chain, size_t& inserted) {
  if (pass.name.empty() || !pass.run) {
    return error(Code::invalid_argument, "pass '", pass.name, "' needs a name and a function");
  }
  chain.push_back(pass.name);
  for (const std::string& need : pass.needs) {
    if (std::find(chain.begin(), chain.end(), need) != chain.end()) {
      std::string cycle;
      for (const auto& link : chain) cycle += link + " -> ";
      return error(Code::invalid_argument, "passes need each other in a cycle: ", cycle, need);
    }
    const auto end = passes_.begin() + static_cast<std::ptrdiff_t>(at + inserted);
    if (std::any_of(passes_.begin(), end, [&](const Pass& other) { return other.name == need; })) continue;
    const Pass* registered = find_pass(need);
    if (!registered) {
      std::vector<std::string> names;
      for (const Pass* other : all_passes()) names.push_back(other->name);
      const std::string hint = nearest(need, names);
      return error(Code::not_found, "pass '", pass.name, "' needs '", need, "', which stands neither before it in '",
                   name_, "' nor among the registered passes", hint.empty() ? "" : str("; did you mean '", hint, "'?"));
    }
    TENON_OK(resolve(*registered, at, chain, inserted));
  }
  chain.pop_back();
  passes_.insert(passes_.begin() + static_cast<std::ptrdiff_t>(at + inserted), pass);
  ++inserted;
  return {};
}

Result<void> PassManager::add(Pass pass) {
  const std::vector<Pass> before = passes_;
  std::vector<std::string> chain;
  size_t inserted = 0;
  auto resolved = resolve(pass, passes_.size(), chain, inserted);
  if (!resolved.ok()) passes_ = before;
  return resolved;
}

Result<void> PassManager::add(std::string_view registered) {
  const Pass* pass = find_pass(registered);
  if (!pass) {
    std::vector<std::string> names;
    for (const Pass* other : all_passes()) names.push_back(other->name);
    const std::string hint = nearest(registered, names);
    return error(Code::not_found, "no pass '", registered, "' is registered",
                 hint.empty() ? "" : str("; did you mean '", hint, "'?"));
  }
  return add(*pass);
}

Result<void> PassManager::add_all(const std::vector<std::string>& registered) {
  for (const auto& name : registered) TENON_OK(add(std::string_view(name)));
  return {};
}

Result<void> PassManager::insert_before(std::string_view name, Pass pass) {
  TENON_TRY(at, position(name));
  const std::vector<Pass> before = passes_;
  std::vector<std::string> chain;
  size_t inserted = 0;
  auto resolved = resolve(pass, at, chain, inserted);
  if (!resolved.ok()) passes_ = before;
  return resolved;
}

Result<void> PassManager::insert_after(std::string_view name, Pass pass) {
  TENON_TRY(at, position(name));
  const std::vector<Pass> before = passes_;
  std::vector<std::string> chain;
  size_t inserted = 0;
  auto resolved = resolve(pass, at + 1, chain, inserted);
  if (!resolved.ok()) passes_ = before;
  return resolved;
}

Result<void> PassManager::remove(std::string_view name) {
  TENON_TRY(at, position(name));
  for (const Pass& pass : passes_) {
    if (std::find(pass.needs.begin(), pass.needs.end(), name) != pass.needs.end()) {
      return error(Code::invalid_argument, "pass '", name, "' cannot be removed from '", name_, "': '", pass.name,
                   "' needs it");
    }
  }
  passes_.erase(passes_.begin() + static_cast<std::ptrdiff_t>(at));
  return {};
}

Result<PassReport> PassManager::run(Graph& graph, const PassOptions& options) const {
  if (!options.stop_after.empty()) TENON_OK(position(options.stop_after), "PassOptions::stop_after");
  PassReport report;
  const auto begin = std::chrono::steady_clock::now();
  for (const Pass& pass : passes_) {
    PassTiming timing{pass.name};
    const auto start = std::chrono::steady_clock::now();
    for (Change change = Change::yes; change == Change::yes && timing.runs < pass.max_repeats;) {
      if (options.limit >= 0 && report.runs >= options.limit) break;
      TENON_TRY(result, pass.run(graph), "pass '", pass.name, "' on graph '", graph.name(), "'");
      change = result;
      ++timing.runs;
      ++report.runs;
      timing.changed = timing.changed || change == Change::yes;
    }
    timing.milliseconds = milliseconds_since(start);
    if (options.verify_each && timing.runs > 0) {
      TENON_OK(verify(graph), "the verifier, after pass '", pass.name, "'");
    }
    const bool wanted = options.dump_after.contains(pass.name) || (options.dump_after.contains("*") && timing.changed);
    if (options.dump && wanted) options.dump(pass.name, graph);
    report.passes.push_back(std::move(timing));
    if (pass.name == options.stop_after) break;
  }
  report.milliseconds = milliseconds_since(begin);
  return report;
}

std::string PassReport::to_string() const {
  std::string out;
  for (const PassTiming& timing : passes) {
    const auto microseconds = static_cast<int64_t>(timing.milliseconds * 1000);
    std::string number = str(microseconds / 1000, ".", microseconds / 100 % 10, microseconds / 10 % 10, " ms");
    out += str(std::string(number.size() < 12 ? 12 - number.size() : 0, ' '), number, timing.changed ? "  * " : "    ",
               timing.pass, timing.runs > 1 ? str(" x", timing.runs) : std::string(), "\n");
  }
  return out;
}

Result<BisectResult> bisect_passes(const PassManager& manager, const Graph& graph,
                                   const std::function<Result<bool>(const Graph&)>& good) {
  // What a number of runs leads to: is the result good, how many runs were there, and which pass ran last?
  struct Trial {
    bool good;
    int64_t runs;
    std::string last;
  };
  const auto attempt = [&](int64_t limit) -> Result<Trial> {
    const auto copy = graph.clone();
    PassOptions options;
    options.limit = limit;
    TENON_TRY(report, manager.run(*copy, options));
    TENON_TRY(verdict, good(*copy));
    std::string last;
    for (const PassTiming& timing : report.passes) {
      if (timing.runs > 0) last = timing.pass;
    }
    return Trial{verdict, report.runs, last};
  };
  TENON_TRY(all, attempt(-1));
  if (all.good) return BisectResult{};
  TENON_TRY(none, attempt(0));
  if (!none.good) {
    return error(Code::invalid_argument, "graph '", graph.name(), "' is wrong before any pass of '", manager.name(),
                 "' runs; look at the target or the model");
  }
  int64_t low = 0, high = all.runs;  // good after `low` runs, bad after `high`
  std::string culprit = all.last;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    TENON_TRY(trial, attempt(middle));
    if (trial.good) {
      low = middle;
    } else {
      high = middle;
      culprit = trial.last;
    }
  }
  return BisectResult{high, culprit};
}

}  // namespace tenon
