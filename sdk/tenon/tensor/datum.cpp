#include <tenon/tensor/datum.hpp>

#include <algorithm>

namespace tenon {

Datum Datum::sequence(std::vector<Datum> elements, Type element_type) {
  const bool alike = std::all_of(elements.begin(), elements.end(), [&](const Datum& element) {
    return element.state_.index() == elements.front().state_.index();
  });
  TENON_CHECK(alike, "a sequence of ", element_type, " made of tensors and sequences or absent elements together");
  Datum out;
  out.state_ = std::make_shared<const Sequence>(Sequence{std::move(elements), std::move(element_type)});
  return out;
}

Type Datum::type() const {
  if (is_tensor()) return tensor().type();
  return is_sequence() ? Type::sequence(element_type()) : Type();
}

}  // namespace tenon
