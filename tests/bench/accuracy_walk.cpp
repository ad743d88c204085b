// The errors of the x86 emitters' functions of one f32 operand at all 2^32 floats, on each instruction set of this
// machine; exits with 1 where an error exceeds the one that the jitter table states.
//
//   accuracy_walk [--function Erf] [--threads 2] [--json]
//
// Blocks are screened against the functions in f64 by vectors of the C library; the floats of a block that may contain
// a new largest error are then compared with test::math_cases().
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <support_lib/lane_samples.hpp>
#include <tenon/ir/text.hpp>

#include "accuracy_walk_blocks.hpp"
#include "row_stream.hpp"
#include "table_rows.hpp"

namespace tenon::x86::test {
namespace {

using tenon::test::MathBlock;
using tenon::test::MathCase;

constexpr int kBlock = 1 << 11;  // floats; together with their exact values they stay in L1
constexpr uint64_t kPart = uint64_t{1} << 22, kParts = (uint64_t{1} << 32) / kPart;  // floats of a thread's step

struct Worst {
  double ulp = 0;
  uint32_t operand = 0;
};

// A function on one instruction set.
struct Subject {
  Isa isa;
  const codegen::JitterRow* row;
  std::shared_ptr<const JitCode> code;
  Worst worst;
};

class Walk {
 public:
  Walk(const MathCase& math, MathBlock block) : math_(math), block_(block) {
    for (const Isa isa : machine_isas()) {
      const codegen::JitterRow* row = math_row(math, isa);
      if (row) subjects_.push_back({isa, row, runnable(row_stream(row, isa, math.attributes, kBlock)), {}});
    }
  }

  void run(int threads, const std::string& name) {
    std::vector<std::jthread> workers;
    for (int i = 1; i < threads; ++i) workers.emplace_back([this] { work({}); });
    work(name);
  }

  const std::vector<Subject>& subjects() const { return subjects_; }

 private:
  // Prints progress if a name is given.
  void work(const std::string& name) {
    std::vector<Worst> worst(subjects_.size());
    for (uint64_t part = next_++; part < kParts; part = next_++) {
      for (uint64_t begin = part * kPart; begin < (part + 1) * kPart; begin += kBlock)
        walk(static_cast<uint32_t>(begin), worst);
      if (!name.empty()) std::cerr << "\r" << name << " " << 100 * part / kParts << " %  " << std::flush;
    }
    if (!name.empty()) std::cerr << "\r" << std::string(40, ' ') << "\r";
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < worst.size(); ++i)
      if (worst[i].ulp > subjects_[i].worst.ulp) subjects_[i].worst = worst[i];
  }

  void walk(uint32_t begin, std::vector<Worst>& worst) {
    constexpr double kScreen = 1e-6;  // ulp that a screened error may be below the true one: 1e-14 of f64 is less
    alignas(64) thread_local std::array<float, kBlock> x, got;
    alignas(64) thread_local std::array<double, kBlock> exact;
    for (uint32_t i = 0; i < kBlock; ++i) x[i] = std::bit_cast<float>(begin + i);
    block_(x.data(), exact.data(), kBlock);
    const std::array params{std::bit_cast<int64_t>(x.data()), std::bit_cast<int64_t>(got.data())};
    for (size_t s = 0; s < subjects_.size(); ++s) {
      subjects_[s].code->function()(params.data());
      if (tenon::test::largest_ulp_error(got.data(), exact.data(), kBlock) <= worst[s].ulp - kScreen) continue;
      for (uint32_t i = 0; i < kBlock; ++i) {
        if (tenon::test::largest_ulp_error(&got[i], &exact[i], 1) <= worst[s].ulp - kScreen) continue;
        const double ulp = tenon::test::ulp_error(got[i], math_.unary(x[i]));
        if (ulp > worst[s].ulp) worst[s] = {ulp, begin + i};
      }
    }
  }

  const MathCase& math_;
  MathBlock block_;
  std::vector<Subject> subjects_;
  std::atomic<uint64_t> next_ = 0;
  std::mutex mutex_;
};

std::string name_of(const MathCase& math) {
  std::string name(math.op);
  for (const auto& [key, value] : math.attributes) name += " " + key.str() + " " + print(value);
  return name;
}

int report(const std::string& wanted, int threads, bool json) {
  const auto cases = tenon::test::math_cases();
  const std::vector<MathBlock> blocks = tenon::test::math_blocks();
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  bool known = false, as_stated = true;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!blocks[i] || (!wanted.empty() && cases[i].op != wanted)) continue;
    known = true;
    const std::string name = name_of(cases[i]);
    Walk walk(cases[i], blocks[i]);
    const auto begin = std::chrono::steady_clock::now();
    walk.run(threads, isatty(STDERR_FILENO) ? name : "");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    for (const Subject& subject : walk.subjects()) {
      const Worst& worst = subject.worst;
      as_stated &= worst.ulp <= subject.row->max_ulp;
      const std::string isa(isa_name(subject.isa));
      lines.push_back({{"function", name},
                       {"isa", isa},
                       {"ulp", worst.ulp},
                       {"operand", worst.operand},
                       {"stated", subject.row->max_ulp},
                       {"seconds", seconds}});
      if (json) continue;
      std::printf("%-24s %-7s %6.3f ulp at %#010x (%g), stated %.2f%s  %.0f s\n", name.c_str(), isa.c_str(), worst.ulp,
                  worst.operand, static_cast<double>(std::bit_cast<float>(worst.operand)), subject.row->max_ulp,
                  worst.ulp <= subject.row->max_ulp ? "" : ": FARTHER", seconds);
      std::fflush(stdout);
    }
  }
  if (!known) {
    std::cerr << "accuracy_walk: no function of one operand is called '" << wanted
              << "'; leave out --function for all\n";
    return 2;
  }
  if (json) std::cout << lines.dump(2) << "\n";
  return as_stated ? 0 : 1;
}

}  // namespace
}  // namespace tenon::x86::test

int main(int count, char** words) {
  CLI::App app{"The emitters' functions at all floats, against the truth"};
  std::string function;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  bool json = false;
  app.add_option("--function", function, "only this operator");
  app.add_option("--threads", threads, "that walk at once")->check(CLI::Range(1, 1024));
  app.add_flag("--json", json, "for machines");
  CLI11_PARSE(app, count, words);
  return tenon::x86::test::report(function, threads, json);
}
