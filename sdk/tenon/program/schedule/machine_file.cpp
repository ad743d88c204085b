// Timings of a machine, kept in a file, so that every process computes the same schedules.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <fstream>
#include <ranges>

#include <tenon/program/schedule/machine_readings.hpp>
#include <tenon/program/schedule/timing_internal.hpp>
#include <tenon/support/hash.hpp>
#include <tenon/support/median.hpp>

namespace tenon::program {

namespace {

constexpr std::string_view kMachineMagic = "tenon-machine 10";
constexpr std::string_view kMeasurement = "measurement\t";
// For quantities that others only make slower, this part of the values is better than the one that counts.
constexpr double kBetter = 0.25;
// After this many times as many attempts as are wanted, the quietest ones count, however disturbed.
constexpr int kMostTried = 2;

double disturbed(const Readings& readings) {
  const auto found = readings.find(kDisturbed);
  return found == readings.end() ? 1 : found->second;
}

// The properties that distinguish processors, from the system's description of the first one. Its other lines change
// all the time.
std::string processor() {
  constexpr std::string_view kNames[] = {"vendor_id",       "cpu family",       "model",       "model name", "stepping",
                                         "CPU implementer", "CPU architecture", "CPU variant", "CPU part",   "uarch"};
  std::ifstream file("/proc/cpuinfo");
  std::string text, line;
  while (std::getline(file, line) && !line.empty()) {
    const std::string_view name = std::string_view(line).substr(0, line.find_first_of("\t:"));
    if (std::ranges::find(kNames, name) != std::end(kNames)) text += line + "\n";
  }
  return text;
}

// Unoptimised or instrumented builds have timings of their own.
std::string_view build() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "sanitised";
#elif defined(__OPTIMIZE__)
  return "optimised";
#else
  return "plain";
#endif
}

// The value that a quarter of the others is below.
double lower_quartile(std::vector<double> values) {
  const auto at = values.begin() + static_cast<int64_t>(kBetter * static_cast<double>(values.size()));
  std::ranges::nth_element(values, at);
  return *at;
}
double upper_quartile(std::vector<double> values) {
  for (double& value : values) value = -value;
  return -lower_quartile(std::move(values));
}

double typical(std::string_view name, std::vector<double> values) {
  if (name == kNonTemporal.hidden) return lower_quartile(std::move(values));
  if (name == kNonTemporal.way) return upper_quartile(std::move(values));
  const bool others_only_slow =
      !name.ends_with(kMostly) && !name.starts_with(kHidden) && !name.starts_with(kWay) && name != kDisturbed;
  return others_only_slow ? lower_quartile(std::move(values)) : median(std::move(values));
}

ContentKey key_of(const CacheBytes& caches) {
  return ContentKey::of(str(kMachineMagic, "\n", machine_identity(caches)));
}

std::string hash_of(std::string_view text) { return str(fnv1a(text)); }

template <class T>
std::optional<T> number(std::string_view text) {
  T value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Wall-clock time in seconds, restricted so that the difference of two such times fits int64.
std::optional<int64_t> moment(std::string_view text) {
  const std::optional<int64_t> when = number<int64_t>(text);
  return when && *when >= 0 ? when : std::nullopt;
}

// Removes the first line and returns the rest.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::string machine_identity(const CacheBytes& caches) { return str(processor(), caches, "\n", build()); }

std::vector<std::vector<const MachineRecord::Measurement*>> MachineRecord::by_moment() const {
  std::vector<const Measurement*> all;
  for (const Measurement& m : measurements_) all.push_back(&m);
  std::ranges::stable_sort(all, {}, &Measurement::when);
  std::vector<std::vector<const Measurement*>> moments;
  for (const Measurement* m : all) {
    if (moments.empty() || m->when - moments.back().front()->when >= kMoment) moments.emplace_back();
    moments.back().push_back(m);
  }
  return moments;
}

int MachineRecord::moments() const { return static_cast<int>(by_moment().size()); }

void MachineRecord::add(Readings measured, int64_t when) {
  if (tried_++ == 0) begun_ = when;
  latest_ = when;
  measurements_.push_back({when, std::move(measured)});
  if (measurements_.size() <= kWanted) return;
  const auto worst = std::ranges::max_element(
      measurements_, {}, [](const Measurement& m) { return std::max(disturbed(m.readings), kQuiet); });
  if (disturbed(worst->readings) > kQuiet) {
    measurements_.erase(worst);
    return;
  }
  const auto moments = by_moment();
  const auto& most = *std::ranges::max_element(moments, {}, &std::vector<const Measurement*>::size);
  const Measurement* gone = most.back();
  measurements_.erase(measurements_.begin() + (gone - measurements_.data()));
}

bool MachineRecord::settled() const {
  if (measurements_.size() < kWanted) return false;
  return tried_ >= kMostTried * static_cast<int>(kWanted) ||
         std::ranges::all_of(measurements_, [](const Measurement& m) { return disturbed(m.readings) <= kQuiet; });
}

bool MachineRecord::is_due(int64_t now) const {
  // If the clock was set back, the age is not known.
  return !settled() || std::abs(now - latest_) >= std::max(kMoment, latest_ - begun_);
}

Readings MachineRecord::readings() const {
  using Values = std::map<std::string, std::vector<double>, std::less<>>;
  Values of_moments;
  for (const auto& moment : by_moment()) {
    Values all;
    for (const Measurement* m : moment)
      for (const auto& [name, seconds] : m->readings) all[name].push_back(seconds);
    for (auto& [name, values] : all) of_moments[name].push_back(typical(name, std::move(values)));
  }
  Readings out;
  for (auto& [name, values] : of_moments) out[name] = typical(name, std::move(values));
  return out;
}

std::string MachineRecord::to_text() const {
  std::string body = str(kMachineMagic, "\n", tried_, "\n", begun_, "\n", latest_, "\n");
  for (const Measurement& m : measurements_) {
    body += str(kMeasurement, m.when, "\n");
    for (const auto& [name, seconds] : m.readings) body += str(name, "\t", seconds, "\n");
  }
  return body + hash_of(body) + "\n";
}

Result<MachineRecord> MachineRecord::from_text(std::string_view text) {
  const size_t last = text.size() > 1 ? text.rfind('\n', text.size() - 2) : std::string_view::npos;
  if (last == std::string_view::npos || text.back() != '\n') return error(Code::parse, "it has no hash");
  std::string_view body = text.substr(0, last + 1);
  if (text.substr(last + 1) != hash_of(body) + "\n") return error(Code::parse, "its hash does not fit its contents");
  if (take_line(body) != kMachineMagic) return error(Code::parse, "it holds no readings, or those of another version");
  MachineRecord record;
  const std::string_view tried = take_line(body);
  record.tried_ = number<uint16_t>(tried).value_or(0);  // one more must also fit an int
  const std::optional<int64_t> begun = moment(take_line(body)), latest = moment(take_line(body));
  if (!begun || !latest) return error(Code::parse, "it does not say when it was made");
  record.begun_ = *begun, record.latest_ = *latest;
  while (!body.empty()) {
    const std::string_view line = take_line(body);
    if (line.starts_with(kMeasurement)) {
      const std::optional<int64_t> when = moment(line.substr(kMeasurement.size()));
      if (!when) return error(Code::parse, "'", line, "' does not say when");
      record.measurements_.push_back({*when, {}});
      continue;
    }
    const size_t tab = line.find('\t');
    const std::optional<double> value = tab < line.size() ? number<double>(line.substr(tab + 1)) : std::nullopt;
    if (!value || !(*value >= 0 && std::isfinite(*value)) || record.measurements_.empty())
      return error(Code::parse, "'", line, "' is no reading");
    record.measurements_.back().readings.emplace(line.substr(0, tab), *value);
  }
  if (record.measurements_.size() > kWanted || record.tried_ < static_cast<int>(record.measurements_.size()))
    return error(Code::parse, record.measurements_.size(), " measurements of '", tried, "', and at most ", kWanted,
                 " are kept");
  return record;
}

MachineRecord record_of_machine(const FileCache& files, const CacheBytes& caches, int64_t now,
                                const std::function<Readings(const CacheBytes&)>& measure) {
  const ContentKey key = key_of(caches);
  MachineRecord record;
  if (const auto bytes = files.load(key)) {
    auto stored = MachineRecord::from_text({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
    if (stored.ok())
      record = *std::move(stored);
    else
      files.distrusted(key, stored.error().message());
  }
  if (!record.is_due(now)) return record;
  record.add(measure(caches), now);
  const std::string text = record.to_text();
  files.store(key, std::as_bytes(std::span(text)));
  return record;
}

const MachineRecord& record_of_machine() {
  static const MachineRecord record = record_of_machine(
      FileCache(FileCache::default_folder(), {.folder = "machine", .suffix = ".readings", .max_bytes = 1 << 20}),
      cache_bytes_of_machine(), static_cast<int64_t>(std::time(nullptr)));
  return record;
}

}  // namespace tenon::program
