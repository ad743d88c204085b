// Operators on strings, which are UTF-8 bytes.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// z = x followed by y, elementwise; operands broadcast.
struct StringConcat : OpView<StringConcat> {
  static constexpr std::string_view kName = "StringConcat";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* y() const { return operand(1); }
};

// Results: Y[..., k], piece k of x, "" where x has fewer pieces than others; Z, the number of pieces of each. Pieces
// are separated by `delimiter`; without one, or with "", by runs of white space, and empty pieces are dropped. At most
// `maxsplit` splits, from the left.
struct StringSplit : OpView<StringSplit> {
  static constexpr std::string_view kName = "StringSplit";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  std::string delimiter() const { return attr<std::string>("delimiter"); }
};

// y = whether all of x matches the regular expression `pattern` (RE2's grammar).
struct RegexFullMatch : OpView<RegexFullMatch> {
  static constexpr std::string_view kName = "RegexFullMatch";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  std::string pattern() const { return attr<std::string>("pattern"); }
};

// The strings of x ([C] or [1, C]) that are not stop words, optionally converted to lower or upper case; one "" when
// none is left. Case conversion is Unicode's, one character to one. is_case_sensitive states how stop words are
// compared, which happens before the conversion.
struct StringNormalizer : OpView<StringNormalizer> {
  static constexpr std::string_view kName = "StringNormalizer";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};

// How often the n-grams of a pool occur in each row of x ([C] or [N, C], strings or integers). An n-gram is n items,
// skip + 1 apart, skip = 0 .. max_skip_count; n = min_gram_length .. max_gram_length. The pool lists 1-grams from
// ngram_counts[0] on, 2-grams from ngram_counts[1] on, ...; the count of its k-th n-gram is at ngram_indexes[k]. mode:
// TF counts, IDF the weight where the count is not 0, TFIDF count times weight.
struct TfIdfVectorizer : OpView<TfIdfVectorizer> {
  static constexpr std::string_view kName = "TfIdfVectorizer";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};

}  // namespace tenon
