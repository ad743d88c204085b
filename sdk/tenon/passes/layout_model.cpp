#include <tenon/passes/layout_model.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/layout.hpp>
#include <tenon/passes/layout_pins_internal.hpp>
#include <tenon/passes/zero_keeping.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

using Implementation = LayoutProblem::Implementation;

// A layout in text form.
struct Text {
  std::string text, dims;
  bool operator<(const Text& other) const { return std::tie(text, dims) < std::tie(other.text, other.dims); }
};

std::string name_of(const Value& value) {
  if (!value.name().empty()) return value.name();
  return value.producer() ? str("result ", value.index(), " of ", value.producer()->describe())
                          : str("input ", value.index());
}

using detail::is_pinned;

// Whether it can run in any layout that all its operands and results share.
bool takes_any_layout(const Op& op) {
  const OpDef* def = op.def();
  return def && def->has(Trait::layout_oblivious) && !def->has(Trait::random) && op.region_count() == 0;
}
bool is_elementwise(const Op& op) { return takes_any_layout(op) && op.def()->has(Trait::elementwise); }

// The text for only the last of its dims: "CHW{16c}" for "NCHW{16c}". Nothing if the other dims occur in more than the
// order.
std::optional<Text> for_last_dims(const Text& of, size_t rank) {
  Text text = of;
  text.dims.erase(0, of.dims.size() - rank);
  for (const char gone : of.dims.substr(0, of.dims.size() - rank)) {
    const auto is_it = [&](char c) { return std::toupper(static_cast<unsigned char>(c)) == gone; };
    if (std::count_if(text.text.begin(), text.text.end(), is_it) != 1) return std::nullopt;
    const auto at = static_cast<size_t>(std::find_if(text.text.begin(), text.text.end(), is_it) - text.text.begin());
    const char next = at + 1 < text.text.size() ? text.text[at + 1] : ' ';
    if (text.text[at] != gone || next == '/' || text.text[0] == '(') return std::nullopt;
    text.text.erase(at, 1);
  }
  return text;
}

// The padded extent of each dim. Nothing if dims and variables do not correspond one to one.
std::optional<Dims> padded_dims(const Layout& layout) {
  if (layout.padding() == 0) return layout.shape();
  if (!layout.has_digits()) return std::nullopt;
  Dims dims(layout.shape().size(), 1);
  for (size_t v = 0; v < layout.variables().size(); ++v) {
    const LayoutVariable& variable = layout.variables()[v];
    if (variable.dims.size() != 1 || variable.fold != 0 || variable.offset != 0) return std::nullopt;
    dims[static_cast<size_t>(variable.dims[0])] = layout.padded_extent(static_cast<int>(v));
  }
  return dims;
}

// Whether each extent is known to equal the other's or to be 1. An extent known only at run time might be either.
bool is_broadcast_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  const auto gap = static_cast<size_t>(to.rank() - from.rank());
  for (size_t d = 0; d < from.dims().size(); ++d) {
    const bool one = from[d].is_static() && from[d].value() == 1;
    if (!one && !from[d].same_extent(to[gap + d])) return false;
  }
  return true;
}

class ModelBuilder {
 public:
  ModelBuilder(Graph& graph, const AssignLayoutsOptions& options)
      : graph_(graph), options_(options), model_(options.costs) {}

  Result<std::optional<LayoutModel>> make() {
    const bool kernels = ask_kernels();
    if (!kernels && !has_pinned_layouts(graph_)) return std::optional<LayoutModel>();
    for (size_t i = 0; i < body().input_count(); ++i) TENON_OK(add_input(*body().input(i)));
    for (Op& op : body()) TENON_OK(add_op(op));
    for (size_t i = 0; i < body().output_count(); ++i) add_output(i);
    join_groups();
    for (size_t n = 0; n < model_.nodes.size(); ++n) {
      if (model_.nodes[n].kind == LayoutModel::Node::Kind::op) TENON_OK(seed(n));
    }
    for (size_t n = 0; n < model_.nodes.size(); ++n) TENON_OK(implement(n), model_.nodes[n].name);
    TENON_TRY(costs, model_.table.costs());
    model_.problem.costs = std::move(costs);
    return std::optional(std::move(model_));
  }

 private:
  const Region& body() const { return graph_.body(); }
  LayoutTable& table() { return model_.table; }
  LayoutProblem::Node& problem_node(size_t n) { return model_.problem.nodes[n]; }
  size_t type_of(size_t tensor) const { return model_.tensors[tensor].type; }

  bool ask_kernels() {
    bool any = false;
    for (const Op& op : body()) {
      if (!options_.kernels || op.region_count() > 0 || isa<Constant>(op) || isa<LayoutReorder>(op)) continue;
      auto kernels = options_.kernels(op);
      any |= !kernels.empty();
      if (!kernels.empty()) kernels_.emplace(&op, std::move(kernels));
    }
    return any;
  }

  // ---- Tensors and nodes ----

  Result<size_t> add_tensor(Value& value) {
    const size_t type = table().type_of(value.type());
    model_.tensors.push_back({&value, type});
    model_.problem.tensors.push_back({name_of(value), type, {}, false, true});
    if (is_pinned(value)) TENON_OK(set_pin(model_.tensors.back()));
    return tensor_of_[&value] = model_.tensors.size() - 1;
  }
  Result<void> set_pin(LayoutModel::Tensor& tensor) {
    const Value& value = *tensor.value;
    tensor.pin = value.shared_layout();
    auto layout = table().add(tensor.type, tensor.pin->text, tensor.pin->dims);
    if (!layout.ok()) {
      return error(layout.error().code(), "value '", name_of(value), "' of type ", value.type(),
                   " cannot have the layout ", quote(tensor.pin->text), ": ", layout.error().message());
    }
    tensor.home = *layout;
    return {};
  }
  size_t add_node(LayoutModel::Node::Kind kind, Op* op, std::string name) {
    model_.problem.nodes.push_back({name, {}, {}, {}});
    model_.nodes.push_back({kind, op, {}, {}, std::move(name)});
    return model_.nodes.size() - 1;
  }
  void add_operand(size_t node, size_t tensor, LayoutModel::Place place) {
    problem_node(node).operands.push_back(tensor);
    model_.nodes[node].places.push_back(place);
  }

  Result<void> add_input(Value& value) {
    TENON_TRY(tensor, add_tensor(value));
    LayoutProblem::Tensor& given = model_.problem.tensors[tensor];
    given.given = model_.tensors[tensor].home;
    given.given_zero_pad = !is_pinned(value) || value.layout()->pad == PadState::zero;
    return {};
  }

  Result<void> add_constant(Op& op) {
    TENON_TRY(tensor, add_tensor(*op.result()));
    model_.problem.tensors[tensor].free = model_.tensors[tensor].type != LayoutTable::kOpaque;
    model_.problem.tensors[tensor].given = model_.tensors[tensor].home;
    return {};
  }

  Result<void> add_op(Op& op) {
    if (isa<Constant>(op)) return add_constant(op);
    if (isa<LayoutReorder>(op)) return add_pin(op);
    const size_t node = add_node(LayoutModel::Node::Kind::op, &op, op.describe());
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (op.operand(i)) add_operand(node, tensor_of_.at(op.operand(i)), {&op, i});
    }
    add_captured(node, op);
    for (size_t i = 0; i < op.result_count(); ++i) {
      TENON_TRY(tensor, add_tensor(*op.result(i)));
      problem_node(node).results.push_back(tensor);
    }
    return {};
  }

  // What operators inside regions read of the outer values.
  void add_captured(size_t node, const Op& op) {
    const auto add = [&](const Op& inner) {
      for (size_t i = 0; i < inner.operand_count(); ++i) {
        const auto found = tensor_of_.find(inner.operand(i));
        if (found != tensor_of_.end()) add_operand(node, found->second, {inner.operand_use(i).user(), i});
      }
    };
    for (size_t r = 0; r < op.region_count(); ++r) {
      const Region& region = op.region(r);
      for (const Op& inner : region) {
        add(inner);
        add_captured(node, inner);
      }
      add(region.return_op());
    }
  }

  // A node between the value as produced and the value in the user's layout.
  Result<void> add_pin(Op& reorder) {
    const size_t node =
        add_node(LayoutModel::Node::Kind::pin, &reorder, str("pin of '", name_of(*reorder.result()), "'"));
    add_operand(node, tensor_of_.at(reorder.operand(0)), {&reorder, 0});
    TENON_TRY(tensor, add_tensor(*reorder.result()));
    problem_node(node).results.push_back(tensor);
    const LayoutModel::Tensor& pinned = model_.tensors[tensor];
    const bool zero = pinned.pin->pad == PadState::zero;
    problem_node(node).implementations = {
        {{{pinned.home, zero}}, {pinned.home}, 0, zero ? PadEffect::zero : PadEffect::same}};
    model_.nodes[node].padded = {false};
    return {};
  }

  void add_output(size_t i) {
    if (!body().output(i)) return;
    Op* outputs = body().return_op().operand_use(i).user();
    const size_t node = add_node(LayoutModel::Node::Kind::output, outputs, str("output '", body().output_name(i), "'"));
    const size_t tensor = tensor_of_.at(body().output(i));
    add_operand(node, tensor, {outputs, i});
    problem_node(node).implementations = {{{{model_.tensors[tensor].home, false}}, {}, 0, PadEffect::zero}};
    model_.nodes[node].padded = {false};
  }

  // ---- Which layouts an oblivious operator may meet: those of its group ----

  bool has_kernels(size_t n) const { return kernels_.contains(model_.nodes[n].op); }
  bool is_free_to_choose(size_t n) const {
    return model_.nodes[n].kind == LayoutModel::Node::Kind::op && !has_kernels(n) &&
           takes_any_layout(*model_.nodes[n].op);
  }
  size_t rank_of(size_t tensor) const { return model_.table.dims(type_of(tensor)).size(); }

  size_t group_of(size_t tensor) {
    while (groups_[tensor] != tensor) tensor = groups_[tensor] = groups_[groups_[tensor]];
    return tensor;
  }
  void join_groups() {
    groups_.resize(model_.tensors.size());
    std::iota(groups_.begin(), groups_.end(), size_t{0});
    for (size_t n = 0; n < model_.nodes.size(); ++n) {
      const bool pin = model_.nodes[n].kind == LayoutModel::Node::Kind::pin;
      const LayoutProblem::Node& node = problem_node(n);
      if (node.results.empty() || (!pin && (!is_free_to_choose(n) || !is_elementwise(*model_.nodes[n].op)))) continue;
      for (const auto* list : {&node.operands, &node.results}) {
        for (const size_t tensor : *list) {
          const bool alike = rank_of(tensor) == rank_of(node.results[0]) && !model_.problem.tensors[tensor].free;
          if (alike) groups_[group_of(tensor)] = group_of(node.results[0]);
        }
      }
    }
    for (const LayoutModel::Tensor& tensor : model_.tensors) {
      if (!tensor.pin) continue;
      add_candidate(static_cast<size_t>(&tensor - model_.tensors.data()), tensor.pin->text, tensor.pin->dims);
    }
  }
  void add_candidate(size_t tensor, const std::string& text, std::string dims) {
    if (text.empty() || model_.problem.tensors[tensor].free) return;
    if (dims.empty()) {
      auto usual = default_layout_dims(text, rank_of(tensor));
      if (!usual.ok()) return;
      dims = *std::move(usual);
    }
    candidates_[group_of(tensor)].insert({text, std::move(dims)});
  }

  // ---- Kernels ----

  Result<void> seed(size_t n) {
    if (!has_kernels(n)) return {};
    const Op& op = *model_.nodes[n].op;
    for (const LayoutKernel& kernel : kernels_.at(&op)) {
      if (kernel.operands.size() > op.operand_count() || kernel.results.size() > op.result_count()) {
        return error(Code::invalid_argument, "kernel '", kernel.name, "' has layouts for ", kernel.operands.size(),
                     " operands and ", kernel.results.size(), " results; ", op.describe(), " has ", op.operand_count(),
                     " and ", op.result_count());
      }
      for (size_t i = 0; i < kernel.operands.size(); ++i) {
        if (op.operand(i))
          add_candidate(tensor_of_.at(op.operand(i)), kernel.operands[i].layout, kernel.operands[i].dims);
      }
      for (size_t i = 0; i < kernel.results.size(); ++i) {
        add_candidate(problem_node(n).results[i], kernel.results[i].layout, kernel.results[i].dims);
      }
    }
    return {};
  }

  // The layout of one port; nothing if the kernel does not apply to this operand: an exact split with a remainder, or a
  // layout for a type that can have none.
  Result<std::optional<size_t>> port_layout(size_t tensor, const LayoutKernel::Port& port) {
    auto layout = table().add(type_of(tensor), port.layout, port.dims);
    if (layout.ok()) return std::optional(*layout);
    if (type_of(tensor) == LayoutTable::kOpaque || layout_error_code(layout.error()) == "E_NOT_DIVISIBLE") {
      return std::optional<size_t>();
    }
    return error(layout.error().code(), "operand or result '", model_.problem.tensors[tensor].name, "' of type ",
                 model_.tensors[tensor].value->type(), " in the layout ", quote(port.layout), ": ",
                 layout.error().message());
  }

  Result<std::optional<Implementation>> implementation_of(size_t n, const LayoutKernel& kernel) {
    static const LayoutKernel::Port kRowMajor;
    const LayoutProblem::Node& node = problem_node(n);
    Implementation impl;
    impl.cost = kernel.cost;
    impl.pad = kernel.pad;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const size_t operand = model_.nodes[n].places[i].operand;
      const auto& port = operand < kernel.operands.size() ? kernel.operands[operand] : kRowMajor;
      TENON_TRY(layout, port_layout(node.operands[i], port));
      if (!layout) return std::optional<Implementation>();
      // A constant is filled once, as its layout states.
      const size_t type = type_of(node.operands[i]);
      const bool other_fill = table().entry(type, *layout).layout.fill() != uint64_t{0};
      if (port.needs_zero_pad && model_.problem.tensors[node.operands[i]].free && other_fill &&
          table().is_padded(type, *layout)) {
        return std::optional<Implementation>();
      }
      impl.operands.push_back({*layout, port.needs_zero_pad && table().is_padded(type, *layout)});
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      const auto& port = i < kernel.results.size() ? kernel.results[i] : kRowMajor;
      TENON_TRY(layout, port_layout(node.results[i], port));
      if (!layout) return std::optional<Implementation>();
      impl.results.push_back(*layout);
    }
    return std::optional(std::move(impl));
  }

  // Whether the implementation reads padding, so that it must run on it.
  static bool reads_padding(const Implementation& impl) {
    const auto needs = [](const Implementation::Port& port) { return port.needs_zero_pad; };
    return impl.pad == PadEffect::same || std::any_of(impl.operands.begin(), impl.operands.end(), needs);
  }
  bool has_padding(size_t n, const Implementation& impl) const {
    const LayoutProblem::Node& node = model_.problem.nodes[n];
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (model_.table.is_padded(type_of(node.operands[i]), impl.operands[i].layout)) return true;
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (model_.table.is_padded(type_of(node.results[i]), impl.results[i])) return true;
    }
    return false;
  }

  void add_implementation(size_t n, Implementation impl, bool padded) {
    auto& there = problem_node(n).implementations;
    const auto same = [&](const Implementation& other) {
      const auto ports = [](const auto& a, const auto& b) {
        return a.layout == b.layout && a.needs_zero_pad == b.needs_zero_pad;
      };
      return other.results == impl.results && other.pad == impl.pad && other.cost == impl.cost &&
             std::equal(other.operands.begin(), other.operands.end(), impl.operands.begin(), ports);
    };
    if (std::any_of(there.begin(), there.end(), same)) return;
    model_.nodes[n].padded.push_back(padded && has_padding(n, impl));
    there.push_back(std::move(impl));
  }

  Result<void> implement(size_t n) {
    if (model_.nodes[n].kind != LayoutModel::Node::Kind::op) return {};
    if (is_free_to_choose(n)) return implement_oblivious(n);
    if (!has_kernels(n)) return add_implementation(n, row_major(n), false), Result<void>();
    std::string tried;
    for (const LayoutKernel& kernel : kernels_.at(model_.nodes[n].op)) {
      TENON_TRY(impl, implementation_of(n, kernel), "kernel '", kernel.name, "'");
      for (const auto& port : kernel.operands) tried += str(" ", port.layout.empty() ? "row-major" : port.layout);
      if (impl) add_implementation(n, *impl, reads_padding(*impl));
    }
    if (!problem_node(n).implementations.empty()) return {};
    return error(Code::unsupported, "no kernel of the target fits its operands; their layouts are", tried,
                 ". Give it one that takes row-major operands");
  }
  Implementation row_major(size_t n) {
    Implementation impl;
    impl.operands.resize(problem_node(n).operands.size());
    impl.results.resize(problem_node(n).results.size());
    return impl;
  }

  // ---- Oblivious operators ----

  Result<void> implement_oblivious(size_t n) {
    add_implementation(n, row_major(n), false);
    const LayoutProblem::Node& node = problem_node(n);
    if (node.results.empty() || node.operands.empty()) return {};
    if (!is_elementwise(*model_.nodes[n].op)) return implement_shape_reader(n);
    const Dims& dims = table().dims(type_of(node.results[0]));
    for (const size_t result : node.results) {
      if (type_of(result) == LayoutTable::kOpaque || table().dims(type_of(result)) != dims) return {};
    }
    for (const size_t operand : node.operands) {
      const Type& type = model_.tensors[operand].value->type();
      if (!type.is_tensor() || !type.shape().ranked()) return {};
      if (type_of(operand) == LayoutTable::kOpaque && type.shape().rank() > 0) return {};
      if (!is_broadcast_to(type.shape(), model_.tensors[node.results[0]].value->type().shape())) return {};
    }
    const auto found = candidates_.find(group_of(node.results[0]));
    if (found == candidates_.end()) return {};
    for (const Text& text : found->second) {
      if (auto impl = oblivious_in(n, text)) add_implementation(n, *std::move(impl), true);
    }
    return {};
  }

  // Shape, Size: the elements do not matter, so any layout is possible.
  Result<void> implement_shape_reader(size_t n) {
    const auto found = candidates_.find(group_of(problem_node(n).operands[0]));
    if (found == candidates_.end() || problem_node(n).operands.size() != 1) return {};
    for (const Text& text : found->second) {
      const auto layout = table().add(type_of(problem_node(n).operands[0]), text.text, text.dims);
      if (!layout.ok()) continue;
      Implementation impl = row_major(n);
      impl.operands[0].layout = *layout;
      add_implementation(n, std::move(impl), false);
    }
    return {};
  }

  // Nothing if the text is not a layout for one of the results.
  std::optional<Implementation> oblivious_in(size_t n, const Text& text) {
    const LayoutProblem::Node& node = problem_node(n);
    Implementation impl;
    for (const size_t result : node.results) {
      const auto layout = table().add(type_of(result), text.text, text.dims);
      if (!layout.ok()) return std::nullopt;
      impl.results.push_back(*layout);
    }
    const Layout& made = table().entry(type_of(node.results[0]), impl.results[0]).layout;
    const auto reach = padded_dims(made);
    if (!reach) return std::nullopt;
    std::vector<const Tensor*> known(model_.nodes[n].op->operand_count());
    bool known_all = true;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const size_t operand = node.operands[i];
      impl.operands.push_back({operand_layout(operand, made, text), false});
      if (!meets_padding(operand, made, *reach)) continue;
      const Tensor*& tensor = known[model_.nodes[n].places[i].operand];
      tensor = constant_of(model_.tensors[operand].value);
      known_all &= tensor && tensor->size() == 1;
    }
    const bool keeps = made.padding() == 0 || (known_all && zeros_.keeps(*model_.nodes[n].op, known));
    impl.pad = keeps ? PadEffect::same : PadEffect::dirty;
    return impl;
  }

  // The layout for an operand of an operator whose result has this layout.
  size_t operand_layout(size_t operand, const Layout& made, const Text& text) {
    const Dims& dims = table().dims(type_of(operand));
    if (type_of(operand) == LayoutTable::kOpaque || dims.size() > text.dims.size()) return LayoutTable::kRowMajor;
    const auto own = for_last_dims(text, dims.size());
    if (!own || std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d == 1; })) return LayoutTable::kRowMajor;
    const auto layout = table().add(type_of(operand), own->text, own->dims);
    if (!layout.ok()) return LayoutTable::kRowMajor;
    // Padding along broadcast dims would be read as elements.
    const auto reach = padded_dims(table().entry(type_of(operand), *layout).layout);
    for (size_t d = 0; reach && d < dims.size(); ++d) {
      const int64_t extent = made.shape()[made.shape().size() - dims.size() + d];
      if (dims[d] == 1 && extent != 1 && (*reach)[d] != 1) return LayoutTable::kRowMajor;
    }
    return reach ? *layout : LayoutTable::kRowMajor;
  }

  // Whether elements of the operand are broadcast into padding of the result.
  bool meets_padding(size_t operand, const Layout& made, const Dims& reach) const {
    if (made.padding() == 0) return false;
    const Dims& dims = model_.table.dims(type_of(operand));
    for (size_t back = 1; back <= reach.size(); ++back) {
      const size_t d = reach.size() - back;
      const bool broadcast = back > dims.size() || dims[dims.size() - back] == 1;
      if (broadcast && reach[d] != made.shape()[d]) return true;
      // A single element for all positions, although the dims are equal: extent 1 on both sides.
    }
    return false;
  }

  Graph& graph_;
  const AssignLayoutsOptions& options_;
  LayoutModel model_;
  std::unordered_map<const Op*, std::vector<LayoutKernel>> kernels_;
  std::unordered_map<const Value*, size_t> tensor_of_;  // what users read
  std::vector<size_t> groups_;                          // by tensor: union-find
  std::map<size_t, std::set<Text>> candidates_;         // by group
  ZeroKeeping zeros_;
};

}  // namespace

Result<std::optional<LayoutModel>> make_layout_model(Graph& graph, const AssignLayoutsOptions& options) {
  return ModelBuilder(graph, options).make();
}

}  // namespace tenon
