#include "x86/forms/bodies.hpp"

#include "x86/body/numbers.hpp"
#include "x86/body/scaled_powers.hpp"
#include "x86/body/spared.hpp"

namespace tenon::x86 {

const snippet::Body& FormBodies::ready(bool merges, bool contracts) {
  std::optional<snippet::Body>& made = ready_[2 * size_t{merges} + size_t{contracts}];
  if (made) return *made;
  made = with_fewer_checks(with_spared_nan(narrow_, !merges));
  if (contracts) made = with_scaled_powers(*std::move(made));
  return *made;
}

}  // namespace tenon::x86
