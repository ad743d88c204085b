#include <charconv>

#include <tenon/support/str.hpp>
#include <tenon/tensor/layout.hpp>

#include "session.hpp"

namespace tenon::cli {
namespace {

struct LayoutOptions {
  std::string text, dims, shape, slice;
  int64_t bits = 32;
  std::vector<std::string> indices;
};

// Parses "2,3,4"; the empty text is the shape of a scalar.
Result<Dims> numbers(const std::string& text, std::string_view what) {
  Dims out;
  if (text.empty()) return out;
  for (const std::string_view word : split(text, ',')) {
    const std::string_view digits = trim(word);
    int64_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || code != std::errc() || end != digits.data() + digits.size()) {
      return error(Code::invalid_argument, "E_SYNTAX: ", what, " ", quote(text), " should be numbers as in 2,3,4");
    }
    out.push_back(value);
  }
  return out;
}

Json point(const Layout& layout, const Dims& index) {
  const LayoutPosition at = layout.apply(index);
  return {{"index", index}, {"bank", at.bank}, {"slot", at.slot}, {"bit", at.bit}};
}

Json digits(const Layout& layout) {
  Json out = Json::array();
  for (const LayoutDigit& digit : layout.digits()) {
    const std::string name(1, layout.variables()[static_cast<size_t>(digit.variable)].name);
    Json stride = layout.is_ragged() ? Json("ragged") : Json(digit.stride);
    out.push_back({name, digit.place, digit.extent, layout_space_name(digit.space), std::move(stride)});
  }
  return out;
}

// The most elements for a fingerprint, which then takes a few seconds.
constexpr int64_t kMaxFingerprint = int64_t{1} << 26;

std::string hexadecimal(uint64_t value) {
  std::string out = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[value >> shift & 15];
  return out;
}

// The layout of a part: "0:2,8:16" means indices 0 and 1 of the first dim, 8 to 15 of the second.
Result<Layout> slice_of(const Layout& layout, const std::string& text) {
  Dims begin, end;
  for (const std::string_view range : split(text, ',')) {
    const auto ends = split(range, ':');
    if (ends.size() != 2) {
      return error(Code::invalid_argument, "E_SYNTAX: --slice ", quote(text), " should be ranges as in 0:2,8:16");
    }
    TENON_TRY(first, numbers(std::string(ends[0]), "--slice"));
    TENON_TRY(last, numbers(std::string(ends[1]), "--slice"));
    begin.insert(begin.end(), first.begin(), first.end());
    end.insert(end.end(), last.begin(), last.end());
  }
  return layout.slice(begin, end);
}

Result<Json> describe(const LayoutOptions& options) {
  TENON_TRY(whole_shape, numbers(options.shape, "--shape"));
  TENON_TRY(whole, Layout::parse(options.text, options.dims, whole_shape, options.bits));
  TENON_TRY(layout, options.slice.empty() ? Result<Layout>(whole) : slice_of(whole, options.slice));
  const Dims& shape = layout.shape();
  const Layout::Run run = layout.run();
  Json out = {{"layout", layout.to_string()},
              {"dims", layout.dims()},
              {"shape", shape},
              {"element_bits", layout.element_bits()},
              {"digits", digits(layout)},
              {"devices", layout.devices()},
              {"banks", layout.banks()},
              {"lanes", layout.lanes()},
              {"word_bits", layout.word_bits()},
              {"words_per_bank", layout.words_per_bank()},
              {"valid_elements", layout.valid_elements()},
              {"physical_elements", layout.physical_elements()},
              {"padding", layout.padding()},
              {"span_words", layout.span_words()},
              {"bytes", layout.bytes()},
              {"injective", layout.injective()},
              {"run", {run.variable, run.length}},
              {"fnv1a64", layout.valid_elements() <= kMaxFingerprint ? Json(hexadecimal(layout.fnv1a64())) : Json()},
              {"points", Json::array()}};
  for (const std::string& text : options.indices) {
    TENON_TRY(index, numbers(text, "--index"));
    if (index.size() != shape.size()) {
      return error(Code::invalid_argument, "E_RANK: --index ", text, " has ", index.size(), " numbers, the shape ",
                   shape, " has ", shape.size());
    }
    for (size_t d = 0; d < index.size(); ++d) {
      if (index[d] < 0 || index[d] >= shape[d]) {
        return error(Code::invalid_argument, "E_BAD_EXTENT: --index ", text, " lies outside of shape ", shape);
      }
    }
    out["points"].push_back(point(layout, index));
  }
  return out;
}

void say_table(const Session& session, const Json& document) {
  for (const auto& [key, value] : document.items()) {
    if (key == "points" || key == "digits") continue;
    session.say(str(key, ": ", value.is_string() ? value.get<std::string>() : value.dump()));
  }
  session.say("digits: variable, place, extent, space, stride");
  for (const Json& digit : document["digits"]) session.say("  " + digit.dump());
  for (const Json& at : document["points"]) {
    session.say(str("index ", at["index"].dump(), ": bank ", at["bank"].dump(), ", slot ", at["slot"].dump(), ", bit ",
                    at["bit"].dump()));
  }
}

}  // namespace

void add_layout(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("layout", "Sizes of a layout, and where elements lie in it");
  auto options = std::make_shared<LayoutOptions>();
  command->add_option("LAYOUT", options->text, "A layout: NCHW{16c}, or (n,c) -> (c, n)")->required();
  command->add_option("--dims", options->dims, "The dims' names, as NCHW")->required()->type_name("NAMES");
  command->add_option("--shape", options->shape, "Extents, as 2,3,4,5")->required()->type_name("N,N");
  command->add_option("--bits", options->bits, "Bits of an element")->capture_default_str();
  command->add_option("--slice", options->slice, "Of a part of the tensor, in the same memory: ranges, as 0:2,8:16")
      ->type_name("B:E,B:E");
  command->add_option("--index", options->indices, "An element to find, as 1,2,3,4; may be given often")
      ->type_name("N,N")
      ->allow_extra_args(false);
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, options] {
    const auto document = describe(*options);
    if (!document.ok()) {
      exit_code = session.fail(document.error(), layout_error_code(document.error()));
      return;
    }
    exit_code = kDone;
    say_table(session, *document);
    session.result(*document);
  });
}

}  // namespace tenon::cli
