// The cost of chains, whole and in strips: the model that decides whether strips pay.
//
//   whole:   every operator streams its operands and its result through the smallest memory that holds them together
//   strips:  inputs and result of the chain are streamed once, through the memory that holds all of them; values
//            within, weights from the second strip on, and repacking move in the memory that holds one strip's windows
//   both:    + calls * seconds per call
// Arithmetic is the same on both sides, since sliding windows compute nothing twice; but it hides transfers: the time
// of an operator is the larger of its arithmetic and its transfers, and so is the time of everything within a chain.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <tenon/program/schedule/auto_schedule.hpp>
#include <tenon/support/export.hpp>
#include <tenon/target/description.hpp>

namespace tenon::irgen {

using program::CostModel;

// The memories of a target, as given by CostModel::of. Where its description states fewer than two (the caches are left
// to the machine), the model of a usual host.
TENON_API CostModel strip_model(const TargetDescription& target);
// That of a usual host.
TENON_API CostModel strip_model();

// Cost of one way to run a chain.
struct StripCost {
  double seconds = 0;
  std::vector<double> moved_bytes;  // by memory of the model: bytes streamed through it
  int64_t peak_bytes = 0;           // of values that are defined and used within

  StripCost() = default;
  explicit StripCost(const CostModel& model) : moved_bytes(model.memories.size(), 0.0) {}
  // `bytes` move while the working set is `working_set` bytes.
  TENON_API void move(const CostModel& model, double bytes, double working_set);
  // The same, overlapped with arithmetic of this duration.
  TENON_API void move_and_compute(const CostModel& model, double bytes, double working_set, double arithmetic_seconds);
};

// "18.4 MB through memory, 2.1 MB through L2, 2.03 ms, 6422528 bytes at most".
TENON_API std::string to_string(const StripCost& cost, const CostModel& model);

}  // namespace tenon::irgen
