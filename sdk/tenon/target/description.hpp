// TargetDescription: everything about a device that is a number or a list, as stated in a target file. The keys, their
// units and limits are in docs/target-yaml.md, which is generated from the same table as the reader
// (keys_internal.hpp).
//
// A plain value: copy it, compare it, change it. A number of 0 means "not stated" unless its comment says otherwise.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/target/quantity.hpp>
#include <tenon/target/setting.hpp>

namespace tenon {

struct MemorySpace {
  std::string name;
  uint64_t size_bytes = 0;
  uint64_t alignment_bytes = 1;  // a power of two
  uint64_t element_bytes = 0;    // smallest addressable unit; divides size_bytes
  std::optional<Bandwidth> bandwidth;
  uint64_t latency_cycles = 0;
  uint64_t banks = 1;
  // How loops of generated code traverse data in this memory, in cache lines and stretches (docs/target-yaml.md).
  uint64_t prefetch_reads = 0, prefetch_writes = 0;  // 0: left to the hardware prefetchers
  uint64_t prefetch_together = 0;
  uint64_t prefetch_level = 1;  // the cache level into which rows are prefetched
  uint64_t streams = 1;
  uint64_t most_streams = 0;
  uint64_t row_lines = 0;
  uint64_t load_bytes = 0;  // 0: the width of registers

  bool operator==(const MemorySpace&) const = default;
};

// A compute unit. At least one of macs_per_cycle and lanes is stated.
struct Engine {
  std::string name;
  uint64_t macs_per_cycle = 0;  // multiply-accumulates per cycle
  uint64_t lanes = 0;           // elements per step
  uint64_t cycles_per_step = 1;
  std::vector<std::string> types;  // element types: operands in order, then accumulator or result
  uint64_t clock_hz = 0;           // 0: the target's clock

  bool operator==(const Engine&) const = default;
};

struct Dma {
  uint64_t channels = 0;  // 0: no DMA
  uint64_t alignment_bytes = 1;

  bool operator==(const Dma&) const = default;
};

// Registers of one class, such as "vector", "mask" or "general".
struct RegisterClass {
  std::string name;
  uint64_t count = 0;
  uint64_t width_bits = 0;

  bool operator==(const RegisterClass&) const = default;
};

using Choice = std::variant<int64_t, std::string>;

// The allowed values of an attribute of an operator. A default-constructed constraint allows anything.
struct Constraint {
  std::string name;  // the attribute, such as "kernel"
  std::optional<int64_t> min, max, multiple_of;
  std::vector<Choice> one_of;  // empty: not restricted to a list

  bool operator==(const Constraint&) const = default;
};

struct OperatorLimits {
  std::string name;                  // the operator, such as "Conv"
  bool supported = true;             // false: stated as `none`
  std::vector<std::string> types;    // element types; empty: any
  std::vector<std::string> layouts;  // layouts; empty: any
  std::vector<Constraint> attributes;

  bool operator==(const OperatorLimits&) const = default;
};

struct TENON_API TargetDescription {
  uint64_t version = 1;  // of the file format: the key `tenon_target`
  std::string name;
  std::string plugin;
  std::string driver;  // a word or library that the plugin understands; empty: the plugin's own choice
  uint64_t rank = 0;   // `auto` selects the highest available; 0: never
  uint64_t clock_hz = 0;
  std::vector<std::string> features;  // instruction sets, extensions
  std::vector<MemorySpace> memories;
  std::vector<Engine> engines;
  Dma dma;
  std::vector<RegisterClass> registers;
  std::vector<OperatorLimits> operators;
  std::map<std::string, std::string> layouts;        // role, such as "activation" -> layout
  std::map<std::string, std::string> value_layouts;  // name of a value of the model -> layout
  Setting options = Setting::map();                  // only for the plugin

  // The file that it was read from, and its complete contents with places, for messages; empty when built by a program.
  // Not compared by ==.
  std::string source;
  std::shared_ptr<const Setting> stated;

  // Null when the file has no such entry. Borrowed from this description.
  const MemorySpace* memory(std::string_view name) const;
  const Engine* engine(std::string_view name) const;
  const RegisterClass* register_class(std::string_view name) const;
  const OperatorLimits* limits(std::string_view operator_name) const;
  bool has_feature(std::string_view name) const;
  // engine.clock_hz, or the target's where the engine states none.
  uint64_t clock_of(const Engine& engine) const { return engine.clock_hz ? engine.clock_hz : clock_hz; }

  // The place of the key at the end of this path through the file's maps, {"operators", "Conv", "kernel"}, or of its
  // longest prefix that exists: "board.yaml:12:3: ", the opening of an error. Only the file if nothing of it exists.
  std::string place_of(std::initializer_list<std::string_view> keys) const;
  // Checks that the entries under `key` (memories, engines, registers, layouts; features, a list) are known to a
  // plugin. Any other is an error with the nearest known name, because it would have no effect.
  Result<void> allow_names(std::string_view key, const std::vector<std::string>& known) const;

  // Whether the limits allow an operator with this value of an attribute. What the file does not mention is allowed. A
  // refusal is Code::unsupported with a sentence that states the numbers: "kernel 33 exceeds 32 on target nvdla-small".
  Result<void> check(std::string_view operator_name) const;
  Result<void> check(std::string_view operator_name, std::string_view attribute, int64_t value) const;
  Result<void> check(std::string_view operator_name, std::string_view attribute, std::span<const int64_t> values) const;
  Result<void> check(std::string_view operator_name, std::string_view attribute, std::string_view value) const;
  Result<void> check_type(std::string_view operator_name, std::string_view type) const;
  Result<void> check_layout(std::string_view operator_name, std::string_view layout) const;

  bool operator==(const TargetDescription& other) const;
};

// Text of a target file that parse_target reads as an equal description; keys at their default are omitted.
TENON_API std::string to_yaml(const TargetDescription& description);

}  // namespace tenon
