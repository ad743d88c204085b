#include <tenon/program/exec/transfers_internal.hpp>

#include <algorithm>

namespace tenon::program::detail {

TransferQueue::TransferQueue(const std::vector<Site>& sites, size_t tokens) : tokens_(tokens) {
  if (tokens == 0) return;
  size_t parameters = 0;
  for (const Site& site : sites)
    if (site.token >= 0) parameters = std::max(parameters, site.plan->parameters().size());
  jobs_ = std::make_unique<std::array<Job, kJobs>>();
  for (Job& j : *jobs_) j.parameters.resize(parameters);
}

bool TransferQueue::push(const Site& site, Frame& frame) {
  const uint64_t number = pushed_.load(std::memory_order_relaxed);
  Job& j = job(number);
  Token& token = tokens_[static_cast<size_t>(site.token)];
  Token::Entry& entry = token.jobs[token.started % kJobs];
  const bool waits = entry.transfer != UINT64_MAX && entry.transfer >= token.ended;
  if (!j.free || waits) return false;
  j.free = false;
  j.site = &site;
  auto dims = j.dims.begin();
  for (size_t o = 0; o < site.operands.size(); ++o) {
    const BufferView& view = frame.as<BufferView>(site.operands[o].view);
    j.views[o] = {view.base, {&*dims, view.dims.size()}, view.element};
    dims = std::copy(view.dims.begin(), view.dims.end(), dims);
  }
  const size_t parameters = site.plan->parameters().size();
  if (parameters > 0) std::copy_n(&frame.at(site.parameters), parameters, j.parameters.begin());
  entry = {token.started++, number};
  pushed_.store(number + 1);
  return true;
}

void TransferQueue::run(uint64_t number) {
  Job& j = job(number);
  const size_t parameters = j.site->plan->parameters().size();
  auto result = j.site->plan->run(j.views[0], j.views[1], j.site->operands.size() > 2 ? &j.views[2] : nullptr,
                                  {j.parameters.data(), parameters});
  j.error.reset();
  if (!result.ok()) j.error = std::move(result).error();
  j.done.store(number + 1, std::memory_order_release);
}

bool TransferQueue::run_next() {
  uint64_t number = taken_.load();
  while (number < pushed_.load())
    if (taken_.compare_exchange_weak(number, number + 1)) {
      run(number);
      return true;
    }
  return false;
}

Result<void> TransferQueue::wait(TokenId id) {
  Token& token = tokens_[static_cast<size_t>(id)];
  const uint64_t transfer = token.ended++;
  const Token::Entry& entry = token.jobs[transfer % kJobs];
  if (entry.transfer != transfer) return {};
  Job& j = job(entry.job);
  for (int spins = 0; j.done.load(std::memory_order_acquire) <= entry.job; ++spins)
    if (!run_next() && spins > 200) std::this_thread::yield();
  j.free = true;
  if (j.error) return *std::exchange(j.error, std::nullopt);
  return {};
}

void TransferQueue::reset() {
  if (tokens_.empty()) return;
  const uint64_t end = pushed_.load(std::memory_order_relaxed);
  uint64_t begun = taken_.load();
  while (begun < end && !taken_.compare_exchange_weak(begun, end)) {
  }
  for (uint64_t number = begun; number < end; ++number) job(number).done.store(number + 1, std::memory_order_relaxed);
  for (uint64_t number = end > kJobs ? end - kJobs : 0; number < begun; ++number)
    while (job(number).done.load(std::memory_order_acquire) <= number) std::this_thread::yield();
  for (Job& j : *jobs_) {
    j.free = true;
    j.error.reset();
  }
  for (Token& token : tokens_) token = {};
}

TransferEngine::TransferEngine(std::vector<TransferQueue*> queues)
    : queues_(std::move(queues)), thread_([this] { work(); }) {}

TransferEngine::~TransferEngine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void TransferEngine::wake() {
  if (!sleeps_) return;
  const std::lock_guard lock(mutex_);
  wake_.notify_one();
}

bool TransferEngine::has_work() const {
  return std::any_of(queues_.begin(), queues_.end(), [](const TransferQueue* q) { return q->has_work(); });
}

void TransferEngine::work() {
  constexpr int kPatience = 1000;  // polls, some 50 us in total
  for (int idle = 0; !stop_;) {
    bool any = false;
    for (TransferQueue* queue : queues_) any |= queue->run_next();
    idle = any ? 0 : idle + 1;
    if (idle < kPatience) continue;
    std::unique_lock lock(mutex_);
    sleeps_ = true;  // before the last poll: a thread that pushes later sees it
    wake_.wait(lock, [this] { return stop_ || has_work(); });
    sleeps_ = false;
    idle = 0;
  }
}

}  // namespace tenon::program::detail
