// Exact search for placements in one interval of time. For the planner's own files.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tenon/runtime/memory_problem_internal.hpp>

namespace tenon::memory {

// Places bodies below a ceiling, from the bottom up: the tops of the placed bodies form a skyline over time. In the
// valley where least can be wasted, either a body is put at the bottom or a gap is left there, which is wasted; all
// choices are tried, depth first. A plan in which every body is as low as the others allow is always among them, so a
// search that ends without a plan proves that there is none. A failure backtracks to the last choice in the same part
// of time, not to the last one made anywhere.
//
// The skyline is that of Burke, Kendall and Whitwell's best fit for strips (2004), applied to memory by Sekiyama et al.
// (2018); waste per section as a bound follows MiniMalloc (Moffitt 2023).
class Skyline {
 public:
  // Steps [first, last], numbered as in `problem`. Bodies `loose` are to be placed, each live there; bodies `fixed` are
  // at `at`, without overlap. Their rules are ignored: for problems that consist of sizes and lifetimes only (no
  // reaches, no pins).
  Skyline(const Problem& problem, uint32_t first, uint32_t last, std::span<const uint32_t> loose,
          std::span<const uint32_t> fixed, const std::vector<Address>& at);

  enum class Outcome : uint8_t { found, impossible, gave_up };
  // Examines at most `limit` bodies, which are added to `work`. Rounds differ in what they try first, by `seed`; round
  // 0 has no randomness. Each learns from the failures of earlier ones.
  Outcome run(Address ceiling, uint64_t seed, uint64_t round, uint64_t limit, Work& work);
  // After Outcome::found: the offsets of the loose bodies.
  void copy_to(std::vector<Address>& at) const;

 private:
  // Steps between which nothing but births occurs are one section.
  struct Item {
    Address bytes;
    uint32_t first, last;  // sections
    uint32_t body;
  };
  struct Obstacle {
    uint32_t section;
    Address bottom, top;
  };
  struct Section {
    Address floor = 0;                        // the skyline
    Address rest = 0;                         // bytes of unplaced items
    Address roof = 0;                         // bottom of the next obstacle, or the ceiling
    uint32_t obstacle = 0, obstacle_end = 0;  // those above the floor
  };
  // Sections of equal floor between higher ones.
  struct Valley {
    uint32_t left = 0;
    uint32_t section = 0;  // the one with the least spare bytes relative to its failures
    double spare = 0;      // of that one
  };
  enum class Choice : uint8_t { none, item, gap, rise };
  // A valley, the sections [left, right), and the decision there.
  struct Frame {
    Address level = 0, wall = 0, rise = 0;
    uint32_t left = 0, right = 0;
    uint32_t outer_left = 0, outer_right = 0;  // ends of the adjacent plateaus
    uint32_t section = 0;                      // for which the item at the bottom is chosen
    uint32_t begin = 0, next = 0;              // in pool_: the items to try
    uint32_t item = 0;                         // of Choice::item
    uint32_t from = 0, to = 0;                 // sections on which the failures so far depend
    Choice choice = Choice::none;
    bool empty = false;  // nothing fits at its bottom
    bool exhausted = false;
  };

  void lay_out(const Problem& problem, uint32_t first, uint32_t last, std::span<const uint32_t> loose,
               std::span<const uint32_t> fixed, const std::vector<Address>& at);
  void reset(uint64_t seed, uint64_t round);
  Frame find_valley() const;
  void regroup(const Frame& frame);
  void restore(const Frame& frame);
  void set_plateau(uint32_t begin, uint32_t end);
  void list_if_valley(uint32_t begin);
  void list(uint32_t begin);
  void unlist(uint32_t begin);
  void blame(uint32_t section);
  void open();
  void gather(Frame& frame);
  bool hopeless(const Frame& frame, uint32_t& section);
  void rank(Frame& frame);
  bool choose_next();
  bool waste(Frame& frame);
  bool back();
  void undo(Frame& frame);
  std::pair<uint32_t, uint32_t> touched(const Frame& frame) const;
  void raise(Section& section, Address level);
  void lower(uint32_t section, Address level);
  void drop_frame();

  bool inside(const Frame& frame, uint32_t i) const { return at_[i] == kNowhere && items_[i].last < frame.right; }
  bool fits(const Frame& frame, uint32_t i) const;
  double score(const Frame& frame, uint32_t i) const;
  Address next_roof(const Section& section) const {
    return section.obstacle == section.obstacle_end ? ceiling_ : obstacles_[section.obstacle].bottom;
  }

  std::vector<Item> items_;          // by first section
  std::vector<uint32_t> born_;       // by section: its first item; one more at the end
  std::vector<Obstacle> obstacles_;  // by section and bottom
  std::vector<Section> initial_, sections_;
  // Per section, bytes that may be wasted: what items and obstacles leave of the ceiling (of nothing at first), minus
  // the gaps so far.
  std::vector<Address> initial_spare_, spare_;
  std::vector<double> failures_, by_failures_;  // per section: one plus the failures there, and its reciprocal
  // Adjacent sections of equal floor are a plateau. By its first section: the end; by its last: the first.
  std::vector<uint32_t> plateau_end_, plateau_begin_;
  std::vector<Valley> valleys_;   // unordered
  std::vector<uint32_t> listed_;  // by first section: the index in valleys_, or kNone
  std::vector<Address> at_;       // of items
  std::vector<double> liking_;    // per item: the part of its priority that does not depend on the valley
  std::vector<Frame> frames_;
  std::vector<uint32_t> pool_;
  std::vector<Address> sums_;
  std::vector<std::pair<double, uint32_t>> ranked_;
  Address ceiling_ = 0;
  Address lowest_roof_ = 0;  // of the last valley
  uint64_t looks_ = 0;
  size_t left_ = 0;  // unplaced items
};

}  // namespace tenon::memory
