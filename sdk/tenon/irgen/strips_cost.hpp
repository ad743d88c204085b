// What chains cost, whole and in strips: the model that decides whether strips pay.
//
//   whole:   every operator streams its operands and its result through the smallest memory that holds them together
//   strips:  what the chain takes from outside and gives to it is streamed once, through the memory that holds all of
//   that;
//            what is handed on within, weights from the second strip on, and repacking move in the memory that holds
//            one strip's windows
//   both:    + calls * seconds per call
// Arithmetic is the same on both sides, since windows that slide compute nothing twice; but it hides what moves
// meanwhile: the time of an operator is the longer one of both, as is the time of all that goes on within a chain.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <tenon/program/schedule/auto_schedule.hpp>
#include <tenon/support/export.hpp>
#include <tenon/target/description.hpp>

namespace tenon::irgen {

using program::CostModel;

// The memories of a target, as CostModel::of has them. Where its description states fewer than two, the machine's
// caches are left to it: the model of a usual host.
TENON_API CostModel strip_model(const TargetDescription& target);
// That of a usual host.
TENON_API CostModel strip_model();

// Of one way to run a chain.
struct StripCost {
  double seconds = 0;
  std::vector<double> moved_bytes;  // by memory of the model: what streams through it
  int64_t peak_bytes = 0;           // of values that are made and used within

  StripCost() = default;
  explicit StripCost(const CostModel& model) : moved_bytes(model.memories.size(), 0.0) {}
  // `bytes` move while `working_set` bytes are in use.
  TENON_API void move(const CostModel& model, double bytes, double working_set);
  // The same, beside arithmetic that takes so long.
  TENON_API void move_and_compute(const CostModel& model, double bytes, double working_set, double arithmetic_seconds);
};

// "18.4 MB through memory, 2.1 MB through L2, 2.03 ms, 6422528 bytes at most".
TENON_API std::string to_string(const StripCost& cost, const CostModel& model);

}  // namespace tenon::irgen
