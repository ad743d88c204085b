// Inside the room: the contents of a Pipeline, as stated by its author.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <tenon/program/pipeline/pipeline.hpp>

namespace tenon::program {

// A loop of a stage, named by the index over which it iterates; stage -1: outside of all loops.
struct LoopName {
  int stage = -1;
  std::string index;
};

struct BufferSpec {
  std::string name;
  ElementType element;
  int rank = 0;
  bool constant = false;
  struct DimSpec {
    int64_t alignment = 1;
    std::optional<Expr> stride, fold;
    std::optional<Window> bounds;
  };
  std::vector<DimSpec> dims;
  std::optional<LoopName> store_at;
  Placement placement = Placement::automatic;
  std::string space = "host";
};

struct ReadSpec {
  int buffer = -1;
  Windows windows;  // per dim of the buffer, over the indices of the stage
};
struct WriteSpec {
  int buffer = -1;
  std::vector<std::string> indices;
};

// A part of a copy: read `read` of the stage gives the elements of the destination in `part`.
struct CopyPart {
  std::vector<Expr> map;       // per dim of the source
  Windows keep;                // per dim of the source: reads are restricted to it. Empty: no limit
  std::optional<Window> part;  // of dim part_dim of the destination; none: all of the dim
  int part_dim = 0;
};

struct StageSpec {
  std::string name;
  KernelHandle kernel;  // null: a copy
  std::vector<ReadSpec> reads;
  std::vector<WriteSpec> writes;
  std::vector<Expr> scalars;
  std::vector<std::pair<int, int>> in_place;  // (read, write)
  std::vector<LoopOver> loops;                // innermost first
  std::optional<LoopName> compute_at;
  bool writes_non_temporal = false;  // its results are not prefetched
  // For a copy.
  std::vector<CopyPart> parts;     // one per read, except the padding's
  std::vector<std::byte> padding;  // an element, or empty
  int padding_read = -1;           // the read that provides the padding

  bool is_copy() const { return !kernel; }
  bool has_padding() const { return !padding.empty() || padding_read >= 0; }
};

struct PipelineData {
  std::string name;
  std::vector<BufferSpec> buffers;
  std::vector<StageSpec> stages;
  std::vector<std::string> scalars;
  std::vector<Error> errors;  // of the author's calls; build() returns the first

  static PipelineData& of(const Pipeline& pipeline) { return *pipeline.data_; }
  static int id(const BufferRef& buffer) { return buffer.id_; }
  BufferSpec& of(const BufferRef& buffer) { return buffers[static_cast<size_t>(buffer.id_)]; }
  // Records the error.
  template <class... Parts>
  void refuse(const Parts&... parts) {
    errors.push_back(error(Code::invalid_argument, parts...));
  }
};

// Replaces loops with non_temporal by stages and buffers of their own.
Result<PipelineData> with_non_temporal_results(const PipelineData& data);

Result<Program> build_program(const PipelineData& pipeline, const std::vector<int>& inputs,
                              const std::vector<int>& outputs, const std::vector<std::string>& scalars,
                              const BuildOptions& options);

}  // namespace tenon::program
