// Operators on strings, which are bytes of UTF-8.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// z = x followed by y, element by element; operands broadcast.
struct StringConcat : OpView<StringConcat> {
  static constexpr std::string_view kName = "StringConcat";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* y() const { return operand(1); }
};

// Results: Y[..., k] piece k of x, "" where x has fewer pieces than another; Z how many each has. Pieces lie between
// the occurrences of `delimiter`; without one, or with "", between runs of white space, and empty ones do not count. At
// most `maxsplit` cuts, from the left.
struct StringSplit : OpView<StringSplit> {
  static constexpr std::string_view kName = "StringSplit";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  std::string delimiter() const { return attr<std::string>("delimiter"); }
};

// y = does all of x match the regular expression `pattern` (RE2's grammar)?
struct RegexFullMatch : OpView<RegexFullMatch> {
  static constexpr std::string_view kName = "RegexFullMatch";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  std::string pattern() const { return attr<std::string>("pattern"); }
};

// The strings of x ([C] or [1, C]) that are no stop word, in lower or upper case if asked; one "" when none is left.
// Case is Unicode's, one character to one; is_case_sensitive tells how stop words are compared, and is done before the
// change.
struct StringNormalizer : OpView<StringNormalizer> {
  static constexpr std::string_view kName = "StringNormalizer";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};

// How often n-grams of a pool occur in each row of x ([C] or [N, C], strings or integers). An n-gram is n items, skip +
// 1 apart, skip = 0 .. max_skip_count; n = min_gram_length .. max_gram_length. The pool lists 1-grams from
// ngram_counts[0] on, 2-grams from ngram_counts[1] on, ...; the k-th of all counts at ngram_indexes[k]. mode: TF
// counts, IDF the weight where the count is not 0, TFIDF count times weight.
struct TfIdfVectorizer : OpView<TfIdfVectorizer> {
  static constexpr std::string_view kName = "TfIdfVectorizer";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};

}  // namespace tenon
