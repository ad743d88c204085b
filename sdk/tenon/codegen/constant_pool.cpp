#include <tenon/codegen/constant_pool.hpp>

#include <algorithm>
#include <cstring>

#include <tenon/support/check.hpp>

namespace tenon::codegen {

size_t ConstantPool::append(const void* data, size_t bytes, size_t alignment) {
  const size_t offset = (bytes_.size() + alignment - 1) / alignment * alignment;
  bytes_.resize(offset + bytes);
  std::memcpy(bytes_.data() + offset, data, bytes);
  return offset;
}

size_t ConstantPool::add(ElementType element, uint64_t bits) {
  const size_t size = static_cast<size_t>(element.bits()) / 8;
  TENON_CHECK(size == 4 || size == 8, "a constant of type ", element, " in the pool of a kernel");
  if (size == 4) bits &= 0xffffffff;
  const auto [at, is_new] = values_.try_emplace({size, bits}, 0);
  if (!is_new) return at->second;
  const size_t count = std::max<size_t>(1, static_cast<size_t>(copies_) * 4 / size);
  std::vector<std::byte> copies(count * size);
  for (size_t i = 0; i < count; ++i) std::memcpy(copies.data() + i * size, &bits, size);
  return at->second = append(copies.data(), copies.size(), copies.size());
}

bool ConstantPool::Before::operator()(std::span<const uint32_t> a, std::span<const uint32_t> b) const {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::memcmp(a.data(), b.data(), a.size_bytes()) < 0;
}

size_t ConstantPool::add_table(std::span<const uint32_t> entries) {
  if (const auto found = tables_.find(entries); found != tables_.end()) return found->second;
  const size_t offset = append(entries.data(), entries.size_bytes(), 64);
  tables_.emplace(std::vector<uint32_t>(entries.begin(), entries.end()), offset);
  return offset;
}

}  // namespace tenon::codegen
