#include <tenon/ir/attribute.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

#include <tenon/support/hash.hpp>

namespace tenon {
namespace {

bool same(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }
bool same(const Tensor& a, const Tensor& b) { return a.identical(b); }
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Attribute::Reals> || std::is_same_v<T, Attribute::Tensors>) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) { return same(x, y); });
  } else {
    return a == b;
  }
}

uint64_t hash_of(int64_t v) { return hash_mix(1, static_cast<uint64_t>(v)); }
uint64_t hash_of(float v) { return hash_mix(2, std::bit_cast<uint32_t>(v)); }
uint64_t hash_of(const std::string& v) { return fnv1a(v); }
uint64_t hash_of(const Type& v) { return fnv1a(v.to_string()); }
uint64_t hash_of(const Tensor& v) {
  uint64_t state = fnv1a(v.to_string());
  if (v.element().is_string()) {
    for (const auto& text : v.as<std::string>()) state = fnv1a(text, state);
    return state;
  }
  return hash_bytes({v.data(), v.bytes()}, state);
}
template <class T>
uint64_t hash_of(const std::vector<T>& v) {
  uint64_t state = v.size();
  for (const auto& item : v) state = hash_mix(state, hash_of(item));
  return state;
}

auto lower_bound(auto& entries, Name name) {
  return std::lower_bound(entries.begin(), entries.end(), name,
                          [](const Attributes::Entry& entry, Name wanted) { return entry.first < wanted; });
}

}  // namespace

std::string_view attribute_kind_name(AttributeKind kind) {
  static constexpr std::string_view kNames[] = {"integer", "real",  "text",  "tensor", "type",
                                                "integers", "reals", "texts", "tensors"};
  return kNames[static_cast<size_t>(kind)];
}

bool Attribute::operator==(const Attribute& other) const {
  if (state_.index() != other.state_.index()) return false;
  return std::visit(
      [&](const auto& mine) { return same(mine, std::get<std::remove_cvref_t<decltype(mine)>>(other.state_)); },
      state_);
}

uint64_t Attribute::hash() const {
  return std::visit([this](const auto& value) { return hash_mix(state_.index(), hash_of(value)); }, state_);
}

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

const Attribute* Attributes::find(Name name) const {
  // There are only a few entries: comparing addresses one by one is faster than a search by text.
  for (const auto& entry : entries_) {
    if (entry.first == name) return &entry.second;
  }
  return nullptr;
}

void Attributes::set(Name name, Attribute value) {
  auto place = lower_bound(entries_, name);
  if (place != entries_.end() && place->first == name) {
    place->second = std::move(value);
  } else {
    entries_.emplace(place, name, std::move(value));
  }
}

void Attributes::erase(Name name) {
  auto place = lower_bound(entries_, name);
  if (place != entries_.end() && place->first == name) entries_.erase(place);
}

}  // namespace tenon
