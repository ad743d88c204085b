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
  std::string op, label;               // of its operator in the graph, as in OpProfile
  std::vector<std::string> operators;  // the graph's operators in it: "Mul attn/scale"
  size_t parameters = 0, results = 0, constants = 0;
  double bytes_unfused = 0, bytes_fused = 0;  // traffic of its operators one by one, and of the kernel
  double predicted_us = 0;                    // 0: unknown
  size_t code_bytes = 0;
  // The stages that its calls run in order instead, where threads share its folds. Empty: calls run the kernel.
  std::vector<KernelStage> stages = {};
};

// Filled by a run on request.
struct OpProfile {
  std::string op, label;  // "Conv", "layer1/conv"; for a C plugin's whole part: the plugin's name, ""
  double microseconds = 0;
  // Counters of the device: {"cycles", 10}, {"dram_bytes", 320} ...; empty where it has none.
  std::vector<std::pair<std::string, int64_t>> counters = {};
};
struct RunOptions {
  ParallelFor* parallel = nullptr;            // threads for host work; null: the process' pool. C plugins use their own
  std::vector<OpProfile>* profile = nullptr;  // in order of execution; without parts of a C plugin with its own memory
  // For HostRun::run and bind: memory for intermediate values, HostRun::lendable_bytes() long, aligned to kAlignBytes,
  // and exclusive to the run. If it is shorter or empty, executables use memory of their own.
  std::span<std::byte> arena = {};
};

// Several threads may run one executable at once, each on a stream of its own.
class TENON_API Executable {
 public:
  virtual ~Executable() = default;
  virtual Device& device() const = 0;
  virtual const std::vector<ValueInfo>& inputs() const = 0;
  virtual const std::vector<ValueInfo>& outputs() const = 0;
  // Enqueues one run. Inputs are host data (when the device is_host(), or for values that are not dense tensors) or
  // tensors on device(). `outputs` has one entry per output; they are complete when the event is done. An entry that
  // holds a host tensor is a place for the output: the output may be written there when element type and extents match,
  // or be allocated anew. `options` is read before return. For executables from a backend of TargetRegistry, counts,
  // devices and the declarations of inputs() are checked beforehand: the plugin's code sees only valid inputs.
  virtual Result<EventPtr> enqueue(Stream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                                   const RunOptions& options) const = 0;
  // Memory for intermediate values of one run, and the lower bound of any plan; 0 when the device does not report it.
  virtual size_t arena_bytes() const { return 0; }
  virtual size_t arena_lower_bound_bytes() const { return 0; }
  // Bytes from which TargetBackend::load makes the same executable; Code::unsupported when the target cannot.
  virtual Result<std::string> serialize() const;
  // The generated code, with the operator beside each line; Code::unsupported when no code is generated.
  virtual Result<std::string> listing() const;
  // The generated kernels, not necessarily in order of execution: profiles identify them by operator and label.
  virtual std::vector<KernelInfo> kernels() const { return {}; }
};

}  // namespace tenon
