// Automatic schedules by a cost model, and predicted costs of schedules.
//
//   TENON_TRY(report, auto_schedule(p, {in}, {out}, {{"out.min1", 0}, {"out.extent1", 2048}, ...},
//                                   CostModel::of(target)));
//   TENON_TRY(program, p.build({in}, {out}));
//
// The stages of a pipeline are divided into groups. Each group is computed strip by strip, in a loop of its last stage.
// The predicted time is
//   seconds = sum over groups of
//       bytes into and out of the group / bandwidth of the memory that holds their source            (outer traffic)
//     + bytes loaded from earlier groups' results, as often as windows cover them / bandwidth of the smallest memory
//     + for each result used inside the group, the larger of these two, plus a fifth of the smaller where windows are
//       kept:
//         what an iteration computes, written and read / bandwidth of the memory that holds it until it is read
//           + results of earlier iterations, read again / bandwidth of the memory that holds all of an iteration
//           + rows that one call reads again / bandwidth of the memory that holds a window of them and a row that is
//             written, unless that is the smallest memory
//         bytes that its reader loads / bandwidth of the smallest memory; counted as often as its window covers them,
//           and twice for loads at an offset within a row: unaligned vectors load from two lines
//     + calls * dispatch, more for calls whose results are in a ring buffer, and for each row, or piece of a row, that
//       they access
//     + for a loop down columns, a quarter of the latency of the rows' memory for each piece of a row that is read (in
//       tiles along rows the next piece is prefetched, and writes do not stall)
//     + elements computed again, where no window of them is kept * compute
//
// Overlap. Where nothing is kept between iterations, an iteration's results stay in the smallest memory and what it
// reads from the largest one is prefetched, the first two terms overlap: the larger one counts, as far as the largest
// memory is concerned. In strips of whole rows that keep windows, outer traffic overlaps, except for a fifth of it,
// with the time by which loads from the smallest memory exceed the traffic through the windows.
//
// Reading and writing apart. In strips, the first stage only reads from the largest memory and the last one only writes
// to it. This may take longer than passes that do both at once.
//
// Look-ahead. A loop may prefetch what its next iteration reads from the largest memory, or from the one before it, and
// lines that it writes. Outer traffic then takes another time, part of which is hidden, and pieces of columns have the
// cost of prefetched pieces. The gain falls with the number of bytes prefetched before a call, above all where the next
// piece is not contiguous in memory. Look-ahead is for strips that fit the second memory together with what is
// prefetched, which evicts other data from the smallest one. Prefetch instructions cost 3 ns before each call. Hints
// that may help are also emitted where they are predicted to cost more than they save: how much they save depends on
// what other programs leave of the caches, and runs ignore hints that cost more (HintPolicy, bound_program.hpp).
//
// Non-temporal results. Results that no stage of the pipeline reads, and that no cache is certain to hold for their
// next reader, may be stored non-temporally. This costs one more call in each iteration; only reads are prefetched, and
// more of the outer traffic is hidden. The results go to the largest memory, however small they are, and reads have the
// other memories to themselves.
//
// Partial lines. Where rows are not whole cache lines, each piece of a row costs one more line to read and write, and
// two more down columns.
//
// Capacity. What an iteration computes is held by a memory that has room for it and for what its reader makes of it.
// Where windows are kept, all windows are accessed between two uses of a place; with tiles along rows, windows of whole
// rows, because all that the next row of tiles reads is kept. A memory retains data for reuse up to half of its size,
// or up to the size measured to be certain, since streaming data take the rest. Beyond that, an increasing part is lost
// to the next memory. If that is measured for the smallest memory, results without a window are also lost there, as far
// as an iteration's outer reads and writes have evicted them.
//
// Search. Groups are runs of stages in order of computation. Among all ways to divide them, with steps that are powers
// of two, the cheapest is chosen (dynamic programming). Loops iterate over the slowest index; where rows are long, in
// tiles along them that the smallest memory holds, or down columns, if no window crosses them. Among groups that may
// still grow, the search follows those with the least cost so far, and none that already costs more than ending a group
// here and beginning another. Time is therefore linear in the stages beyond some 30, up to which nothing else is
// omitted.
//
// Workers. With several workers each group iterates over bands of its last stage's slowest index, one for each worker,
// in the same strips. Its terms are shared by the workers, except for the traffic of the largest memory, whose
// bandwidth is what it gives all of them together. What lies across the border of two bands is computed for both, and
// workers are started once a group. Loops of groups that cannot be divided into bands are serial: those with too few
// indices, and those whose kernels take no ring buffers (contiguous windows are made for one loop only). All loops are
// serial where one worker is predicted to take no longer.
#pragma once
#include <string>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/program/pipeline/pipeline.hpp>
#include <tenon/support/export.hpp>
#include <tenon/target/description.hpp>

namespace tenon::program {

struct CostModel {
  struct Memory {
    std::string name;
    double bytes = 0;  // 0: unlimited
    double bytes_per_second = 0;
    double latency_seconds = 0;  // to the first bytes of a piece that is not contiguous with the previous one
    double sure_bytes = 0;       // data for reuse up to this size are certain to be retained; 0: half
  };
  std::vector<Memory> memories;  // smallest first; the last is unlimited
  // Includes its share of the loop and of views, which of_machine() measures, and the kernel's work before its first
  // element.
  double seconds_per_call = 5e-9;
  double seconds_per_element = 0.3e-9;
  double seconds_per_window = 1e-9;  // additional, for a call whose results are in a ring buffer
  // While an iteration works in the smallest memory, the machine prefetches this many bytes of the next one's reads
  // from the largest memory; less of longer pieces, and nothing from a sixth more on.
  double ahead_bytes = 0;
  double ahead_part = 1;  // of their transfer time that overlaps with the work
  // Factor on the transfer time from and to the largest memory for stages that run strip by strip, where the first one
  // only reads from it and the last one only writes to it, relative to passes that do both. 1: the same.
  double apart = 1;
  // Where an iteration prefetches the next one's reads from the largest memory (LoopOver::ahead): the factor on that
  // transfer time relative to passes, and the part of it that is hidden, at most the time of the other stages and the
  // cost of reading and writing apart. fetched_part 0: the machine does not obey prefetch instructions.
  double fetched_part = 0, fetched_way = 1;
  double seconds_per_hinted_piece = 0;  // additional, for each piece down columns
  // The same for the memory before the largest.
  double fetched_part_nearby = 0, fetched_way_nearby = 1;
  // The same as the first pair where results are stored non-temporally (LoopOver::non_temporal) and only reads are
  // prefetched. Part 0: nothing is hidden, and the transfer is no shorter, so nothing is stored in that way.
  double non_temporal_part = 0, non_temporal_way = 1;
  double seconds_per_piece = 0;    // additional, for each piece of a row with a window around it, in tiles along rows
  double seconds_per_row = 15e-9;  // additional, for each row that a call reads or writes: nothing is prefetched for it
  // Threads that a run will have: loops over a group's bands have as many workers. 1: loops are serial. Below 1: an
  // error.
  int64_t workers = 1;
  // The bandwidth of the largest memory for all workers together, relative to one; of_machine() measures it for two.
  double workers_of_largest = 2;
  // What starting the workers costs their caller, if they sleep; it is less while they look for work (of_machine()).
  double seconds_to_share = 10e-6;

  // The memories of the description, with the largest one unlimited. A memory that states no bandwidth has that of the
  // next larger one that does, and the largest one that of main memory; a memory without a latency has none. Without a
  // target clock, a bandwidth in bytes per cycle, or a latency, counts as not stated. Nothing is measured, so the same
  // description gives the same schedules on any machine. But a target that states fewer than two memories leaves its
  // caches to the machine that it runs on, and gets of_machine().
  TENON_API static CostModel of(const TargetDescription& target);
  // 32 KiB, 1 MiB and 32 MiB of cache before main memory, on any machine.
  TENON_API static CostModel host();
  // The machine that this runs on: sizes of caches from the system; bandwidths, latencies and calls measured on first
  // use, which takes some 0.3 s on one thread. They are kept in a file (program/schedule/machine_readings.hpp), so that
  // later processes get the same model, once there are enough measurements. Within a process the model is the same for
  // all callers, on any thread. What cannot be measured is that of host().
  TENON_API static CostModel of_machine();

  // A line for each memory and one for the rest, in KB, GB/s and ns.
  TENON_API std::string to_string() const;
};

struct PredictedCost {
  double memory_seconds = 0, dispatch_seconds = 0, redundant_seconds = 0;
  double seconds() const { return memory_seconds + dispatch_seconds + redundant_seconds; }
};

struct TENON_API ScheduleReport {
  PredictedCost automatic, by_hand;  // by_hand: the schedule that the pipeline had (none: every stage by itself)
  std::vector<std::string> groups;   // "blur: 6 stages over y in steps of 16, 720896 bytes of windows"
  std::string to_string() const;
};

// Replaces loops and placements of all stages. `sizes` gives the symbols that bounds of outputs and scalars need.
TENON_API Result<ScheduleReport> auto_schedule(Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                               const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                               const CostModel& model);
// The predicted cost of the pipeline's current schedule.
TENON_API Result<PredictedCost> predict_cost(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                             const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                             const CostModel& model);

}  // namespace tenon::program
