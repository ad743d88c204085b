#include <tenon/ir/builder.hpp>
#include <tenon/irgen/dims.hpp>
#include <tenon/irgen/snippet_check_internal.hpp>
#include <tenon/snippet/body/body_bounds.hpp>
#include <tenon/snippet/body/params.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon::irgen::detail {
namespace {

using program::BufferView;

// Element `i` of a row-major tensor of the view's extents.
uint64_t bits_at(const BufferView& view, int64_t i) {
  const std::byte* place = view.base;
  for (const program::DimView& d : view.dims) {
    place += i % d.extent * d.stride;
    i /= d.extent;
  }
  return load_bits(place, view.element.bits(), 0);
}

Result<Tensor> tensor_over(const BufferView& view) {
  return Tensor::borrow(view.element, tensor_dims(view), view.base,
                        static_cast<size_t>(view.elements() * view.element_bytes()));
}

Dims index_of(int64_t element, const Dims& dims) {
  Dims index(dims.size());
  for (size_t d = dims.size(); d-- > 0; element /= dims[d]) index[d] = element % dims[d];
  return index;
}

std::string number(ElementType element, uint64_t bits) {
  if (element.is_float()) return str(decode_float(element, bits));
  if (!element.is_signed_int()) return str(bits);
  const int unused = 64 - element.bits();
  return str(static_cast<int64_t>(bits << unused) >> unused);
}

// The operator of the graph that computes an output.
std::string maker_of(const snippet::Body& body, size_t output) {
  for (const snippet::BodyNode& node : body.nodes)
    if (node.result == body.outputs[output].value) return node.label;
  return "an input as it is";
}

bool is_same(ElementType element, uint64_t a, uint64_t b) {
  if (a == b || !element.is_float()) return a == b;
  const double x = decode_float(element, a), y = decode_float(element, b);
  return x == y || (x != x && y != y);
}

// One output of a call.
struct Outcome {
  const snippet::Body& body;
  size_t output;
  const BufferView& got;
  const Tensor& wanted;

  Result<void> compare(const snippet::Bounds& of_code, const snippet::Bounds& of_reference) const {
    for (int64_t i = 0; i < got.elements(); ++i) {
      const auto at = static_cast<size_t>(i);
      const uint64_t made = bits_at(got, i);
      const uint64_t expected = load_bits(wanted.data(), got.element.bits(), i);
      if (!snippet::is_within(of_reference, got.element, at, expected))
        return refusal(i, "its body does not say what the reference makes: by the body, ", of_reference);
      if (is_same(got.element, made, expected) || snippet::is_within(of_code, got.element, at, made)) continue;
      return refusal(i, "", of_code);
    }
    return {};
  }

 private:
  Error refusal(int64_t i, std::string_view reason, const snippet::Bounds& bounds) const {
    const auto text = [this](uint64_t bits) { return number(got.element, bits); };
    const auto at = static_cast<size_t>(i);
    return error(Code::internal, "self-check of kernel '", body.name, "': output ", output, " at ",
                 index_of(i, tensor_dims(got)), " is ", text(bits_at(got, i)), ", the reference gives ",
                 text(load_bits(wanted.data(), got.element.bits(), i)), ", and ", reason, text(bounds.low[at]), " to ",
                 text(bounds.high[at]), " is allowed; it comes from ", maker_of(body, output));
  }
};

}  // namespace

Result<std::shared_ptr<const SnippetCheck>> SnippetCheck::make(const KernelRequest& request, const SnippetPorts& ports,
                                                               std::shared_ptr<const SnippetCompiler> compiler) {
  std::shared_ptr<SnippetCheck> made(new SnippetCheck);
  made->graph_ = std::make_unique<Graph>("check");
  Region& body = made->graph_->body();
  ValueMap map;
  size_t passed = 0;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    if (!request.passes(i)) continue;
    const Value* value = request.op.operand(i);
    const size_t place = passed++;
    if (map.contains(value)) continue;
    if (constant_of(value)) {
      clone_op(*value->producer(), body, nullptr, map);
      continue;
    }
    map[value] = body.add_input(str("x", i), request.operands[i]);
    made->inputs_.push_back(place);
  }
  const Op& op = clone_op(request.op, body, nullptr, map);
  for (size_t i = 0; i < op.result_count(); ++i) body.add_output(op.result(i), str("y", i));
  TENON_TRY(interpreter, Interpreter::prepare(*made->graph_), "the self-check of ", request.op.describe());
  made->interpreter_ = std::move(interpreter);
  made->ports_ = ports.operands;
  for (size_t j = 0; j < op.result_count(); ++j) made->ports_.push_back(ports.results + j);
  made->compiler_ = std::move(compiler);
  return std::shared_ptr<const SnippetCheck>(std::move(made));
}

Result<std::vector<Datum>> SnippetCheck::on_reference(std::span<const BufferView> operands) const {
  std::vector<Datum> inputs;
  for (const size_t place : inputs_) {
    TENON_TRY(tensor, tensor_over(operands[place]));
    inputs.emplace_back(std::move(tensor));
  }
  return interpreter_->run(inputs);
}

Result<void> SnippetCheck::check(const SnippetCode& code, std::span<const BufferView> operands) const {
  const snippet::Body& body = code.body;
  TENON_TRY(wanted, on_reference(operands), "the reference run of the self-check of kernel '", body.name, "'");
  std::vector<Dims> shapes;
  std::vector<const void*> inputs;
  for (const size_t place : ports_) shapes.push_back(tensor_dims(operands[place]));
  for (size_t i = 0; i < body.inputs.size(); ++i) inputs.push_back(operands[ports_[i]].base);
  TENON_TRY(extents, snippet::space_extents(body, shapes));
  snippet::BoundRules rules = compiler_->bound_rules();
  TENON_TRY(of_code, snippet::bound_body(body, extents, inputs, rules));
  rules.in_any_precision = true;
  TENON_TRY(of_reference, snippet::bound_body(body, extents, inputs, rules));
  for (size_t j = 0; j < body.outputs.size(); ++j) {
    const Outcome outcome{body, j, operands[ports_[body.inputs.size() + j]], wanted[j].tensor()};
    TENON_OK(outcome.compare(of_code[j], of_reference[j]));
  }
  return {};
}

}  // namespace tenon::irgen::detail
