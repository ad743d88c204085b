// What was timed of a machine, kept in a file, so that every process schedules alike.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <ranges>

#include <tenon/program/machine_readings.hpp>
#include <tenon/program/timing_internal.hpp>
#include <tenon/support/hash.hpp>
#include <tenon/support/median.hpp>

namespace tenon::program {

namespace {

constexpr std::string_view kMagic = "tenon-machine 8";
constexpr std::string_view kMeasurement = "measurement";
// Of a process, as long as there are not enough.
constexpr int kOfProcess = 3;
// With so many times as many tried as are wanted, the quietest ones count, whatever they are.
constexpr int kMostTried = 2;

double disturbed(const Readings& readings) {
  const auto found = readings.find(kDisturbed);
  return found == readings.end() ? 1 : found->second;
}

// What distinguishes processors, of what the system says of the first one. Others of its lines change all the time.
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

// Code that a compiler has not made fast, or that watches what it does, is timed for itself.
std::string_view build() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "sanitised";
#elif defined(__OPTIMIZE__)
  return "optimised";
#else
  return "plain";
#endif
}

ContentKey key_of(const CacheBytes& caches) { return ContentKey::of(str(kMagic, "\n", machine_identity(caches))); }

std::string hash_of(std::string_view text) { return str(fnv1a(text)); }

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// The rest after the line that is taken away.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::string machine_identity(const CacheBytes& caches) { return str(processor(), caches, "\n", build()); }

void MachineRecord::add(Readings measured) {
  ++tried_;
  measurements_.push_back(std::move(measured));
  if (measurements_.size() <= kWanted) return;
  // Of those that are quiet the newest goes, so that models stay as they are.
  const auto badness = [](const Readings& r) { return std::max(disturbed(r), kQuiet); };
  const auto worst = std::ranges::max_element(std::views::reverse(measurements_).begin(), measurements_.rend(),
                                              [&](const Readings& a, const Readings& b) { return badness(a) < badness(b); });
  measurements_.erase(std::next(worst).base());
}

bool MachineRecord::settled() const {
  if (measurements_.size() < kWanted) return false;
  return tried_ >= kMostTried * static_cast<int>(kWanted) ||
         std::ranges::all_of(measurements_, [](const Readings& r) { return disturbed(r) <= kQuiet; });
}

Readings MachineRecord::readings() const {
  std::map<std::string, std::vector<double>, std::less<>> all;
  for (const Readings& measured : measurements_)
    for (const auto& [name, seconds] : measured) all[name].push_back(seconds);
  Readings out;
  for (auto& [name, values] : all) out[name] = median(std::move(values));
  return out;
}

std::string MachineRecord::to_text() const {
  std::string body = str(kMagic, "\n", tried_, "\n");
  for (const Readings& measured : measurements_) {
    body += str(kMeasurement, "\n");
    for (const auto& [name, seconds] : measured) body += str(name, "\t", seconds, "\n");
  }
  return body + hash_of(body) + "\n";
}

Result<MachineRecord> MachineRecord::from_text(std::string_view text) {
  const size_t last = text.size() > 1 ? text.rfind('\n', text.size() - 2) : std::string_view::npos;
  if (last == std::string_view::npos || text.back() != '\n') return error(Code::parse, "it has no hash");
  std::string_view body = text.substr(0, last + 1);
  if (text.substr(last + 1) != hash_of(body) + "\n") return error(Code::parse, "its hash does not fit its contents");
  if (take_line(body) != kMagic) return error(Code::parse, "it holds no readings, or those of another version");
  MachineRecord record;
  const std::string_view tried = take_line(body);
  record.tried_ = static_cast<int>(number(tried).value_or(0));
  while (!body.empty()) {
    const std::string_view line = take_line(body);
    if (line == kMeasurement) {
      record.measurements_.emplace_back();
      continue;
    }
    const size_t tab = line.find('\t');
    const std::optional<double> value = tab < line.size() ? number(line.substr(tab + 1)) : std::nullopt;
    if (!value || !(*value >= 0 && std::isfinite(*value)) || record.measurements_.empty())
      return error(Code::parse, "'", line, "' is no reading");
    record.measurements_.back().emplace(line.substr(0, tab), *value);
  }
  if (record.measurements_.size() > kWanted || record.tried_ < static_cast<int>(record.measurements_.size()))
    return error(Code::parse, record.measurements_.size(), " measurements of '", tried, "', and at most ", kWanted,
                 " are kept");
  return record;
}

MachineRecord record_of_machine(const FileCache& files, const CacheBytes& caches,
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
  if (record.settled()) return record;
  for (int i = 0; i < kOfProcess; ++i) record.add(measure(caches));
  const std::string text = record.to_text();
  files.store(key, std::as_bytes(std::span(text)));
  return record;
}

const MachineRecord& record_of_machine() {
  static const MachineRecord record = record_of_machine(
      FileCache(FileCache::default_folder(), {.folder = "machine", .suffix = ".readings", .max_bytes = 1 << 20}),
      cache_bytes_of_machine());
  return record;
}

}  // namespace tenon::program
