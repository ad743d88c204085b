/* The plugin seam in plain C: the interface of a plugin and the core that does not depend on a C++ compiler, its flags
 * or its standard library. C99; needs <stddef.h>, <stdint.h> and support/sanitizer.h, which needs nothing.
 *
 * A plugin exports one symbol, the constant `tenon_plugin_v1`, which TENON_EXPORT_PLUGIN defines together with an ELF
 * note with the same information, so that it can be read from the file without running any code. C++ plugins use
 * TENON_PLUGIN of plugin.hpp instead, which adds guards against exceptions and the C++ side.
 *
 * Rules for all calls
 *   - Structures that cross the seam begin with struct_size, set by the side that made them. Read no field beyond it
 *     (TENON_HAS). Arrays of structures have the stride struct_size of their first element (TENON_AT). Fields are added
 *     only at the end; any other change increments TENON_ABI_MAJOR.
 *   - Text is a pointer and a length, not terminated, borrowed for the duration of the call unless stated otherwise.
 *   - The side that allocates releases: handles (device, buffer, ...) belong to the plugin and are returned to it once.
 *   - Functions that can fail return a tenon_code and report the reason with call->fail(call, code, message), which
 *     returns `code`.
 *   - Nothing may throw or longjmp out of a slot.
 *   - Slots may be called from any thread; calls that share a stream are serialised. */
#ifndef TENON_PLUGIN_ABI_H
#define TENON_PLUGIN_ABI_H
#include <stddef.h>
#include <stdint.h>

#include <tenon/support/sanitizer.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_ABI_MAJOR 1u /* must be equal on both sides */
#define TENON_ABI_MINOR 0u /* incremented when fields or slots are added */
#define TENON_PLUGIN_SYMBOL "tenon_plugin_v1"

typedef enum tenon_code {
  TENON_OK = 0,
  TENON_INVALID_ARGUMENT,
  TENON_NOT_FOUND,
  TENON_ALREADY_EXISTS,
  TENON_UNSUPPORTED,
  TENON_RESOURCE_EXHAUSTED,
  TENON_IO,
  TENON_PARSE,
  TENON_PLUGIN_FAULT,
  TENON_INTERNAL,
  TENON_CANCELLED
} tenon_code;

typedef struct tenon_text {
  const char* data;
  size_t size;
} tenon_text;

/* Whether `field` is inside the part of *object that its maker knew. */
#define TENON_HAS(object, field)                                                                                   \
  ((object)->struct_size >= (size_t)((const char*)&(object)->field - (const char*)(object)) + sizeof (object)->field)
/* Element `i` of an array, whose structures may be longer than ours. */
#define TENON_AT(type, array, i) ((type*)((const char*)(array) + (size_t)(i) * (array)->struct_size))

/* ---- Information in a file, readable without running it --------------------------------------------------------- */

#define TENON_MAGIC "TENONPLG" /* without its terminator */

enum {
  TENON_FLAG_PLAIN = 1,   /* the slots of this file run graphs */
  TENON_FLAG_MATCHED = 2, /* has a C++ side, for cores of the same layout hash */
};

/* No pointers and nothing wider than 32 bits, so that the note needs neither relocation nor padding. Texts end with a
 * NUL. */
typedef struct tenon_plugin_info {
  char magic[8];
  uint32_t struct_size;
  uint32_t abi_major, abi_minor;
  uint32_t min_core_minor; /* the lowest TENON_ABI_MINOR of a core with which this plugin works */
  uint32_t layout_hash[2]; /* low, high; of the C++ side, see layout.hpp; 0 without one */
  uint32_t sanitizer;
  uint32_t flags;
  char standard_library[24]; /* "libstdc++", "libc++"; empty in C */
  char name[48];             /* the key `plugin` of target files */
  char vendor[48];
  char version[24];
  char targets[512]; /* names, separated by blanks; at least one */
  char build_id[48]; /* any text that distinguishes builds */
  uint32_t reserved[8];
} tenon_plugin_info;

typedef struct tenon_plugin_note {
  uint32_t name_size, content_size, type;
  char name[8];
  tenon_plugin_info info;
} tenon_plugin_note;

#define TENON_NOTE_NAME "Tenon"
#define TENON_NOTE_TYPE 1u
#define TENON_NOTE_SECTION ".note.tenon"

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

typedef struct tenon_call tenon_call;
struct tenon_call {
  size_t struct_size;
  /* Copies the message. Returns `code`. A second call replaces the first. */
  int32_t (*fail)(tenon_call* call, int32_t code, tenon_text message);
};

enum { TENON_LOG_ERROR = 0, TENON_LOG_WARNING, TENON_LOG_INFO, TENON_LOG_DEBUG };

/* Services of the core. Valid as long as the process lives; thread-safe. */
typedef struct tenon_host {
  size_t struct_size;
  uint32_t abi_major, abi_minor; /* of the core */
  /* At least `size` bytes at a multiple of `align` (a power of two); NULL when there is not enough memory. */
  void* (*allocate)(size_t size, size_t align);
  void (*release)(void* memory); /* a result of allocate, or NULL */
  void (*log)(int32_t level, tenon_text message);
} tenon_host;

/* ---- Targets, tensors, graphs ----------------------------------------------------------------------------------- */

typedef struct tenon_target {
  size_t struct_size;
  tenon_text name, driver;
  tenon_text yaml;   /* the whole description, normalised */
  tenon_text source; /* the file, empty when there is none */
} tenon_target;

/* `dims` has `rank` entries, -1 where a dim is not known. rank -1: the rank is not known. */
typedef struct tenon_type {
  size_t struct_size;
  tenon_text element; /* "f32"; empty: not a tensor, or not known */
  int64_t rank;
  const int64_t* dims;
} tenon_type;

typedef struct tenon_device tenon_device;
typedef struct tenon_buffer tenon_buffer;
typedef struct tenon_stream tenon_stream;
typedef struct tenon_event tenon_event;
typedef struct tenon_executable tenon_executable;

/* Dense and row-major. In host memory `data` is set; on the device `buffer` and `offset` are. */
typedef struct tenon_tensor {
  size_t struct_size;
  tenon_text element;
  int64_t rank;
  const int64_t* dims;
  void* data; /* of inputs and constants: read-only */
  size_t bytes;
  tenon_buffer* buffer;
  size_t offset;
} tenon_tensor;

/* Scalars are arrays of one. Other kinds (texts, tensors, types) have `text` only. */
typedef struct tenon_attribute {
  size_t struct_size;
  tenon_text name;
  tenon_text text; /* as the text form prints it */
  const int64_t* integers;
  size_t integer_count;
  const double* numbers;
  size_t number_count;
} tenon_attribute;

#define TENON_NO_VALUE ((size_t)-1)

/* One operator. Values are indices into tenon_graph.values. Without a graph (accepts), operand i is value i, result i
 * is value operand_count + i, and `types` has their types in that order. TENON_NO_VALUE: an absent operand. */
typedef struct tenon_op {
  size_t struct_size;
  tenon_text name, label;
  const size_t* operands;
  size_t operand_count;
  const size_t* results;
  size_t result_count;
  const tenon_attribute* attributes;
  size_t attribute_count;
  size_t region_count;     /* regions themselves are in tenon_graph.text only */
  const tenon_type* types; /* NULL inside a graph */
} tenon_op;

typedef struct tenon_constant {
  size_t struct_size;
  size_t value;
  tenon_tensor tensor; /* lives as long as the executable */
} tenon_constant;

/* Operators are in an order in which each value is defined before it is used; constants are listed separately. */
typedef struct tenon_graph {
  size_t struct_size;
  tenon_text name;
  tenon_text text; /* the text form; tensors longer than 64 elements are elided */
  const tenon_type* values;
  size_t value_count;
  const tenon_op* ops;
  size_t op_count;
  const tenon_constant* constants;
  size_t constant_count;
  const size_t* inputs;
  size_t input_count;
  const size_t* outputs;
  size_t output_count;
} tenon_graph;

/* The outputs of a run. The plugin calls `make` for output `index` when its shape is known. It fills *tensor, whose
 * bytes the plugin then writes: in host memory, or in a buffer of the run's device. */
typedef struct tenon_outputs {
  size_t struct_size;
  void* context;
  int32_t (*make)(void* context, tenon_call* call, size_t index, const tenon_type* type, tenon_tensor* tensor);
} tenon_outputs;

typedef struct tenon_sink {
  size_t struct_size;
  void* context;
  int32_t (*append)(void* context, tenon_call* call, const void* data, size_t size);
} tenon_sink;

/* One line of the layout of the C++ side, see layout.hpp. */
typedef struct tenon_layout_line {
  size_t struct_size;
  const char* what; /* terminated; lives as long as the library */
  uint64_t value;
} tenon_layout_line;

/* ---- Slots ------------------------------------------------------------------------------------------------------ */

/* SLOT(group, return type, name, arguments). Groups:
 *   plain    required with TENON_FLAG_PLAIN
 *   memory   all or none. None: the device works on host memory, and a run is complete when `run` returns
 *   matched  required with TENON_FLAG_MATCHED
 *   extra    may be NULL
 * New slots are added at the end. */
#define TENON_PLUGIN_SLOTS(SLOT)                                                                                       \
  /* TENON_OK: a device for this target is present. */                                                                 \
  SLOT(extra, int32_t, available, (tenon_call*, const tenon_target*))                                                  \
  SLOT(plain, int32_t, open_device, (tenon_call*, const tenon_target*, tenon_device**))                                \
  SLOT(plain, void, close_device, (tenon_device*))                                                                     \
  /* TENON_OK: the device runs this operator, whatever its neighbours. Else fail() with the reason. */                 \
  SLOT(plain, int32_t, accepts, (tenon_call*, tenon_device*, const tenon_op*))                                         \
  SLOT(plain, int32_t, compile, (tenon_call*, tenon_device*, const tenon_graph*, tenon_executable**))                  \
  SLOT(plain, void, destroy_executable, (tenon_executable*))                                                           \
  /* Several threads may run one executable at once. Stream and event are NULL without the group `memory`. A plugin    \
   * that needs threads for a run has its own: those of the core are not passed to it. */                              \
  SLOT(plain, int32_t, run, (tenon_call*, tenon_executable*, tenon_stream*, const tenon_tensor* inputs, size_t,        \
                             const tenon_outputs*, tenon_event**))                                                     \
  /* Bytes from which load_executable makes the same executable. */                                                    \
  SLOT(extra, int32_t, store_executable, (tenon_call*, tenon_executable*, const tenon_sink*))                          \
  /* The bytes stay valid as long as the executable. */                                                                \
  SLOT(extra, int32_t, load_executable, (tenon_call*, tenon_device*, const void*, size_t, tenon_executable**))         \
  SLOT(memory, int32_t, allocate_buffer, (tenon_call*, tenon_device*, size_t bytes, tenon_buffer**))                   \
  SLOT(memory, void, free_buffer, (tenon_buffer*))                                                                     \
  SLOT(memory, int32_t, create_stream, (tenon_call*, tenon_device*, int32_t background, tenon_stream**))               \
  SLOT(memory, void, destroy_stream, (tenon_stream*))                                                                  \
  /* The ranges have been checked. */                                                                                  \
  SLOT(memory, int32_t, copy_to_device, (tenon_call*, tenon_stream*, tenon_buffer* to, size_t to_offset,               \
                                         const void* from, size_t bytes, tenon_event**))                               \
  SLOT(memory, int32_t, copy_to_host, (tenon_call*, tenon_stream*, void* to, const tenon_buffer* from,                 \
                                       size_t from_offset, size_t bytes, tenon_event**))                               \
  SLOT(memory, int32_t, copy, (tenon_call*, tenon_stream*, tenon_buffer* to, size_t to_offset,                         \
                               const tenon_buffer* from, size_t from_offset, size_t bytes, tenon_event**))             \
  SLOT(memory, int32_t, call_host, (tenon_call*, tenon_stream*, void (*work)(void*), void* context, tenon_event**))    \
  SLOT(memory, int32_t, synchronize, (tenon_call*, tenon_stream*))                                                     \
  SLOT(memory, int32_t, wait_event, (tenon_call*, tenon_event*))                                                       \
  SLOT(memory, int32_t, event_done, (tenon_event*)) /* 1 or 0 */                                                       \
  SLOT(memory, void, destroy_event, (tenon_event*))                                                                    \
  /* The C++ side: a tenon::Plugin, and the lines from which its layout hash is computed. */                           \
  SLOT(matched, int32_t, create_plugin, (tenon_call*, void** plugin))                                                  \
  SLOT(matched, void, destroy_plugin, (void* plugin))                                                                  \
  SLOT(matched, const tenon_layout_line*, layout, (size_t * count))

typedef struct tenon_slots {
  size_t struct_size;
#define TENON_SLOT_FIELD(group, result, name, arguments) result(*name) arguments;
  TENON_PLUGIN_SLOTS(TENON_SLOT_FIELD)
#undef TENON_SLOT_FIELD
} tenon_slots;

/* The type of the symbol tenon_plugin_v1. */
typedef struct tenon_plugin {
  tenon_plugin_info info; /* as in the note */
  /* Sets slots that lie inside slots->struct_size (TENON_SET_SLOT); the core has zeroed them. Called first and once per
   * load; `host` may be kept. */
  int32_t (*query)(tenon_call* call, const tenon_host* host, tenon_slots* slots);
  void* reserved[4];
} tenon_plugin;

#define TENON_SET_SLOT(slots, name, function) \
  do {                                        \
    if (TENON_HAS(slots, name)) (slots)->name = function; \
  } while (0)

/* ---- One list of all structures that cross ------------------------------------------------------------------------
 * TYPE(structure) and FIELD(structure, field), in order. The committed sizes and offsets (tests/abi/plain.txt) are
 * checked against it. */
#define TENON_ABI_STRUCTURES(TYPE, FIELD)                                                                              \
  TYPE(tenon_text) FIELD(tenon_text, data) FIELD(tenon_text, size)                                                     \
  TYPE(tenon_plugin_info) FIELD(tenon_plugin_info, magic) FIELD(tenon_plugin_info, struct_size)                        \
  FIELD(tenon_plugin_info, abi_major) FIELD(tenon_plugin_info, abi_minor) FIELD(tenon_plugin_info, min_core_minor)     \
  FIELD(tenon_plugin_info, layout_hash) FIELD(tenon_plugin_info, sanitizer) FIELD(tenon_plugin_info, flags)            \
  FIELD(tenon_plugin_info, standard_library) FIELD(tenon_plugin_info, name) FIELD(tenon_plugin_info, vendor)           \
  FIELD(tenon_plugin_info, version) FIELD(tenon_plugin_info, targets) FIELD(tenon_plugin_info, build_id)               \
  FIELD(tenon_plugin_info, reserved)                                                                                   \
  TYPE(tenon_plugin_note) FIELD(tenon_plugin_note, name_size) FIELD(tenon_plugin_note, content_size)                   \
  FIELD(tenon_plugin_note, type) FIELD(tenon_plugin_note, name) FIELD(tenon_plugin_note, info)                         \
  TYPE(tenon_call) FIELD(tenon_call, struct_size) FIELD(tenon_call, fail)                                              \
  TYPE(tenon_host) FIELD(tenon_host, struct_size) FIELD(tenon_host, abi_major) FIELD(tenon_host, abi_minor)            \
  FIELD(tenon_host, allocate) FIELD(tenon_host, release) FIELD(tenon_host, log)                                        \
  TYPE(tenon_target) FIELD(tenon_target, struct_size) FIELD(tenon_target, name) FIELD(tenon_target, driver)            \
  FIELD(tenon_target, yaml) FIELD(tenon_target, source)                                                                \
  TYPE(tenon_type) FIELD(tenon_type, struct_size) FIELD(tenon_type, element) FIELD(tenon_type, rank)                   \
  FIELD(tenon_type, dims)                                                                                              \
  TYPE(tenon_tensor) FIELD(tenon_tensor, struct_size) FIELD(tenon_tensor, element) FIELD(tenon_tensor, rank)           \
  FIELD(tenon_tensor, dims) FIELD(tenon_tensor, data) FIELD(tenon_tensor, bytes) FIELD(tenon_tensor, buffer)           \
  FIELD(tenon_tensor, offset)                                                                                          \
  TYPE(tenon_attribute) FIELD(tenon_attribute, struct_size) FIELD(tenon_attribute, name) FIELD(tenon_attribute, text)  \
  FIELD(tenon_attribute, integers) FIELD(tenon_attribute, integer_count) FIELD(tenon_attribute, numbers)               \
  FIELD(tenon_attribute, number_count)                                                                                 \
  TYPE(tenon_op) FIELD(tenon_op, struct_size) FIELD(tenon_op, name) FIELD(tenon_op, label) FIELD(tenon_op, operands)   \
  FIELD(tenon_op, operand_count) FIELD(tenon_op, results) FIELD(tenon_op, result_count) FIELD(tenon_op, attributes)    \
  FIELD(tenon_op, attribute_count) FIELD(tenon_op, region_count) FIELD(tenon_op, types)                                \
  TYPE(tenon_constant) FIELD(tenon_constant, struct_size) FIELD(tenon_constant, value) FIELD(tenon_constant, tensor)   \
  TYPE(tenon_graph) FIELD(tenon_graph, struct_size) FIELD(tenon_graph, name) FIELD(tenon_graph, text)                  \
  FIELD(tenon_graph, values) FIELD(tenon_graph, value_count) FIELD(tenon_graph, ops) FIELD(tenon_graph, op_count)      \
  FIELD(tenon_graph, constants) FIELD(tenon_graph, constant_count) FIELD(tenon_graph, inputs)                          \
  FIELD(tenon_graph, input_count) FIELD(tenon_graph, outputs) FIELD(tenon_graph, output_count)                         \
  TYPE(tenon_outputs) FIELD(tenon_outputs, struct_size) FIELD(tenon_outputs, context) FIELD(tenon_outputs, make)       \
  TYPE(tenon_sink) FIELD(tenon_sink, struct_size) FIELD(tenon_sink, context) FIELD(tenon_sink, append)                 \
  TYPE(tenon_layout_line) FIELD(tenon_layout_line, struct_size) FIELD(tenon_layout_line, what)                         \
  FIELD(tenon_layout_line, value)                                                                                      \
  TYPE(tenon_plugin) FIELD(tenon_plugin, info) FIELD(tenon_plugin, query) FIELD(tenon_plugin, reserved)                \
  TYPE(tenon_slots) FIELD(tenon_slots, struct_size)

/* ---- Exporting -------------------------------------------------------------------------------------------------- */

/* The information about this build; the further arguments are initialisers of tenon_plugin_info in the order of its
 * fields, from `flags` on. */
#define TENON_PLUGIN_INFO(hash, ...)                                                                               \
  {                                                                                                                \
    {'T', 'E', 'N', 'O', 'N', 'P', 'L', 'G'}, (uint32_t)sizeof(tenon_plugin_info), TENON_ABI_MAJOR, TENON_ABI_MINOR, \
        0u, {(uint32_t)((hash) & 0xffffffffu), (uint32_t)((hash) >> 32)}, TENON_SANITIZER, __VA_ARGS__             \
  }

#ifdef __cplusplus
#define TENON_EXTERN_C extern "C"
#else
#define TENON_EXTERN_C extern
#endif

/* TENON_EXPORT_PLUGIN(query function, tenon_plugin_info initialiser): once per library, at file scope. */
#define TENON_EXPORT_PLUGIN(query_function, ...)                                                                \
  __attribute__((section(TENON_NOTE_SECTION), used, aligned(4))) static const tenon_plugin_note tenon_note = {  \
      (uint32_t)sizeof(TENON_NOTE_NAME), (uint32_t)sizeof(tenon_plugin_info), TENON_NOTE_TYPE, TENON_NOTE_NAME, \
      __VA_ARGS__};                                                                                             \
  TENON_EXTERN_C __attribute__((visibility("default"))) const tenon_plugin tenon_plugin_v1;                     \
  __attribute__((used)) const tenon_plugin tenon_plugin_v1 = {__VA_ARGS__, query_function, {0, 0, 0, 0}}

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
