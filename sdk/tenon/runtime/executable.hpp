// Executable: a graph compiled for one device.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/runtime/device.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon {

struct ValueInfo {
  std::string name;
  Type type;
  bool operator==(const ValueInfo&) const = default;
};

struct KernelStage {
  std::string name;
  size_t code_bytes = 0;
};
// A kernel that was generated for a part of the graph.
struct KernelInfo {
  std::string op, label;               // of its operator in the graph, as OpProfile has them
  std::vector<std::string> operators;  // the graph's operators in it: "Mul attn/scale"
  size_t parameters = 0, results = 0, constants = 0;
  double bytes_unfused = 0, bytes_fused = 0;  // walked by its operators one by one, and by the kernel
  double predicted_us = 0;                    // 0: not known
  size_t code_bytes = 0;
  // What its calls run instead, one behind the other, where threads share its folds. Empty: they run the kernel.
  std::vector<KernelStage> stages = {};
};

// Filled by a run when asked.
struct OpProfile {
  std::string op, label;  // "Conv", "layer1/conv"; of a C plugin's part as a whole: the plugin's name, ""
  double microseconds = 0;
  // What a device counts: {"cycles", 10}, {"dram_bytes", 320} ...; empty where it does not.
  std::vector<std::pair<std::string, int64_t>> counters = {};
};
struct RunOptions {
  ParallelFor* parallel = nullptr;            // threads for host work; null: the process' pool. C plugins use their own
  std::vector<OpProfile>* profile = nullptr;  // in order of execution; nothing of a C plugin with memory of its own
  // Of HostRun::run and bind: HostRun::lendable_bytes() for intermediate values, aligned to kAlignBytes, the run's
  // alone while it runs. Less, or none: executables use memory of their own.
  std::span<std::byte> arena = {};
};

// Several threads may run one executable at once, each on a stream of its own.
class TENON_API Executable {
 public:
  virtual ~Executable() = default;
  virtual Device& device() const = 0;
  virtual const std::vector<ValueInfo>& inputs() const = 0;
  virtual const std::vector<ValueInfo>& outputs() const = 0;
  // Enqueues one run. Inputs are host data (when the device is_host(), or for values that are no dense tensors) or
  // tensors on device(). `outputs` has one entry per output; they are complete when the event is done. An entry that
  // holds a host tensor is a place for the output: it may be written there when element type and extents are the
  // output's, or made anew. `options` is read before return. Of executables that a backend of TargetRegistry gives,
  // counts, devices and what inputs() declares are checked before: the plugin's code sees nothing else.
  virtual Result<EventPtr> enqueue(Stream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                                   const RunOptions& options) const = 0;
  // Memory for intermediate values of one run, and what no plan could beat; 0 when the device does not tell.
  virtual size_t arena_bytes() const { return 0; }
  virtual size_t arena_lower_bound_bytes() const { return 0; }
  // Bytes from which TargetBackend::load makes the same executable; Code::unsupported when the target cannot.
  virtual Result<std::string> serialize() const;
  // The generated code, with the operator beside each line; Code::unsupported when nothing is generated.
  virtual Result<std::string> listing() const;
  // The kernels that were generated. They may run in another order: profiles tell by operator and label.
  virtual std::vector<KernelInfo> kernels() const { return {}; }
};

}  // namespace tenon
