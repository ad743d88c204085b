// Timings of the machine, kept from process to process, and the cost model that follows: CostModel::of_machine().
//
// Load slows the machine down, and some pages of memory suit the caches better than others. Things are therefore timed
// in turn, in rounds, and in several measurements, each in memory of its own. The measurements during which other
// threads had the processor least count.
//
// Measurements are kept in FileCache::default_folder(), folder "machine", one file for each kind of processor. Each
// process adds one until there are enough; from then on all processes schedule alike. The load of other guests of the
// machine comes and goes by the hour, and no measurement can detect it. So after an hour one process measures once
// more, another after as long as the file is old by then, and so on, more and more rarely.
//
// Other guests only make things slower, so for speeds the better moments count; for the share of a cache that they
// leave, the majority of moments counts. Without the file everything is measured anew.
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

// Of the machine that this runs on, as the system reports them; those of CostModel::host() where it does not.
TENON_API CacheBytes cache_bytes_of_machine();
// The same from files in the form that Linux has for a processor: folder/index0/{level,type,size} and so on. Levels
// that are missing have the value of `otherwise`.
TENON_API CacheBytes cache_bytes_in(const std::filesystem::path& folder, const CacheBytes& otherwise);
// A text that differs between kinds of processors, and between builds of this library.
TENON_API std::string machine_identity(const CacheBytes& caches);

// Readings by the name of what is timed: seconds of one thread, or of two where stated; or parts of a whole, where
// stated.
using Readings = std::map<std::string, double, std::less<>>;

// The size of the memory region that timings traverse: more than the caches hold.
TENON_API size_t region_bytes(const CacheBytes& caches);
// The sizes of passes, from a few lines to the whole region, in ascending order.
TENON_API std::vector<size_t> pass_sizes(const CacheBytes& caches);
// Sizes of the pieces that are fetched from main memory while the smallest cache is worked in.
inline constexpr std::array<size_t, 7> kPieceBytes{4 << 10, 5 << 10, 6 << 10, 7 << 10, 8 << 10, 10 << 10, 12 << 10};

// Names of readings. Seconds per byte that is read or written, in passes over `bytes` bytes:
TENON_API std::string pass_name(size_t bytes);
// The same in three of four passes over parts of the largest cache, which others use, and over the whole region: their
// speed varies, and a schedule has to be good where they have their share.
inline constexpr std::string_view kMostly = " mostly";
TENON_API std::string mostly_name(size_t bytes);
// Latency of a line anywhere in `bytes` bytes; the whole region: in main memory.
TENON_API std::string wait_name(size_t bytes);
// The sizes for latencies of caches: half of a cache; of the last one, which others use, a quarter.
TENON_API size_t waited_bytes(const CacheBytes& caches, size_t level);
// Seconds for a row of 4 KB with a gap after it, and for one of many without gaps.
inline constexpr std::string_view kRowApart = "row apart", kRowTogether = "row together";
// Seconds for a call of a kernel that does nothing, whose results are in a ring buffer or are not.
inline constexpr std::string_view kCall = "call", kCallWithWindows = "call with windows";
// Seconds per byte of the whole region where two threads each traverse a part of it at the same time.
inline constexpr std::string_view kPassByTwo = "pass by two";
// Seconds for a loop of a pool of two threads that only meet, one loop after another, so that both look for work.
inline constexpr std::string_view kJoined = "joined";
// Seconds for such a loop before which the other thread sleeps, until its caller has done it without waiting for it.
inline constexpr std::string_view kWoken = "woken";

// The part of a piece's transfer time to main memory and back, or of the work on it if that is less, that is hidden by
// the other.
inline constexpr std::string_view kHidden = "hidden", kWay = "way";
TENON_API std::string hidden_name(size_t piece);
// For passes through main memory and back in which the next piece is prefetched: the transfer time relative to other
// passes; and the part of it, or of the work on a piece if that is less, that is hidden by the other.
struct HintedNames {
  std::string_view way, hidden;
};
inline constexpr HintedNames kFetched{"way fetched", "hidden by fetching"};
// The size of such pieces: one that is read and one that is written, in turn, and the prefetched parts of the next ones
// take at most two thirds of the smallest cache. The cost model itself handles what does not fit there beside the work.
TENON_API size_t fetched_piece_bytes(const CacheBytes& caches);
// Additional seconds for a piece, where each is short and not contiguous with the previous one.
inline constexpr std::string_view kPieceApart = "piece apart";
// The same where results are stored non-temporally, and only reads are prefetched;
inline constexpr HintedNames kNonTemporal{"way of non-temporal stores", "hidden by non-temporal stores"};
// and through a quarter of the largest cache. Not read where that is not well beyond the next smaller cache.
inline constexpr HintedNames kFetchedNearby{"way fetched nearby", "hidden by fetching nearby"};
TENON_API bool has_fetched_nearby(const CacheBytes& caches);
// The part of all samples during which another thread had the processor.
inline constexpr std::string_view kDisturbed = "disturbed";

// Takes all readings, in some 0.2 s on this thread. Those that cannot be timed are missing.
TENON_API Readings read_machine(const CacheBytes& caches);

// A pure function. Readings that are missing leave what CostModel::host() says.
TENON_API CostModel model_of(const Readings& readings, const CacheBytes& caches);

// All measurements of a machine. Those within kMoment seconds of the first of them belong to one moment.
class TENON_API MachineRecord {
 public:
  static constexpr size_t kWanted = 9;
  static constexpr double kQuiet = 0.1;  // measurements disturbed no more than this count as equally quiet
  static constexpr int64_t kMoment = 3600;

  // `when`: wall-clock time in seconds. If there are more than kWanted, the most disturbed one is removed. Among quiet
  // ones, the newest but this of the moment that has most of them is removed, so that models stay as they are, or else
  // the oldest.
  void add(Readings measured, int64_t when);
  // Whether enough were quiet, or the load must be permanent after so many attempts.
  bool settled() const;
  // Whether a process should add a measurement: while it is not settled; later when the time since the last one is at
  // least that between the first and the last, and at least a moment.
  bool is_due(int64_t now) const;
  int tried() const { return tried_; }
  int moments() const;
  // Each reading, combined over moments. For what others only make slower, the lower quartile of moments counts; for
  // typical speeds, and for parts, the median. The measurements within a moment are combined in the same way. For the
  // gain of non-temporal stores the least favourable quarter counts: storing non-temporally for nothing costs main
  // memory traffic for data that caches hold, while not doing so only forgoes the gain.
  Readings readings() const;
  std::string to_text() const;
  static Result<MachineRecord> from_text(std::string_view text);

 private:
  struct Measurement {
    int64_t when;
    Readings readings;
  };
  // In order of time: the measurements of each moment.
  std::vector<std::vector<const Measurement*>> by_moment() const;

  std::vector<Measurement> measurements_;  // as they were added
  int tried_ = 0;
  int64_t begun_ = 0, latest_ = 0;  // when the first and the last were added; these may have been removed
};

// The record of this machine in `files`. A measurement that is due is taken and stored.
TENON_API MachineRecord record_of_machine(const FileCache& files, const CacheBytes& caches, int64_t now,
                                          const std::function<Readings(const CacheBytes&)>& measure = read_machine);
// The readings that CostModel::of_machine() uses.
TENON_API const MachineRecord& record_of_machine();

}  // namespace tenon::program
