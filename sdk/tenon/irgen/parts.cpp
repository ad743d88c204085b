// Values with gaps in the memory of others: operands that only a Concat reads are written in its result.
#include <tenon/irgen/lowering_internal.hpp>

namespace tenon::irgen::detail {
namespace {

// Where less than a cache line is contiguous, writing rows is no faster than copying them.
bool has_rows(const Shape& within, const Type& type) {
  constexpr double kLeastBytes = 64;
  const Shape& box = type.shape();
  double bytes = type.element().bits() / 8.0;
  for (size_t d = box.dims().size(); d-- > 0;) {
    if (!box[d].is_static()) return true;
    bytes *= static_cast<double>(box[d].value());
    if (!box[d].same_extent(within[d])) break;
  }
  return bytes >= kLeastBytes;
}

}  // namespace

void Lowering::share_with_gaps(LiveBytes& live) {
  // From the last, since the result of a Concat may be a part of another one.
  for (auto n = order_.rbegin(); n != order_.rend(); ++n) {
    Node& node = nodes_[*n];
    if (!node.plan) continue;
    if (node.plan->form == OpForm::call && node.plan->choice.writes_parts) write_parts(node, live);
    if (node.plan->form != OpForm::concat) continue;
    const Value& result = *node.results[0].value;
    const auto place = place_in_concat(result);
    if (place && live.merge_within_peak(places_.root(result), places_.storage(place->storage)))
      places_.move(result, *place);
  }
}

// Empty: others read it as well, or it is not a part with gaps that is worth a loop.
std::optional<Place> Lowering::place_in_concat(const Value& part) const {
  if (!part.has_one_use()) return std::nullopt;
  const Use* const use = part.first_use();
  const auto plan = plans_.find(use->user());
  if (plan == plans_.end() || plan->second.form != OpForm::concat || group_of_.contains(use->user()))
    return std::nullopt;
  const StorageId own = places_.root_of(part);
  const Storage& storage = places_.storage(own);
  const Value& whole = *use->user()->result();
  if (!places_.has(whole) || storage.kind != Storage::Kind::local || storage.values != 1 || !places_.covers_root(part))
    return std::nullopt;
  const Type& type = types_.type_of(part);
  const std::vector<Expr> begin = begin_of(plan->second, type.shape().dims().size(), use->index());
  Place place = place_of_part(whole, begin, type.shape());
  if (!place.within || place.storage == own || !has_rows(*place.within, type)) return std::nullopt;
  return place;
}

// One result after another: a kernel may accept some of them as parts and not others.
void Lowering::write_parts(Node& node, LiveBytes& live) {
  KernelRequest request = request_for(*node.op, types_);
  request.result_wholes.resize(node.results.size());
  for (size_t r = 0; r < node.results.size(); ++r) {
    const Value& result = *node.results[r].value;
    const auto place = place_in_concat(result);
    if (!place) continue;
    request.result_wholes[r] = *place->within;
    auto choice = kernels_.kernel(request);
    if (choice.ok() && live.merge_within_peak(places_.root(result), places_.storage(place->storage))) {
      places_.move(result, *place);
      node.writes_parts = *std::move(choice);
    } else {
      request.result_wholes[r] = Shape();
    }
  }
}

}  // namespace tenon::irgen::detail
