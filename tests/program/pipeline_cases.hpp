// The cases of tests/fixtures/pipelines/cases.yaml: families of pipelines, each built by one function from the
// parameters of a case, run, compared with plain C++, and counted.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <program/pipeline_support.hpp>

namespace tenon::program {

// The statistics of a run. Only calls with a non-empty result are counted.
struct Counts {
  int64_t heap_count = 0, heap_peak = 0;
  int64_t calls = 0, elements = 0;
  int64_t copy_calls = 0, copy_elements = 0;
  int64_t iterations = 0;
  std::map<std::string, StageStatistics> stages;
};

// One case being run.
class CaseRun {
 public:
  CaseRun(std::map<std::string, int64_t> params, int64_t number) : params_(std::move(params)), number_(number) {}

  int64_t operator[](const std::string& name) const { return params_.at(name); }
  bool has(const std::string& name) const { return params_.contains(name); }
  int64_t number() const { return number_; }  // of the case in its family, from 0
  // max_workers of the case; 1 is serial.
  int64_t workers() const { return has("max_workers") && params_.at("max_workers") != 1 ? kAllWorkers : 1; }

  BuildOptions options;
  int64_t stack_bytes = 0;
  SymbolValues scalars;

  // Builds (twice: both programs must be the same), verifies and runs; adds to the counts. Parallel loops run with
  // kThreads workers, in order and shuffled.
  static constexpr int64_t kThreads = 2;
  void run(const Pipeline& p, const std::vector<BufferRef>& inputs, const std::vector<BufferRef>& outputs,
           std::map<std::string, BufferArgument, std::less<>> buffers);
  // Expects each element of the array to be f(index).
  template <class T, class F>
  void expect(const Array<T>& array, const F& f) {
    int64_t wrong = 0;
    for_each_index(array.mins(), array.extents(), [&](const Index& i) {
      const T wanted = static_cast<T>(f(i));
      const bool same = std::is_floating_point_v<T> ? std::abs(static_cast<double>(array.at(i) - wanted)) <= 1e-6
                                                    : array.at(i) == wanted;
      if (!same && ++wrong == 1)
        ADD_FAILURE() << "at " << ::testing::PrintToString(i) << ": " << +array.at(i) << ", wanted " << +wanted << "\n"
                      << program_;
    });
    EXPECT_EQ(wrong, 0);
  }
  const Counts& counts() const { return counts_; }
  int64_t runs() const { return runs_; }
  const std::string& program() const { return program_; }

 private:
  std::map<std::string, int64_t> params_;
  int64_t number_;
  Counts counts_;
  int64_t runs_ = 0;
  std::string program_;
};

using Family = void (*)(CaseRun&);
// By the id in cases.yaml.
using Families = std::map<std::string, Family>;
void add_stage_families(Families& families);
void add_copy_families(Families& families);
void add_alias_families(Families& families);
void add_copy_only_families(Families& families);

}  // namespace tenon::program
