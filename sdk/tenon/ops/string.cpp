#include <tenon/ops/string.hpp>

#include <algorithm>
#include <limits>

#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

InferredTypes infer_string_split(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  if (!x.shape.ranked()) return std::vector<Type>{Type(kString, Shape()), Type(kI64, Shape())};
  std::vector<Dim> dims = x.shape.dims();
  dims.emplace_back();
  return std::vector<Type>{Type(kString, Shape(std::move(dims))), Type(kI64, x.shape)};
}

InferredTypes infer_match(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  return one_type(kBool, x.shape);
}

InferredTypes infer_normalizer(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  if (!x.shape.ranked()) return one_type(kString, Shape());
  if (x.shape.rank() == 1) return one_type(kString, {Dim()});
  if (x.shape.rank() == 2 && !certainly_differ(x.shape[0], 1)) return one_type(kString, {1, Dim()});
  return error(Code::invalid_argument, "operand 0 of ", context.op().describe(), " must be [C] or [1, C], it is ",
               context.type(0));
}

size_t tf_idf_strings(const Op& op) { return op.attr<Attribute::Texts>("pool_strings").size(); }
size_t tf_idf_numbers(const Op& op) { return op.attr<Attribute::Integers>("pool_int64s").size(); }

InferredTypes infer_tf_idf(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  // The n-grams are in the larger pool (verify_tf_idf); they are searched in the one of the operand's type.
  const size_t strings = tf_idf_strings(context.op()), numbers = tf_idf_numbers(context.op());
  if (x.element.valid() && (x.element.is_string() ? strings < numbers : numbers < strings)) {
    return error(Code::invalid_argument, context.op().describe(), " has a pool of ", strings, " strings and one of ",
                 numbers, " integers, its items are ", context.type(0));
  }
  const auto indexes = context.attr<Attribute::Integers>("ngram_indexes");
  const Dim size = indexes.empty() ? 0 : *std::max_element(indexes.begin(), indexes.end()) + 1;
  if (!x.shape.ranked()) return one_type(kF32, Shape());
  if (x.shape.rank() == 2) return one_type(kF32, {x.shape[0], size});
  if (x.shape.rank() < 2) return one_type(kF32, {size});
  return error(Code::invalid_argument, "operand 0 of ", context.op().describe(), " must be [C] or [N, C], it is ",
               context.type(0));
}

Result<void> verify_tf_idf(const Op& op) {
  const auto counts = op.attr<Attribute::Integers>("ngram_counts"),
             indexes = op.attr<Attribute::Integers>("ngram_indexes");
  const size_t items = std::max(tf_idf_strings(op), tf_idf_numbers(op));
  size_t ngrams = 0;
  for (size_t n = 0; n < counts.size(); ++n) {
    const int64_t begin = counts[n], end = n + 1 < counts.size() ? counts[n + 1] : static_cast<int64_t>(items);
    const bool fits = begin >= 0 && begin <= end && end <= static_cast<int64_t>(items) &&
                      (end - begin) % static_cast<int64_t>(n + 1) == 0;
    if (!fits) {
      return error(Code::invalid_argument, "attribute 'ngram_counts' of ", op.describe(), " puts the ", n + 1,
                   "-grams at [", begin, ", ", end, ") of a pool of ", items, " items");
    }
    ngrams += static_cast<size_t>(end - begin) / (n + 1);
  }
  const auto weights = op.attr<Attribute::Reals>("weights").size();
  if (indexes.size() != ngrams || (weights != 0 && weights != ngrams)) {
    return error(Code::invalid_argument, op.describe(), " has ", ngrams, " n-grams, ", indexes.size(),
                 " ngram_indexes and ", weights, " weights");
  }
  // Y has one element more than the largest index.
  const auto wrong = std::find_if(indexes.begin(), indexes.end(), [](int64_t index) {
    return index < 0 || index == std::numeric_limits<int64_t>::max();
  });
  if (wrong == indexes.end()) return {};
  return error(Code::invalid_argument, "attribute 'ngram_indexes' of ", op.describe(), " holds ", *wrong);
}

// The number of pieces in Y depends on all strings; the counts, result 1, do not.
Result<Bounds> string_split_bounds(const BoundsQuery& query) {
  if (query.result == 0) return all_whole(query, false);
  Bounds bounds = all_whole(query);
  bounds.operands[0] = broadcast_to(query, 0);
  return bounds;
}

// A row of counts reads its row of items.
Result<Bounds> tf_idf_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query, false);
  if (query.box.size() != 2) return bounds;
  bounds.operands[0] = follow(query, 0, {0, kWhole});
  bounds.splits[0] = true;
  return bounds;
}

const TypeSet kItemTypes("string, i32 and i64 tensors",
                         [](ElementType e) { return e.is_string() || e == kI32 || e == kI64; });

const OpRegistration kStringRegistered({
    OpDef(StringConcat::kName)
        .summary("x followed by y, element by element")
        .operand("X", "str")
        .operand("Y", "str")
        .result("Z", "str")
        .traits(Trait::pure | Trait::elementwise | Trait::broadcasting)
        .infer(broadcast_operands())
        .bounds(pointwise()),
    OpDef(StringSplit::kName)
        .summary("The pieces of each string between delimiters, and how many each has")
        .operand("X", "str")
        .result("Y", "str")
        .result("Z", "i64")
        .optional_attribute("delimiter", AttributeKind::text)
        .optional_attribute("maxsplit", AttributeKind::integer)
        .traits(Trait::pure | Trait::data_dependent)
        .infer(infer_string_split)
        .bounds({string_split_bounds, runs_as_it_is()}),
    OpDef(RegexFullMatch::kName)
        .summary("Does all of each string match the regular expression `pattern`?")
        .operand("X", "str")
        .result("Y", "bool")
        .required_attribute("pattern", AttributeKind::text)
        .traits(Trait::pure | Trait::elementwise)
        .infer(infer_match)
        .bounds(pointwise()),
    OpDef(StringNormalizer::kName)
        .summary("The strings that are no stop word, in lower or upper case if asked")
        .operand("X", "str")
        .result("Y", "str")
        .attribute("case_change_action", "NONE")
        .one_of({"NONE", "LOWER", "UPPER"})
        .attribute("is_case_sensitive", int64_t{0})
        .optional_attribute("locale", AttributeKind::text)
        .optional_attribute("stopwords", AttributeKind::texts)
        .traits(Trait::pure | Trait::data_dependent)
        .infer(infer_normalizer)
        .bounds(whole_operands()),
    OpDef(TfIdfVectorizer::kName)
        .summary("How often the n-grams of a pool occur in each row, weighted")
        .operand("X", "T")
        .result("Y", "f32")
        .types("T", kItemTypes)
        .required_attribute("max_gram_length", AttributeKind::integer)
        .required_attribute("max_skip_count", AttributeKind::integer)
        .required_attribute("min_gram_length", AttributeKind::integer)
        .required_attribute("mode", AttributeKind::text)
        .one_of({"TF", "IDF", "TFIDF"})
        .required_attribute("ngram_counts", AttributeKind::integers)
        .required_attribute("ngram_indexes", AttributeKind::integers)
        .optional_attribute("pool_int64s", AttributeKind::integers)
        .optional_attribute("pool_strings", AttributeKind::texts)
        .optional_attribute("weights", AttributeKind::reals)
        .infer(infer_tf_idf)
        .bounds({tf_idf_bounds, runs_as_it_is()})
        .verify(verify_tf_idf),
});

}  // namespace
}  // namespace tenon
