#include "vta/micro_op_pages.hpp"

#include <algorithm>

#include "vta/ranges.hpp"

namespace tenon::vta {

// One instruction must be able to load a page.
MicroOpPages::MicroOpPages(const Hardware& hardware)
    : hardware_(hardware), room_(std::min(hardware.depth(Memory::uop), kMostTransfer)) {}

Result<MicroOpPages::Place> MicroOpPages::place(std::span<const MicroOp> ops) {
  std::vector<uint32_t> words;
  words.reserve(ops.size());
  for (const MicroOp& op : ops) {
    TENON_TRY(word, encode(op, hardware_));
    words.push_back(word);
  }
  const auto found = kernels_.find(words);
  if (found != kernels_.end()) return found->second;
  const auto size = static_cast<uint32_t>(words.size());
  if (size > room_) return error(Code::resource_exhausted, size, " micro-ops at once; the buffer takes ", room_);
  if (sizes_.empty() || sizes_.back() + size > room_) sizes_.push_back(0);
  const Place place{sizes_.size() - 1, {sizes_.back(), sizes_.back() + size}};
  sizes_.back() += size;
  words_.resize(place.page * static_cast<size_t>(room_) + place.range.begin);
  words_.insert(words_.end(), words.begin(), words.end());
  kernels_.emplace(std::move(words), place);
  return place;
}

}  // namespace tenon::vta
