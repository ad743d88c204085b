// Inside the room: symbolic state at a point of a program: buffers and symbols as expressions over what is not yet
// known. The verifier knows only declarations; binding (exec) knows everything except the loops' symbols.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/expr/bounds.hpp>
#include <tenon/program/ir/program.hpp>

namespace tenon::program::detail {

struct SymbolicDim {
  Expr min;
  Expr extent;
  Expr stride;  // bytes
  Expr fold;    // 0: none; without effect folds are gone as far as that can be told
  bool operator==(const SymbolicDim&) const = default;
};

struct SymbolicBuffer {
  BufferId root = -1;  // the declared buffer or allocation that it is made of
  Expr offset;         // bytes from the root's base to the base
  std::vector<SymbolicDim> dims;
  bool general = false;  // a View is on the way from the root: its elements may lie anywhere
};

// place of index x along the dim, as DimView::place.
Expr place_of(const SymbolicDim& dim, const Expr& x);
// How many places there are.
Expr places_of(const SymbolicDim& dim);
// Whether a dim is folded is known only when its fold is a constant.
inline bool is_unfolded(const SymbolicDim& dim) { return dim.fold.is_constant(0); }

// Bytes that an allocation with these dims takes, and how far its base lies above its lowest byte.
struct SymbolicSpread {
  Expr bytes;
  Expr base;
};
SymbolicSpread spread_of(const std::vector<SymbolicDim>& dims, ElementType element);

// The names in scope. Values are resolved: they hold no name that this scope can replace.
class Scope {
 public:
  explicit Scope(const Program& program);
  // Scalars, run.threads and declared buffers, of which nothing is known but that extents are not negative.
  void declare_unknown();

  // A scalar, let or loop symbol. A symbol of a loop stands for itself.
  void define(const std::string& symbol, Expr value);
  void erase(const std::string& symbol) { symbols_.erase(symbol); }
  bool has(const std::string& symbol) const { return symbols_.contains(symbol); }
  // Null: not visible.
  const SymbolicBuffer* find(BufferId id) const { return by_id(id) ? &*by_id(id) : nullptr; }
  // Makes the buffer visible, or not; returns what it was before.
  std::optional<SymbolicBuffer> exchange(BufferId id, std::optional<SymbolicBuffer> buffer);

  // With all names of this scope replaced. Names that it does not know stay.
  Expr resolve(const Expr& e) const;
  // The first symbol of `e` that is no name of this scope: "" when there is none.
  std::string first_unknown(const Expr& e) const;
  // simplify() under what is known of symbols of loops.
  Expr simplified(const Expr& e) const { return simplify(e, assumptions_); }
  Assumptions& assumptions() { return assumptions_; }
  // Symbols by others of which nothing is known: a place in a ring may be one number for all of these.
  Substitution& aligned() { return aligned_; }
  // The position of index x in a ring with `places` places.
  Expr place_in_ring(const Expr& x, const Expr& places) const;
  const Assumptions& assumptions() const { return assumptions_; }

  std::vector<SymbolicDim> dims_of(const std::vector<Dim>& dims, ElementType element) const;
  // What the statements define. Their sources are visible, and ranks fit.
  SymbolicBuffer allocation(const Allocation& a) const;
  SymbolicBuffer crop(const Crop& s) const;
  SymbolicBuffer slice(const Slice& s) const;
  SymbolicBuffer transpose(const Transpose& s) const;
  SymbolicBuffer view(const View& s) const;
  // The box of a region, which lies within.
  SymbolicBuffer region(const Region& r) const;
  // What of its box lies within the buffer; an extent below 1: nothing.
  Box cropped(const Region& r) const;

 private:
  std::optional<SymbolicBuffer>& by_id(BufferId id) { return buffers_[static_cast<size_t>(id)]; }
  const std::optional<SymbolicBuffer>& by_id(BufferId id) const { return buffers_[static_cast<size_t>(id)]; }
  const SymbolicBuffer* find(std::string_view name) const;
  const Expr* value_of(const std::string& symbol, Expr& scratch) const;
  void narrow(SymbolicBuffer& buffer, size_t d, const Expr& min, const Expr& extent) const;

  const Program& program_;
  std::unordered_map<std::string, Expr> symbols_;
  // Of program_.buffers' names, once one is asked for: programs of graphs name none.
  mutable std::unordered_map<std::string_view, BufferId> ids_;
  std::vector<std::optional<SymbolicBuffer>> buffers_;
  Assumptions assumptions_;
  Substitution aligned_;
};

}  // namespace tenon::program::detail
