// All cases of cases.yaml. Compared with the file's figures (`measured`, and `expected` if it is stricter):
//   heap peak, heap allocations   ours at most those measured
//   calls, elements               calls with a non-empty result and their elements, summed over all stages
//   copy calls                    ours at most; elements of copies are not compared (a view copies none)
//   iterations                    of serial cases
// Parallel cases run with two workers. Their figures come from a run whose number of workers is not recorded: where
// each worker has memory of its own, the peak is compared with workers * the serial figure (the file's target for
// elementwise_2d). Where one figure cannot be had with another that is better, kTrades says which, and how much it may
// be. TENON_CASES_TABLE=1 prints the table of all cases.
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>

#include <program/pipeline_cases.hpp>

namespace tenon::program {

void CaseRun::run(const Pipeline& p, const std::vector<BufferRef>& inputs, const std::vector<BufferRef>& outputs,
                  std::map<std::string, BufferArgument, std::less<>> buffers) {
  const auto program = p.build(inputs, outputs, {}, options);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const auto again = p.build(inputs, outputs, {}, options);
  program_ = print(program.value());
  EXPECT_EQ(program_, print(again.value()));
  const auto verified = verify(program.value());
  ASSERT_TRUE(verified.ok()) << verified.error().to_string() << "\n" << program_;
  RunStatistics statistics;
  for (const uint64_t seed : {7, 3, 0}) {
    statistics = {};
    const auto ran = interpret(program.value(), {buffers, scalars}, {kThreads, stack_bytes, seed, false}, &statistics);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string() << "\n" << program_;
  }
  const auto races = check_races(program.value(), {buffers, scalars}, {kThreads});
  EXPECT_TRUE(races.ok()) << races.error().to_string() << "\n" << program_;
  expect_same_compiled(program.value(), {buffers, scalars}, static_cast<int>(kThreads), stack_bytes);
  ++runs_;
  counts_.heap_count = std::max(counts_.heap_count, static_cast<int64_t>(statistics.heap.size()));
  counts_.heap_peak = std::max(counts_.heap_peak, statistics.heap_peak);
  counts_.iterations += statistics.loop_iterations;
  for (const auto& [name, s] : statistics.stages) counts_.calls += s.calls, counts_.elements += s.elements;
  for (const auto& [name, s] : statistics.copies) counts_.copy_calls += s.calls, counts_.copy_elements += s.elements;
  counts_.stages = statistics.stages;
}

namespace {

struct Case {
  std::string family;
  int64_t number = 0;
  std::map<std::string, int64_t> params;
  std::optional<int64_t> expected_count, expected_copies;
  Counts measured;
  bool parallel = false;
  int64_t serial_peak = 0;  // measured of the serial case of the same parameters
};

// A figure of a case that may be higher than measured: by how much, and why.
struct Trade {
  std::string_view family;
  std::map<std::string, int64_t> params;  // of the case; none: of all
  std::string_view figure;
  int64_t most;
  std::string_view why;
};
const Trade& trade_of(const std::string& family, const std::map<std::string, int64_t>& params,
                      std::string_view figure) {
  constexpr std::string_view kOuter =
      "a(i) is computed once (the file's target: 20 elements of 200), so all of it is kept: 20 * 4 bytes";
  static const Trade none{};
  static const std::vector<Trade> all = {
      {"outer_product", {{"max_workers", 1}, {"split_i", 1}, {"split_j", 1}}, "heap peak", 80 + 4, kOuter},
      {"outer_product", {{"max_workers", 1}, {"split_i", 1}, {"split_j", 2}}, "heap peak", 80 + 8, kOuter},
      {"outer_product", {{"max_workers", 1}, {"split_i", 2}, {"split_j", 1}}, "heap peak", 80 + 4, kOuter},
      {"outer_product", {{"max_workers", 1}, {"split_i", 2}, {"split_j", 2}}, "heap peak", 80 + 8, kOuter},
      {"copy.multiple_shared_aliases",
       {},
       "heap allocations",
       3,
       "windows of 8, 4 and 4 bytes in place of one array of 56"},
  };
  for (const Trade& t : all)
    if (t.family == family && t.figure == figure && (t.params.empty() || t.params == params)) return t;
  return none;
}

std::string text_of(const std::map<std::string, int64_t>& params) {
  std::string out;
  for (const auto& [name, value] : params)
    out += name + "=" + (value == 2147483647 ? "all" : std::to_string(value)) + " ";
  return out;
}

Case read_case(const std::string& family, int64_t number, const YAML::Node& node) {
  Case c{family, number, {}, {}, {}, {}, false, 0};
  for (const auto& param : node["params"]) c.params[param.first.as<std::string>()] = param.second.as<int64_t>();
  if (const YAML::Node e = node["expected"]) {
    if (e["heap_alloc_count"]) c.expected_count = e["heap_alloc_count"].as<int64_t>();
    if (e["heap_allocs"]) c.expected_count = static_cast<int64_t>(e["heap_allocs"].size());
    if (e["copy_calls"]) c.expected_copies = e["copy_calls"].as<int64_t>();
  }
  const YAML::Node m = node["measured"];
  c.measured.heap_count = m["n_heap"].as<int64_t>();
  c.measured.heap_peak = m["peak"].as<int64_t>();
  c.measured.iterations = m["loop_iters"] ? m["loop_iters"].as<int64_t>() : 0;
  c.parallel = m["parallel_loops"].IsDefined();
  for (const auto& call : m["calls"]) {
    const std::string name = call.first.as<std::string>();
    const bool copy = name.starts_with("copy->") || name.starts_with("memcpy->");
    (copy ? c.measured.copy_calls : c.measured.calls) += call.second[1].as<int64_t>();
    (copy ? c.measured.copy_elements : c.measured.elements) += call.second[2].as<int64_t>();
  }
  return c;
}

std::vector<Case> all_cases() {
  const YAML::Node file = YAML::LoadFile(TENON_PIPELINE_CASES);
  std::vector<Case> out;
  for (const YAML::Node& family : file["families"]) {
    int64_t number = 0;
    for (const YAML::Node& node : family["cases"])
      out.push_back(read_case(family["id"].as<std::string>(), number++, node));
  }
  for (Case& c : out) {
    if (!c.parallel) continue;
    std::map<std::string, int64_t> serial = c.params;
    if (serial.contains("max_workers")) serial["max_workers"] = 1;
    for (const Case& other : out)
      if (other.family == c.family && other.params == serial && !other.parallel)
        c.serial_peak = other.measured.heap_peak;
  }
  return out;
}

Families all_families() {
  Families f;
  add_stage_families(f);
  add_copy_families(f);
  add_alias_families(f);
  add_copy_only_families(f);
  return f;
}

class Table {
 public:
  void row(const Case& c, const Counts& ours) {
    const auto figure = [&](std::string_view name, int64_t measured, int64_t mine) {
      const bool worse = mine > measured, traded = worse && mine <= trade_of(c.family, c.params, name).most;
      traded_ += traded;
      if (worse && !traded) {
        ADD_FAILURE() << c.family << " [" << text_of(c.params) << "] " << name << ": " << mine << ", measured "
                      << measured;
        ++worse_;
      }
      better_ += mine < measured;
      if (print_)
        std::cout << std::setw(10) << measured << std::setw(8) << mine << (worse ? "!" : mine < measured ? "-" : " ");
    };
    if (print_) std::cout << std::left << std::setw(28) << c.family << std::setw(60) << text_of(c.params) << std::right;
    figure("heap peak", std::max(c.measured.heap_peak, CaseRun::kThreads * c.serial_peak), ours.heap_peak);
    figure("heap allocations", std::min(c.measured.heap_count, c.expected_count.value_or(c.measured.heap_count)),
           ours.heap_count);
    figure("calls", c.measured.calls, ours.calls);
    figure("elements", c.measured.elements, ours.elements);
    figure("copy calls", std::min(c.measured.copy_calls, c.expected_copies.value_or(c.measured.copy_calls)),
           ours.copy_calls);
    if (!c.parallel) figure("iterations", c.measured.iterations, ours.iterations);
    if (print_) std::cout << "\n";
  }
  void summary(size_t cases) const {
    std::cout << cases << " cases: " << worse_ << " figures worse than measured, " << traded_
              << " given for better ones, " << better_ << " better\n";
  }

 private:
  bool print_ = std::getenv("TENON_CASES_TABLE") != nullptr;
  int64_t worse_ = 0, better_ = 0, traded_ = 0;
};

TEST(PipelineCases, AllFamiliesRunRightAndNoWorse) {
  const Families families = all_families();
  Table table;
  const std::vector<Case> cases = all_cases();
  ASSERT_GE(cases.size(), 800u);
  for (const Case& c : cases) {
    const auto family = families.find(c.family);
    if (family == families.end()) {
      ADD_FAILURE() << "no family " << c.family;
      continue;
    }
    SCOPED_TRACE(c.family + " [" + text_of(c.params) + "] number " + std::to_string(c.number));
    CaseRun run(c.params, c.number);
    family->second(run);
    Counts counts = run.counts();
    const int64_t runs = std::max<int64_t>(run.runs(), 1);
    for (int64_t* total :
         {&counts.calls, &counts.elements, &counts.copy_calls, &counts.copy_elements, &counts.iterations})
      *total = (*total + runs - 1) / runs;
    table.row(c, counts);
  }
  table.summary(cases.size());
}

}  // namespace
}  // namespace tenon::program
