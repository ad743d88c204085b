#include <tenon/ir/text.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/plugin/plain_internal.hpp>

namespace tenon::plugin_room {

namespace {
constexpr int64_t kElideBeyond = 64;  // number of elements; the constants themselves are passed beside the text
}

PlainView::PlainView(const Graph& graph) {
  const Region& body = graph.body();
  for (size_t i = 0; i < body.input_count(); ++i) number(body.input(i));
  for (const Op& op : body) {
    for (size_t i = 0; i < op.result_count(); ++i) number(op.result(i));
    if (!isa<Constant>(op)) {
      add(op, nullptr);
      continue;
    }
    const Tensor& tensor = tensors_.emplace_back(*op.attributes().find("value")->get_if<Tensor>());
    tenon_tensor plain{sizeof(tenon_tensor),
                       keep_text(tensor.element().to_string()),
                       tensor.rank(),
                       keep(tensor.dims(), integers_),
                       nullptr,
                       tensor.bytes(),
                       nullptr,
                       0};
    plain.data = const_cast<std::byte*>(tensor.data());
    constants_.push_back({sizeof(tenon_constant), number(op.result()), plain});
  }
  std::vector<size_t> inputs, outputs;
  for (size_t i = 0; i < body.input_count(); ++i) inputs.push_back(number(body.input(i)));
  for (size_t i = 0; i < body.output_count(); ++i) outputs.push_back(number(body.output(i)));
  PrintOptions printing;
  printing.elide_beyond = kElideBeyond;
  graph_ = {sizeof(tenon_graph),
            text_view(graph.name()),
            keep_text(print(graph, printing)),
            types_.data(),
            types_.size(),
            ops_.data(),
            ops_.size(),
            constants_.data(),
            constants_.size(),
            nullptr,
            inputs.size(),
            nullptr,
            outputs.size()};
  graph_.inputs = keep(std::move(inputs), indices_);
  graph_.outputs = keep(std::move(outputs), indices_);
}

PlainView::PlainView(const Op& op) {
  std::vector<size_t> operands, results;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    types_.push_back(type_of(op.operand(i) ? op.operand(i)->type() : Type()));
    operands.push_back(op.operand(i) ? i : TENON_NO_VALUE);
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    types_.push_back(type_of(op.result(i)->type()));
    results.push_back(op.operand_count() + i);
  }
  add(op, types_.data());
  ops_.front().operands = keep(std::move(operands), indices_);
  ops_.front().results = keep(std::move(results), indices_);
}

tenon_type PlainView::type_of(const Type& type) {
  tenon_type out{sizeof(tenon_type), {nullptr, 0}, -1, nullptr};
  if (!type.is_tensor() || !type.element().valid()) return out;
  out.element = keep_text(type.element().to_string());
  if (!type.shape().ranked()) return out;
  std::vector<int64_t> dims;
  for (const Dim& dim : type.shape().dims()) dims.push_back(dim.is_static() ? dim.value() : -1);
  out.rank = static_cast<int64_t>(dims.size());
  out.dims = keep(std::move(dims), integers_);
  return out;
}

size_t PlainView::number(const Value* value) {
  if (!value) return TENON_NO_VALUE;
  const auto [entry, fresh] = numbering_.emplace(value, types_.size());
  if (fresh) types_.push_back(type_of(value->type()));
  return entry->second;
}

void PlainView::add(const Op& op, const tenon_type* types) {
  std::vector<tenon_attribute> attributes;
  for (const auto& [name, attribute] : op.attributes()) {
    std::vector<int64_t> integers;
    std::vector<double> numbers;
    if (const auto* one = attribute.get_if<int64_t>()) integers = {*one};
    if (const auto* many = attribute.get_if<Attribute::Integers>()) integers = *many;
    if (const auto* one = attribute.get_if<float>()) numbers = {*one};
    if (const auto* many = attribute.get_if<Attribute::Reals>()) numbers.assign(many->begin(), many->end());
    PrintOptions printing;
    printing.elide_beyond = kElideBeyond;
    tenon_attribute plain{sizeof(tenon_attribute),
                          text_view(name.view()),
                          keep_text(print(attribute, printing)),
                          nullptr,
                          integers.size(),
                          nullptr,
                          numbers.size()};
    plain.integers = keep(std::move(integers), integers_);
    plain.numbers = keep(std::move(numbers), numbers_);
    attributes.push_back(plain);
  }
  tenon_op plain{sizeof(tenon_op),
                 text_view(op.name().view()),
                 text_view(op.label()),
                 nullptr,
                 op.operand_count(),
                 nullptr,
                 op.result_count(),
                 nullptr,
                 attributes.size(),
                 op.region_count(),
                 types};
  plain.attributes = keep(std::move(attributes), attributes_);
  if (!types) {
    std::vector<size_t> operands, results;
    for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(number(op.operand(i)));
    for (size_t i = 0; i < op.result_count(); ++i) results.push_back(number(op.result(i)));
    plain.operands = keep(std::move(operands), indices_);
    plain.results = keep(std::move(results), indices_);
  }
  ops_.push_back(plain);
}

}  // namespace tenon::plugin_room
