#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include <tenon/runtime/memory_problem_internal.hpp>

namespace tenon::memory {
namespace {

// Disjoint free ranges below kNowhere.
class Holes {
 public:
  Holes() { add(0, kNowhere); }

  // Takes the smallest hole that fits the body; kNowhere when none does.
  Address take(const Body& body) {
    for (auto hole = by_size_.lower_bound({body.bytes, 0}); hole != by_size_.end(); ++hole) {
      const auto [bytes, begin] = *hole;
      const Address at = body.admit(begin);
      if (at == kNowhere || at + body.bytes > begin + bytes) continue;
      cut(begin, begin + bytes, at, at + body.bytes);
      return at;
    }
    return kNowhere;
  }

  // Makes [begin, end) unusable, including the parts that were not free.
  void remove(Address begin, Address end) {
    auto hole = holes_.upper_bound(begin);
    if (hole != holes_.begin()) --hole;
    while (hole != holes_.end() && hole->first < end) {
      const auto [from, to] = *hole++;
      if (to > begin) cut(from, to, std::max(from, begin), std::min(to, end));
    }
  }

  void give_back(Address begin, Address end) {
    auto next = holes_.lower_bound(begin);
    if (next != holes_.end() && next->first == end) end = next->second;
    if (next != holes_.begin() && std::prev(next)->second == begin) begin = std::prev(next)->first;
    for (auto hole = holes_.lower_bound(begin); hole != holes_.end() && hole->first < end;) erase(hole++);
    add(begin, end);
  }

 private:
  using Map = std::map<Address, Address>;  // begin -> end
  void add(Address begin, Address end) {
    if (begin == end) return;
    holes_.emplace(begin, end);
    by_size_.emplace(end - begin, begin);
  }
  void erase(Map::iterator hole) {
    by_size_.erase({hole->second - hole->first, hole->first});
    holes_.erase(hole);
  }
  void cut(Address from, Address to, Address begin, Address end) {
    erase(holes_.find(from));
    add(from, begin);
    add(end, to);
  }

  Map holes_;
  std::set<std::pair<Address, Address>> by_size_;  // bytes, begin
};

class Outward {
 public:
  explicit Outward(const Problem& problem) : problem_(problem), at_(problem.size(), kNowhere) {
    reserve();
    find_peak();
  }

  // The bodies of the worst step are stacked in the order of `before`.
  template <class Before>
  Address place(const Before& before) {
    Holes holes = free_;
    std::vector<uint32_t> stack = peak_bodies_;
    std::stable_sort(stack.begin(), stack.end(), before);
    for (const uint32_t i : stack) at_[i] = holes.take(bodies()[i]);
    sweep(later_, holes, stack, [](const Body& body) { return Address{body.first}; },
          [](const Body& body) { return Address{body.last}; });
    holes = free_;
    for (const uint32_t i : stack) holes.remove(at_[i], at_[i] + bodies()[i].bytes);
    sweep(earlier_, holes, stack, [](const Body& body) { return -Address{body.last}; },
          [](const Body& body) { return -Address{body.first}; });
    Address end = 0;
    for (uint32_t i = 0; i < problem_.size(); ++i) end = std::max(end, at_[i] + bodies()[i].bytes);
    return end;
  }
  const std::vector<Address>& at() const { return at_; }

 private:
  const std::vector<Body>& bodies() const { return problem_.bodies; }

  // Bodies with placement rules come first and keep their place for the whole time: they are usually few.
  void reserve() {
    std::vector<bool> apart(problem_.size(), false);
    for (const auto& [a, b] : problem_.apart) apart[a] = apart[b] = true;
    const auto keep = [&](uint32_t i, Address at) {
      const Address end = at + bodies()[i].bytes;
      reserved_.push_back(i);
      at_[i] = at;
      if (apart[i]) free_.remove(at / problem_.bank * problem_.bank, round_up(end, problem_.bank));
      else free_.remove(at, end);
    };
    for (uint32_t i = 0; i < problem_.size(); ++i) {
      if (bodies()[i].pinned) keep(i, bodies()[i].low);
    }
    for (uint32_t i = 0; i < problem_.size(); ++i) {
      const bool ruled = apart[i] || bodies()[i].high != kNowhere;
      if (ruled && !bodies()[i].pinned) keep(i, free_.take(bodies()[i]));
    }
  }

  void find_peak() {
    std::vector<Address> alive(problem_.steps.size() + 1, 0);
    std::vector<bool> kept(problem_.size(), false);
    for (const uint32_t i : reserved_) kept[i] = true;
    for (uint32_t i = 0; i < problem_.size(); ++i) {
      if (kept[i]) continue;
      alive[bodies()[i].first] += bodies()[i].bytes;
      alive[bodies()[i].last + 1] -= bodies()[i].bytes;
    }
    std::partial_sum(alive.begin(), alive.end(), alive.begin());
    const auto peak = static_cast<uint32_t>(std::max_element(alive.begin(), alive.end()) - alive.begin());
    for (uint32_t i = 0; i < problem_.size(); ++i) {
      if (kept[i]) continue;
      const Body& body = bodies()[i];
      (body.first > peak ? later_ : body.last < peak ? earlier_ : peak_bodies_).push_back(i);
    }
    const auto by = [&](const auto& key) {
      return [this, key](uint32_t a, uint32_t b) {
        return std::pair(key(bodies()[a]), -bodies()[a].bytes) < std::pair(key(bodies()[b]), -bodies()[b].bytes);
      };
    };
    std::stable_sort(later_.begin(), later_.end(), by([](const Body& body) { return Address{body.first}; }));
    std::stable_sort(earlier_.begin(), earlier_.end(), by([](const Body& body) { return -Address{body.last}; }));
  }

  // `birth` and `death` determine the direction of time: forward, or backward.
  template <class Birth, class Death>
  void sweep(const std::vector<uint32_t>& order, Holes& holes, const std::vector<uint32_t>& alive, const Birth& birth,
             const Death& death) {
    std::multimap<Address, uint32_t> deaths;
    for (const uint32_t i : alive) deaths.emplace(death(bodies()[i]), i);
    for (const uint32_t i : order) {
      while (!deaths.empty() && deaths.begin()->first < birth(bodies()[i])) {
        const uint32_t dead = deaths.begin()->second;
        deaths.erase(deaths.begin());
        if (at_[dead] < kNowhere) holes.give_back(at_[dead], at_[dead] + bodies()[dead].bytes);
      }
      at_[i] = holes.take(bodies()[i]);
      deaths.emplace(death(bodies()[i]), i);
    }
  }

  const Problem& problem_;
  Holes free_;  // left by the reserved bodies
  std::vector<Address> at_;
  std::vector<uint32_t> reserved_, peak_bodies_, later_, earlier_;
};

}  // namespace

void place_outward(const Problem& problem, Placement& best) {
  Outward outward(problem);
  const auto& bodies = problem.bodies;
  const auto consider = [&](const char* name, const auto& key) {
    if (best.end <= problem.bound) return;
    const Address end = outward.place([&](uint32_t a, uint32_t b) { return key(bodies[a]) < key(bodies[b]); });
    if (end < best.end) best = {outward.at(), end, name};
  };
  consider("outward, longest life below", [](const Body& body) { return Address{body.first} - body.last; });
  consider("outward, earliest below", [](const Body& body) { return Address{body.first}; });
  consider("outward, latest below", [](const Body& body) { return -Address{body.last}; });
  consider("outward, biggest below", [](const Body& body) { return -body.bytes; });
}

}  // namespace tenon::memory
