#include <tenon/reference/evaluator.hpp>

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace tenon {
namespace {

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<Name, EvaluatorFn> evaluators;
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

}  // namespace

EvaluatorRegistration::EvaluatorRegistration(std::initializer_list<Entry> entries) {
  for (const auto& entry : entries) {
    const auto registered = register_evaluator(entry.op, entry.evaluate);
    TENON_CHECK(registered.ok(), registered.error().to_string());
  }
}

EvaluatorFn find_evaluator(Name op) {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  const auto found = r.evaluators.find(op);
  return found == r.evaluators.end() ? nullptr : found->second;
}

Result<void> register_evaluator(Name op, EvaluatorFn evaluate) {
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  if (!r.evaluators.emplace(op, evaluate).second) {
    return error(Code::already_exists, "operator '", op, "' has an evaluator already");
  }
  return {};
}

}  // namespace tenon
