#include <tenon/snippet/tokenize/take_crops.hpp>

#include <algorithm>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/movement.hpp>
#include <tenon/snippet/canonical/canonical_cuts_internal.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>

namespace tenon::snippet {
namespace {

// Whether it consists of several pieces, each worth a loop. Others are contiguous in the tensor's memory, or better
// copied.
bool is_worth_it(const Value& part, const std::vector<DimCut>& cuts) {
  constexpr double kLeastBytes = 64;
  const Shape& shape = part.type().shape();
  if (cuts.empty()) return false;
  const size_t innermost = cuts.front().dim;
  const auto before = shape.dims().begin() + static_cast<std::ptrdiff_t>(innermost);
  if (std::all_of(shape.dims().begin(), before, [](const Dim& dim) { return dim.is_one(); })) return false;
  double bytes = part.type().element().bits() / 8.0;
  for (size_t d = innermost; d < shape.dims().size(); ++d) {
    if (!shape[d].is_static()) return true;
    bytes *= static_cast<double>(shape[d].value());
  }
  return bytes >= kLeastBytes;
}

// The snippets that read `value`, each once; none where another operator reads it.
std::vector<Op*> snippets_reading(const Value& value) {
  std::vector<Op*> users;
  for (const Use* use = value.first_use(); use; use = use->next()) {
    if (!isa<Subgraph>(*use->user()) || use->user()->parent() != value.region()) return {};
    if (std::ranges::find(users, use->user()) == users.end()) users.push_back(use->user());
  }
  return users;
}

// Replaces `subgraph` by a copy, before it, in which `part` is computed inside.
Op& with_crop_inside(Op& subgraph, const Value& part) {
  ValueMap outside;
  Op& made = clone_op(subgraph, *subgraph.parent(), &subgraph, outside);
  Region& body = made.region(0);
  const Op& crop = *part.producer();
  std::vector<Value*> operands = made.operands();
  Op* const first = body.first();
  Value* const whole = crop.operand(0);
  const auto at = static_cast<size_t>(std::ranges::find(operands, whole) - operands.begin());
  if (at == operands.size()) {
    operands.push_back(whole);
    body.add_input(whole->name(), whole->type());
  }
  ValueMap inside{{whole, body.input(at)}};
  for (const Value* number : crop.operands())
    if (number && !inside.contains(number)) clone_op(*number->producer(), body, first, inside);
  clone_op(crop, body, first, inside);
  for (size_t i = operands.size(); i-- > 0;) {
    if (operands[i] != &part) continue;
    body.input(i)->replace_all_uses_with(inside.at(&part));
    body.erase_input(i);
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
  }
  made.set_operands(operands);
  return made;
}

bool has_known_numbers(const Op& crop) {
  for (size_t i = 1; i < crop.operand_count(); ++i)
    if (crop.operand(i) && !constant_of(crop.operand(i))) return false;
  return true;
}

void erase_with_numbers(Op& crop) {
  const std::vector<Value*> operands = crop.operands();
  crop.erase();
  for (size_t i = 1; i < operands.size(); ++i)
    if (operands[i] && !operands[i]->used() &&
        std::ranges::find(operands, operands[i]) - operands.begin() == static_cast<std::ptrdiff_t>(i))
      operands[i]->producer()->erase();
}

bool take_crop(Value& part, const std::function<bool(const Op&)>& accepts) {
  const std::vector<Op*> users = snippets_reading(part);
  std::vector<Op*> made;
  for (Op* user : users) {
    made.push_back(&with_crop_inside(*user, part));
    if (accepts(*made.back())) continue;
    for (Op* refused : made) refused->erase();
    return false;
  }
  for (size_t i = 0; i < users.size(); ++i) {
    for (size_t r = 0; r < users[i]->result_count(); ++r) {
      made[i]->result(r)->set_name(users[i]->result(r)->name());
      users[i]->result(r)->replace_all_uses_with(made[i]->result(r));
    }
    users[i]->erase();
  }
  return !users.empty();
}

}  // namespace

size_t take_crops(Graph& graph, const std::function<bool(const Op& subgraph)>& accepts) {
  std::vector<Op*> crops = graph.body().ops();
  std::erase_if(crops,
                [](const Op* op) { return !(isa<Slice>(*op) || isa<tenon::Split>(*op)) || !has_known_numbers(*op); });
  size_t taken = 0;
  for (Op* crop : crops) {
    for (size_t r = 0; r < crop->result_count(); ++r) {
      const auto cuts = cuts_of(*crop, r);
      if (cuts && is_worth_it(*crop->result(r), *cuts)) taken += take_crop(*crop->result(r), accepts);
    }
    if (!crop->has_uses()) erase_with_numbers(*crop);
  }
  return taken;
}

}  // namespace tenon::snippet
