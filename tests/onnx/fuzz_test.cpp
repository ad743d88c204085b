// Mutated models: for any bytes, import returns a graph that passes the verifier, or an error. Run under the
// sanitizers.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <random>

#include <tenon/ir/verify.hpp>
#include <tenon/onnx/export.hpp>
#include <tenon/onnx/import.hpp>
#include "conformance.hpp"
#include "onnx/wire.hpp"

namespace tenon {
namespace {

constexpr int kMutants = 10'000;
constexpr std::chrono::seconds kTimeCap(120);

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Small models of many kinds: a sample of the backend cases, and one with functions, which no case has.
std::vector<std::string> seeds() {
  std::vector<std::string> out;
  const auto folder = conformance::default_folder(TENON_BESIDE);
  const auto cases =
      folder.ok() ? conformance::find_cases(*folder) : Result<std::vector<conformance::Case>>(folder.error());
  if (cases.ok()) {
    for (size_t i = 0; i < cases->size(); i += 7) {
      std::string bytes = read((*cases)[i].model);
      if (bytes.size() < 20'000) out.push_back(std::move(bytes));
    }
  }
  using namespace wire;
  const Message twice =
      function("Twice", {"v"}, {"w"},
               {node("Neg", {"v"}, {"t"}), node("LeakyRelu", {"t"}, {"w"}, {ref_attribute("alpha", "a", 1)})});
  const Message calls = graph({.nodes = {node("Twice", {"x"}, {"m"}, {float_attribute("a", 0.5f)}, "local"),
                                         node("Twice", {"m"}, {"y"}, {}, "local")},
                               .inputs = {info("x", kFloatElement, {2, "n"})},
                               .outputs = {info("y")},
                               .initializers = {tensor<float>("w", kFloatElement, {2}, {1, 2})}});
  out.push_back(model(calls, 16, {twice}).bytes());
  return out;
}

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> seeds, uint64_t seed) : seeds_(std::move(seeds)), random_(seed) {}

  std::string next() {
    std::string bytes = seeds_[below(seeds_.size())];
    for (uint64_t changes = 1 + below(3); changes > 0 && !bytes.empty(); --changes) mutate(bytes);
    return bytes;
  }

 private:
  size_t below(size_t bound) { return static_cast<size_t>(random_() % bound); }

  void mutate(std::string& bytes) {
    const size_t at = below(bytes.size());
    // Mostly changes that leave lengths alone, so that many mutants are still read to their end.
    switch (below(16)) {
      case 0: bytes.resize(at); break;
      case 1: bytes.erase(at, 1 + below(16)); break;
      case 2: bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(64))); break;
      // A number at its limits, where a size, a dim or a version may stand.
      case 3: bytes.replace(at, 1, std::string(below(10), '\xff') + '\x7f'); break;
      // A piece of another file.
      case 4: {
        const std::string& other = seeds_[below(seeds_.size())];
        const size_t from = below(other.size());
        bytes.insert(at, other.substr(from, 1 + below(200)));
        break;
      }
      case 5:
      case 6:
      case 7: bytes[at] = static_cast<char>(random_()); break;
      case 8:
      case 9: bytes[at] = static_cast<char>(bytes[at] + (below(2) ? 1 : -1)); break;
      default: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
    }
  }

  std::vector<std::string> seeds_;
  std::mt19937_64 random_;
};

TEST(Fuzz, MutatedModels) {
  const char* given = std::getenv("TENON_FUZZ_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : 20260804;
  SCOPED_TRACE("TENON_FUZZ_SEED=" + std::to_string(seed));
  Mutator mutator(seeds(), seed);
  const auto start = std::chrono::steady_clock::now();
  int imported = 0, done = 0;
  for (; done < kMutants && std::chrono::steady_clock::now() - start < kTimeCap; ++done) {
    const std::string bytes = mutator.next();
    const ImportOptions options{.allow_unknown_ops = done % 2 == 0};
    const auto graph = import_model_bytes(std::as_bytes(std::span(bytes)), options);
    if (!graph.ok()) {
      EXPECT_FALSE(graph.error().message().empty());
      EXPECT_NE(graph.error().code(), Code::internal) << "mutant " << done << ": " << graph.error().to_string();
      continue;
    }
    ++imported;
    const auto verified = verify(**graph, {.allow_unknown_ops = options.allow_unknown_ops, .require_types = false});
    EXPECT_TRUE(verified.ok()) << "mutant " << done << ": " << verified.error().to_string();
    (void)export_model_bytes(**graph);
  }
  std::printf("%d mutants, %d of them still models\n", done, imported);
  EXPECT_GT(imported, done / 50);
  EXPECT_LT(imported, done);
}

}  // namespace
}  // namespace tenon
