// A packed tensor as integers: the words of its layout, one unsigned integer per group of elements. An alternative view
// of a vector of elements: with NHWC<6c:8> the word at [n, h, w, g] holds channels 6 g to 6 g + 5, starting at its
// lowest bit.
#pragma once
#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/layout.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// The type of the words: u<word bits>, with a dim for each digit of banks and addresses, outermost first; a single dim
// for all words if these leave gaps (pitches), and for ragged layouts and index maps. An error for words beyond 64
// bits.
TENON_API Result<TensorType> words_type(const Layout& layout);

// Both copy. Bits of a word that belong to no element are those of the layout's fill, or 0.
TENON_API Result<Tensor> as_words(const Tensor& tensor, const Layout& layout, ParallelFor& parallel = serial());
TENON_API Result<Tensor> from_words(const Tensor& words, const Layout& layout, ElementType element,
                                    ParallelFor& parallel = serial());

}  // namespace tenon
