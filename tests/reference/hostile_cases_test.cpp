// Every operator of the ONNX backend cases again, with operands of other shapes, types and values, and with other
// attributes: each must give a result or an error, never a crash. Run under the sanitizers, with a limit of 1 MiB per
// tensor.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <set>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/onnx/import.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/support/memory.hpp>
#include "conformance.hpp"

namespace tenon {
namespace {

using testing::pick;

// One operator with the operands that it has in a case.
struct Sample {
  std::string name;  // of the case, and the operator
  Name op;
  std::vector<Datum> operands;
  Attributes attributes;
  size_t results = 1;
};

// Collects the samples of a graph while it runs.
class Collector final : public Interpreter::Observer {
 public:
  Collector(std::string name, std::vector<Sample>& samples, std::set<std::string>& seen)
      : name_(std::move(name)), samples_(samples), seen_(seen) {}

  void know(const Value* value, Datum datum) { data_[value] = std::move(datum); }

  void before(const Op& op) override {
    // What one operator with regions does, they say, and a graph around it.
    if (op.region_count() > 0) return;
    Sample sample{name_ + ", " + op.describe(), op.name(), {}, op.attributes(), op.result_count()};
    std::string kind = str(op.name());
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const Value* value = op.operand(i);
      const Datum datum = value ? datum_of(*value) : Datum();
      if (value && datum.absent()) return;  // made in a region, where nobody sees it
      sample.operands.push_back(datum);
      kind += datum.absent() ? " _" : str(" ", datum.type());
    }
    for (const auto& [name, attribute] : op.attributes()) kind += str(" ", name, "=", attribute.hash());
    if (seen_.insert(kind).second) samples_.push_back(std::move(sample));
  }
  void after(const Op& op, std::span<const Datum> results) override {
    for (size_t i = 0; i < results.size(); ++i) {
      // The bytes may be the run's own, which are written over later.
      auto copy = results[i].is_tensor() ? results[i].tensor().clone() : Result<Tensor>(Tensor());
      if (copy.ok()) data_[op.result(i)] = copy->valid() ? Datum(*std::move(copy)) : results[i];
    }
  }

 private:
  Datum datum_of(const Value& value) const {
    const auto found = data_.find(&value);
    if (found != data_.end()) return found->second;
    const Op* op = value.producer();
    const Attribute* constant = op ? op->attributes().find("value") : nullptr;
    const Tensor* tensor = constant ? constant->get_if<Tensor>() : nullptr;
    return tensor && tensor->valid() ? Datum(*tensor) : Datum();
  }

  std::string name_;
  std::vector<Sample>& samples_;
  std::set<std::string>& seen_;
  std::map<const Value*, Datum> data_;
};

// The samples of every case that the reference runs.
Result<std::vector<Sample>> samples() {
  TENON_TRY(folder, conformance::default_folder(TENON_BESIDE));
  TENON_TRY(cases, conformance::find_cases(folder));
  std::vector<Sample> out;
  std::set<std::string> seen;
  for (const conformance::Case& one : cases) {
    if (one.suite != "node" || one.data_sets.empty()) continue;
    const auto graph = import_model(one.model);
    if (!graph.ok()) continue;
    const auto data = conformance::read_data_set(**graph, one.data_sets[0]);
    const auto interpreter = Interpreter::prepare(**graph);
    if (!data.ok() || !interpreter.ok()) continue;
    Collector collector(one.name, out, seen);
    for (size_t i = 0; i < data->inputs.size(); ++i) collector.know((*graph)->body().input(i), data->inputs[i]);
    (void)(*interpreter)->run(data->inputs, serial(), &collector);
  }
  return out;
}

// The elements of `from`, repeated.
Tensor resized(const Tensor& from, Dims dims) {
  auto made = Tensor::zeros(from.element(), std::move(dims));
  if (!made.ok()) return from;
  for (int64_t i = 0; from.size() > 0 && i < made->size(); ++i) {
    const int bits = from.element().bits();
    if (from.element().is_string())
      made->mutable_as<std::string>()[i] = from.as<std::string>()[i % from.size()];
    else if (bits > 64)
      std::copy_n(from.data() + i % from.size() * (bits / 8), bits / 8, made->mutable_data() + i * (bits / 8));
    else
      store_bits(made->mutable_data(), bits, i, load_bits(from.data(), bits, i % from.size()));
  }
  return *std::move(made);
}

int64_t hostile_int(std::mt19937& random, int64_t was) {
  constexpr int64_t kBreaking[] = {std::numeric_limits<int64_t>::min(),
                                   std::numeric_limits<int64_t>::max(),
                                   std::numeric_limits<int64_t>::max() / 2 + 1,
                                   int64_t{1} << 32,
                                   INT32_MAX,
                                   INT32_MIN,
                                   1000};
  switch (pick(random, 0, 7)) {
    case 0: return kBreaking[pick(random, 0, static_cast<int64_t>(std::size(kBreaking)) - 1)];
    case 1: return was == std::numeric_limits<int64_t>::max() ? was : was + 1;
    case 2: return was == std::numeric_limits<int64_t>::min() ? was : was - 1;
    default: return pick(random, -2, 5);
  }
}

Tensor changed(std::mt19937& random, const Tensor& tensor) {
  Dims dims = tensor.dims();
  const auto any_axis = [&] { return pick(random, 0, static_cast<int64_t>(dims.size()) - 1); };
  if (dims.empty() || pick(random, 0, 7) == 0) {
    dims.insert(dims.begin() + pick(random, 0, static_cast<int64_t>(dims.size())), pick(random, 0, 3));
    return resized(tensor, std::move(dims));
  }
  switch (pick(random, 0, 9)) {
    case 0: dims.erase(dims.begin() + any_axis()); break;
    case 1: std::swap(dims[any_axis()], dims[any_axis()]); break;
    case 2:  // other values of the same shape
      if (tensor.element().is_int() && tensor.size() > 0) {
        Tensor copy = resized(tensor, std::move(dims));
        const int64_t at = pick(random, 0, copy.size() - 1);
        copy.set_int(at, hostile_int(random, copy.int_at(at)));
        return copy;
      }
      [[fallthrough]];
    default: {
      int64_t& extent = dims[any_axis()];
      const int64_t others[] = {0, 1, extent - 1, extent + 1, extent * 2, extent / 2};
      extent = std::max<int64_t>(0, others[pick(random, 0, 5)]);
    }
  }
  return resized(tensor, std::move(dims));
}

void change_attribute(std::mt19937& random, Attributes& attributes) {
  if (attributes.empty()) return;
  const auto [name, attribute] = *(attributes.begin() + pick(random, 0, static_cast<int64_t>(attributes.size()) - 1));
  if (pick(random, 0, 7) == 0) return attributes.erase(name);
  if (const auto* one = attribute.get_if<int64_t>()) attributes.set(name, Attribute(hostile_int(random, *one)));
  if (const auto* several = attribute.get_if<Attribute::Integers>()) {
    Attribute::Integers other = *several;
    if (other.empty() || pick(random, 0, 3) == 0)
      other.resize(pick(random, 0, static_cast<int64_t>(other.size()) + 1), 1);
    else
      other[pick(random, 0, static_cast<int64_t>(other.size()) - 1)] = hostile_int(random, other[0]);
    attributes.set(name, Attribute(std::move(other)));
  }
}

void change(std::mt19937& random, Sample& sample) {
  if (sample.operands.empty() || pick(random, 0, 3) == 0) return change_attribute(random, sample.attributes);
  Datum& operand = sample.operands[pick(random, 0, static_cast<int64_t>(sample.operands.size()) - 1)];
  const int64_t kind = pick(random, 0, 19);
  if (kind == 0)
    operand = Datum();
  else if (kind == 1)
    operand = sample.operands[pick(random, 0, static_cast<int64_t>(sample.operands.size()) - 1)];
  else if (operand.is_tensor())
    operand = changed(random, operand.tensor());
}

// Like evaluate(), with the verification that a graph undergoes before it runs.
Result<std::vector<Datum>> verified_and_run(Sample sample) {
  Graph graph("hostile");
  Region& body = graph.body();
  std::vector<Value*> inputs;
  for (size_t i = 0; i < sample.operands.size(); ++i) {
    const Datum& operand = sample.operands[i];
    inputs.push_back(operand.absent() ? nullptr : body.add_input(str("operand", i), operand.type()));
  }
  Op& op = body.create(sample.op, inputs, std::vector<Type>(sample.results), sample.attributes);
  for (size_t i = 0; i < sample.results; ++i) body.add_output(op.result(i), str("result", i));
  std::erase_if(sample.operands, [](const Datum& operand) { return operand.absent(); });
  TENON_OK(verify(graph, {.require_types = false}));
  TENON_TRY(interpreter, Interpreter::prepare(graph));
  return interpreter->run(sample.operands);
}

TEST(HostileCases, AreResultsOrErrors) {
  const auto all = samples();
  if (!all.ok()) GTEST_SKIP() << all.error().to_string();
  const char* seeds_given = std::getenv("TENON_FUZZ_SEEDS");
  const char* first_given = std::getenv("TENON_FUZZ_FIRST");
  const unsigned seeds = seeds_given ? static_cast<unsigned>(std::atoi(seeds_given)) : 12;
  const unsigned first = first_given ? static_cast<unsigned>(std::atoi(first_given)) : 1;
  int64_t done = 0, refused = 0;
  for (const Sample& sample : *all) {
    for (unsigned seed = first; seed < first + seeds; ++seed) {
      if (std::getenv("TENON_FUZZ_TRACE")) std::fprintf(stderr, "%s, seed %u\n", sample.name.c_str(), seed);
      std::mt19937 random(seed);
      Sample other = sample;
      for (int64_t changes = pick(random, 1, 2); changes > 0; --changes) change(random, other);
      const auto results = verified_and_run(other);
      ++(results.ok() ? done : refused);
      if (results.ok()) continue;
      EXPECT_NE(results.error().code(), Code::internal)
          << sample.name << ", seed " << seed << ": " << results.error().to_string();
    }
  }
  std::printf("%zu operators of the cases; %ld runs, %ld refusals; TENON_FUZZ_FIRST=%u TENON_FUZZ_SEEDS=%u\n",
              all->size(), static_cast<long>(done), static_cast<long>(refused), first, seeds);
  EXPECT_GT(done, refused / 20);
}

}  // namespace
}  // namespace tenon
