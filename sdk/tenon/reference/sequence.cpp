#include <tenon/ops/sequence.hpp>

#include <algorithm>

#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/stack.hpp>

namespace tenon {
namespace {

using Elements = std::vector<Datum>;

// The position in operand `i`, which is at most `last`, or `last` if the operand is absent. Negative positions count
// from the last of `count` elements.
Result<int64_t> position(const EvalContext& context, size_t i, int64_t count, int64_t last) {
  if (!context.has_operand(i)) return last;
  const Tensor& given = context.tensor(i);
  if (given.size() != 1) return error(Code::invalid_argument, "a position must be one number, it is ", given);
  const int64_t place = given.int_at(0);
  if (last < 0) return error(Code::invalid_argument, "position ", place, " of an empty sequence, which has no element");
  if (place >= -count && place <= last) return place < 0 ? place + count : place;
  return error(Code::invalid_argument, "position ", place, " is outside [", -count, ", ", last, "] for a sequence of ",
               count, " elements");
}

Result<const Elements*> elements_of(const EvalContext& context) {
  if (context.datum(0).is_sequence()) return &context.datum(0).elements();
  return error(Code::invalid_argument, "operand 0 of ", context.op().describe(), " must be a sequence, it is ",
               context.datum(0).type());
}

Result<void> construct(EvalContext& context) {
  Elements elements;
  for (size_t i = 0; i < context.operand_count(); ++i) elements.push_back(context.datum(i));
  Type element(context.tensor(0).element(), Shape());
  context.set_output(0, Datum::sequence(std::move(elements), std::move(element)));
  return {};
}

Result<void> empty(EvalContext& context) {
  context.set_output(0, Datum::sequence({}, Type(context.attr<Type>("dtype", Type(kF32, Shape())).element(), Shape())));
  return {};
}

Result<void> at(EvalContext& context) {
  TENON_TRY(elements, elements_of(context));
  const auto count = static_cast<int64_t>(elements->size());
  TENON_TRY(place, position(context, 1, count, count - 1));
  context.set_output(0, (*elements)[static_cast<size_t>(place)]);
  return {};
}

Result<void> insert(EvalContext& context) {
  TENON_TRY(elements, elements_of(context));
  const auto count = static_cast<int64_t>(elements->size());
  TENON_TRY(place, position(context, 2, count, count));
  Elements more;
  more.reserve(elements->size() + 1);
  more.assign(elements->begin(), elements->begin() + place);
  more.push_back(context.datum(1));
  more.insert(more.end(), elements->begin() + place, elements->end());
  context.set_output(0, Datum::sequence(std::move(more), context.datum(0).element_type()));
  return {};
}

Result<void> erase(EvalContext& context) {
  TENON_TRY(elements, elements_of(context));
  if (elements->empty()) return error(Code::invalid_argument, "an empty sequence has no element to erase");
  const auto count = static_cast<int64_t>(elements->size());
  TENON_TRY(place, position(context, 1, count, count - 1));
  Elements rest = *elements;
  rest.erase(rest.begin() + place);
  context.set_output(0, Datum::sequence(std::move(rest), context.datum(0).element_type()));
  return {};
}

Result<void> length(EvalContext& context) {
  TENON_TRY(elements, elements_of(context));
  context.set_output(0, Tensor::scalar(static_cast<int64_t>(elements->size())));
  return {};
}

Result<void> map(EvalContext& context) {
  TENON_TRY(elements, elements_of(context));
  std::vector<Elements> made(context.result_count());
  for (size_t k = 0; k < elements->size(); ++k) {
    Elements inputs;
    for (size_t i = 0; i < context.operand_count(); ++i) {
      const Datum& given = context.datum(i);
      if (given.is_sequence() && k >= given.elements().size()) {
        return error(Code::invalid_argument, "operand ", i, " of ", context.op().describe(), " has ",
                     given.elements().size(), " elements, operand 0 has ", elements->size());
      }
      inputs.push_back(given.is_sequence() ? given.elements()[k] : given);
    }
    TENON_TRY(outputs, context.run_region(0, std::move(inputs)), "element ", k);
    for (size_t i = 0; i < made.size(); ++i) made[i].push_back(std::move(outputs[i]));
  }
  for (size_t i = 0; i < made.size(); ++i) {
    const Value* output = context.op().region(0).output(i);
    Type element = made[i].empty() ? (output ? output->type() : Type()) : made[i][0].type();
    if (element.is_tensor()) element = Type(element.element(), Shape());
    context.set_output(i, Datum::sequence(std::move(made[i]), std::move(element)));
  }
  return {};
}

// The lengths of the parts into which SplitToSequence splits an axis of `extent`.
Result<std::vector<int64_t>> part_lengths(const EvalContext& context, int64_t extent) {
  if (!context.has_operand(1)) return std::vector<int64_t>(static_cast<size_t>(extent), 1);
  const Tensor& split = context.tensor(1);
  std::vector<int64_t> lengths = split.to_ints();
  if (split.rank() == 0) {
    const int64_t each = lengths[0];
    if (each < 1) return error(Code::invalid_argument, "parts of length ", each, " are asked for");
    lengths.clear();
    for (int64_t begin = 0; begin < extent; begin += std::min(each, extent - begin))
      lengths.push_back(std::min(each, extent - begin));
  }
  int64_t total = 0;
  for (const int64_t part : lengths) {
    if (part < 0 || part > extent - total) total = -1;
    if (total < 0) break;
    total += part;
  }
  if (total == extent) return lengths;
  return error(Code::invalid_argument, "parts of the lengths ", lengths, " do not make up an axis of ", extent);
}

Result<void> split_to_sequence(EvalContext& context) {
  const Tensor& input = context.tensor(0);
  TENON_TRY(axis, normalize_axis(context.attr<int64_t>("axis", 0), input.rank()));
  TENON_TRY(lengths, part_lengths(context, input.dim(static_cast<size_t>(axis))));
  const bool drops_axis = !context.has_operand(1) && context.attr<int64_t>("keepdims", 1) == 0;
  Elements parts;
  int64_t begin = 0;
  for (const int64_t each : lengths) {
    TENON_TRY(part, drops_axis ? slice_at(context.parallel(), input, static_cast<size_t>(axis), begin)
                               : slices(context.parallel(), input, static_cast<size_t>(axis), begin, each));
    parts.emplace_back(std::move(part));
    begin += each;
  }
  context.set_output(0, Datum::sequence(std::move(parts), Type(input.element(), Shape())));
  return {};
}

Result<void> concat_from_sequence(EvalContext& context) {
  TENON_TRY(elements, elements_of(context));
  if (elements->empty()) return error(Code::invalid_argument, "an empty sequence has nothing to concatenate");
  std::vector<Tensor> parts;
  for (const Datum& element : *elements) parts.push_back(element.tensor());
  const bool stacks = context.attr<int64_t>("new_axis", 0) != 0;
  TENON_TRY(axis, normalize_axis(context.attr<int64_t>("axis"), parts[0].rank() + (stacks ? 1 : 0)));
  TENON_TRY(joined, stacks ? stack(context.parallel(), parts, static_cast<size_t>(axis))
                           : concatenate(context.parallel(), parts, static_cast<size_t>(axis)));
  context.set_output(0, std::move(joined));
  return {};
}

Result<void> optional(EvalContext& context) {
  context.set_output(0, context.has_operand(0) ? context.datum(0) : Datum());
  return {};
}

Result<void> get(EvalContext& context) {
  if (context.datum(0).absent()) {
    return error(Code::invalid_argument, "the optional holds nothing; ask OptionalHasElement before");
  }
  context.set_output(0, context.datum(0));
  return {};
}

Result<void> has_element(EvalContext& context) {
  context.set_output(0, Tensor::scalar(context.operand_count() > 0 && !context.datum(0).absent()));
  return {};
}

const EvaluatorRegistration kSequenceRegistered({
    {SequenceConstruct::kName, construct},
    {SequenceEmpty::kName, empty},
    {SequenceAt::kName, at},
    {SequenceInsert::kName, insert},
    {SequenceErase::kName, erase},
    {SequenceLength::kName, length},
    {SequenceMap::kName, map},
    {SplitToSequence::kName, split_to_sequence},
    {ConcatFromSequence::kName, concat_from_sequence},
    {Optional::kName, optional},
    {OptionalGetElement::kName, get},
    {OptionalHasElement::kName, has_element},
});

}  // namespace
}  // namespace tenon
