#include "x86/code/code_object.hpp"

#include <algorithm>

namespace tenon::x86 {

CodeMarks::Piece CodeMarks::append(std::string_view piece) {
  const Piece made{static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(piece.size())};
  text_ += piece;
  return made;
}

// The copies of a loop's body repeat an operator's instructions, so a repeated label is stored once.
void CodeMarks::add(const CodeMark& mark) {
  const bool again = !empty() && back().label == mark.label;
  const Piece label = again ? entries_.back().label : append(mark.label);
  entries_.push_back({mark.offset, label, append(mark.instruction)});
}

std::optional<CodeMark> CodeMarks::at(size_t offset) const {
  const auto behind = std::ranges::upper_bound(entries_, offset, {}, &Entry::offset);
  if (behind == entries_.begin()) return std::nullopt;
  return (*this)[static_cast<size_t>(behind - entries_.begin()) - 1];
}

bool CodeMarks::operator==(const CodeMarks& other) const {
  if (size() != other.size()) return false;
  for (size_t i = 0; i < size(); ++i)
    if ((*this)[i] != other[i]) return false;
  return true;
}

}  // namespace tenon::x86
