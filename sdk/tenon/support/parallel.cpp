#include <tenon/support/parallel.hpp>

namespace tenon {
namespace {
class Serial final : public ParallelFor {
 public:
  void run(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) override {
    if (count > 0) body(0, count);
  }
  int threads() const override { return 1; }
};
}  // namespace

ParallelFor& serial() {
  static Serial instance;
  return instance;
}

}  // namespace tenon
