// Inside the room: the indices of a stage's results that its readers need, in the loops in which it is computed.
#pragma once
#include <optional>
#include <vector>

#include <tenon/program/pipeline/plan_internal.hpp>

namespace tenon::program {

// For a plan whose stages are placed from the last to the first: when a stage is queried, all its readers are placed.
class RequiredIndices {
 public:
  explicit RequiredIndices(Plan& plan);

  // Sets StagePlan::required of a stage whose location is known, and the bounds of its results where expressions of the
  // author refer to them. Fails where nothing determines what is needed.
  Result<void> find(int s);
  // Substitutes bounds in boxes that were computed before the bounds were known.
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
  std::vector<bool> spoken_of_;  // by buffer: some expression of the author refers to its bounds
};

}  // namespace tenon::program
