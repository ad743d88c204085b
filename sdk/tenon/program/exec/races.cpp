#include <tenon/program/exec/races.hpp>

#include <algorithm>
#include <bitset>
#include <deque>

#include <tenon/program/exec/byte_runs_internal.hpp>
#include <tenon/program/exec/tracer_internal.hpp>

namespace tenon::program {
namespace {

using namespace detail;

using Stages = std::bitset<kMostStages + 1>;

struct Touch {
  std::shared_ptr<MemoryBlock> memory;
  std::vector<ByteRun> runs;
  bool writes = false;
  std::string what;  // for messages
  int64_t iteration = 0;
  Stages awaited;    // by its iteration before it
  Stages signalled;  // by its iteration before it
};

bool conflict(const Touch& a, const Touch& b) {
  return (a.writes || b.writes) && a.memory == b.memory && overlap(a.runs, b.runs);
}

// All accesses of one transfer.
struct Transfer {
  TokenId token;
  std::vector<Touch> touches;
};

class RaceFinder final : public Tracer {
 public:
  explicit RaceFinder(const Program& program) : program_(program) {}

  Result<void> access(std::string_view stage, const BoundBuffer& box, bool writes) override {
    const Touch touch = make(box, writes, str("stage '", stage, "'"));
    for (const auto& transfers : {std::cref(under_way_), std::cref(outer_)})
      for (const Transfer& t : transfers.get()) TENON_OK(compare(t, touch));
    return in_iteration(touch);
  }

  Result<void> start(TokenId token, const BoundBuffer& destination, const std::vector<BoundBuffer>& sources) override {
    Transfer transfer{token, {}};
    const std::string what = str("a transfer of token '", program_.tokens[static_cast<size_t>(token)], "'");
    if (destination.memory) transfer.touches.push_back(make(destination, true, what));
    for (const BoundBuffer& s : sources) transfer.touches.push_back(make(s, false, what));
    for (const Touch& touch : transfer.touches) {
      for (const auto& transfers : {std::cref(under_way_), std::cref(outer_)})
        for (const Transfer& t : transfers.get()) TENON_OK(compare(t, touch));
      TENON_OK(in_iteration(touch));
    }
    under_way_.push_back(std::move(transfer));
    return {};
  }

  void wait(TokenId token) override {
    const auto oldest =
        std::find_if(under_way_.begin(), under_way_.end(), [&](const Transfer& t) { return t.token == token; });
    if (oldest != under_way_.end()) under_way_.erase(oldest);
  }

  void enter(const Loop& loop, int64_t workers) override {
    loop_ = &loop;
    workers_ = workers;
    touched_.clear();
    // Transfers that are pending at entry cannot be waited for inside.
    outer_ = std::exchange(under_way_, {});
  }
  Result<void> begin(int64_t iteration, int64_t value) override {
    iteration_ = iteration;
    value_ = value;
    awaited_.reset();
    signalled_.reset();
    mine_.clear();
    // Iterations that have certainly ended.
    if (loop_->kind == LoopKind::pipelined)
      std::erase_if(touched_, [&](const Touch& t) { return t.iteration <= iteration - workers_; });
    return {};
  }
  Result<void> end() override {
    touched_.insert(touched_.end(), std::make_move_iterator(mine_.begin()), std::make_move_iterator(mine_.end()));
    return {};
  }
  void leave() override {
    loop_ = nullptr;
    under_way_ = std::exchange(outer_, {});
  }
  void signal(int stage) override { signalled_.set(static_cast<size_t>(stage)); }
  void await(int stage) override { awaited_.set(static_cast<size_t>(stage)); }

 private:
  Touch make(const BoundBuffer& box, bool writes, std::string what) const {
    if (loop_) what += str(" in iteration ", loop_->symbol, " = ", value_);
    return {box.memory, runs_of(box), writes, std::move(what), iteration_, awaited_, signalled_};
  }

  Error race(const Touch& earlier, const Touch& later, const std::string& remedy) const {
    return error(Code::invalid_argument, later.what, later.writes ? " writes" : " reads", " bytes of '",
                 program_.buffer(later.memory->root).name, "' that ", earlier.what,
                 earlier.writes ? " writes" : " reads", ", and nothing orders the two: ", remedy);
  }

  Result<void> compare(const Transfer& transfer, const Touch& touch) const {
    for (const Touch& t : transfer.touches)
      if (conflict(t, touch))
        return race(t, touch,
                    str("wait for '", program_.tokens[static_cast<size_t>(transfer.token)], "' between them"));
    return {};
  }

  // Against other iterations of the enclosing loop of workers.
  Result<void> in_iteration(const Touch& touch) {
    if (!loop_ || touch.memory->slots > 1) return {};
    for (const Touch& t : touched_)
      if (conflict(t, touch) && !is_ordered(t, touch))
        return race(t, touch,
                    loop_->kind == LoopKind::parallel
                        ? "iterations of a parallel loop must not share what they write"
                        : "signal a stage behind the earlier one, and await it before the later one");
    mine_.push_back(touch);
    return {};
  }
  // `t` is of an earlier iteration.
  bool is_ordered(const Touch& t, const Touch& later) const {
    return loop_->kind == LoopKind::pipelined && (later.awaited & ~t.signalled).any();
  }

  const Program& program_;
  std::vector<Transfer> under_way_;  // oldest first
  std::vector<Transfer> outer_;      // pending from before the loop of workers
  const Loop* loop_ = nullptr;
  int64_t workers_ = 1;
  int64_t iteration_ = 0, value_ = 0;
  Stages awaited_, signalled_;
  std::vector<Touch> touched_;  // by earlier iterations
  std::vector<Touch> mine_;     // by this one
};

}  // namespace

Result<void> check_races(const Program& program, const Arguments& shapes, const RaceOptions& options) {
  RaceFinder finder(program);
  return trace(program, shapes, options.threads, finder);
}

}  // namespace tenon::program
