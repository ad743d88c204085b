// Program: its declarations, and the statement that it runs.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/program/ir/statement.hpp>
#include <tenon/support/export.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon::program {

enum class Role : uint8_t {
  input,     // given for a run, only read
  constant,  // the same memory and contents in every run, only read
  output,    // given for a run, written in it; undefined before
  state,     // given for a run, read and written: keeps its contents from a run to the next
  local,     // made by a statement
};

struct Buffer {
  std::string name;  // unique; [A-Za-z_][A-Za-z0-9_]*, so that NAME.min0 is a symbol
  ElementType element;
  int rank = 0;  // <= kMaxRank
  Role role = Role::local;
  std::string space = "host";  // of declared buffers; local ones are where their allocation or source is
  bool operator==(const Buffer&) const = default;
};

// A value: copies share statements.
struct Program {
  std::string name;
  std::vector<std::string> scalars;  // parameters, int64; names as of buffers
  std::vector<Buffer> buffers;       // in any order; local ones are visible where their statement says
  std::vector<std::string> tokens;   // names as of buffers
  Statement body;
  // Memory that the whole body can use, without an enclosing statement: a graph has more values than statements can be
  // nested. Dims and slots are expressions over scalars and declared buffers. A local is live from the statement of the
  // outermost block that first names it until its Free, or to the end.
  std::vector<Allocation> locals;

  bool operator==(const Program&) const = default;
  const Buffer& buffer(BufferId id) const { return buffers[static_cast<size_t>(id)]; }
  TENON_API BufferId add_buffer(Buffer buffer);
  TENON_API TokenId add_token(std::string name);
  TENON_API std::optional<BufferId> find_buffer(std::string_view name) const;
};

// Which property of a buffer a symbol such as NAME.min0 denotes.
enum class Meta : uint8_t { min, extent, stride, fold };

TENON_API Expr meta_of(std::string_view buffer, Meta meta, int dim);
inline Expr min_of(std::string_view buffer, int dim) { return meta_of(buffer, Meta::min, dim); }
inline Expr extent_of(std::string_view buffer, int dim) { return meta_of(buffer, Meta::extent, dim); }
inline Expr max_of(std::string_view buffer, int dim) { return min_of(buffer, dim) + extent_of(buffer, dim) - 1; }
inline Expr stride_of(std::string_view buffer, int dim) { return meta_of(buffer, Meta::stride, dim); }
inline Expr fold_of(std::string_view buffer, int dim) { return meta_of(buffer, Meta::fold, dim); }

// The parts of a symbol from meta_of: buffer (borrowed from `symbol`), meta and dim. Nothing for other symbols.
struct MetaSymbol {
  std::string_view buffer;
  Meta meta;
  int dim;
};
TENON_API std::optional<MetaSymbol> parse_meta(std::string_view symbol);

// The symbol for the number of threads that a run may use.
inline constexpr std::string_view kThreadsSymbol = "run.threads";

}  // namespace tenon::program
