// A packed tensor as integers: the words of its layout, one unsigned integer for each group of elements. It is the
// other way to see a vector of elements: with NHWC<6c:8> the word at [n, h, w, g] holds channels 6 g to 6 g + 5 from
// its lowest bit up.
#pragma once
#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/layout.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// The type of the words: u<word bits>, with a dim for each digit of banks and addresses, outermost first; one dim for
// all words where these leave gaps (pitches), of ragged layouts and of index maps. An error for words beyond 64 bits.
TENON_API Result<TensorType> words_type(const Layout& layout);

// Both copy. Bits of a word that belong to no element are those of the layout's fill, or 0.
TENON_API Result<Tensor> as_words(const Tensor& tensor, const Layout& layout, ParallelFor& parallel = serial());
TENON_API Result<Tensor> from_words(const Tensor& words, const Layout& layout, ElementType element,
                                    ParallelFor& parallel = serial());

}  // namespace tenon
