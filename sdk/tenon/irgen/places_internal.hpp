// Inside the room: where the values of a graph are stored while it becomes a program.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/irgen/graph_types.hpp>
#include <tenon/program/ir/statement.hpp>
#include <tenon/support/pointer_map.hpp>

namespace tenon::irgen::detail {

using StorageId = size_t;
inline constexpr size_t kNever = SIZE_MAX;

// Memory that is allocated as one: a declared buffer or a local one. A storage may have been put into another one, its
// parent; it is then only a name for a part of the parent.
struct Storage {
  enum class Kind : uint8_t { local, input, constant, output };
  Kind kind = Kind::local;
  const Value* value = nullptr;  // that it was made for
  const Type* type = nullptr;    // of the buffer; of GraphTypes
  Expr bytes;
  int64_t nominal_bytes = 0;
  program::BufferId buffer = -1;
  StorageId parent = kNever;
  Expr offset;                      // in the parent, in bytes
  size_t first = kNever, last = 0;  // positions of the nodes that use it; for a root, of all storages inside
  size_t values = 0;                // stored in it; for a root, in all inside

  bool is_used() const { return first != kNever; }
  void use(size_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
};

// Bytes from `offset` on: dense, or with the strides of a tensor of the shape `within`, of the same rank as the value.
struct Place {
  StorageId storage = kNever;
  Expr offset;
  std::optional<Shape> within = {};
};

class Places {
 public:
  explicit Places(const GraphTypes& types) : types_(types) {}

  // For about this many values.
  void reserve(size_t values) {
    storages_.reserve(values);
    places_.reserve(values);
  }
  StorageId add(Storage::Kind kind, const Value& value);
  // Records where the value is stored.
  void put(const Value& value, Place place) {
    ++storages_[place.storage].values;
    places_[&value] = std::move(place);
  }
  bool has(const Value& value) const { return places_.contains(&value); }
  // Relative to a root.
  Place place(const Value& value) const;
  StorageId storage_of(const Value& value) const { return places_.at(&value).storage; }
  StorageId root_of(const Value& value) const { return root_of(storage_of(value)); }
  // Compresses the path to the root, so that long chains of nested parts are followed only once.
  StorageId root_of(StorageId id) const;
  Storage& root(const Value& value) { return storages_[root_of(value)]; }
  Storage& storage(StorageId id) { return storages_[id]; }
  const Storage& storage(StorageId id) const { return storages_[id]; }
  size_t size() const { return storages_.size(); }
  // Whether the value covers all of its root and nothing else is stored there.
  bool covers_root(const Value& value) const;

  // Makes the root `child` a part of another storage; their uses are counted together.
  void merge(StorageId child, const Place& into);
  // The value is alone in its root, which becomes a part of another storage, possibly with gaps.
  void move(const Value& value, Place into);

  Expr bytes_of(const Type& type) const;
  // Each symbol is replaced by kNominalExtent, for heuristic decisions.
  static int64_t nominal(const Expr& bytes);
  static constexpr int64_t kNominalExtent = 32;

  const GraphTypes& types() const { return types_; }

 private:
  Place resolve(Place place) const;

  const GraphTypes& types_;
  mutable std::vector<Storage> storages_;  // `resolve` changes which parent is named, never where a part is stored
  PointerMap<Value, Place> places_;
};

// Nominal bytes alive at each position: those of local roots, from their first use to their last. Changing a lifetime
// and querying the peak take logarithmic time, so that the effect of each placement on the peak can be tested.
class LiveBytes {
 public:
  LiveBytes(const Places& places, size_t positions);
  int64_t peak() const { return most_[1]; }
  // As if `child` were a part of `parent`: merges their lifetimes unless that raises the peak. The caller merges the
  // storages.
  bool merge_within_peak(const Storage& child, const Storage& parent);

 private:
  struct Life {
    size_t first, last;
    int64_t bytes;
  };
  void add(size_t first, size_t last, int64_t bytes);
  void add(size_t node, size_t begin, size_t end, const Life& life);

  size_t positions_;
  std::vector<int64_t> most_;   // by node of a binary tree over positions: the maximum below it, additions included
  std::vector<int64_t> added_;  // to all positions below the node
};

}  // namespace tenon::irgen::detail
