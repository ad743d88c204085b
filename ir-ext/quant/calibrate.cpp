#include <tenon-ext/quant/calibrate.hpp>

#include <algorithm>
#include <set>

#include <tenon-ext/quant/accumulator_internal.hpp>
#include <tenon-ext/quant/float_forms_internal.hpp>
#include <tenon-ext/quant/operators.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/pooling.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::quant {
namespace {

// ---- Profiles ----

class Profiler final : public Interpreter::Observer {
 public:
  Profiler(std::unordered_map<const Value*, std::string> keys, Profile& profile)
      : keys_(std::move(keys)), profile_(profile) {}

  void before(const Op&) override {}
  void after(const Op& op, std::span<const Datum> results) override {
    if (isa<Constant>(op)) return;
    for (size_t i = 0; i < results.size(); ++i) add(*op.result(i), results[i]);
  }
  void add(const Value& value, const Datum& datum) {
    const auto key = keys_.find(&value);
    if (key == keys_.end() || !datum.is_tensor() || datum.tensor().element() != kF32) return;
    ValueProfile& entry = profile_.values[key->second];
    if (entry.name.empty()) entry.name = value.name();
    entry.add(datum.tensor().as<float>());
  }

 private:
  std::unordered_map<const Value*, std::string> keys_;
  Profile& profile_;
};

// ---- Rounds ----

// Moves or selects elements, so that operand and result have the same scale.
bool keeps_scale(const Op& op) { return moves_only(op) || isa<MaxPool>(op); }

class Rounder {
 public:
  Rounder(Graph& graph, const Profile& profile, Method method)
      : body_(graph.body()), keys_(structural_keys(graph)), profile_(profile), method_(method) {}

  Result<Change> run() {
    for (Op* op : body_.ops()) {
      const bool sum = op->is("Add") && op->operand(0)->type() == op->operand(1)->type() &&
                       !constant_of(op->operand(0)) && !constant_of(op->operand(1));
      if ((!is_product(*op) && !sum && !is_mean(*op)) || !is_f32(op->result())) continue;
      TENON_OK(round(source(op->operand(0))), op->describe());
      if (sum) TENON_OK(round(source(op->operand(1))), op->describe());
      // A value that only the caller reads keeps the accumulator's bits: widen_products.
      Value* const end = sink(op->result());
      if (is_product(*op) && end->is_region_output() && end->has_one_use()) continue;
      TENON_OK(round(end), op->describe());
    }
    return done_.empty() ? Change::no : Change::yes;
  }

 private:
  static Value* source(Value* value) {
    while (value->producer() && keeps_scale(*value->producer())) value = value->producer()->operand(0);
    return value;
  }
  // The value after everything that an accumulator does by itself.
  static Value* sink(Value* value) {
    while (value->has_one_use()) {
      Op& user = *value->first_use()->user();
      const bool bias = user.is("Add") && value->producer()->is("MatMul") &&
                        constant_of(user.operand(1 - value->first_use()->index()));
      if (user.result_count() != 1 || (!bias && !clip_of(user))) break;
      value = user.result();
    }
    return value;
  }

  Result<void> round(Value* value) {
    if (!done_.insert(value).second || producer_as<Round>(value) || !is_f32(value)) return {};
    const auto entry = profile_.values.find(keys_.at(value));
    if (entry == profile_.values.end()) {
      return error(Code::not_found, "the profile knows no value like '", value->name(), "' (", keys_.at(value),
                   "); it was made of another network, or before other passes");
    }
    const std::vector<Use*> uses = value->uses();
    Builder builder(body_, value->producer() ? value->producer()->next() : body_.first());
    TENON_TRY(rounded, make_round(builder, value, split_step(step_of(entry->second, method_))));
    rounded->set_name(value->name());
    if (value->producer()) value->set_name(str(value->name(), ".real"));
    for (Use* use : uses) use->user()->set_operand(use->index(), rounded);
    done_.insert(rounded);
    return {};
  }

  Region& body_;
  std::unordered_map<const Value*, std::string> keys_;
  const Profile& profile_;
  Method method_;
  std::set<const Value*> done_;
};

}  // namespace

Result<void> calibrate(const Graph& graph, const Samples& samples, Profile& profile, ParallelFor& parallel) {
  TENON_TRY(interpreter, Interpreter::prepare(graph));
  Profiler profiler(structural_keys(graph), profile);
  for (const std::vector<Datum>& inputs : samples) {
    TENON_TRY(outputs, interpreter->run(inputs, parallel, &profiler), "calibration run ", profile.samples);
    for (size_t i = 0; i < inputs.size(); ++i) profiler.add(*graph.body().input(i), inputs[i]);
    ++profile.samples;
  }
  return {};
}

Result<Change> insert_rounds(Graph& graph, const Profile& profile, Method method) {
  return Rounder(graph, profile, method).run();
}

}  // namespace tenon::quant
