// Places of micro-ops in UOP. Equal sequences of micro-ops are stored once. The first page is loaded once and stays;
// further pages hold what does not fit: each page of the list fills the buffer from 0 on.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "vta/commands.hpp"

namespace tenon::vta {

class MicroOpPages {
 public:
  explicit MicroOpPages(const Hardware& hardware);

  struct Place {
    size_t page = 0;
    MicroOpRange range;
  };
  // Code::resource_exhausted when UOP does not hold as many at once.
  Result<Place> place(std::span<const MicroOp> ops);

  int64_t room() const { return room_; }  // micro-ops per page; page p begins at p * room()
  uint32_t size(size_t page) const { return sizes_[page]; }
  size_t pages() const { return sizes_.size(); }
  const std::vector<uint32_t>& words() const { return words_; }  // encoded, one page after the other

 private:
  const Hardware& hardware_;
  int64_t room_;
  std::map<std::vector<uint32_t>, Place> kernels_;
  std::vector<uint32_t> sizes_, words_;
};

}  // namespace tenon::vta
