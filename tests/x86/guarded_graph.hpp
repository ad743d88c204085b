// Graphs as machine code of one instruction set, snippet by snippet: on buffers that end at guard pages, with the work
// divided into pieces in any order, and each result checked against the bounds of its body
// (snippet/body/body_bounds.hpp).
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>

#include <support_lib/guarded.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/snippet/body/body_bounds.hpp>
#include <tenon/snippet/body/body_elements.hpp>
#include <tenon/snippet/body/fold_stages.hpp>
#include <tenon/snippet/body/params.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/take_crops.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>

#include "x86/compiler.hpp"
#include "x86/kernel_support.hpp"

namespace tenon::x86::testing {

using tenon::testing::GuardAt;
using tenon::testing::Guarded;
using tenon::testing::pick;

// Caches so small that random graphs use all forms: for tensors in the caches, beyond L2, and beyond both.
inline TargetDescription with_small_caches(TargetDescription target) {
  target.memories = {
      {.name = "l2", .size_bytes = 100, .row_lines = 16},
      {.name = "l3", .size_bytes = 200, .prefetch_reads = 64, .prefetch_writes = 48, .row_lines = 4},
      {.name = "host", .size_bytes = size_t{1} << 30, .prefetch_reads = 32, .streams = 4, .most_streams = 10}};
  return target;
}

struct GuardedGraphOptions {
  bool contract = true;
  bool bounds = true;        // compare results with bounds
  bool small_caches = true;  // false: all tensors are in the caches
};

class GuardedGraph {
 public:
  GuardedGraph(Isa isa, const GuardedGraphOptions& options) : GuardedGraph(target_of(isa), options) {}
  GuardedGraph(TargetDescription target, const GuardedGraphOptions& options)
      : compiler_(options.small_caches ? with_small_caches(std::move(target)) : std::move(target), **jitter_table(),
                  {.contract = options.contract, .head_row_lines = 1, .head_row_lines_of_parts = 1}),
        options_(options) {}

  // Returns the number of snippets.
  size_t tokenize(Graph& graph, snippet::TokenizeOptions options = {}) {
    options.can_emit = [&](const codegen::Signature& s) { return compiler_.can_emit(s); };
    auto made = snippet::tokenize_snippets(graph, options);
    TENON_CHECK(made.ok(), made.ok() ? "" : made.error().to_string());
    crops += snippet::take_crops(graph, [&](const Op& op) {
      const auto body = snippet::make_body(op);
      return body.ok() && compiler_.why_not(*body).empty();
    });
    return *made;
  }

  std::vector<Tensor> run(const Graph& graph, const std::vector<Datum>& inputs, std::mt19937& random) {
    std::map<const Value*, Tensor> values;
    for (size_t i = 0; i < inputs.size(); ++i) values[graph.body().input(i)] = inputs[i].tensor();
    for (const Op& op : graph.body()) {
      if (const Tensor* constant = isa<Constant>(op) ? constant_of(op.result(0)) : nullptr) {
        values[op.result(0)] = *constant;
        continue;
      }
      std::vector<Tensor> results =
          isa<snippet::Subgraph>(op) ? run_snippet(op, values, random) : run_reference(op, values);
      for (size_t i = 0; i < results.size(); ++i) values[op.result(i)] = results[i];
    }
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < graph.body().output_count(); ++i) outputs.push_back(values.at(graph.body().output(i)));
    return outputs;
  }

  // Numbers of snippets: all that ran; with forms whose stores might be non-temporal; that traversed columns in whole
  // rows; that joined several of these; that merged two sweeps; with non-temporal stores to rows with any alignment.
  size_t snippets = 0, non_temporal = 0, whole_rows = 0, joined_rows = 0, merged = 0, any_rows = 0;
  size_t crops = 0;          // inputs of which snippets read a part in place
  size_t written_parts = 0;  // outputs that they wrote as parts of tensors
  size_t in_stages = 0;      // snippets whose reductions were divided
  int exceptions = 0;        // floating-point exceptions raised by snippets, such as FE_UNDERFLOW
  // Floats that were compared with bounds, those without known bounds, and those whose bounds differ by more than a
  // thousandth. A check with many of the latter two would be meaningless.
  size_t elements = 0, open = 0, loose = 0;

 private:
  using Values = std::map<const Value*, Tensor>;

  static std::vector<Datum> operands_of(const Op& op, const Values& values) {
    std::vector<Datum> operands;
    for (size_t i = 0; i < op.operand_count(); ++i)
      operands.emplace_back(op.operand(i) ? Datum(values.at(op.operand(i))) : Datum());
    return operands;
  }
  static std::vector<Tensor> run_reference(const Op& op, const Values& values) {
    auto made = isa<snippet::Subgraph>(op)
                    ? run_region(op, values)
                    : evaluate(op.name(), operands_of(op, values), op.attributes(), op.result_count());
    TENON_CHECK(made.ok(), made.ok() ? "" : made.error().to_string());
    std::vector<Tensor> results;
    for (const Datum& datum : *made) results.push_back(datum.tensor());
    return results;
  }
  // Runs the operators of a snippet one by one.
  static Result<std::vector<Datum>> run_region(const Op& op, const Values& values) {
    Graph alone("alone");
    ValueMap map;
    std::vector<Datum> inputs;
    for (const Value* operand : op.operands()) {
      if (map.contains(operand)) continue;
      if (constant_of(operand)) {
        clone_op(*operand->producer(), alone.body(), nullptr, map);
        continue;
      }
      map[operand] = alone.body().add_input(str("x", inputs.size()), operand->type());
      inputs.emplace_back(values.at(operand));
    }
    const Op& copy = clone_op(op, alone.body(), nullptr, map);
    for (size_t i = 0; i < copy.result_count(); ++i) alone.body().add_output(copy.result(i), str("y", i));
    TENON_TRY(interpreter, Interpreter::prepare(alone));
    return interpreter->run(inputs);
  }

  std::vector<Tensor> run_snippet(const Op& op, const Values& values, std::mt19937& random) {
    ++snippets;
    const snippet::ResultCuts cuts = draw_cuts(op, random);
    auto body = snippet::make_body(op, cuts);
    if (!body.ok()) body = snippet::make_body(op);  // the cuts would leave no two elements adjacent
    TENON_CHECK(body.ok(), body.ok() ? "" : body.error().to_string());
    auto code = compiler_.compile(*body);
    TENON_CHECK(code.ok(), code.ok() ? "" : code.error().to_string());
    std::deque<Guarded<std::byte>> buffers;
    std::vector<Dims> shapes;
    std::vector<void*> addresses;
    for (const size_t operand : snippet::body_operands(op)) {
      const Tensor& tensor = values.at(op.operand(operand));
      buffers.emplace_back(std::span<const std::byte>(tensor.data(), tensor.bytes()));
      addresses.push_back(buffers.back().data());
      shapes.push_back(tensor.dims());
    }
    std::vector<Tensor> results;
    for (size_t i = 0; i < op.result_count(); ++i) {
      const Type& type = op.result(i)->type();
      results.push_back(*Tensor::zeros(type.element(), *type.shape().static_dims()));
      shapes.push_back(results.back().dims());
      const auto bytes = static_cast<size_t>(whole_bytes(body->outputs[i], results.back()));
      buffers.emplace_back(bytes, pick(random, 0, 1) ? GuardAt::end : GuardAt::lines);
      std::memset(buffers.back().data(), 0xa5, bytes);
      addresses.push_back(buffers.back().data());
    }
    const Dims extents = *snippet::space_extents(*body, shapes);
    if (!call_in_stages(*body, extents, addresses, random)) call(**code, extents, addresses, random);
    for (size_t i = 0; i < results.size(); ++i)
      gather(*body, i, extents, addresses[body->inputs.size() + i], results[i]);
    if (options_.bounds) check(*body, shapes, addresses, results, run_reference(op, values));
    return results;
  }

  // Makes some results parts of larger tensors.
  static snippet::ResultCuts draw_cuts(const Op& op, std::mt19937& random) {
    snippet::ResultCuts cuts(op.result_count());
    for (size_t r = 0; r < cuts.size(); ++r) {
      const Dims dims = *op.result(r)->type().shape().static_dims();
      if (pick(random, 0, 2) != 0 || std::ranges::find(dims, 0) != dims.end()) continue;
      const int64_t unit = pick(random, 0, 1) ? 16 : 1;
      for (size_t d = dims.size(); d-- > 0;) {
        const int64_t begin = pick(random, 0, 2) * unit, behind = pick(random, 0, 2) * unit;
        if (pick(random, 0, 1)) cuts[r].push_back({d, begin, dims[d], begin + dims[d] + behind});
      }
    }
    return cuts;
  }
  static int64_t whole_bytes(const snippet::BodyPort& port, const Tensor& part) {
    auto bytes = static_cast<int64_t>(part.bytes());
    for (const snippet::PortCut& cut : port.cuts) bytes = bytes / cut.box * cut.whole;
    return bytes;
  }
  void gather(const snippet::Body& body, size_t output, const Dims& extents, const void* from, Tensor& to) {
    const snippet::BodyPort& port = body.outputs[output];
    written_parts += !port.cuts.empty();
    const snippet::DimSet varies = body.values[static_cast<size_t>(port.value)].varies;
    const snippet::PortLayout layout = snippet::layout_of(port, varies, extents);
    const auto size = static_cast<size_t>(port.element.bits()) / 8;
    for (size_t i = 0; i < to.bytes() / size; ++i) {
      int64_t at = layout.begin_bytes, rest = static_cast<int64_t>(i);
      for (size_t d = extents.size(); d-- > 0;) {
        if (!(varies >> d & 1)) continue;
        at += rest % extents[d] * layout.strides[d];
        rest /= extents[d];
      }
      std::memcpy(static_cast<std::byte*>(to.mutable_data()) + i * size, static_cast<const std::byte*>(from) + at,
                  size);
    }
  }

  // Compares the results of the code with the bounds for code, and those of the reference with the bounds of the body.
  void check(const snippet::Body& body, const std::vector<Dims>& shapes, const std::vector<void*>& addresses,
             const std::vector<Tensor>& made, const std::vector<Tensor>& wanted) {
    const std::vector<const void*> inputs(addresses.begin(), addresses.begin() + static_cast<long>(body.inputs.size()));
    const Dims extents = *snippet::space_extents(body, shapes);
    snippet::BoundRules rules = compiler_.bound_rules();
    const auto of_code = snippet::bound_body(body, extents, inputs, rules);
    rules.in_any_precision = true;
    const auto of_reference = snippet::bound_body(body, extents, inputs, rules);
    ASSERT_TRUE(of_code.ok()) << of_code.error().to_string();
    ASSERT_TRUE(of_reference.ok()) << of_reference.error().to_string();
    for (size_t j = 0; j < body.outputs.size() && !::testing::Test::HasFatalFailure(); ++j) {
      check_output(body, j, (*of_code)[j], made[j], "the code's");
      check_output(body, j, (*of_reference)[j], wanted[j], "the reference's");
      count((*of_code)[j], body.outputs[j].element);
    }
  }
  static void check_output(const snippet::Body& body, size_t j, const snippet::Bounds& bounds, const Tensor& tensor,
                           const char* whose) {
    const ElementType element = body.outputs[j].element;
    for (size_t i = 0; i < bounds.size(); ++i) {
      const uint64_t bits = load_bits(tensor.data(), element.bits(), static_cast<int64_t>(i));
      ASSERT_TRUE(snippet::is_within(bounds, element, i, bits))
          << "output " << j << " element " << i << ", " << whose << ": " << text(element, bits) << ", allowed is "
          << text(element, bounds.low[i]) << " to " << text(element, bounds.high[i]) << "\n"
          << body.to_string();
    }
  }
  static std::string text(ElementType element, uint64_t bits) {
    return element.is_float() ? str(decode_float(element, bits)) : str(bits);
  }
  void count(const snippet::Bounds& bounds, ElementType element) {
    for (size_t i = 0; i < bounds.size() && element.is_float(); ++i) {
      ++elements;
      open += bounds.open[i] != 0;
      const double low = decode_float(element, bounds.low[i]), high = decode_float(element, bounds.high[i]);
      loose += !bounds.open[i] && high - low > 1e-3 * std::max(std::abs(low), std::abs(high)) + 1e-30;
    }
  }

  // In half of the cases where the reductions may be divided along a random dim, does so and returns true.
  bool call_in_stages(const snippet::Body& body, const Dims& extents, const std::vector<void*>& addresses,
                      std::mt19937& random) {
    if (body.rank() == 0 || snippet::element_count(body.all_dims(), extents) == 0) return false;
    const auto cut = static_cast<size_t>(pick(random, 0, static_cast<int>(body.rank()) - 1));
    const auto stages = snippet::make_fold_stages(body, cut);
    if (!stages || pick(random, 0, 1) == 0) return false;
    ++in_stages;
    const int64_t parts = pick(random, 1, 5), folded = snippet::element_count(body.reduced_dims(), extents);
    std::deque<Guarded<std::byte>> memories;
    for (const snippet::FoldStages::Memory& memory : stages->memories) {
      memories.emplace_back(memory.bytes(extents, parts));
      std::memset(memories.back().data(), 0xa5, memories.back().values().size());
      if (!memory.counts) continue;
      const uint64_t bits = snippet::lane_bits(memory.element, static_cast<double>(folded));
      std::memcpy(memories.back().data(), &bits, memories.back().values().size());
    }
    for (const snippet::FoldStage& stage : stages->stages) {
      const auto code = compiler_.compile(stage.body);
      TENON_CHECK(code.ok(), code.ok() ? "" : code.error().to_string());
      std::vector<void*> own;
      for (const snippet::FoldStage::Port& port : stage.ports)
        own.push_back(port.in_memory ? memories[port.index].data() : addresses[port.index]);
      const bool in_parts = stage.kind == snippet::FoldStage::Kind::parts;
      call(**code, stage.extents(extents, parts), own, random, in_parts ? parts : 0);
    }
    return true;
  }

  // Runs the pieces of a call in random order, each with fresh scratch memory. Divides a parted dim into `fold_parts`.
  void call(const irgen::SnippetCode& code, const Dims& extents, const std::vector<void*>& addresses,
            std::mt19937& random, int64_t fold_parts = 0) {
    const irgen::SnippetForm& form = any_form(code, extents, addresses, fold_parts > 1, random);
    auto plan = snippet::CallPlan::make_for_extents(code.body, form.kernel, extents);
    TENON_CHECK(plan.ok(), plan.ok() ? "" : plan.error().to_string());
    if (plan->empty()) return;
    const snippet::Split split =
        fold_parts > 0 ? plan->split_fold(fold_parts) : plan->split(pick(random, 1, 4), /*min_elements=*/1);
    std::vector<int64_t> order(static_cast<size_t>(split.chunks()));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::shuffle(order.begin(), order.end(), random);
    Guarded<std::byte> scratch((plan->scratch_bytes() + 63) / 64 * 64);
    std::vector<int64_t> words(plan->words());
    for (const int64_t chunk : order) {
      std::memset(scratch.data(), 0xff, scratch.values().size());
      plan->fill(words, addresses, scratch.data(), split, chunk);
      std::feclearexcept(FE_ALL_EXCEPT);
      form.run(words.data());
      exceptions |= std::fetestexcept(FE_ALL_EXCEPT);
    }
  }

  // The address of the first element of tensor `port`.
  static uintptr_t begin_of(const snippet::CallPlan& plan, const std::vector<void*>& addresses, size_t port) {
    return reinterpret_cast<uintptr_t>(addresses[port]) + static_cast<uintptr_t>(plan.begin_bytes(port));
  }
  // The number of elements from the last vector boundary to the first element of tensor `port`.
  static uintptr_t beyond_vector(const snippet::Body& body, const snippet::CallPlan& plan,
                                 const std::vector<void*>& addresses, size_t port, int lanes) {
    const auto bytes = static_cast<uintptr_t>(body.outputs[port - body.inputs.size()].element.bits() / 8);
    return begin_of(plan, addresses, port) / bytes % static_cast<uintptr_t>(lanes);
  }

  static bool joins(const snippet::LinearKernel& kernel, const Dims& extents) {
    return snippet::rows_to_join(extents[extents.size() - 2], extents.back(), kernel.lanes) > 1;
  }

  const irgen::SnippetForm& any_form(const irgen::SnippetCode& code, const Dims& extents,
                                     const std::vector<void*>& addresses, bool in_parts, std::mt19937& random) {
    std::vector<const irgen::SnippetForm*> serving{&code.form};
    for (const auto& larger : code.larger) {
      const auto made = larger->get(code.body);
      TENON_CHECK(made.ok(), made.ok() ? "" : made.error().to_string());
      const auto own = snippet::CallPlan::make_for_extents(code.body, (*made)->kernel, extents);
      TENON_CHECK(own.ok(), own.ok() ? "" : own.error().to_string());
      bool serves = !in_parts || !(*made)->non_temporal || (!(*made)->whole_items && own->parts_aligned(kAlignBytes));
      for (size_t i = code.body.inputs.size(); (*made)->non_temporal && i < addresses.size(); ++i)
        serves &= (*made)->any_rows
                      ? beyond_vector(code.body, *own, addresses, i, (*made)->kernel.lanes) ==
                            beyond_vector(code.body, *own, addresses, code.body.inputs.size(), (*made)->kernel.lanes)
                      : own->rows_aligned(i, kAlignBytes) && begin_of(*own, addresses, i) % kAlignBytes == 0;
      if (serves) serving.push_back(*made);
      non_temporal += serves && (*made)->non_temporal;
    }
    // Merged forms are preferred, because few bodies have them.
    const auto is_merged = [](const irgen::SnippetForm* form) { return form->kernel.merged; };
    if (std::ranges::any_of(serving, is_merged) && pick(random, 0, 1) == 0)
      std::erase_if(serving, [&](const irgen::SnippetForm* form) { return !is_merged(form); });
    const irgen::SnippetForm& form =
        *serving[static_cast<size_t>(pick(random, 0, static_cast<int>(serving.size()) - 1))];
    whole_rows += form.kernel.blocks.dim >= 0;
    any_rows += form.non_temporal && form.any_rows;
    merged += form.kernel.merged;
    joined_rows += form.kernel.joined.rows >= 0 && joins(form.kernel, extents);
    return form;
  }

  Compiler compiler_;
  const GuardedGraphOptions options_;
};

}  // namespace tenon::x86::testing
