// Checks and fingerprints over all elements, or over a sample of them.
#include <algorithm>
#include <random>

#include <tenon/support/hash.hpp>
#include <tenon/tensor/layout_internal.hpp>

namespace tenon {

using detail::layout_error;

namespace {

constexpr int64_t kSample = 4096;
constexpr int64_t kTries = int64_t{1} << 16;

void random_index(std::mt19937_64& random, const Dims& shape, Dims& index) {
  for (size_t d = 0; d < index.size(); ++d) {
    index[d] = static_cast<int64_t>(random() % static_cast<uint64_t>(shape[d]));
  }
}

// Checks that the inverse of the element's slot gives the element, or one that shares the slot.
Result<void> check_index(const Layout& layout, const Dims& index, Dims& back) {
  const LayoutPosition at = layout.apply(index);
  if (at.bank < 0 || at.bank >= layout.banks() || at.slot < 0 || at.slot >= layout.span_words() * layout.lanes()) {
    return layout_error("E_NOT_INVERTIBLE", "index ", index, " lies in bank ", at.bank, ", slot ", at.slot,
                        ", outside of ", layout.banks(), " banks of ", layout.span_words(), " words in use");
  }
  const bool found = layout.inverse(at.bank, at.slot, back);
  if (found && (back == index || (!layout.injective() && layout.apply(back) == at))) return {};
  return layout_error("E_NOT_INVERTIBLE", "index ", index, " lies in bank ", at.bank, ", slot ", at.slot,
                      ", which is said to hold ", found ? str("index ", back) : std::string("padding"));
}

Result<void> check_slot(const Layout& layout, int64_t bank, int64_t slot, Dims& back, int64_t& held) {
  if (!layout.inverse(bank, slot, back)) return {};
  ++held;
  const LayoutPosition at = layout.apply(back);
  if (at.bank == bank && at.slot == slot) return {};
  return layout_error("E_NOT_INVERTIBLE", "bank ", bank, ", slot ", slot, " is said to hold index ", back,
                      ", which lies in bank ", at.bank, ", slot ", at.slot);
}

}  // namespace

Result<void> Layout::verify(int64_t exhaustive) const {
  if (valid_elements() == 0) return {};
  Dims index(shape().size()), back(index.size());
  std::mt19937_64 random(1);
  if (valid_elements() <= exhaustive) {
    do {
      TENON_OK(check_index(*this, index, back));
    } while (detail::next_index(index, shape()));
  } else {
    for (int64_t i = 0; i < kSample; ++i) {
      random_index(random, shape(), index);
      TENON_OK(check_index(*this, index, back));
    }
  }
  const int64_t slots = words_per_bank() * lanes();
  int64_t held = 0;
  if (physical_elements() <= exhaustive) {
    for (int64_t bank = 0; bank < banks(); ++bank) {
      for (int64_t slot = 0; slot < slots; ++slot) TENON_OK(check_slot(*this, bank, slot, back, held));
    }
    if (physical_elements() - held != padding()) {
      return layout_error("E_NOT_INVERTIBLE", to_string(), " has ", physical_elements(), " slots, ", held,
                          " hold elements, ", padding(), " should be padding");
    }
    return {};
  }
  for (int64_t i = 0; i < kSample; ++i) {
    const auto bank = static_cast<int64_t>(random() % static_cast<uint64_t>(banks()));
    TENON_OK(check_slot(*this, bank, static_cast<int64_t>(random() % static_cast<uint64_t>(slots)), back, held));
  }
  // Beyond the tried ones: make() has ensured the chain of places and the nesting of strides.
  return {};
}

uint64_t Layout::fnv1a64() const {
  uint64_t state = fnv1a({});
  if (valid_elements() == 0) return state;
  Dims index(shape().size());
  do {
    const LayoutPosition at = apply(index);
    state = detail::fnv_u64(state, static_cast<uint64_t>(at.bank));
    state = detail::fnv_u64(state, static_cast<uint64_t>(at.bit));
  } while (detail::next_index(index, shape()));
  return state;
}

uint64_t Layout::fingerprint() const {
  uint64_t state = hash_mix(static_cast<uint64_t>(banks()), static_cast<uint64_t>(element_bits()));
  state = hash_mix(state, static_cast<uint64_t>(devices()));
  for (const int64_t extent : shape()) state = hash_mix(state, static_cast<uint64_t>(extent));
  state = hash_mix(state, static_cast<uint64_t>(words_per_bank() * word_bits()));
  state = hash_mix(state, static_cast<uint64_t>(bytes()));
  if (valid_elements() <= kTries) return hash_mix(state, fnv1a64());
  Dims index(shape().size());
  std::mt19937_64 random(1);
  for (int64_t i = 0; i < kSample; ++i) {
    random_index(random, shape(), index);
    // Half of the samples are single steps along one dim, which reveal strides.
    if (i % 2 == 0) {
      for (size_t d = 0; d < index.size(); ++d) {
        if (d != static_cast<size_t>(i / 2) % index.size()) index[d] = 0;
      }
    }
    const LayoutPosition at = apply(index);
    state = hash_mix(hash_mix(state, static_cast<uint64_t>(at.bank)), static_cast<uint64_t>(at.bit));
  }
  return state;
}

uint64_t Layout::hash() const {
  // Sizes and text, which contain everything that == compares.
  uint64_t state = fnv1a(to_string(), fnv1a(dims()));
  for (const int64_t extent : shape()) state = hash_mix(state, static_cast<uint64_t>(extent));
  return hash_mix(state, static_cast<uint64_t>(element_bits()));
}

}  // namespace tenon
