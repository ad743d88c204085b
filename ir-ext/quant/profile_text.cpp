#include <tenon-ext/quant/profile.hpp>
#include <tenon/support/str.hpp>
#include <tenon/target/setting.hpp>

namespace tenon::quant {
namespace {

// JSON allows neither \xNN nor bytes below a blank.
std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

Result<Histogram> parse_histogram(const Setting& setting) {
  TENON_OK(setting.allow_keys({"exponent", "bins"}));
  TENON_TRY(exponent, setting.integer("exponent", -1100, 1100));
  TENON_TRY(list, setting.list("bins"));
  std::vector<uint64_t> bins;
  for (const Setting& item : list->items()) {
    TENON_TRY(count, item.as_integer(0));
    bins.push_back(static_cast<uint64_t>(count));
  }
  if (bins.empty()) return Histogram();
  if (bins.size() != Histogram::kBins) {
    return error(Code::invalid_argument, list->place().prefix(), "a histogram has ", bins.size(), " bins; it needs ",
                 Histogram::kBins);
  }
  return Histogram(exponent, std::move(bins));
}

Result<double> real_of(const Setting& setting, std::string_view key) {
  TENON_TRY(value, setting.get(key));
  return value->as_real();
}

Result<ValueProfile> parse_value(const Setting& setting) {
  TENON_OK(setting.expect(Setting::Kind::map));
  TENON_OK(setting.allow_keys({"name", "least", "greatest", "magnitudes"}));
  ValueProfile profile;
  TENON_TRY(name, setting.text_of("name"));
  TENON_TRY(least, real_of(setting, "least"));
  TENON_TRY(greatest, real_of(setting, "greatest"));
  TENON_TRY(magnitudes, setting.map("magnitudes"));
  TENON_TRY(histogram, parse_histogram(*magnitudes));
  return ValueProfile{std::move(name), least, greatest, std::move(histogram)};
}

}  // namespace

std::string Profile::to_json() const {
  std::string out = str("{\"tenon_profile\": 1,\n\"samples\": ", samples, ",\n\"values\": {");
  const char* separator = "\n";
  for (const auto& [key, value] : values) {
    out += str(separator, json_text(key), ": {\"name\": ", json_text(value.name), ", \"least\": ", value.least,
               ", \"greatest\": ", value.greatest, ",\n  \"magnitudes\": {\"exponent\": ", value.magnitudes.exponent(),
               ", \"bins\": ", value.magnitudes.bins(), "}}");
    separator = ",\n";
  }
  return out + "\n}}\n";
}

Result<Profile> Profile::parse(std::string_view text, std::string_view file) {
  TENON_TRY(root, parse_yaml(text, file));
  TENON_OK(root.expect(Setting::Kind::map));
  TENON_OK(root.allow_keys({"tenon_profile", "samples", "values"}));
  TENON_OK(root.integer("tenon_profile", 1, 1));
  Profile profile;
  TENON_TRY(samples, root.integer("samples", 0, INT64_MAX));
  profile.samples = samples;
  TENON_TRY(values, root.map("values"));
  for (const Setting& item : values->items()) {
    TENON_TRY(value, parse_value(item), "value '", item.key(), "'");
    profile.values.emplace(item.key(), std::move(value));
  }
  return profile;
}

}  // namespace tenon::quant
