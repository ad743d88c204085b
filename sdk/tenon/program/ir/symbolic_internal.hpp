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
  Expr fold;    // 0: none; folds without effect are dropped where that can be determined
  bool operator==(const SymbolicDim&) const = default;
};

struct SymbolicBuffer {
  BufferId root = -1;  // the declared buffer or allocation from which it is derived
  Expr offset;         // bytes from the root's base to the base
  std::vector<SymbolicDim> dims;
  bool general = false;  // its derivation from the root contains a View: its elements may be anywhere
};

// The place of index x along the dim, as DimView::place.
Expr place_of(const SymbolicDim& dim, const Expr& x);
// The number of places.
Expr places_of(const SymbolicDim& dim);
// Whether a dim is folded is known only when its fold is a constant.
inline bool is_unfolded(const SymbolicDim& dim) { return dim.fold.is_constant(0); }

// Bytes that an allocation with these dims takes, and the distance of its base from its lowest byte.
struct SymbolicSpread {
  Expr bytes;
  Expr base;
};
SymbolicSpread spread_of(const std::vector<SymbolicDim>& dims, ElementType element);

// The names in scope. Values are resolved: they contain no name that this scope can replace.
class Scope {
 public:
  explicit Scope(const Program& program);
  // Declares scalars, run.threads and declared buffers; assumes only that extents are non-negative.
  void declare_unknown();

  // A scalar, let or loop symbol. A loop's symbol represents itself.
  void define(const std::string& symbol, Expr value);
  void erase(const std::string& symbol) { symbols_.erase(symbol); }
  bool has(const std::string& symbol) const { return symbols_.contains(symbol); }
  // Null: not visible.
  const SymbolicBuffer* find(BufferId id) const { return by_id(id) ? &*by_id(id) : nullptr; }
  // Makes the buffer visible or invisible; returns its previous state.
  std::optional<SymbolicBuffer> exchange(BufferId id, std::optional<SymbolicBuffer> buffer);

  // Replaces all names of this scope. Unknown names stay.
  Expr resolve(const Expr& e) const;
  // The first symbol of `e` that is not a name of this scope: "" when there is none.
  std::string first_unknown(const Expr& e) const;
  // simplify() with the assumptions about symbols of loops.
  Expr simplified(const Expr& e) const { return simplify(e, assumptions_); }
  Assumptions& assumptions() { return assumptions_; }
  // Replaces symbols by others about which nothing is known: a position in a ring may be the same number for all of
  // these.
  Substitution& aligned() { return aligned_; }
  // The position of index x in a ring with `places` places.
  Expr place_in_ring(const Expr& x, const Expr& places) const;
  const Assumptions& assumptions() const { return assumptions_; }

  std::vector<SymbolicDim> dims_of(const std::vector<Dim>& dims, ElementType element) const;
  // Buffers that the statements define. Their sources are visible, and ranks match.
  SymbolicBuffer allocation(const Allocation& a) const;
  SymbolicBuffer crop(const Crop& s) const;
  SymbolicBuffer slice(const Slice& s) const;
  SymbolicBuffer transpose(const Transpose& s) const;
  SymbolicBuffer view(const View& s) const;
  // The box of a region, which must be inside the buffer.
  SymbolicBuffer region(const Region& r) const;
  // The part of its box that is inside the buffer; an extent below 1: nothing.
  Box cropped(const Region& r) const;

 private:
  std::optional<SymbolicBuffer>& by_id(BufferId id) { return buffers_[static_cast<size_t>(id)]; }
  const std::optional<SymbolicBuffer>& by_id(BufferId id) const { return buffers_[static_cast<size_t>(id)]; }
  const SymbolicBuffer* find(std::string_view name) const;
  const Expr* value_of(const std::string& symbol, Expr& scratch) const;
  void narrow(SymbolicBuffer& buffer, size_t d, const Expr& min, const Expr& extent) const;

  const Program& program_;
  std::unordered_map<std::string, Expr> symbols_;
  // Of program_.buffers' names, built on first use: programs of graphs use none.
  mutable std::unordered_map<std::string_view, BufferId> ids_;
  std::vector<std::optional<SymbolicBuffer>> buffers_;
  Assumptions assumptions_;
  Substitution aligned_;
};

}  // namespace tenon::program::detail
