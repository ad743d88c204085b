// Splits a long row into several stretches that one loop traverses side by side: main memory serves several streams
// faster than one. For loops of single vectors, of lanes or of bytes, that store non-temporally. Right because they
// carry nothing between iterations, so iterations may run in any order.
#include <algorithm>
#include <map>
#include <set>

#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

// Limits of the loop over all streams: instructions, and pointers that it may hold in registers.
constexpr size_t kMostInstructions = 96, kMostPointers = 12;

// The body of the vector loop that begins at instruction `begin`: [begin + 1, end). It contains no other loop.
struct VectorLoop {
  LoopId id = -1;
  size_t begin = 0, end = 0;
};

bool begins_loop(const Instruction& one) { return one.op == kLoopBegin || one.op == kTailBegin; }

// The first such loop of each row: a loop of single vectors, of lanes or of bytes, that stores non-temporally.
std::vector<VectorLoop> candidates(const LinearKernel& kernel) {
  std::vector<VectorLoop> found;
  std::set<RegisterId> counters;  // of loops found since the counter was 0
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    if (kernel.body[i].op == kZero) counters.erase(kernel.body[i].out[0]);
    if (kernel.body[i].op != kLoopBegin) continue;
    const auto id = static_cast<LoopId>(kernel.body[i].number);
    const Loop& loop = kernel.loops[static_cast<size_t>(id)];
    if (loop.kind != Loop::Kind::vector) continue;
    size_t end = i + 1;
    while (!is_border(kernel.body[end].op)) ++end;
    if (kernel.body[end].op != kLoopEnd) continue;
    const auto has = [&](Name op) {
      return std::any_of(kernel.body.begin() + static_cast<std::ptrdiff_t>(i),
                         kernel.body.begin() + static_cast<std::ptrdiff_t>(end),
                         [&](const Instruction& one) { return one.op == op; });
    };
    const bool of_bytes = has(kStoreBytesStreaming);
    if (loop.increment != kernel.lanes * (of_bytes ? 4 : 1) || !(of_bytes || has(kStoreStreaming))) continue;
    if (counters.insert(loop.counter).second) found.push_back({id, i, end});
  }
  return found;
}

// Writes the loop over all streams for one vector loop.
class Splitter {
 public:
  Splitter(LinearKernel& kernel, const VectorLoop& loop)
      : kernel_(kernel), loop_(loop), counter_(of(loop).counter), step_(of(loop).increment) {
    for (size_t i = 0; i < loop.begin; ++i)
      if (kernel.body[i].op == kZero && kernel.body[i].out[0] == counter_) place_ = i + 1;
  }

  void run(const Streams& wanted) {
    if (place_ == 0 || !find_pointers() || !stands_alone()) return;
    const size_t most = wanted.most > 0 ? std::min(kMostPointers, static_cast<size_t>(wanted.most)) : kMostPointers;
    int streams = wanted.each;
    while (streams > 1 && static_cast<size_t>(streams) * pointers_.size() > most) streams /= 2;
    const size_t size = loop_.end - loop_.begin - 1;
    // With vectors shorter than a line, two consecutive vectors of a stream fill a line. Stretches are whole lines.
    const bool hold_two =
        2 * step_ <= snippet::kLineElements && size * static_cast<size_t>(streams) * 2 <= kMostInstructions;
    const int vectors = hold_two ? 2 : 1;
    if (streams < 2 || size * static_cast<size_t>(streams) > kMostInstructions) return;
    write(streams, vectors, wanted.least_elements);
  }

 private:
  const Loop& of(const VectorLoop& loop) const { return kernel_.loops[static_cast<size_t>(loop.id)]; }
  static bool walks(const Instruction& one, RegisterId counter) { return one.memory && one.memory->index == counter; }

  // Finds the base registers of the loop's accesses, with their ports. False when one is not a pointer from the call.
  bool find_pointers() {
    const std::vector<int> ports = ports_of(kernel_);
    for (size_t i = loop_.begin + 1; i < loop_.end; ++i) {
      if (!walks(kernel_.body[i], counter_)) continue;
      const RegisterId base = kernel_.body[i].memory->base;
      if (ports[static_cast<size_t>(base)] < 0) return false;
      pointers_[base] = ports[static_cast<size_t>(base)];
    }
    return true;
  }

  // Whether no value is carried between iterations, and everything that the loop reads is defined before the new loop.
  bool stands_alone() const {
    const Uses uses(kernel_);
    std::vector<char> there(kernel_.registers.size(), 0);
    for (size_t i = 0; i < place_; ++i)
      for (const RegisterId id : kernel_.body[i].out) there[static_cast<size_t>(id)] = 1;
    for (size_t i = loop_.begin + 1; i < loop_.end; ++i) {
      const Instruction& one = kernel_.body[i];
      const auto is_there = [&](RegisterId id) { return there[static_cast<size_t>(id)] != 0; };
      if (!std::ranges::all_of(one.in, is_there)) return false;
      if (one.memory && (!is_there(one.memory->base) || !is_there(std::max(one.memory->index, one.memory->base))))
        return false;
      for (const RegisterId id : one.out) {
        if (!uses.once(id)) return false;
        there[static_cast<size_t>(id)] = 1;
      }
    }
    return true;
  }

  snippet::ParamId param(Param::Kind kind, LoopId loop, int port = -1) {
    return kernel_.add_param({.kind = kind, .port = port, .loop = loop, .streams = streams_, .stream_least = least_});
  }
  void add(RegisterId from, RegisterId to, snippet::ParamId number) {
    made_.push_back({.op = "AddParameter", .in = {from}, .out = {to}, .number = number});
  }

  void write(int streams, int vectors, int least) {
    streams_ = streams, least_ = least;
    const LoopId id = add_loop(vectors);
    std::vector<std::map<RegisterId, RegisterId>> bases(static_cast<size_t>(streams));
    for (const auto& [base, port] : pointers_) {
      bases[0][base] = base;
      for (size_t s = 1; s < bases.size(); ++s) {
        bases[s][base] = kernel_.add_general();
        add(bases[s - 1][base], bases[s][base], param(Param::Kind::stream_step, id, port));
      }
    }
    made_.push_back({.op = "LoopBegin", .in = {counter_}, .number = id});
    for (const auto& of_stream : bases) write_vectors(of_stream, vectors);
    made_.push_back({.op = "LoopEnd", .in = {counter_}, .number = id});
    add(counter_, counter_, param(Param::Kind::stream_rest, id));
    kernel_.body.insert(kernel_.body.begin() + static_cast<std::ptrdiff_t>(place_), made_.begin(), made_.end());
  }

  // Loops are numbered in the order of their positions, so those after the new one are renumbered.
  LoopId add_loop(int vectors) {
    const auto id = static_cast<LoopId>(
        std::count_if(kernel_.body.begin(), kernel_.body.begin() + static_cast<std::ptrdiff_t>(place_), begins_loop));
    Loop loop = of(loop_);
    loop.increment *= vectors;
    loop.shifts.clear();
    kernel_.loops.insert(kernel_.loops.begin() + id, std::move(loop));
    for (Instruction& one : kernel_.body)
      if (is_border(one.op)) one.number += one.number >= id;
    for (Param& param : kernel_.params) param.loop += param.loop >= id, param.inner += param.inner >= id;
    kernel_.loops[static_cast<size_t>(id)].limit = param(Param::Kind::stream_limit, id);
    return id;
  }

  // The loop's body for several vectors of one stream, interleaved instruction by instruction.
  void write_vectors(const std::map<RegisterId, RegisterId>& bases, int vectors) {
    std::vector<std::map<RegisterId, RegisterId>> renamed(static_cast<size_t>(vectors));
    for (size_t i = loop_.begin + 1; i < loop_.end; ++i) {
      for (size_t v = 0; v < renamed.size(); ++v) {
        Instruction one = kernel_.body[i];
        for (RegisterId& id : one.in)
          if (const auto at = renamed[v].find(id); at != renamed[v].end()) id = at->second;
        for (RegisterId& id : one.out) {
          const snippet::Register& like = kernel_.registers[static_cast<size_t>(id)];
          const RegisterId fresh = kernel_.add_register(like.file, like.element);
          renamed[v][id] = fresh;
          id = fresh;
        }
        if (walks(one, counter_)) {
          one.memory->base = bases.at(one.memory->base);
          one.memory->displacement_bytes += static_cast<int64_t>(v) * step_ * one.memory->element.bits() / 8;
        }
        made_.push_back(std::move(one));
      }
    }
  }

  LinearKernel& kernel_;
  const VectorLoop loop_;
  const RegisterId counter_;
  const int64_t step_;  // elements
  size_t place_ = 0;    // position of the new loop: after the initialisation of the counter
  std::map<RegisterId, int> pointers_;
  int streams_ = 0, least_ = 0;
  std::vector<Instruction> made_;
};

}  // namespace

void split_streams(LinearKernel& kernel, Streams streams) {
  // In a joined row, sweeps end where the call says, not at the extent that is divided into stretches.
  if (kernel.joined.rows >= 0) return;
  const std::vector<VectorLoop> loops = candidates(kernel);
  // From the last loop to the first, because instructions are inserted before.
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) Splitter(kernel, *loop).run(streams);
}

}  // namespace tenon::x86
