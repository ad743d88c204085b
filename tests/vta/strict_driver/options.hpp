// Options of the strict driver: words "key=number" in the environment variable STRICT_VTA.
//
//   STRICT_VTA="block=4 batch=0 uop=15 inp=15 wgt=18 acc=17 seed=1"    machine: log2 of lanes and of bytes; the default
//
//   seed             places of buffers, what fresh memory holds, and in which order units run
//   queue            instructions that wait for one unit
//   always_cached=1  the host's side of all buffers is cached, whatever was asked for
//   timeout_run=N    run N (from 1) never ends; throw_run=N throws; no_memory_at=N: allocation N fails; no_device=1
#pragma once
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

namespace strict {

// A violation of the driver's contract. It leaves the library only if an option says so.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Options {
 public:
  static Options from_environment();
  uint32_t operator[](const std::string& key) const { return numbers_.at(key); }

 private:
  std::map<std::string, uint32_t> numbers_{
      {"batch", 0},     {"block", 4},        {"uop", 15},     {"inp", 15},          {"wgt", 18},
      {"acc", 17},      {"seed", 1},         {"queue", 512},  {"always_cached", 0}, {"timeout_run", 0},
      {"throw_run", 0}, {"no_memory_at", 0}, {"no_device", 0}};
};

}  // namespace strict
