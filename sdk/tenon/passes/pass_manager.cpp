#include <tenon/passes/pass_manager.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <shared_mutex>

#include <tenon/ir/verify.hpp>
#include <tenon/support/caught.hpp>
#include <tenon/support/log.hpp>

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

std::string did_you_mean(std::string_view name) {
  std::vector<std::string> names;
  for (const Pass* pass : all_passes()) names.push_back(pass->name);
  const std::string hint = nearest(name, names);
  return hint.empty() ? "" : str("; did you mean '", hint, "'?");
}

Result<const Pass*> registered_pass(std::string_view name) {
  if (const Pass* pass = find_pass(name)) return pass;
  return error(Code::not_found, "no pass '", name, "' is registered", did_you_mean(name));
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

Result<void> PassManager::resolve(const Pass& pass, size_t at, int group, std::vector<std::string>& chain,
                                  size_t& inserted) {
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
      return error(Code::not_found, "pass '", pass.name, "' needs '", need, "', which stands neither before it in '",
                   name_, "' nor among the registered passes", did_you_mean(need));
    }
    TENON_OK(resolve(*registered, at, group, chain, inserted));
  }
  chain.pop_back();
  const auto place = static_cast<std::ptrdiff_t>(at + inserted);
  passes_.insert(passes_.begin() + place, pass);
  groups_.insert(groups_.begin() + place, group);
  ++inserted;
  return {};
}

Result<void> PassManager::insert(std::span<const Pass> passes, size_t at, int group) {
  const PassManager before = *this;
  size_t inserted = 0;
  for (const Pass& pass : passes) {
    std::vector<std::string> chain;
    if (auto resolved = resolve(pass, at, group, chain, inserted); !resolved.ok()) {
      *this = before;
      return resolved;
    }
  }
  return {};
}

Result<void> PassManager::add(Pass pass) { return insert({&pass, 1}, passes_.size(), kNoGroup); }

Result<void> PassManager::add(std::string_view registered) {
  TENON_TRY(pass, registered_pass(registered));
  return add(*pass);
}

Result<void> PassManager::add_all(const std::vector<std::string>& registered) {
  for (const auto& name : registered) TENON_OK(add(std::string_view(name)));
  return {};
}

Result<void> PassManager::add_until_unchanged(const std::vector<Pass>& passes) {
  const int last = groups_.empty() ? kNoGroup : *std::max_element(groups_.begin(), groups_.end());
  return insert(passes, passes_.size(), last + 1);
}

Result<void> PassManager::add_until_unchanged(std::initializer_list<std::string_view> registered) {
  std::vector<Pass> passes;
  for (const std::string_view name : registered) {
    TENON_TRY(pass, registered_pass(name));
    passes.push_back(*pass);
  }
  return add_until_unchanged(passes);
}

Result<void> PassManager::insert_before(std::string_view name, Pass pass) {
  TENON_TRY(at, position(name));
  return insert({&pass, 1}, at, groups_[at]);
}

Result<void> PassManager::insert_after(std::string_view name, Pass pass) {
  TENON_TRY(at, position(name));
  return insert({&pass, 1}, at + 1, groups_[at]);
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
  groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(at));
  return {};
}

// One execution of the passes.
class PassManager::Run {
 public:
  Run(const PassManager& manager, Graph& graph, const PassOptions& options)
      : passes_(manager.passes_), groups_(manager.groups_), manager_(manager.name_), graph_(graph), options_(options) {}

  Result<PassReport> all() {
    const auto begin = std::chrono::steady_clock::now();
    for (size_t at = 0; at < passes_.size() && !stopped_;) {
      size_t end = at + 1;
      while (groups_[at] != kNoGroup && end < passes_.size() && groups_[end] == groups_[at]) ++end;
      if (groups_[at] == kNoGroup) {
        TENON_OK(one(at));
      } else {
        TENON_OK(until_unchanged(at, end));
      }
      at = end;
    }
    report_.milliseconds = milliseconds_since(begin);
    return std::move(report_);
  }

 private:
  Result<void> until_unchanged(size_t begin, size_t end) {
    size_t runs_without = 0;
    for (int round = 0; round < kMostRounds; ++round) {
      for (size_t at = begin; at < end && !stopped_; ++at) {
        TENON_TRY(change, one(at));
        runs_without = change == Change::yes ? 0 : runs_without + 1;
        if (runs_without == end - begin) return {};
      }
    }
    if (!stopped_) {
      log(LogLevel::warning, "'", manager_, "' still changes graph '", graph_.name(), "' after ", kMostRounds,
          " rounds of the passes from '", passes_[begin].name, "' to '", passes_[end - 1].name,
          "', which stop here: it is right, though not as small as it might be");
    }
    return {};
  }

  Result<Change> one(size_t at) {
    if (options_.limit >= 0 && report_.runs >= options_.limit) {
      stopped_ = true;
      return Change::no;
    }
    const Pass& pass = passes_[at];
    if (report_.passes.size() == at) report_.passes.push_back(PassTiming{pass.name});
    PassTiming& timing = report_.passes[at];
    const auto start = std::chrono::steady_clock::now();
    TENON_TRY(change, caught([&] { return pass.run(graph_); }, "the pass"), "pass '", pass.name, "' on graph '",
              graph_.name(), "'");
    timing.milliseconds += milliseconds_since(start);
    timing.changed |= change == Change::yes;
    ++timing.runs;
    ++report_.runs;
    report_.last = pass.name;
    if (options_.verify_each) TENON_OK(verify(graph_), "the verifier, after pass '", pass.name, "'");
    const bool wanted =
        options_.dump_after.contains(pass.name) || (options_.dump_after.contains("*") && change == Change::yes);
    if (options_.dump && wanted) options_.dump(pass.name, graph_);
    stopped_ = pass.name == options_.stop_after;
    return change;
  }

  const std::vector<Pass>& passes_;
  const std::vector<int>& groups_;
  const std::string& manager_;
  Graph& graph_;
  const PassOptions& options_;
  PassReport report_;
  bool stopped_ = false;
};

Result<PassReport> PassManager::run(Graph& graph, const PassOptions& options) const {
  if (!options.stop_after.empty()) TENON_OK(position(options.stop_after), "PassOptions::stop_after");
  return Run(*this, graph, options).all();
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

Result<int64_t> first_bad_step(int64_t low, int64_t high, const std::function<Result<bool>(int64_t)>& good) {
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    TENON_TRY(is_good, good(middle));
    (is_good ? low : high) = middle;
  }
  return high;
}

Result<BisectResult> bisect_passes(const PassManager& manager, const Graph& graph,
                                   const std::function<Result<bool>(const Graph&)>& good) {
  // The outcome of a number of runs: whether the result is good, how many runs there were, and which pass ran last.
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
    return Trial{verdict, report.runs, report.last};
  };
  TENON_TRY(all, attempt(-1));
  if (all.good) return BisectResult{};
  TENON_TRY(none, attempt(0));
  if (!none.good) {
    return error(Code::invalid_argument, "graph '", graph.name(), "' is wrong before any pass of '", manager.name(),
                 "' runs; look at the target or the model");
  }
  std::string culprit = all.last;
  TENON_TRY(run, first_bad_step(0, all.runs, [&](int64_t runs) -> Result<bool> {
              TENON_TRY(trial, attempt(runs));
              if (!trial.good) culprit = trial.last;
              return trial.good;
            }));
  return BisectResult{run, culprit};
}

}  // namespace tenon
