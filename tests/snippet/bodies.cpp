#include <snippet/bodies.hpp>
#include <support_lib/random_tensor.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <tenon/codegen/register.hpp>
#include <tenon/snippet/body/body_elements.hpp>
#include <tenon/support/str.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon::snippet::test {
namespace {

constexpr std::byte kUnwritten{0xa5};

uint64_t whole_number(ElementType element, int64_t value) {
  if (element.is_bool()) return value > 0;
  if (element.is_float()) return encode_float(element, static_cast<double>(value));
  return static_cast<uint64_t>(element.is_unsigned_int() ? value + 4 : value);
}

int64_t elements_from(DimSet set, size_t dim, const Dims& extents) {
  int64_t count = 1;
  for (size_t d = dim; d < extents.size(); ++d)
    if (set >> d & 1) count *= extents[d];
  return count;
}

// The offset in its tensor of element `k` of a port, in row-major order. Applies the outermost cut, then inner ones.
int64_t place_in_tensor(const BodyPort& port, size_t cuts, DimSet set, const Dims& extents, int64_t k) {
  if (cuts == 0) return k;
  const PortCut& cut = port.cuts[cuts - 1];
  const int64_t within = elements_from(set, static_cast<size_t>(cut.dim), extents), each = within / cut.box;
  int64_t whole_each = each;
  for (size_t i = 0; i + 1 < cuts; ++i) whole_each = whole_each / port.cuts[i].box * port.cuts[i].whole;
  const int64_t index = k / within * cut.whole + cut.begin + k % within / each;
  return index * whole_each + place_in_tensor(port, cuts - 1, set, extents, k % each);
}

// The number of elements of the tensor that a port is a part of.
int64_t tensor_elements(const BodyPort& port, DimSet set, const Dims& extents) {
  int64_t count = element_count(set, extents);
  for (const PortCut& cut : port.cuts) count = count / cut.box * cut.whole;
  return count;
}

class Evaluator {
 public:
  Evaluator(const Body& body, const Dims& extents, const Tensors& tensors, Sums sums)
      : body_(body), extents_(extents), sums_(sums), values_(body.values.size()) {
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      LaneBits& value = at(body.inputs[i].value);
      const int bits = body.inputs[i].element.bits();
      const DimSet set = varies(body.inputs[i].value);
      for (int64_t k = 0; k < element_count(set, extents); ++k) {
        const int64_t at = place_in_tensor(body.inputs[i], body.inputs[i].cuts.size(), set, extents, k);
        value.push_back(lane_of_memory(body.inputs[i].element, load_bits(tensors.ports[i].data(), bits, at)));
      }
    }
    for (const BodyNode& node : body.nodes) at(node.result) = make(node);
  }
  LaneBits& at(ValueId id) { return values_[static_cast<size_t>(id)]; }

 private:
  DimSet varies(ValueId id) const { return body_.values[static_cast<size_t>(id)].varies; }
  ElementType element(ValueId id) const { return body_.values[static_cast<size_t>(id)].element; }

  LaneBits make(const BodyNode& node) {
    const DimSet to = varies(node.result);
    const size_t size = static_cast<size_t>(element_count(to, extents_));
    if (node.op == "Scalar")
      return LaneBits(size, static_cast<uint64_t>(*node.attributes.find("bits")->get_if<int64_t>()));
    if (node.op == "ReducedCount") return count(node);
    if (node.op.view().starts_with("Reduce")) return reduce(node);
    std::vector<ElementType> from;
    std::vector<LaneBits> operands;
    for (const ValueId id : node.operands) {
      from.push_back(element(id));
      LaneBits& operand = operands.emplace_back();
      for (const size_t i : element_places(varies(id), to, extents_)) operand.push_back(at(id)[i]);
    }
    if (node.op == "Spread") return operands[0];
    if (size == 0) return {};
    auto made = evaluate_lanes(node.op, node.attributes, from, operands, element(node.result));
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return *made;
  }

  LaneBits count(const BodyNode& node) {
    const int64_t value = element_count(body_.reduced_dims(), extents_);
    const bool real = element(node.result) == kF32;
    return {real ? std::bit_cast<uint32_t>(static_cast<float>(value)) : static_cast<uint64_t>(value)};
  }

  LaneBits reduce(const BodyNode& node) {
    const DimSet to = varies(node.result), all = to | body_.reduced_dims();
    const Name by = *fold_of(node.op);
    const auto initial = static_cast<uint64_t>(*node.attributes.find("initial")->get_if<int64_t>());
    LaneBits made(static_cast<size_t>(element_count(to, extents_)), initial);
    const std::vector<size_t> from_at = element_places(varies(node.operands[0]), all, extents_);
    const std::vector<size_t> to_at = element_places(to, all, extents_);
    const LaneBits& from = at(node.operands[0]);
    if (sums_ == Sums::round_once && by == "Add" && element(node.result) == kF32)
      return real_sums(std::move(made), from, from_at, to_at);
    const std::vector<ElementType> types(2, element(node.result));
    for (size_t i = 0; i < from_at.size(); ++i) {
      const std::vector<LaneBits> pair{{made[to_at[i]]}, {from[from_at[i]]}};
      made[to_at[i]] = evaluate_lanes(by, {}, types, pair, types[0])->front();
    }
    return made;
  }
  static LaneBits real_sums(LaneBits initial, const LaneBits& from, const std::vector<size_t>& from_at,
                            const std::vector<size_t>& to_at) {
    const auto number = [](uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); };
    std::vector<double> sums;
    for (const uint64_t bits : initial) sums.push_back(number(bits));
    for (size_t i = 0; i < from_at.size(); ++i) sums[to_at[i]] += number(from[from_at[i]]);
    LaneBits made;
    for (const double sum : sums) made.push_back(std::bit_cast<uint32_t>(static_cast<float>(sum)));
    return made;
  }

  const Body& body_;
  const Dims& extents_;
  const Sums sums_;
  std::vector<LaneBits> values_;
};

// The gaps between the elements of a part of a tensor must not be written.
void expect_gaps(size_t output, const std::byte* got, const std::vector<char>& is_part, size_t element_bytes) {
  for (size_t i = 0; i < is_part.size() * element_bytes; ++i)
    if (!is_part[i / element_bytes] && got[i] != kUnwritten)
      FAIL() << "output " << output << ": byte " << i << " of the tensor, beside its part, is written";
}

void expect_same(const Body& body, size_t output, const Dims& extents, const std::byte* got,
                 const std::vector<std::byte>& want, double tolerance) {
  const BodyPort& port = body.outputs[output];
  const ElementType element = port.element;
  const DimSet set = body.values[static_cast<size_t>(port.value)].varies;
  const auto count = static_cast<int64_t>(want.size()) / (element.bits() / 8);
  std::vector<char> is_part(static_cast<size_t>(tensor_elements(port, set, extents)), 0);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = place_in_tensor(port, port.cuts.size(), set, extents, i);
    is_part[static_cast<size_t>(at)] = 1;
    const uint64_t a = load_bits(got, element.bits(), at), b = load_bits(want.data(), element.bits(), i);
    if (a == b) continue;
    if (element.is_float()) {
      const double x = decode_float(element, a), y = decode_float(element, b);
      if (x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y)))
        continue;
      FAIL() << "output " << output << " element " << i << ": " << x << ", expected " << y;
    }
    FAIL() << "output " << output << " element " << i << ": bits " << a << ", expected " << b;
  }
  expect_gaps(output, got, is_part, static_cast<size_t>(element.bits()) / 8);
}

}  // namespace

BodyBuilder::BodyBuilder(std::string name, std::string_view dims) {
  body_.name = std::move(name);
  for (size_t d = 0; d < dims.size(); ++d)
    body_.dims.push_back({.extent = Expr::symbol(str("N", d)), .reduced = dims[d] == 'r'});
}

ValueId BodyBuilder::value(ElementType element, DimSet varies) {
  body_.values.push_back({element, varies});
  return static_cast<ValueId>(body_.values.size()) - 1;
}
ValueId BodyBuilder::input(DimSet varies, ElementType element) {
  const ValueId id = value(codegen::lane_type(element), varies);
  body_.inputs.push_back({id, element});
  return id;
}
ValueId BodyBuilder::scalar(float value) { return scalar_bits(kF32, std::bit_cast<int32_t>(value)); }
ValueId BodyBuilder::scalar_bits(ElementType element, int64_t bits) {
  const ValueId id = value(element, 0);
  body_.nodes.push_back({.op = "Scalar", .attributes = {{"bits", bits}}, .result = id});
  return id;
}
ValueId BodyBuilder::op(const char* name, std::vector<ValueId> operands, Attributes attributes, ElementType element) {
  DimSet varies = 0;
  for (const ValueId id : operands) varies |= body_.values[static_cast<size_t>(id)].varies;
  if (!element.valid()) element = body_.values[static_cast<size_t>(operands.back())].element;
  const ValueId id = value(element, varies);
  body_.nodes.push_back({.op = name,
                         .attributes = std::move(attributes),
                         .operands = std::move(operands),
                         .result = id,
                         .label = str(name, " n", id)});
  return id;
}
ValueId BodyBuilder::spread(ValueId operand, DimSet over) {
  const BodyValue from = body_.values[static_cast<size_t>(operand)];
  const ValueId id = value(from.element, from.varies | over);
  body_.nodes.push_back({.op = kSpread, .operands = {operand}, .result = id, .label = str("Spread n", id)});
  return id;
}
ValueId BodyBuilder::reduce(const char* name, ValueId operand) {
  const BodyValue& from = body_.values[static_cast<size_t>(operand)];
  const std::string_view op = name;
  const bool real = from.element == kF32;
  int64_t initial = 0;
  if (op == "ReduceProd") initial = real ? std::bit_cast<int32_t>(1.0f) : 1;
  if (op == "ReduceMax") initial = real ? std::bit_cast<int32_t>(-INFINITY) : std::numeric_limits<int32_t>::min();
  if (op == "ReduceMin") initial = real ? std::bit_cast<int32_t>(INFINITY) : std::numeric_limits<int32_t>::max();
  const ValueId id = value(from.element, from.varies & ~body_.reduced_dims());
  body_.nodes.push_back({.op = name,
                         .attributes = {{"initial", initial & 0xffffffff}},
                         .operands = {operand},
                         .result = id,
                         .label = str(name, " n", id)});
  return id;
}
ValueId BodyBuilder::count(ElementType element) {
  const ValueId id = value(element, 0);
  body_.nodes.push_back({.op = "ReducedCount", .result = id, .label = "mean"});
  return id;
}
void BodyBuilder::output(ValueId value, ElementType element) {
  body_.outputs.push_back({value, element.valid() ? element : body_.values[static_cast<size_t>(value)].element});
}
Body BodyBuilder::take() {
  const auto checked = verify(body_);
  EXPECT_TRUE(checked.ok()) << checked.error().to_string();
  return std::move(body_);
}

Body softmax_body() {
  BodyBuilder build("softmax", "kr");
  const ValueId x = build.input(3);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Mul", {e, build.op("Div", {build.scalar(1), build.reduce("ReduceSum", e)})}));
  return build.take();
}

Body residual_softmax_body() {
  BodyBuilder build("residual", "kr");
  const ValueId x = build.input(3);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Add", {build.op("Div", {e, build.reduce("ReduceSum", e)}), x}));
  return build.take();
}

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

DimSet all_of(std::string_view dims) { return (DimSet{1} << dims.size()) - 1; }

// The maximum of x, or 0 if it is infinite.
ValueId finite_greatest(BodyBuilder& build, ValueId x) {
  const ValueId greatest = build.reduce("ReduceMax", x);
  const ValueId infinite = build.op("Equal", {build.op("Abs", {greatest}), build.scalar(kInfinity)}, {}, kBool);
  return build.op("Where", {infinite, build.scalar(0), greatest});
}

}  // namespace

Body softmax_and_sum_body(std::string_view dims) {
  BodyBuilder build("softmax", dims);
  const ValueId x = build.input(all_of(dims)), greatest = build.reduce("ReduceMax", x);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, greatest})}), sum = build.reduce("ReduceSum", e);
  build.output(build.op("Mul", {e, build.op("Div", {build.scalar(1), sum})}));
  if (dims.back() == 'r') build.output(sum);
  return build.take();
}

Body log_sum_exp_body(std::string_view dims) {
  BodyBuilder build("log_sum_exp", dims);
  const ValueId x = build.input(all_of(dims)), offset = finite_greatest(build, x);
  const ValueId sum = build.reduce("ReduceSum", build.op("Exp", {build.op("Sub", {x, offset})}));
  build.output(build.op("Sub", {x, build.op("Add", {offset, build.op("Log", {sum})})}));
  return build.take();
}

Body offset_softmax_body(std::string_view dims) {
  BodyBuilder build("offset_softmax", dims);
  const ValueId x = build.input(all_of(dims)), offset = finite_greatest(build, x);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, offset})});
  build.output(build.op("Mul", {e, build.op("Div", {build.scalar(1), build.reduce("ReduceSum", e)})}));
  return build.take();
}

Body norm_and_moments_body(std::string_view dims) {
  BodyBuilder build("norm", dims);
  const ValueId x = build.input(all_of(dims)), count = build.count();
  const ValueId mean = build.op("Div", {build.reduce("ReduceSum", x), count}), centred = build.op("Sub", {x, mean});
  const ValueId variance = build.op("Div", {build.reduce("ReduceSum", build.op("Mul", {centred, centred})), count});
  build.output(build.op("Div", {centred, build.op("Sqrt", {build.op("Add", {variance, build.scalar(1)})})}));
  if (dims.back() == 'r') build.output(mean), build.output(variance);
  return build.take();
}

void fill_specials(const Tensors& tensors, std::mt19937& random) {
  using tenon::testing::pick;
  const float specials[] = {kNaN, kInfinity, -kInfinity, -kInfinity, -0.0f, 80, -200};
  std::byte* const bytes = tensors.ports[0].data();
  const auto count = static_cast<int64_t>(tensors.ports[0].bytes() / sizeof(float));
  int left = 0, share = 1;
  float kind = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (left-- == 0) left = pick(random, 0, 40), kind = specials[pick(random, 0, 6)], share = 1 << pick(random, 0, 7);
    if (pick(random, 1, share) == 1) std::memcpy(bytes + static_cast<size_t>(i) * sizeof(float), &kind, sizeof(float));
  }
}

Tensors random_tensors(const Body& body, const Dims& extents, std::mt19937& random, testing::GuardAt outputs) {
  Tensors tensors;
  const auto bytes = [&](const BodyPort& port) {
    const DimSet varies = body.values[static_cast<size_t>(port.value)].varies;
    return static_cast<size_t>(tensor_elements(port, varies, extents) * (port.element.bits() / 8));
  };
  std::uniform_int_distribution<int64_t> numbers(-4, 4);
  for (const BodyPort& port : body.inputs) {
    tensors.ports.emplace_back(bytes(port));
    const size_t step = static_cast<size_t>(port.element.bits()) / 8;
    for (size_t at = 0; at < bytes(port); at += step) {
      const uint64_t bits = whole_number(port.element, numbers(random));
      std::memcpy(tensors.ports.back().data() + at, &bits, step);
    }
  }
  for (const BodyPort& port : body.outputs)
    tensors.ports.emplace_back(bytes(port), static_cast<int>(kUnwritten), outputs);
  return tensors;
}

std::vector<std::vector<std::byte>> evaluate_body(const Body& body, const Dims& extents, const Tensors& tensors,
                                                  Sums sums) {
  Evaluator evaluator(body, extents, tensors, sums);
  std::vector<std::vector<std::byte>> outputs;
  for (const BodyPort& port : body.outputs) {
    std::vector<std::byte>& bytes = outputs.emplace_back();
    for (const uint64_t lane : evaluator.at(port.value)) {
      const uint64_t bits = memory_of_lane(port.element, lane);
      const auto* first = reinterpret_cast<const std::byte*>(&bits);
      bytes.insert(bytes.end(), first, first + port.element.bits() / 8);
    }
  }
  return outputs;
}

TestMachine test_machine(int count, bool masks, bool greedy) {
  TestMachine machine;
  const auto numbers = [](int n) {
    std::vector<int> list;
    for (int i = 0; i < n; ++i) list.push_back(i);
    return list;
  };
  machine.pool.registers = {numbers(count), numbers(masks ? 3 : 0), numbers(count)};
  machine.pool.lane_mask_file = masks ? codegen::RegisterFile::mask : codegen::RegisterFile::vector;
  machine.needs = [greedy](const LinearKernel&, const Instruction& instruction) -> Result<InstructionNeeds> {
    InstructionNeeds needs;
    if (!greedy) return needs;
    const Name op = instruction.op;
    if (op == "Mul" || op == "Max" || op == "FoldLanes") needs.scratch.vectors = 1;
    if (op == "Add" || op == "Mul" || op == "FillTail") needs.early_result = true;
    if (op == "Load" || op == "Store") needs.scratch.generals = 1;
    return needs;
  };
  return machine;
}

void expect_outputs(const Body& body, const Dims& extents, const Tensors& tensors,
                    const std::vector<std::vector<std::byte>>& want, double tolerance) {
  for (size_t i = 0; i < want.size(); ++i)
    expect_same(body, i, extents, tensors.ports[body.inputs.size() + i].data(), want[i], tolerance);
}

void check_body(const Body& body, const Dims& extents, std::mt19937& random, const HarnessOptions& options) {
  SCOPED_TRACE(str(body.to_string(), "extents ", extents, " lanes ", options.lower.lanes, " unroll ",
                   options.lower.unroll, " parts ", options.parts));
  auto kernel = lower(body, options.lower);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  if (options.passes) {
    const auto passed = options.passes(*kernel);
    ASSERT_TRUE(passed.ok()) << passed.error().to_string();
  }
  if (kernel->blocks.dim >= 0 && kernel->blocks.sizes.empty()) kernel->blocks.sizes = options.blocks;
  auto checked = verify(*kernel);
  ASSERT_TRUE(checked.ok()) << checked.error().to_string() << "\n" << print(*kernel);
  if (options.machine) {
    const auto allocated = allocate(*kernel, options.machine->pool, options.machine->needs);
    ASSERT_TRUE(allocated.ok()) << allocated.error().to_string();
  } else {
    insert_shifts(*kernel);
  }
  checked = verify(*kernel);
  ASSERT_TRUE(checked.ok()) << checked.error().to_string() << "\n" << print(*kernel);
  SCOPED_TRACE(print(*kernel));
  const Tensors tensors = random_tensors(body, extents, random, options.outputs);
  if (options.fill) options.fill(tensors);
  const auto want = evaluate_body(body, extents, tensors, options.sums);
  const auto plan = CallPlan::make_for_extents(body, *kernel, extents);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  std::vector<void*> addresses;
  std::vector<LinearBuffer> buffers;
  for (size_t i = 0; i < tensors.ports.size(); ++i) {
    const tenon::test::GuardedBuffer& port = tensors.ports[i];
    const size_t inputs = body.inputs.size();
    const bool cut = !(i < inputs ? body.inputs[i] : body.outputs[i - inputs]).cuts.empty();
    ASSERT_TRUE(cut ? plan->port_bytes(i) <= port.bytes() : plan->port_bytes(i) == port.bytes()) << i;
    addresses.push_back(port.data());
    buffers.push_back({port.data(), port.bytes(), i >= body.inputs.size()});
  }
  const tenon::test::GuardedBuffer scratch(plan->scratch_bytes());
  buffers.push_back({scratch.data(), scratch.bytes(), true});
  const Split split = plan->split(options.parts, 1);
  const bool in_blocks = kernel->blocks.dim >= 0;
  ASSERT_TRUE(in_blocks || split.chunks() <= std::max<int64_t>(options.parts, 1)) << split.chunks();
  std::vector<int64_t> words(plan->words());
  const NeedsFn needs = options.machine ? options.machine->needs : nullptr;
  for (int64_t chunk = 0; chunk < split.chunks(); ++chunk) {
    plan->fill(words, addresses, scratch.data(), split, chunk);
    const auto ran = options.run ? options.run(*kernel, words) : run_linear(*kernel, words, buffers, needs);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
  }
  expect_outputs(body, extents, tensors, want, options.tolerance);
}

std::vector<int64_t> widths_of(int lanes) { return {0, 1, lanes - 1, lanes, lanes + 1, 2 * lanes + 3, 9 * lanes + 1}; }

}  // namespace tenon::snippet::test
