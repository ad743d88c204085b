#include <algorithm>

#include <tenon/irgen/places_internal.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::irgen::detail {

Expr Places::bytes_of(const Type& type) const {
  Expr bytes = type.element().bits() / 8;
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
  made.name = value.name();
  made.type = types_.type_of(value);
  made.bytes = bytes_of(made.type);
  made.nominal_bytes = nominal(made.bytes);
  storages_.push_back(std::move(made));
  return storages_.size() - 1;
}

Place Places::resolve(Place place) const {
  while (storages_[place.storage].parent != kNever) {
    const Storage& at = storages_[place.storage];
    place = {at.parent, place.offset + at.offset};
  }
  return place;
}

Place Places::place(const Value& value) const { return resolve(places_.at(&value)); }

bool Places::covers_root(const Value& value) const {
  const Place at = place(value);
  return at.offset.is_constant(0) && bytes_of(types_.type_of(value)) == storages_[at.storage].bytes;
}

void Places::merge(StorageId child, Place into) {
  storages_[child].parent = into.storage;
  storages_[child].offset = into.offset;
  Storage& root = storages_[resolve(into).storage];
  if (!storages_[child].is_used()) return;
  root.use(storages_[child].first);
  root.use(storages_[child].last);
}

int64_t peak_bytes(const Places& places, size_t positions, StorageId child, StorageId parent) {
  std::vector<int64_t> change(positions + 2, 0);
  for (StorageId id = 0; id < places.size(); ++id) {
    const Storage& s = places.storage(id);
    if (id == child || s.kind != Storage::Kind::local || s.parent != kNever || !s.is_used()) continue;
    size_t first = s.first, last = s.last;
    if (id == parent) {
      first = std::min(first, places.storage(child).first);
      last = std::max(last, places.storage(child).last);
    }
    change[first] += s.nominal_bytes;
    change[last + 1] -= s.nominal_bytes;
  }
  int64_t live = 0, peak = 0;
  for (const int64_t c : change) peak = std::max(peak, live += c);
  return peak;
}

}  // namespace tenon::irgen::detail
