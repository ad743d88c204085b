#include "x86/forms/forms.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <tenon/snippet/body/emitters.hpp>
#include <tenon/snippet/body/params.hpp>
#include <tenon/snippet/linear/allocate.hpp>
#include <tenon/snippet/linear/emit.hpp>
#include <tenon/snippet/lower/lower.hpp>

#include "x86/body/apart.hpp"
#include "x86/body/narrow_ports.hpp"
#include "x86/code/code_cache.hpp"
#include "x86/forms/assembly.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

constexpr int kRowsStoredTogether = 4;

std::string machine_text(const TargetDescription& target) {
  std::string text = has_vbmi(target) ? " vbmi" : "";
  for (const RegisterClass& stated : target.registers) text += str(" ", stated.name, " ", stated.count);
  return text;
}

// Whether the form is for data in near caches, so that no pass looks for loops to prefetch in.
bool is_near(const FormMaker::Tier& tier) {
  const FormPasses& passes = tier.passes;
  const bool fetches = passes.stream_stores || passes.prefetch_writes.lines > 0 || passes.prefetch_reads.lines > 0 ||
                       passes.next_row != NextRow::none || passes.items || passes.staged_rows;
  return !fetches && !tier.lower.whole_rows;
}

// Whether the body has checks that several vectors can share: conversions from floats to integers.
bool has_checks(const snippet::Body& body) {
  return std::ranges::any_of(body.nodes, [&](const snippet::BodyNode& node) {
    const auto element = [&](snippet::ValueId id) { return body.values[static_cast<size_t>(id)].element; };
    return node.op == kConvert && element(node.operands[0]) == kF32 && element(node.result) == kI32;
  });
}
// Registers reserved beside copies where only checks need the largest number of scratch registers.
constexpr int kBesideChecks = 4;

}  // namespace

int lanes_of(Isa isa, const snippet::Body& body) {
  const bool wide = std::any_of(body.values.begin(), body.values.end(),
                                [](const snippet::BodyValue& value) { return value.element.bits() == 64; });
  return lanes_of(isa, wide ? kI64 : kI32);
}

FormMaker::FormMaker(TargetDescription target, const codegen::JitterTable& table, CompilerOptions options)
    : target_(std::move(target)),
      table_(table.of_machine(target_)),
      options_(options),
      in_turn_(rows_in_turn(table_)),
      machine_(machine_text(target_)) {}

NodeCycles FormMaker::node_cycles() const {
  return [this](const snippet::Body& of, const snippet::BodyNode& node) {
    return snippet::cycles_of_node(of, node, table_, target_);
  };
}

FormBodies FormMaker::bodies_of(const snippet::Body& as_it_is, bool bytes_lose) const {
  return {with_narrow_ports(with_byte_tables(as_it_is, node_cycles())), bytes_lose};
}

Result<FormMaker::Lowered> FormMaker::kernel_of(FormBodies& bodies, const Tier& tier) const {
  const snippet::Body& body = bodies.ready(tier.lower.merge_sweeps, tier.passes.contract);
  const bool joins = !tier.passes.stream_stores && !tier.lower.whole_rows;
  // Non-temporal stores of bytes, where rows begin at lines.
  const bool streams_bytes =
      tier.passes.stream_stores && tier.passes.row_begins == RowBegins::at_lines && !tier.lower.whole_rows;
  // Byte lanes need four adjacent vectors, which is useless where no byte lanes result or spills cost more.
  if (joins && !bodies.bytes_lose() && !is_of_bytes(body) && has_bytes(body)) {
    TENON_TRY(kernel, lowered(body, tier, Copies::all));
    if (has_lanes_of_bytes(kernel)) {
      Lowered made = functions_in_turn(std::move(kernel));
      TENON_OK(allocate(made));
      if (made.allocated->frame_slots == 0) return made;
      TENON_TRY(other, lowered(body, tier, Copies::some));
      Lowered without = functions_in_turn(std::move(other));
      TENON_OK(allocate(without));
      if (cycles_of_loops(*made.allocated) < cycles_of_loops(*without.allocated)) return made;
      bodies.set_bytes_lose();
      return without;
    }
  }
  const bool of_bytes = (joins || streams_bytes) && is_of_bytes(body);
  // Copies that share a check should be adjacent, unless functions need the registers, or this causes spills.
  if (!of_bytes && has_checks(body) && !computes_functions(body)) {
    TENON_TRY(kernel, lowered(body, tier, Copies::more));
    Lowered made = functions_in_turn(std::move(kernel));
    TENON_OK(allocate(made));
    if (made.allocated->frame_slots == 0) return made;
  }
  TENON_TRY(kernel, lowered(body, tier, of_bytes ? Copies::all : Copies::some));
  return functions_in_turn(std::move(kernel));
}

Result<snippet::LinearKernel> FormMaker::lowered(const snippet::Body& as_it_is, const Tier& tier, Copies copies) const {
  const NodeCycles cycles = node_cycles();
  const bool near = is_near(tier);
  std::optional<snippet::Body> apart;
  if (near && tier.passes.contract)
    apart = with_factors_apart(as_it_is, tier.lower.lanes, vector_units(target_), cycles);
  const snippet::Body& body = apart ? *apart : as_it_is;
  TENON_TRY(pool, register_pool(target_));
  snippet::LowerOptions options = tier.lower;
  options.vectors = static_cast<int>(pool.of(codegen::RegisterFile::vector).size());
  options.cycles = cycles;
  options.all_copies = copies == Copies::all;
  if (copies == Copies::more) options.beside = kBesideChecks;
  options.heads = tier.passes.row_begins == RowBegins::behind_heads;
  options.skew_rows = is_skewed(tier.row_order);
  options.skew_twice = tier.row_order == RowOrder::skewed_twice;
  if (tier.row_order == RowOrder::stored_together) options.stored_together = kRowsStoredTogether;
  const bool alone = tier.row_order == RowOrder::one_by_one;
  if (alone) options.rows = 1;
  if (near) options.apart_cycles = options.recompute_cycles;
  TENON_TRY(kernel, snippet::lower(body, options), "lowering snippet '", body.name, "'");
  const double element = snippet::cycles_per_element(body, kernel.lanes, table_, target_);
  const snippet::DimSet columns = tier.passes.items ? snippet::DimSet{1} << (body.rank() - 1) : 0;
  const snippet::DimSet whole = near ? irgen::whole_dims(body, kernel.lanes, element) : columns;
  TENON_OK(snippet::CallPlan::write_known(body, kernel, whole), "lowering snippet '", body.name, "'");
  PassOptions passes = tier.passes;
  passes.near = near;
  passes.alone = alone;
  passes.far_by_halves &= alone || !computes_functions(body);
  passes.bytes = copies == Copies::all;
  passes.cycles = [this](const snippet::LinearKernel& of, const snippet::Instruction& one) {
    return cycles_of(of, one);
  };
  passes.vector_units = vector_units(target_);
  passes.joined_rows = irgen::rows_joined(body, kernel.lanes);
  TENON_OK(optimise(kernel, passes), "lowering snippet '", body.name, "'");
  kernel.name += tier.suffix;
  return kernel;
}

bool FormMaker::computes_functions(const snippet::Body& body) const {
  if (body.rank() == 0) return false;
  return std::ranges::any_of(body.nodes, [&](const snippet::BodyNode& node) {
    const bool moves = body.values[static_cast<size_t>(node.result)].varies >> (body.rank() - 1) & 1;
    return moves && snippet::cycles_of_node(body, node, table_, target_) > snippet::LowerOptions{}.resweep_cycles;
  });
}

Result<snippet::LinearKernel> FormMaker::allocated(snippet::LinearKernel kernel, size_t most_instructions) const {
  TENON_TRY(pool, register_pool(target_));
  TENON_OK(snippet::allocate(kernel, pool, snippet::needs_of(table_, target_), most_instructions));
  return kernel;
}

Result<void> FormMaker::allocate(Lowered& made) const {
  if (made.allocated) return {};
  TENON_TRY(done, allocated(made.kernel));
  made.allocated = std::move(done);
  return {};
}

Result<CodeObject> FormMaker::assemble_kernel(Lowered made) const {
  if (made.allocated) return x86::assemble(*made.allocated, table_, target_);
  TENON_TRY(ready, allocated(std::move(made.kernel)));
  return x86::assemble(ready, table_, target_);
}

Result<CodeObject> FormMaker::assemble(FormBodies& bodies, const Tier& tier) const {
  TENON_TRY(made, kernel_of(bodies, tier));
  TENON_TRY(object, assemble_kernel(std::move(made)), "compiling snippet '", bodies.body().name, "' for ",
            target_.name);
  return object;
}

Result<irgen::SnippetForm> FormMaker::make(FormBodies& bodies, const Tier& tier) const {
  const snippet::Body& body = bodies.body();
  TENON_TRY(made, kernel_of(bodies, tier));
  const CodeKey key = code_key(snippet::text_without_names(made.kernel) + machine_, isa_of(target_));
  TENON_TRY(code, CodeCache::shared().get(key, [&] { return assemble_kernel(made); }), "compiling snippet '", body.name,
            "' for ", target_.name);
  snippet::LinearKernel& kernel = made.kernel;
  irgen::SnippetForm form{.run = code->function(), .code_bytes = code->object().bytes.size()};
  // Costly values kept in an output: the same conditions as for non-temporal stores.
  form.non_temporal = has_streaming_stores(kernel) || tier.row_order == RowOrder::one_by_one;
  if (kernel.blocks.dim >= 0) form.least_row = kLeastRowVectors * kernel.lanes;
  form.any_rows = tier.passes.row_begins != RowBegins::at_lines;
  if (form.any_rows) form.least_row = least_head_row(body);
  form.whole_items = tier.passes.items || tier.passes.staged_rows;
  // Some bodies, such as those of several nests, do not have everything that a form needs: then it serves no call.
  // Sequential blocks store before everything is read. Only non-temporal calls allow that, because their outputs do not
  // overlap inputs.
  const std::pair<bool, bool> wants[] = {{tier.lower.join_rows, kernel.joined.rows >= 0},
                                         {tier.lower.behind_blocks, kernel.blocks.inside && form.non_temporal},
                                         {tier.lower.merge_sweeps, kernel.merged},
                                         {is_skewed(tier.row_order), kernel.skewed},
                                         {tier.row_order == RowOrder::stored_together, kernel.stored_together},
                                         {tier.row_order == RowOrder::skewed_twice, kernel.skewed_twice},
                                         {form.any_rows || form.whole_items, form.non_temporal}};
  if (std::ranges::any_of(wants, [](const auto& one) { return one.first && !one.second; }))
    form.least_row = std::numeric_limits<int64_t>::max();
  form.kernel = std::move(kernel);
  form.memory = std::move(code);
  return form;
}

}  // namespace tenon::x86
