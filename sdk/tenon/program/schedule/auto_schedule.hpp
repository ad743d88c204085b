// Schedules by a cost model, and what schedules are predicted to cost.
//
//   TENON_TRY(report, auto_schedule(p, {in}, {out}, {{"out.min1", 0}, {"out.extent1", 2048}, ...},
//                                   CostModel::of(target)));
//   TENON_TRY(program, p.build({in}, {out}));
//
// The model, for a pipeline whose stages are cut into groups, each computed strip by strip in a loop of its last stage:
//   seconds = sum over groups of
//       bytes into and out of the group / bandwidth of the memory that holds what they come from
//     + bytes that it loads of earlier groups' results, as often as windows cover them / bandwidth of the smallest
//       memory
//     + for each result used inside of it, the larger of these two, and a fifth of the smaller where windows are kept
//         what an iteration makes, written and read / bandwidth of the memory that holds it until it is read
//           + what earlier iterations made, read again / bandwidth of the memory that holds all of an iteration
//           + rows that one call reads again / bandwidth of the memory that holds a window of them and a row that is
//             written, as far as that is not the smallest
//         bytes that its reader loads, as often as its window covers them, twice where it loads beside a row's element:
//           vectors between two lines are loaded from both / bandwidth of the smallest memory
//     + calls * dispatch, more for those whose results stay in a ring, and for each row, or piece of one, that they
//       touch
//     + where a loop goes down columns, a quarter of the latency of the memory that rows come from for each piece of a
//       row that is read: in tiles along rows the next piece is fetched ahead, and nobody waits for what is written
//     + elements computed again, where the author keeps no window of them * compute
// Where nothing is kept, an iteration's results stay in the smallest memory, and what it reads from the largest is
// fetched ahead, the first two terms go on at the same time: the larger counts, as far as it is the largest that has
// it. Of strips of whole rows that keep windows, the way goes on beside what loads from the smallest memory take longer
// than what moves through the windows, but for a fifth. In strips the first stage only reads from the largest memory
// and the last one only writes to it, which may take longer than passes that do both at once do. A loop may tell the
// machine to fetch ahead what its next iteration reads from there, or from the memory before the largest, and lines
// that it writes: the way is another one then, part of it is hidden, and pieces of columns cost what hinted pieces do.
// That is the less the more bytes there are hints for before a call, above all where the next piece does not follow on
// in memory; it is for strips that fit the second memory together with what is fetched, which pushes others out of the
// smallest one. Hints cost 3 ns before each call. Results that no stage of the pipeline reads, and that no cache is
// sure to hold for who reads them next, may be stored non-temporally: a call more in each iteration, hints for what is
// read alone, and more of the way is hidden. They go to the largest memory, however small they are, and what is read
// has the others to itself. Where rows are not whole lines of the caches, a line is read and written more for each
// piece of a row, and two down columns. What an iteration makes is held by a memory that has room for it and for what
// its reader makes of it. Where a window stays, all windows pass between two uses of a place: those of whole rows where
// tiles go along rows, since what the next row of tiles reads is kept of all of them. Up to half of a memory, or what
// is measured to be sure, holds what is used again, since what streams by takes the rest; from there to all of it, the
// larger a part is lost to the next memory. Where that is measured of the smallest one, results that no window is kept
// of find their place there lost, too, as far as what an iteration reads and writes outside has pushed it out. Groups
// are runs of stages in order of computation; of the ways to cut them, and steps that are powers of two, the cheapest
// is taken (dynamic programming). Loops go over the slowest index; where rows are long, in tiles along them that the
// smallest memory holds, or down columns, if no window goes across them. Of groups that may yet grow those are followed
// that cost least so far, and none that already costs more than to end a group here and begin another: time is linear
// in the stages beyond some 30, up to which nothing else is left out.
//
// With several workers each group goes over bands of its last stage's slowest index, one for each worker, in the same
// strips. Its terms are then shared by the workers, but for what the largest memory has to move, which is as fast as it
// serves all of them; what lies across the border of two bands is computed for both, and workers are called once a
// group. Loops of groups that cannot be cut so are serial: of too few indices, or whose kernels take no rings (windows
// in one piece are made for one loop alone); and all of them where one worker is predicted to take no longer.
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
    double bytes = 0;  // 0: holds anything
    double bytes_per_second = 0;
    double latency_seconds = 0;  // to the first bytes of a piece that does not follow the last one
    double sure_bytes = 0;       // of what is used again, so much is found there for certain; 0: half
  };
  std::vector<Memory> memories;  // smallest first; the last holds anything
  // With its share of the loop and of views, which of_machine() measures, and what a kernel does before its first
  // element.
  double seconds_per_call = 5e-9;
  double seconds_per_element = 0.3e-9;
  double seconds_per_window = 1e-9;  // more, of a call whose results stay in a ring
  // While an iteration works in the smallest memory, so many bytes of what the next one reads are fetched from the
  // largest one; of longer pieces less, and from a sixth more on nothing.
  double ahead_bytes = 0;
  double ahead_part = 1;  // of their way that goes on beside the work
  // Of the way from and to the largest memory, where stages of which the first one only reads from there, and the last
  // one only writes to it, go on strip by strip: so many times what passes take. 1: the same.
  double apart = 1;
  // Where an iteration has the next one's far memory fetched (LoopOver::ahead), that way takes so many times what
  // passes do, and so much of it is hidden, but no more than the other stages take and what being apart costs. 0: the
  // machine does not do what it is told.
  double fetched_part = 0, fetched_way = 1;
  double seconds_per_hinted_piece = 0;  // more, of each piece down columns
  // The same of the memory before the largest.
  double fetched_part_nearby = 0, fetched_way_nearby = 1;
  // The same as the first where results are stored non-temporally (LoopOver::non_temporal) and only what is read is
  // fetched. Nothing is hidden, and the way is no shorter: nothing goes there.
  double non_temporal_part = 0, non_temporal_way = 1;
  double seconds_per_piece = 0;    // more, of each piece that tiles along rows cut a row with a window around it into
  double seconds_per_row = 15e-9;  // more, of each row that a call reads or writes: nothing is fetched ahead of it
  // Threads that a run is to have: loops of a group's bands have as many workers. 1: loops are serial. Below 1: an
  // error.
  int64_t workers = 1;
  // So many have all that the largest memory gives; of_machine() has measured that for two.
  double workers_of_largest = 2;
  // What calling them costs their caller: where they sleep, which is more than where they look for work (of_machine()).
  double seconds_to_share = 10e-6;

  // The memories of the description, and room for anything in the largest. One that states no bandwidth has that of the
  // next larger one that does, the largest that of main memory; one without a latency waits for nothing. Without a
  // target's clock a bandwidth in bytes per cycle, or a latency, is none. Nothing is measured, so the same description
  // gives the same schedules on any machine. But a target that states fewer than two memories leaves its caches to the
  // machine that it runs on: it gets of_machine().
  TENON_API static CostModel of(const TargetDescription& target);
  // 32 KiB, 1 MiB and 32 MiB of cache before main memory, on any machine.
  TENON_API static CostModel host();
  // The machine that this runs on: sizes of caches from the system; bandwidths, latencies and calls measured when it is
  // first asked, which takes some 0.3 s on one thread, and kept in a file (program/schedule/machine_readings.hpp), so
  // that later processes get the same model, once there are enough measurements. In a process the same model for all
  // callers, on any thread. What cannot be told is that of host().
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
// What the pipeline costs as it is scheduled.
TENON_API Result<PredictedCost> predict_cost(const Pipeline& pipeline, const std::vector<BufferRef>& inputs,
                                             const std::vector<BufferRef>& outputs, const SymbolValues& sizes,
                                             const CostModel& model);

}  // namespace tenon::program
