// Inside the room: which indices of a stage's results its readers need, in the loops that it is computed in.
#pragma once
#include <optional>
#include <vector>

#include <tenon/program/pipeline/plan_internal.hpp>

namespace tenon::program {

// Of a plan whose stages are placed from the last to the first: when one is asked about, all readers are placed.
class RequiredIndices {
 public:
  explicit RequiredIndices(Plan& plan);

  // Sets StagePlan::required of a stage whose location is known, and the bounds of what it writes where expressions of
  // the author speak of them. Fails where nothing says what is needed.
  Result<void> find(int s);
  // Boxes were found before the bounds that they speak of were.
  void insert_known_bounds();

 private:
  void find_spoken_of();
  void speaks(const Windows& windows);
  void speaks(const Expr& e);
  void require_of_buffer(int buffer, const Path& location, std::vector<std::optional<Window>>& box);
  Window aligned(int64_t to, const Window& w) const;
  bool is_aligned(int64_t to, const Window& w) const;
  void resolve_bounds(int s);

  Plan& plan_;
  std::vector<bool> spoken_of_;  // by buffer: some expression of the author has its bounds
};

}  // namespace tenon::program
