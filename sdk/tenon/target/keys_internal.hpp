// The table of the keys of a target file: one visit_keys function per section. The reader, the writer, the JSON schema
// and the reference in docs/target-yaml.md are all visitors of it, so a key is added only here. Internal to the room.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include <tenon/target/description.hpp>

namespace tenon::target_keys {

// The characters that a word may consist of: ranges, as in a regular expression's brackets.
struct Form {
  const char* noun;
  const char* first;  // empty: any text
  const char* rest;
  size_t max_bytes;
  bool is_element_type = false;  // must also be an existing element type
  bool is_layout = false;        // must also be accepted by Layout::parse() for some tensor
};
inline constexpr Form kName{"a name", "a-z0-9", "a-z0-9._-", 64};
inline constexpr Form kType{"an element type", "a-z", "a-z0-9_", 32, true};
inline constexpr Form kAttribute{"an attribute", "a-z", "a-z0-9_", 64};
inline constexpr Form kRole{"a role", "a-z", "a-z0-9_", 64};
inline constexpr Form kOperator{"an operator", "A-Za-z_", "A-Za-z0-9_.", 128};
inline constexpr Form kLayout{"a layout", "!-~", " -~", 256, false, true};
inline constexpr Form kValue{"a value's name", "!-~", " -~", 256};
inline constexpr Form kAnyText{"text", "", "", 4096};

// One key: the documentation and the schema, and what the reader checks.
struct Key {
  std::string_view name;
  std::string_view summary;
  std::string_view example;
  Form form = kName;  // of a word, of each word of a list, of the names of a map
  Unit unit = Unit::none;
  uint64_t min = 1;
  uint64_t max = 1'000'000'000;
  bool required = false;
  bool power_of_two = false;
  Form names = kRole;  // for a map of words
};

inline constexpr uint64_t kMaxBytes = uint64_t{1} << 50;
inline constexpr uint64_t kMaxHertz = 1'000'000'000'000;

template <class V>
void visit_keys(V& v, MemorySpace& m) {
  v.key({.name = "size",
         .summary = "Capacity.",
         .example = "512 MiB",
         .unit = Unit::bytes,
         .max = kMaxBytes,
         .required = true},
        m.size_bytes);
  v.key({.name = "alignment",
         .summary = "Buffers in this space start at a multiple of this power of two.",
         .example = "64 B",
         .unit = Unit::bytes,
         .max = uint64_t{1} << 30,
         .power_of_two = true},
        m.alignment_bytes);
  v.key({.name = "element",
         .summary = "Smallest addressable unit; the size is a multiple of it.",
         .example = "16 B",
         .unit = Unit::bytes,
         .max = kMaxBytes},
        m.element_bytes);
  v.key({.name = "bandwidth",
         .summary = "Bytes moved per cycle of the target's clock, or per second.",
         .example = "8 B/cycle"},
        m.bandwidth);
  v.key({.name = "latency",
         .summary = "Cycles from a request to its first byte.",
         .example = "64 cycles",
         .unit = Unit::cycles,
         .min = 0},
        m.latency_cycles);
  v.key({.name = "banks", .summary = "Banks that can be accessed in the same cycle.", .example = "16", .max = 65536},
        m.banks);
  v.key({.name = "prefetch_reads",
         .summary = "Prefetch distance, in cache lines, at which generated code prefetches its reads from this memory; "
                    "0: the hardware prefetchers suffice. For `host`, 0 also means that rows are prefetched into `l2` "
                    "only, while other rows are traversed.",
         .example = "64",
         .min = 0,
         .max = 4096},
        m.prefetch_reads);
  v.key({.name = "prefetch_writes",
         .summary = "The same for lines that will be written.",
         .example = "48",
         .min = 0,
         .max = 4096},
        m.prefetch_writes);
  v.key({.name = "prefetch_together",
         .summary = "Most lines that a loop over several stretches prefetches in total, since they are held in the "
                    "nearest cache beside the loop's working set; 0: any number.",
         .example = "128",
         .min = 0,
         .max = 65536},
        m.prefetch_together);
  v.key(
      {.name = "prefetch_level",
       .summary = "Cache level into which lines are prefetched along rows that several sweeps traverse; 2: where lines "
                  "in flight to the nearest cache delay lines that it gets from other caches, and non-temporal stores.",
       .example = "2",
       .max = 2},
      m.prefetch_level);
  v.key({.name = "streams",
         .summary = "Number of stretches of one array that a loop over this memory best traverses side by side.",
         .example = "4",
         .max = 64},
        m.streams);
  v.key({.name = "most_streams",
         .summary = "Number of stretches of all arrays together above which a loop gets slower; 0: any number.",
         .example = "10",
         .min = 0,
         .max = 1024},
        m.most_streams);
  v.key({.name = "row_lines",
         .summary = "Rows of more cache lines are traversed one after another, shorter ones several at once; 0: rows "
                    "of any length several at once.",
         .example = "16",
         .min = 0,
         .max = 65536},
        m.row_lines);
  v.key({.name = "load_width",
         .summary = "Widest load from this memory; wider vectors are composed of such loads. Not stated: as wide as "
                    "the registers.",
         .example = "32 B",
         .unit = Unit::bytes,
         .max = 4096},
        m.load_bytes);
}

template <class V>
void visit_keys(V& v, Engine& e) {
  v.key({.name = "macs_per_cycle",
         .summary = "Multiply-accumulates per cycle. This or `lanes` must be stated.",
         .example = "256"},
        e.macs_per_cycle);
  v.key({.name = "lanes", .summary = "Elements processed per step.", .example = "16"}, e.lanes);
  v.key({.name = "cycles_per_step", .summary = "Cycles between the starts of two steps.", .example = "1"},
        e.cycles_per_step);
  v.key({.name = "types",
         .summary = "Element types: the operands in order, then the accumulator or result.",
         .example = "[i8, i8, i32]",
         .form = kType},
        e.types);
  v.key({.name = "clock",
         .summary = "Where it differs from the target's clock.",
         .example = "1.2 GHz",
         .unit = Unit::hertz,
         .max = kMaxHertz},
        e.clock_hz);
}

template <class V>
void visit_keys(V& v, Dma& d) {
  v.key({.name = "channels",
         .summary = "Transfers that can be in flight at once.",
         .example = "2",
         .min = 0,
         .max = 65536,
         .required = true},
        d.channels);
  v.key({.name = "alignment",
         .summary = "Addresses and sizes of a transfer are multiples of this power of two.",
         .example = "16 B",
         .unit = Unit::bytes,
         .max = uint64_t{1} << 30,
         .power_of_two = true},
        d.alignment_bytes);
}

template <class V>
void visit_keys(V& v, RegisterClass& r) {
  v.key({.name = "count",
         .summary = "Registers of the class, reserved ones included.",
         .example = "32",
         .max = 65536,
         .required = true},
        r.count);
  v.key({.name = "width",
         .summary = "Width of one register.",
         .example = "512 bits",
         .unit = Unit::bits,
         .max = 1'000'000,
         .required = true},
        r.width_bits);
}

template <class V>
void visit_keys(V& v, Constraint& c) {
  v.key({.name = "min", .summary = "Smallest value allowed.", .example = "1"}, c.min);
  v.key({.name = "max", .summary = "Largest value allowed.", .example = "32"}, c.max);
  v.key({.name = "multiple_of", .summary = "The value is a multiple of this; above 0.", .example = "16"},
        c.multiple_of);
  v.key({.name = "one_of",
         .summary = "The only values allowed: whole numbers or words.",
         .example = "[1, 2, 4]",
         .form = kAnyText},
        c.one_of);
}

template <class V>
void visit_keys(V& v, OperatorLimits& o) {
  v.key({.name = "types", .summary = "Element types that the operator may have.", .example = "[i8]", .form = kType},
        o.types);
  v.key({.name = "layouts",
         .summary = "Layouts that the operator may have.",
         .example = "[\"NCHW{1n16c}\"]",
         .form = kLayout},
        o.layouts);
  v.others({.name = "<attribute>",
            .summary = "Any other key is an attribute of the operator (kernel, stride, pad, groups ...): `any`, one "
                       "value, a list of values, or a map with the keys of a constraint.",
            .example = "{max: 32}",
            .form = kAttribute},
           o.attributes);
}

template <class V>
void visit_keys(V& v, TargetDescription& t) {
  v.key({.name = "tenon_target", .summary = "Version of this file format.", .example = "1", .max = 1, .required = true},
        t.version);
  v.key({.name = "name",
         .summary = "Name of the target; equals the file's name without `.yaml` in the folders searched.",
         .example = "vta-default",
         .required = true},
        t.name);
  v.key({.name = "plugin", .summary = "The plugin that drives it.", .example = "vta", .required = true}, t.plugin);
  v.key({.name = "driver",
         .summary = "A driver that the plugin knows by this word, or a library to load.",
         .example = "embedded",
         .form = kAnyText},
        t.driver);
  v.key({.name = "rank",
         .summary = "`auto` picks the available target of the highest rank; never one of rank 0.",
         .example = "40",
         .min = 0,
         .max = 1000},
        t.rank);
  v.key({.name = "clock",
         .summary = "Clock of everything that states none of its own.",
         .example = "100 MHz",
         .unit = Unit::hertz,
         .max = kMaxHertz},
        t.clock_hz);
  v.key({.name = "features",
         .summary = "Instruction sets and extensions that the plugin may use.",
         .example = "[avx2, fma]"},
        t.features);
  v.sections({.name = "memories", .summary = "Memory spaces by name.", .example = "{dram: {size: 512 MiB}}"},
             t.memories);
  v.sections({.name = "engines", .summary = "Compute units by name.", .example = "{gemm: {macs_per_cycle: 256}}"},
             t.engines);
  v.section({.name = "dma",
             .summary = "DMA engines, which copy concurrently with the computation.",
             .example = "{channels: 2}"},
            t.dma);
  v.sections({.name = "registers",
              .summary = "Register files by class, for targets with generated machine code.",
              .example = "{vector: {count: 16, width: 256 bits}}"},
             t.registers);
  v.sections({.name = "operators",
              .summary = "Limits by operator: `any`, `none` (never runs here) or a map. An operator that is not listed "
                         "has no limits but the plugin's own.",
              .example = "{Conv: {kernel: {max: 15}}}",
              .form = kOperator},
             t.operators);
  v.key({.name = "layouts",
         .summary = "Preferred layout by role: activation, weight, bias ...",
         .example = "{activation: \"NCHW{1n16c}\"}",
         .form = kLayout},
        t.layouts);
  v.key({.name = "value_layouts",
         .summary = "Layouts of values by their name in the model; a name that the model does not have is an error.",
         .example = "{conv1_out: NHWC}",
         .form = kLayout,
         .names = kValue},
        t.value_layouts);
  v.key({.name = "options",
         .summary = "Options defined and checked by the plugin.",
         .example = "{inp_width: 8}",
         .form = kAnyText},
        t.options);
}

// The name of a section in the schema and the documentation.
constexpr std::string_view section_name(const MemorySpace&) { return "memory"; }
constexpr std::string_view section_name(const Engine&) { return "engine"; }
constexpr std::string_view section_name(const Dma&) { return "dma"; }
constexpr std::string_view section_name(const RegisterClass&) { return "register"; }
constexpr std::string_view section_name(const Constraint&) { return "constraint"; }
constexpr std::string_view section_name(const OperatorLimits&) { return "operator"; }
constexpr std::string_view section_name(const TargetDescription&) { return "target"; }

// Keys of an operator that people write for `types` and `layouts`. As attributes, they would have no effect.
struct Misspelt {
  std::string_view wrong, right;
};
inline constexpr Misspelt kMisspelt[] = {
    {"type", "types"}, {"dtype", "types"}, {"dtypes", "types"}, {"layout", "layouts"}};

// The syntax of a key's value.
enum class Shape : uint8_t {
  number,   // a quantity in Key::unit
  integer,  // may be negative
  bandwidth,
  word,
  words,     // a list
  choices,   // a list of whole numbers and words
  word_map,  // name -> word
  free_map,  // anything
  section,
  sections,  // name -> section
  others,    // stands for every key that the section does not list
};

struct SectionInfo;
struct KeyInfo {
  Key key;
  Shape shape;
  const SectionInfo* section = nullptr;
};
struct SectionInfo {
  std::string_view name;
  std::vector<KeyInfo> keys;
  bool open = false;  // the last key stands for all others
};

template <class T>
const SectionInfo& section_info();

// The visitor behind section_info.
class Collector {
 public:
  explicit Collector(SectionInfo& info) : info_(info) {}
  void key(const Key& k, uint64_t&) { add(k, Shape::number); }
  void key(const Key& k, std::optional<int64_t>&) { add(k, Shape::integer); }
  void key(const Key& k, std::optional<Bandwidth>&) { add(k, Shape::bandwidth); }
  void key(const Key& k, std::string&) { add(k, Shape::word); }
  void key(const Key& k, std::vector<std::string>&) { add(k, Shape::words); }
  void key(const Key& k, std::vector<Choice>&) { add(k, Shape::choices); }
  void key(const Key& k, std::map<std::string, std::string>&) { add(k, Shape::word_map); }
  void key(const Key& k, Setting&) { add(k, Shape::free_map); }
  template <class T>
  void section(const Key& k, T&) {
    add(k, Shape::section, &section_info<T>());
  }
  template <class T>
  void sections(const Key& k, std::vector<T>&) {
    add(k, Shape::sections, &section_info<T>());
  }
  void others(const Key& k, std::vector<Constraint>&) {
    add(k, Shape::others, &section_info<Constraint>());
    info_.open = true;
  }

 private:
  void add(const Key& k, Shape shape, const SectionInfo* section = nullptr) {
    info_.keys.push_back({k, shape, section});
  }
  SectionInfo& info_;
};

// The keys of a section as data. Built once; any thread.
template <class T>
const SectionInfo& section_info() {
  static const SectionInfo info = [] {
    T section;
    SectionInfo result{section_name(section), {}, false};
    Collector collector(result);
    visit_keys(collector, section);
    return result;
  }();
  return info;
}

}  // namespace tenon::target_keys
