// Inside of the room: where the values of a graph lie while it becomes a program.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/irgen/graph_types.hpp>
#include <tenon/program/statement.hpp>

namespace tenon::irgen::detail {

using StorageId = size_t;
inline constexpr size_t kNever = SIZE_MAX;

// Memory that is taken as one: a declared buffer, or a local one. A storage may have been put into another one, its
// parent; then it is nothing but a name for a part of it.
struct Storage {
  enum class Kind : uint8_t { local, input, constant, output };
  Kind kind = Kind::local;
  std::string name;
  Type type;  // of the buffer
  Expr bytes;
  int64_t nominal_bytes = 0;
  program::BufferId buffer = -1;
  StorageId parent = kNever;
  Expr offset;                      // in the parent, bytes
  size_t first = kNever, last = 0;  // positions of the nodes that use it; of a root, of all within

  bool is_used() const { return first != kNever; }
  void use(size_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
};

// Dense bytes from `offset` on.
struct Place {
  StorageId storage = kNever;
  Expr offset;
};

class Places {
 public:
  explicit Places(const GraphTypes& types) : types_(types) {}

  StorageId add(Storage::Kind kind, const Value& value);
  // The value lies there.
  void put(const Value& value, Place place) { places_[&value] = std::move(place); }
  bool has(const Value& value) const { return places_.contains(&value); }
  // In a root.
  Place place(const Value& value) const;
  StorageId root_of(const Value& value) const { return place(value).storage; }
  Storage& root(const Value& value) { return storages_[root_of(value)]; }
  Storage& storage(StorageId id) { return storages_[id]; }
  const Storage& storage(StorageId id) const { return storages_[id]; }
  size_t size() const { return storages_.size(); }
  // Does the value have all of its root, nothing else beside it?
  bool covers_root(const Value& value) const;

  // The root `child` becomes a part of another storage; their uses are counted together.
  void merge(StorageId child, Place into);

  Expr bytes_of(const Type& type) const;
  // With every symbol taken as kNominalExtent: for decisions that only need to be good.
  static int64_t nominal(const Expr& bytes);
  static constexpr int64_t kNominalExtent = 32;

  const GraphTypes& types() const { return types_; }

 private:
  Place resolve(Place place) const;

  const GraphTypes& types_;
  std::vector<Storage> storages_;
  std::unordered_map<const Value*, Place> places_;
};

// Most nominal bytes of local roots alive at a position, were `child` merged into `parent` (kNever: as it is).
int64_t peak_bytes(const Places& places, size_t positions, StorageId child = kNever, StorageId parent = kNever);

}  // namespace tenon::irgen::detail
