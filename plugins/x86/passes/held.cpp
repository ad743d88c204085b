// Prefetching for rows beyond the caches that are fully unrolled (LowerOptions::held_vectors). They have no loop over
// vectors that could prefetch lines ahead, so the lines of later rows are prefetched between the instructions of an
// iteration, one by one. A burst of prefetches would keep the iteration's own loads and stores waiting, for twice the
// time.
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <tuple>

#include "x86/names.hpp"
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

class HeldFetcher {
 public:
  HeldFetcher(LinearKernel& kernel, Ahead reads, Ahead writes) : kernel_(kernel), reads_(reads), writes_(writes) {}

  void run() {
    for (size_t i = 0; i < kernel_.body.size(); ++i)
      if (kernel_.body[i].op == kLoopBegin) see_loop(i);
    if (made_.empty()) return;
    std::vector<Instruction> body;
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      if (const auto made = made_.find(i); made != made_.end())
        std::ranges::move(made->second, std::back_inserter(body));
      body.push_back(std::move(kernel_.body[i]));
    }
    kernel_.body = std::move(body);
  }

 private:
  // The accesses through one pointer: where each address is accessed first, and how.
  struct Walked {
    std::vector<size_t> at = {};
    Memory memory = {};
    bool written = false;
  };
  using Walks = std::map<RegisterId, Walked>;

  // Handles a loop over rows, where adjacent rows form one contiguous stretch of memory.
  void see_loop(size_t begin) {
    const Loop& loop = kernel_.loops[static_cast<size_t>(kernel_.body[begin].number)];
    if (loop.kind != Loop::Kind::scalar) return;
    const std::optional<Walks> walks = walks_from(begin + 1);
    if (!walks) return;
    std::vector<std::pair<const Walked*, int64_t>> read, written;
    for (const Loop::Shift& shift : loop.shifts) {
      const auto walked = walks->find(shift.pointer);
      if (walked == walks->end() || shift.each < 0) continue;
      const auto bytes = kernel_.params[static_cast<size_t>(shift.each)].known;
      if (bytes && *bytes > 0) (walked->second.written ? written : read).emplace_back(&walked->second, *bytes);
    }
    for (const auto& [walked, bytes] : read) fetch(*walked, bytes, kPrefetchRead, reads_, read.size());
    for (const auto& [walked, bytes] : written) fetch(*walked, bytes, kPrefetchWrite, writes_, written.size());
  }

  // Pointers to the second row and further ones count as the first row's pointer, from which they are a step. None: the
  // loop contains another loop.
  std::optional<Walks> walks_from(size_t begin) const {
    Walks walks;
    std::map<RegisterId, RegisterId> from;
    std::set<std::tuple<RegisterId, int64_t, bool>> seen;
    for (size_t i = begin; kernel_.body[i].op != kLoopEnd; ++i) {
      const Instruction& one = kernel_.body[i];
      if (is_border(one.op)) return std::nullopt;
      // A pointer that advances inside the body belonged to a loop that has been unrolled.
      if (one.op == kAddParameter && one.out[0] == one.in[0]) return std::nullopt;
      if (one.op == kAddParameter) from[one.out[0]] = one.in[0];
      const bool written = one.op == kStore;
      if (!one.memory || !(written || reads_memory(one))) continue;
      if (!seen.emplace(one.memory->base, one.memory->displacement_bytes, written).second) continue;
      RegisterId pointer = one.memory->base;
      for (auto at = from.find(pointer); at != from.end(); at = from.find(pointer)) pointer = at->second;
      Walked& walked = walks[pointer];
      if (written && !walked.written) walked.at.clear();
      if (walked.written && !written) continue;
      walked.written = written;
      walked.at.push_back(i);
      walked.memory = {.element = one.memory->element, .base = pointer};
    }
    return walks;
  }

  void fetch(const Walked& walked, int64_t bytes, Name op, Ahead ahead, size_t tensors) {
    if (ahead.lines == 0) return;
    const int64_t lines = (bytes + kLineBytes - 1) / kLineBytes, places = static_cast<int64_t>(walked.at.size());
    for (int64_t line = 0; line < lines; ++line) {
      Instruction one{.op = op, .memory = walked.memory, .label = kernel_.body[walked.at[0]].label};
      one.memory->displacement_bytes = (ahead.of(tensors) + line) * kLineBytes;
      made_[walked.at[static_cast<size_t>(line * places / lines)]].push_back(std::move(one));
    }
  }

  LinearKernel& kernel_;
  const Ahead reads_, writes_;
  std::map<size_t, std::vector<Instruction>> made_;  // to be inserted before these instructions
};

}  // namespace

void fetch_held_rows(LinearKernel& kernel, Ahead reads, Ahead writes) { HeldFetcher(kernel, reads, writes).run(); }

}  // namespace tenon::x86
