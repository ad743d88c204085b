// Inside of the room: where the values of a graph lie while it becomes a program.
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

// Memory that is taken as one: a declared buffer, or a local one. A storage may have been put into another one, its
// parent; then it is nothing but a name for a part of it.
struct Storage {
  enum class Kind : uint8_t { local, input, constant, output };
  Kind kind = Kind::local;
  const Value* value = nullptr;  // that it was made for
  const Type* type = nullptr;    // of the buffer; of GraphTypes
  Expr bytes;
  int64_t nominal_bytes = 0;
  program::BufferId buffer = -1;
  StorageId parent = kNever;
  Expr offset;                      // in the parent, bytes
  size_t first = kNever, last = 0;  // positions of the nodes that use it; of a root, of all within
  size_t values = 0;                // that lie in it; of a root, in all within

  bool is_used() const { return first != kNever; }
  void use(size_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
};

// Bytes from `offset` on: dense, or as far apart as in a tensor of the shape `within`, of as many dims as the value.
struct Place {
  StorageId storage = kNever;
  Expr offset;
  std::optional<Shape> within = {};
};

class Places {
 public:
  explicit Places(const GraphTypes& types) : types_(types) {}

  // For about so many values.
  void reserve(size_t values) {
    storages_.reserve(values);
    places_.reserve(values);
  }
  StorageId add(Storage::Kind kind, const Value& value);
  // The value lies there.
  void put(const Value& value, Place place) {
    ++storages_[place.storage].values;
    places_[&value] = std::move(place);
  }
  bool has(const Value& value) const { return places_.contains(&value); }
  // In a root.
  Place place(const Value& value) const;
  StorageId storage_of(const Value& value) const { return places_.at(&value).storage; }
  StorageId root_of(const Value& value) const { return root_of(storage_of(value)); }
  // Shortens the way to the root, so that long chains of parts of parts are walked once.
  StorageId root_of(StorageId id) const;
  Storage& root(const Value& value) { return storages_[root_of(value)]; }
  Storage& storage(StorageId id) { return storages_[id]; }
  const Storage& storage(StorageId id) const { return storages_[id]; }
  size_t size() const { return storages_.size(); }
  // Does the value have all of its root, nothing else beside it?
  bool covers_root(const Value& value) const;

  // The root `child` becomes a part of another storage; their uses are counted together.
  void merge(StorageId child, const Place& into);
  // The value alone has its root, which becomes a part of another storage, perhaps with gaps.
  void move(const Value& value, Place into);

  Expr bytes_of(const Type& type) const;
  // With every symbol taken as kNominalExtent: for decisions that only need to be good.
  static int64_t nominal(const Expr& bytes);
  static constexpr int64_t kNominalExtent = 32;

  const GraphTypes& types() const { return types_; }

 private:
  Place resolve(Place place) const;

  const GraphTypes& types_;
  mutable std::vector<Storage> storages_;  // `resolve` changes which parent is named, never where a part lies
  PointerMap<Value, Place> places_;
};

// Nominal bytes alive at each position: of local roots, from their first use to their last one. Changes of a life and
// the most bytes at any position take logarithmic time, so that each place may be asked what it does to the peak.
class LiveBytes {
 public:
  LiveBytes(const Places& places, size_t positions);
  int64_t peak() const { return most_[1]; }
  // Were `child` a part of `parent`: merges their lives unless that raises the peak. The caller merges the storages.
  bool merge_within_peak(const Storage& child, const Storage& parent);

 private:
  struct Life {
    size_t first, last;
    int64_t bytes;
  };
  void add(size_t first, size_t last, int64_t bytes);
  void add(size_t node, size_t begin, size_t end, const Life& life);

  size_t positions_;
  std::vector<int64_t> most_;   // by node of a binary tree over positions: the most below it, with what is added there
  std::vector<int64_t> added_;  // to all positions below the node
};

}  // namespace tenon::irgen::detail
