// What is timed of a machine, kept from process to process, and the cost model that follows: CostModel::of_machine().
//
// Load makes things slower, and pages of memory suit the caches more or less. So things are timed in turn, in rounds,
// and in several measurements, each in memory of its own: those count in which other threads had the processor least.
// They are kept in FileCache::default_folder(), folder "machine", one file for each kind of processor, and each process
// adds one until there are enough: from then on all processes schedule alike. Other guests of the machine come and go
// by the hour, and no measurement tells that they are there: so after an hour one process measures once more, again
// after as long as all of it has lasted by then, and so on, more and more rarely. What others only make slower is as
// fast as it was in the better moments, what they leave of a cache is what they left in most. Without the file all is
// taken anew.
#pragma once
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/program/schedule/auto_schedule.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/file_cache.hpp>

namespace tenon::program {

using CacheBytes = std::array<size_t, 3>;  // of data, smallest first

// Of the machine that this runs on, as the system states them; those of CostModel::host() where it does not.
TENON_API CacheBytes cache_bytes_of_machine();
// The same by files as Linux has them of a processor: folder/index0/{level,type,size} and so on. Levels that none of
// these is of are as `otherwise`.
TENON_API CacheBytes cache_bytes_in(const std::filesystem::path& folder, const CacheBytes& otherwise);
// Text that other kinds of processors, and other builds of this library, have another one of.
TENON_API std::string machine_identity(const CacheBytes& caches);

// Seconds that one thread takes, or two where it is said, by the name of what it does; and parts of something, where it
// is said.
using Readings = std::map<std::string, double, std::less<>>;

// Memory that is gone through: more than the caches hold.
TENON_API size_t region_bytes(const CacheBytes& caches);
// Parts of caches that are gone through, from a few lines to the whole region; in ascending order.
TENON_API std::vector<size_t> pass_sizes(const CacheBytes& caches);
// Pieces that are fetched from main memory while the smallest cache is worked in.
inline constexpr std::array<size_t, 7> kPieceBytes{4 << 10, 5 << 10, 6 << 10, 7 << 10, 8 << 10, 10 << 10, 12 << 10};

// Names: seconds of a byte that is read or written, in passes within so many bytes,
TENON_API std::string pass_name(size_t bytes);
// and as passes within parts of the largest cache, which others use, and within the whole region are three times of
// four: these come and go, and what is chosen is to be good where they have their share,
inline constexpr std::string_view kMostly = " mostly";
TENON_API std::string mostly_name(size_t bytes);
// to a line anywhere in so many bytes; the whole region: in main memory,
TENON_API std::string wait_name(size_t bytes);
// (of caches: of half of one, of the last one, which others use, a quarter),
TENON_API size_t waited_bytes(const CacheBytes& caches, size_t level);
// of a row of 4 KB with a gap after it, and of one of many without gaps,
inline constexpr std::string_view kRowApart = "row apart", kRowTogether = "row together";
// and of a call of a kernel that does nothing, whose results stay in a ring or do not.
inline constexpr std::string_view kCall = "call", kCallWithWindows = "call with windows";
// Of a byte of the whole region where two threads at once pass a part of it each,
inline constexpr std::string_view kPassByTwo = "pass by two";
// of a loop of a pool of two threads in which they do nothing but meet, one after another, so that both look for work,
inline constexpr std::string_view kJoined = "joined";
// and of one that the other thread sleeps before, until its caller has done it: it has not waited for the other one.
inline constexpr std::string_view kWoken = "woken";

// The part of a piece's way to main memory and back, or of the work on it if that is less, that goes on beside the
// other.
inline constexpr std::string_view kHidden = "hidden", kWay = "way";
TENON_API std::string hidden_name(size_t piece);
// Of passes through main memory, and back, in which the next piece is fetched ahead: how many times what others take;
// and the part of that, or of the work on a piece if that is less, that goes on beside the other,
struct HintedNames {
  std::string_view way, hidden;
};
inline constexpr HintedNames kFetched{"way fetched", "hidden by fetching"};
// of so many bytes: one that is read and one that is written, in turn, and what is fetched of the next ones, take two
// thirds of the smallest cache at most. What has no room there beside the work, the cost model sees to by itself.
TENON_API size_t fetched_piece_bytes(const CacheBytes& caches);
// More, where each is a short one that does not follow on the one before, of a piece,
inline constexpr std::string_view kPieceApart = "piece apart";
// The same where what is written is stored non-temporally, and what is read alone is fetched,
inline constexpr HintedNames kNonTemporal{"way of non-temporal stores", "hidden by non-temporal stores"};
// and through a quarter of the largest cache. Where that is not well beyond the next smaller cache, it is not read.
inline constexpr HintedNames kFetchedNearby{"way fetched nearby", "hidden by fetching nearby"};
TENON_API bool has_fetched_nearby(const CacheBytes& caches);
// The part of all tries in which another thread had the processor.
inline constexpr std::string_view kDisturbed = "disturbed";

// All of them, in some 0.2 s on this thread. Those that cannot be timed are not there.
TENON_API Readings read_machine(const CacheBytes& caches);

// A pure function. Readings that are missing leave what CostModel::host() says.
TENON_API CostModel model_of(const Readings& readings, const CacheBytes& caches);

// What is known of a machine by several measurements. Those within kMoment seconds of the first of them are of one
// moment.
class TENON_API MachineRecord {
 public:
  static constexpr size_t kWanted = 9;
  static constexpr double kQuiet = 0.1;  // no measurement is better than one that was disturbed less
  static constexpr int64_t kMoment = 3600;

  // `when`: in seconds, by the clock on the wall. Of more than kWanted the one that was disturbed most goes; of quiet
  // ones the newest but this of the moment that has the most of them, so that models stay as they are, or else the
  // oldest.
  void add(Readings measured, int64_t when);
  // Enough were quiet, or so many have been tried that load is how the machine is.
  bool settled() const;
  // Whether a process is to add a measurement: while it is not settled; later when the last was as long ago as it was
  // from the first, and a moment at least.
  bool is_due(int64_t now) const;
  int tried() const { return tried_; }
  int moments() const;
  // Of each reading, of what each moment says: of what others only make slower the lower quartile, and of how things
  // mostly are, and of parts, the median; of a moment's measurements the same. What is gained by non-temporal stores
  // counts as the quarter of them has it that says least: who goes there for nothing pays main memory for what caches
  // hold, who does not loses what is gained.
  Readings readings() const;
  std::string to_text() const;
  static Result<MachineRecord> from_text(std::string_view text);

 private:
  struct Measurement {
    int64_t when;
    Readings readings;
  };
  // In order of time, the measurements of each moment.
  std::vector<std::vector<const Measurement*>> by_moment() const;

  std::vector<Measurement> measurements_;  // as they were added
  int tried_ = 0;
  int64_t begun_ = 0, latest_ = 0;  // when the first and the last were added, which may have gone
};

// The record of this machine in `files`. A measurement that is due is added, and stored.
TENON_API MachineRecord record_of_machine(const FileCache& files, const CacheBytes& caches, int64_t now,
                                          const std::function<Readings(const CacheBytes&)>& measure = read_machine);
// As CostModel::of_machine() has it.
TENON_API const MachineRecord& record_of_machine();

}  // namespace tenon::program
