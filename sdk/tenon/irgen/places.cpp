#include <algorithm>
#include <bit>

#include <tenon/irgen/places_internal.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::irgen::detail {

Expr Places::bytes_of(const Type& type) const {
  const int64_t element = type.element().bits() / 8;
  int64_t number = element;
  bool known = true;
  for (const Dim& d : type.shape().dims())
    known = known && d.is_static() && !__builtin_mul_overflow(number, d.value(), &number);
  if (known) return number;
  Expr bytes = element;
  for (const Dim& d : type.shape().dims()) bytes = bytes * d.expr();
  return bytes;
}

int64_t Places::nominal(const Expr& bytes) {
  if (bytes.is_constant()) return bytes.constant();
  SymbolValues values;
  for (std::string& symbol : bytes.symbols()) values.emplace(std::move(symbol), kNominalExtent);
  const auto value = bytes.evaluate(values);
  return value.ok() ? std::max<int64_t>(*value, 0) : 0;
}

StorageId Places::add(Storage::Kind kind, const Value& value) {
  Storage made;
  made.kind = kind;
  made.value = &value;
  made.type = &types_.type_of(value);
  made.bytes = bytes_of(*made.type);
  made.nominal_bytes = nominal(made.bytes);
  storages_.push_back(std::move(made));
  return storages_.size() - 1;
}

StorageId Places::root_of(StorageId id) const {
  const StorageId parent = storages_[id].parent;
  if (parent == kNever) return id;
  if (storages_[parent].parent == kNever) return parent;
  std::vector<StorageId> way;
  for (; storages_[id].parent != kNever; id = storages_[id].parent) way.push_back(id);
  // Path compression from the root back: each then names the root itself.
  for (size_t i = way.size() - 1; i-- > 0;) {
    Storage& inner = storages_[way[i]];
    inner.offset += storages_[way[i + 1]].offset;
    inner.parent = id;
  }
  return id;
}

Place Places::resolve(Place place) const {
  const StorageId root = root_of(place.storage);
  if (root == place.storage) return place;
  place.offset += storages_[place.storage].offset;
  place.storage = root;
  return place;
}

Place Places::place(const Value& value) const { return resolve(places_.at(&value)); }

bool Places::covers_root(const Value& value) const {
  const Place at = place(value);
  return !at.within && at.offset.is_constant(0) && bytes_of(types_.type_of(value)) == storages_[at.storage].bytes;
}

void Places::merge(StorageId child, const Place& into) {
  storages_[child].parent = into.storage;
  storages_[child].offset = into.offset;
  Storage& root = storages_[resolve(into).storage];
  root.values += storages_[child].values;
  if (!storages_[child].is_used()) return;
  root.use(storages_[child].first);
  root.use(storages_[child].last);
}

void Places::move(const Value& value, Place into) {
  merge(root_of(value), into);
  places_[&value] = std::move(into);
}

// ---- Live bytes ----

LiveBytes::LiveBytes(const Places& places, size_t positions) : positions_(std::bit_ceil(positions + 1)) {
  most_.assign(2 * positions_, 0);
  added_.assign(2 * positions_, 0);
  for (StorageId id = 0; id < places.size(); ++id) {
    const Storage& s = places.storage(id);
    if (s.kind == Storage::Kind::local && s.parent == kNever && s.is_used()) add(s.first, s.last, s.nominal_bytes);
  }
}

bool LiveBytes::merge_within_peak(const Storage& child, const Storage& parent) {
  const int64_t before = peak();
  const int64_t grows = parent.kind == Storage::Kind::local && parent.is_used() ? parent.nominal_bytes : 0;
  const auto merge = [&](int64_t sign) {
    if (child.is_used()) add(child.first, child.last, -sign * child.nominal_bytes);
    if (grows == 0 || !child.is_used()) return;
    if (child.first < parent.first) add(child.first, parent.first - 1, sign * grows);
    if (child.last > parent.last) add(parent.last + 1, child.last, sign * grows);
  };
  merge(1);
  if (peak() <= before) return true;
  merge(-1);
  return false;
}

void LiveBytes::add(size_t first, size_t last, int64_t bytes) { add(1, 0, positions_, {first, last, bytes}); }

void LiveBytes::add(size_t node, size_t begin, size_t end, const Life& life) {
  if (life.last < begin || end <= life.first) return;
  if (life.first <= begin && end <= life.last + 1) {
    most_[node] += life.bytes;
    added_[node] += life.bytes;
    return;
  }
  const size_t middle = begin + (end - begin) / 2;
  add(2 * node, begin, middle, life);
  add(2 * node + 1, middle, end, life);
  most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + added_[node];
}

}  // namespace tenon::irgen::detail
