#include "x86/passes/bundles.hpp"

namespace tenon::x86 {

Bundles::Bundles(const LinearKernel& kernel, const Uses& uses)
    : kernel_(kernel), uses_(uses), alike_(kernel, uses), bundle_of_(kernel.registers.size(), -1) {
  for (size_t i = 0; i < kernel_.body.size();) {
    if (is_border(kernel_.body[i].op)) first_here_ = static_cast<int>(bundles_.size());
    std::optional<Bundle> found = bundle_at(i);
    if (!found) {
      ++i;
      continue;
    }
    for (int part = 0; part < Bundle::kParts; ++part)
      for (const RegisterId id : at(*found, part).out)
        bundle_of_[static_cast<size_t>(id)] = static_cast<int>(bundles_.size());
    bundles_.push_back(std::move(*found));
    i += Bundle::kParts;
  }
  find_readers();
}

std::optional<Bundle> Bundles::bundle_at(size_t first) const {
  constexpr size_t kMostOperands = 3;
  if (first + Bundle::kParts > kernel_.body.size()) return std::nullopt;
  const Instruction& one = kernel_.body[first];
  if (is_border(one.op) || one.touched != Lanes::full || one.in.size() > kMostOperands || one.out.size() > 1)
    return std::nullopt;
  for (int part = 0; part < Bundle::kParts; ++part) {
    const Instruction& other = kernel_.body[first + static_cast<size_t>(part)];
    if (other.op != one.op || !(other.attributes == one.attributes) || other.touched != one.touched ||
        other.in.size() != one.in.size() || other.out.size() != one.out.size() || !follows(one, other, part))
      return std::nullopt;
    if (!other.out.empty() && !uses_.once(other.out[0])) return std::nullopt;
  }
  Bundle bundle{.first = first};
  for (size_t i = 0; i < one.in.size(); ++i) {
    const std::optional<int> made_by = operand_of(first, i);
    if (!made_by) return std::nullopt;
    bundle.operands.push_back(*made_by);
  }
  return bundle;
}

bool Bundles::follows(const Instruction& one, const Instruction& other, int part) const {
  if (one.memory.has_value() != other.memory.has_value()) return false;
  if (!one.memory) return true;
  const int64_t bytes = int64_t{part} * kernel_.lanes * (one.memory->element.bits() / 8);
  return one.memory->base == other.memory->base && one.memory->index == other.memory->index &&
         one.memory->element == other.memory->element &&
         one.memory->displacement_bytes + bytes == other.memory->displacement_bytes;
}

std::optional<int> Bundles::operand_of(size_t first, size_t i) const {
  const RegisterId id = operand(first, 0, i);
  bool same = alike_.holds(id);
  for (int part = 1; part < Bundle::kParts; ++part) same &= operand(first, part, i) == id;
  if (same) return -1;
  const int found = bundle_of_[static_cast<size_t>(id)];
  if (found < first_here_) return std::nullopt;
  for (int part = 0; part < Bundle::kParts; ++part)
    if (at(bundles_[static_cast<size_t>(found)], part).out[0] != operand(first, part, i)) return std::nullopt;
  return found;
}

void Bundles::find_readers() {
  int next = 0;
  for (size_t i = 0; i < kernel_.body.size();) {
    if (next == static_cast<int>(bundles_.size()) || bundles_[static_cast<size_t>(next)].first != i) {
      for (const RegisterId id : kernel_.body[i++].in)
        if (const int made_by = bundle_of_[static_cast<size_t>(id)]; made_by >= 0)
          bundles_[static_cast<size_t>(made_by)].read_apart = true;
      continue;
    }
    for (const int made_by : bundles_[static_cast<size_t>(next)].operands) {
      if (made_by < 0) continue;
      std::vector<int>& readers = bundles_[static_cast<size_t>(made_by)].readers;
      if (readers.empty() || readers.back() != next) readers.push_back(next);
    }
    ++next;
    i += Bundle::kParts;
  }
}

}  // namespace tenon::x86
