#include <tenon/ops/string.hpp>

#include <re2/re2.h>

#include <algorithm>
#include <clocale>
#include <cwctype>
#include <map>

#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/loops.hpp>

namespace tenon {
namespace {

Result<void> string_concat(EvalContext& context) {
  TENON_TRY(out, context.output(0));
  const Tensor &x = context.tensor(0), &y = context.tensor(1);
  const auto concatenated = [](const std::string& a, const std::string& b) { return a + b; };
  map_elements(context.parallel(), BroadcastPlan<2>(out->dims(), {x.dims(), y.dims()}), x.as<std::string>().data(),
               y.as<std::string>().data(), out->mutable_as<std::string>().data(), concatenated);
  return {};
}

// ---- Split ----

constexpr std::string_view kWhiteSpace = " \t\n\r\v\f";

std::vector<std::string> words_of(std::string_view text, int64_t cuts) {
  std::vector<std::string> words;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
    if (text.empty()) return words;
    const size_t end = cuts-- > 0 ? text.find_first_of(kWhiteSpace) : std::string_view::npos;
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end, text.size()));
  }
}

std::vector<std::string> pieces_of(std::string_view text, std::string_view delimiter, int64_t cuts) {
  std::vector<std::string> pieces;
  for (size_t end; cuts-- > 0 && (end = text.find(delimiter)) != std::string_view::npos;) {
    pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(end + delimiter.size());
  }
  pieces.emplace_back(text);
  return pieces;
}

Result<void> string_split(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const auto delimiter = context.attr<std::string>("delimiter");
  const int64_t cuts = context.attr<int64_t>("maxsplit", INT64_MAX);
  std::vector<std::vector<std::string>> pieces;
  size_t most = 0;
  for (const std::string& text : x.as<std::string>()) {
    pieces.push_back(delimiter.empty() ? words_of(text, cuts) : pieces_of(text, delimiter, cuts));
    most = std::max(most, pieces.back().size());
  }
  Dims dims = x.dims();
  dims.push_back(static_cast<int64_t>(most));
  TENON_TRY(out, context.output(0, kString, std::move(dims)));
  TENON_TRY(counts, context.output(1, kI64, x.dims()));
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::copy(pieces[i].begin(), pieces[i].end(),
              out->mutable_as<std::string>().begin() + static_cast<int64_t>(i * most));
    counts->mutable_as<int64_t>()[i] = static_cast<int64_t>(pieces[i].size());
  }
  return {};
}

Result<void> regex_full_match(EvalContext& context) {
  TENON_TRY(out, context.output(0));
  const auto text = context.attr<std::string>("pattern");
  const re2::RE2 pattern(text, re2::RE2::Quiet);
  if (!pattern.ok()) {
    return error(Code::invalid_argument, "the pattern ", quote(text),
                 " is no regular expression of RE2: ", pattern.error());
  }
  const auto x = context.tensor(0).as<std::string>();
  for (size_t i = 0; i < x.size(); ++i) out->mutable_as<uint8_t>()[i] = re2::RE2::FullMatch(x[i], pattern) ? 1 : 0;
  return {};
}

// ---- Normalizer ----

// Unicode's tables, whatever the locale of the process.
locale_t unicode() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int following = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  out += static_cast<char>((0xFF00 >> (following + 1)) | (c >> (6 * following)));
  for (int i = following; i-- > 0;) out += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F));
}

// Every character converted by `change`; text that is not UTF-8 is unchanged.
std::string with_case(const std::string& text, wint_t (*change)(wint_t, locale_t)) {
  if (!is_utf8(text) || unicode() == nullptr) return text;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i++]);
    uint32_t c = lead;
    const int following = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    if (following > 0) c = lead & (0x3Fu >> following);
    for (int k = 0; k < following; ++k) c = c << 6 | (static_cast<uint8_t>(text[i++]) & 0x3F);
    append_utf8(out, static_cast<uint32_t>(change(c, unicode())));
  }
  return out;
}

Result<void> string_normalizer(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const bool sensitive = context.attr<int64_t>("is_case_sensitive", 0) != 0;
  const auto folded = [&](const std::string& text) { return sensitive ? text : with_case(text, towlower_l); };
  std::vector<std::string> stop_words;
  for (const std::string& word : context.attr<Attribute::Texts>("stopwords")) stop_words.push_back(folded(word));
  const auto action = context.attr<std::string>("case_change_action", "NONE");
  std::vector<std::string> kept;
  for (const std::string& text : x.as<std::string>()) {
    if (std::find(stop_words.begin(), stop_words.end(), folded(text)) != stop_words.end()) continue;
    kept.push_back(action == "NONE" ? text : with_case(text, action == "LOWER" ? towlower_l : towupper_l));
  }
  if (kept.empty()) kept.emplace_back();
  Dims dims(x.dims().size(), 1);
  dims.back() = static_cast<int64_t>(kept.size());
  TENON_TRY(out, context.output(0, kString, std::move(dims)));
  std::move(kept.begin(), kept.end(), out->mutable_as<std::string>().begin());
  return {};
}

// ---- N-grams ----

template <class Item>
class NgramCounter {
 public:
  NgramCounter(const EvalContext& context, const std::vector<Item>& pool)
      : shortest_(context.attr<int64_t>("min_gram_length")),
        longest_(context.attr<int64_t>("max_gram_length")),
        skips_(context.attr<int64_t>("max_skip_count")) {
    const auto counts = context.attr<Attribute::Integers>("ngram_counts");
    size_t number = 0;
    for (size_t n = 1; n <= counts.size(); ++n) {
      const int64_t end = n < counts.size() ? counts[n] : static_cast<int64_t>(pool.size());
      for (int64_t begin = counts[n - 1]; begin < end; begin += static_cast<int64_t>(n)) {
        numbers_[{pool.begin() + begin, pool.begin() + begin + static_cast<int64_t>(n)}] = number++;
      }
    }
  }

  // Adds one to counts[k] for every occurrence of n-gram k among the `size` items of a row.
  void count(const Item* row, int64_t size, std::vector<int64_t>& counts) const {
    for (int64_t n = std::max<int64_t>(shortest_, 1); n <= longest_ && n <= size; ++n) {
      // Single items do not depend on skips between items.
      for (int64_t step = 1; step <= (n == 1 ? 1 : skips_ + 1) && step * (n - 1) < size; ++step) {
        for (int64_t first = 0; first + step * (n - 1) < size; ++first) {
          std::vector<Item> ngram;
          for (int64_t i = 0; i < n; ++i) ngram.push_back(row[first + i * step]);
          if (const auto found = numbers_.find(ngram); found != numbers_.end()) ++counts[found->second];
        }
      }
    }
  }

 private:
  int64_t shortest_, longest_, skips_;
  std::map<std::vector<Item>, size_t> numbers_;
};

template <class Item>
Result<void> vectorize(EvalContext& context, const Item* items, const std::vector<Item>& pool) {
  TENON_TRY(out, context.output(0));
  const auto indexes = context.attr<Attribute::Integers>("ngram_indexes");
  const auto weights = context.attr<Attribute::Reals>("weights");
  const auto mode = context.attr<std::string>("mode");
  const Dims& dims = context.tensor(0).dims();
  const int64_t rows = dims.size() == 2 ? dims[0] : 1, size = dims.empty() ? 1 : dims.back(),
                width = out->dims().back();
  const NgramCounter<Item> counter(context, pool);
  auto y = out->mutable_as<float>();
  std::fill(y.begin(), y.end(), 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> counts(indexes.size());
    counter.count(items + row * size, size, counts);
    for (size_t k = 0; k < counts.size(); ++k) {
      const float weight = mode == "TF" || weights.empty() ? 1.0f : weights[k];
      const auto count = static_cast<float>(mode == "IDF" ? std::min<int64_t>(counts[k], 1) : counts[k]);
      y[static_cast<size_t>(row * width + indexes[k])] += count * weight;
    }
  }
  return {};
}

Result<void> tf_idf_vectorizer(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  if (x.element().is_string())
    return vectorize(context, x.as<std::string>().data(), context.attr<Attribute::Texts>("pool_strings"));
  const std::vector<int64_t> items = x.to_ints();
  return vectorize(context, items.data(), context.attr<Attribute::Integers>("pool_int64s"));
}

const EvaluatorRegistration kStringRegistered({
    {StringConcat::kName, string_concat},
    {StringSplit::kName, string_split},
    {RegexFullMatch::kName, regex_full_match},
    {StringNormalizer::kName, string_normalizer},
    {TfIdfVectorizer::kName, tf_idf_vectorizer},
});

}  // namespace
}  // namespace tenon
