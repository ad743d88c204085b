#include "x86/compiler.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include <tenon/snippet/allocate.hpp>
#include <tenon/snippet/emit.hpp>
#include <tenon/snippet/lower.hpp>

#include "x86/assembly.hpp"
#include "x86/emitters/emitters.hpp"
#include "x86/passes.hpp"
#include "x86/structure.hpp"

namespace tenon::x86 {
namespace {

// What a vector costs that goes out to memory beyond the caches and comes back.
constexpr double kMovedVectorCycles = 24;

// Bytes of all ports; none where extents are not known.
std::optional<double> bytes_of(const snippet::Body& body) {
  double bytes = 0;
  for (const std::vector<snippet::BodyPort>* ports : {&body.inputs, &body.outputs}) {
    for (const snippet::BodyPort& port : *ports) {
      double size = port.element.bits() / 8.0;
      for (size_t d = 0; d < body.rank(); ++d) {
        if (!(body.values[static_cast<size_t>(port.value)].varies >> d & 1)) continue;
        if (!body.dims[d].extent.is_constant()) return std::nullopt;
        size *= static_cast<double>(body.dims[d].extent.constant());
      }
      bytes += size;
    }
  }
  return bytes;
}

// What is fetched ahead waits in the first-level cache, beside what the loop works on: a quarter of it.
int lines_fetched_together(const TargetDescription& target) {
  constexpr size_t kUnstated = size_t{32} << 10;
  const MemorySpace* cache = target.memory("l1");
  return static_cast<int>((cache ? cache->size_bytes : kUnstated) / 4 / kLineBytes);
}

// Elements of the innermost dim from which on whole rows pay, in vectors: below, a tile takes the row as it is.
constexpr int64_t kLeastRowVectors = 2;

// Are columns folded that may be walked in whole rows?
bool folds_columns(const snippet::Body& body, int64_t least_row) {
  if (!body.reduces() || body.dims.back().reduced) return false;
  const Expr& row = body.dims.back().extent;
  return !row.is_constant() || row.constant() >= least_row;
}

}  // namespace

Result<const codegen::JitterTable*> jitter_table() {
  static const Result<codegen::JitterTable> kTable = []() -> Result<codegen::JitterTable> {
    codegen::JitterTable table{std::string(kContextKind)};
    TENON_OK(add_structure_rows(table), "the jitter table of x86");
    TENON_OK(add_elementwise_rows(table), "the jitter table of x86");
    return table;
  }();
  if (!kTable.ok()) return kTable.error();
  return &*kTable;
}

int lanes_of(Isa isa, const snippet::Body& body) {
  const bool wide = std::any_of(body.values.begin(), body.values.end(),
                                [](const snippet::BodyValue& value) { return value.element.bits() == 64; });
  return lanes_of(isa, wide ? kI64 : kI32);
}

bool Compiler::can_emit(const codegen::Signature& signature) const {
  return snippet::can_emit_node(signature, table_, target_);
}

std::string Compiler::registers_text(const TargetDescription& target) {
  std::string text;
  for (const RegisterClass& stated : target.registers) text += str(" ", stated.name, " ", stated.count);
  return text;
}

std::string Compiler::why_not(const snippet::Body& body) const { return snippet::why_not_emit(body, table_, target_); }

Result<snippet::LinearKernel> Compiler::lower(const snippet::Body& body, const Lowered& how) const {
  const auto cycles = [this](const snippet::Body& of, const snippet::BodyNode& node) {
    return snippet::cycles_of_node(of, node, table_, target_);
  };
  TENON_TRY(pool, register_pool(target_));
  const auto vectors = static_cast<int>(pool.of(codegen::RegisterFile::vector).size());
  snippet::LowerOptions options{.lanes = lanes_of(isa_of(target_), body), .vectors = vectors, .cycles = cycles};
  if (how.past_caches) options.resweep_cycles = kMovedVectorCycles;
  options.whole_rows = how.whole_rows;
  if (const MemorySpace* cache = target_.memory("l2")) options.near_bytes = cache->size_bytes / 2;
  return snippet::lower(body, options);
}

std::vector<Compiler::Tier> Compiler::tiers_of(const snippet::Body& body) const {
  // A cache that the target does not state is one that nothing exceeds.
  const auto size = [&](std::string_view name) {
    const MemorySpace* memory = target_.memory(name);
    return memory ? static_cast<double>(memory->size_bytes) : std::numeric_limits<double>::infinity();
  };
  std::vector<Tier> tiers(3, Tier{.passes = {.isa = isa_of(target_), .contract = options_.contract}});
  tiers[1].suffix = ".prefetching";
  tiers[1].least_bytes = size("l2");
  const int together = lines_fetched_together(target_);
  tiers[1].passes.prefetch_writes = {.lines = kWriteLinesAhead, .together = together};
  tiers[1].passes.prefetch_reads = {.lines = kReadLinesAhead, .together = together};
  tiers[1].passes.prefetch_blocks = true;
  tiers[1].how.whole_rows = folds_columns(body, kLeastRowVectors * lanes_of(isa_of(target_), body));
  tiers[2] = tiers[1];
  tiers[2].suffix = ".streaming";
  tiers[2].least_bytes = size(target_.memory("l3") ? "l3" : "l2");
  tiers[2].passes.stream_stores = true;
  tiers[2].passes.streams = kStreams;
  tiers[2].how.past_caches = body.reduces();  // only what is swept again is lowered otherwise
  if (const auto bytes = bytes_of(body)) {
    // Of all calls: no code that none of them runs.
    std::erase_if(tiers, [&](const Tier& tier) { return tier.least_bytes > *bytes; });
    if (tiers.size() > 1) tiers.erase(tiers.begin());
  }
  return tiers;
}

Result<std::vector<Compiler::TierKernel>> Compiler::tier_kernels(const snippet::Body& body) const {
  if (std::string reason = why_not(body); !reason.empty()) return error(Code::unsupported, reason);
  std::vector<TierKernel> made;
  std::optional<snippet::LinearKernel> lowered;
  Lowered how;
  for (const Tier& tier : tiers_of(body)) {
    if (!lowered || tier.how != how) {
      TENON_TRY(kernel, lower(body, tier.how), "lowering snippet '", body.name, "'");
      lowered = std::move(kernel);
      how = tier.how;
    }
    TierKernel& next = made.emplace_back(TierKernel{*lowered, tier.least_bytes});
    TENON_OK(optimise(next.kernel, tier.passes), "lowering snippet '", body.name, "'");
    next.past_caches = has_streaming_stores(next.kernel);
    if (next.kernel.blocks.dim >= 0) next.least_row = kLeastRowVectors * next.kernel.lanes;
    if (made.size() > 1) next.kernel.name += tier.suffix;
  }
  return made;
}

Result<CodeObject> Compiler::assemble_kernel(snippet::LinearKernel kernel) const {
  TENON_TRY(pool, register_pool(target_));
  TENON_OK(snippet::allocate(kernel, pool, snippet::needs_of(table_, target_)));
  return assemble(kernel, table_, target_);
}

Result<std::vector<CodeObject>> Compiler::assemble_snippet(const snippet::Body& body) const {
  TENON_TRY(kernels, tier_kernels(body));
  std::vector<CodeObject> objects;
  for (TierKernel& tier : kernels) {
    TENON_TRY(object, assemble_kernel(std::move(tier.kernel)), "compiling snippet '", body.name, "' for ",
              target_.name);
    objects.push_back(std::move(object));
  }
  return objects;
}

Result<std::shared_ptr<const CompiledSnippet>> Compiler::compile_snippet(const snippet::Body& body) {
  TENON_TRY(kernels, tier_kernels(body));
  auto made = std::make_shared<CompiledSnippet>();
  made->body = body;
  made->cycles_per_element = snippet::cycles_per_element(body, kernels[0].kernel.lanes, table_, target_);
  for (TierKernel& tier : kernels) {
    const CodeKey key = code_key(snippet::text_without_names(tier.kernel) + registers_, isa_of(target_));
    TENON_TRY(code, CodeCache::shared().get(key, [&] { return assemble_kernel(tier.kernel); }), "compiling snippet '",
              body.name, "' for ", target_.name);
    if (!made->code) made->code = code;
    const auto run = code->function();
    made->forms.push_back(
        {std::move(tier.kernel), run, std::move(code), tier.least_bytes, tier.least_row, tier.past_caches});
  }
  return std::shared_ptr<const CompiledSnippet>(std::move(made));
}

Result<std::shared_ptr<const irgen::SnippetCode>> Compiler::compile(const snippet::Body& body) {
  TENON_TRY(made, compile_snippet(body));
  return std::shared_ptr<const irgen::SnippetCode>(std::move(made));
}

snippet::BoundRules Compiler::bound_rules() const {
  const auto max_ulp = [this](const snippet::Body& body, const snippet::BodyNode& node) {
    const codegen::JitterRow* row = snippet::row_of_node(body, node, table_, target_);
    return row ? row->max_ulp : 0;
  };
  // divide_by_constants() may be a unit off where quotients are tiny.
  return {.max_ulp = max_ulp, .constant_quotient_ulp = 1, .contract = options_.contract};
}

}  // namespace tenon::x86
