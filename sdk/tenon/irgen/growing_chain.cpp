#include <tenon/irgen/growing_chain_internal.hpp>

#include <algorithm>
#include <cmath>

namespace tenon::irgen::detail {

Result<void> GrowingChain::begin(const Op& last, size_t result, const std::vector<int>& dims) {
  Member m{.op = &last, .result = result, .dims = dims};
  m.rate.fill(1);
  TENON_OK(look_at(m));
  add(std::move(m));
  return {};
}

Result<void> GrowingChain::add(const Op& op) {
  std::vector<Member> members;
  for (const size_t result : used_results(op)) {
    Member& m = members.emplace_back(Member{.op = &op, .result = result});
    TENON_OK(find_motion(m));
    TENON_OK(look_at(m));
  }
  if (members.empty()) return error(Code::unsupported, "nothing uses ", op.describe());
  for (Member& m : members) add(std::move(m));
  return {};
}

StripCost GrowingChain::strips(const std::vector<int64_t>& steps, double& working_set) const {
  double count = 1, windows = 0, inside = 0, repacked = 0, moving = members_[0].bytes, still = 0, arithmetic = 0;
  for (size_t l = 0; l < loops_; ++l) count *= std::ceil(members_[0].extent[l] / static_cast<double>(steps[l]));
  for (const Member& m : members_) {
    repacked += m.strided ? 2 * m.bytes : 0;
    arithmetic += m.arithmetic + (count - 1) * m.again;
    if (&m == &members_[0]) continue;
    windows += m.bytes * part_kept(m, steps);
    inside += 2 * m.bytes;
    repacked += m.strided ? 2 * m.bytes : 0;
  }
  for (const auto& [value, outside] : outside_) (outside.moves ? moving : still) += outside.bytes;
  working_set = windows + moving / count + still;
  StripCost cost(model_);
  cost.move(model_, moving, moving);
  cost.move(model_, still, still);
  cost.move_and_compute(model_, (count - 1) * still + inside, working_set, arithmetic);
  cost.move(model_, repacked, working_set);
  cost.seconds += (count * static_cast<double>(members_.size()) + 1) * model_.seconds_per_call;
  cost.peak_bytes = static_cast<int64_t>(windows);
  return cost;
}

StripCost GrowingChain::whole() const {
  StripCost cost(model_);
  std::unordered_map<const Value*, double> live;
  for (size_t i = members_.size(); i-- > 0;) {
    const bool is_counted = i + 1 < members_.size() && members_[i + 1].op == members_[i].op;
    const StripCost one = is_counted ? StripCost(model_) : whole_cost(*members_[i].op, options_, cache_.types());
    cost.seconds += one.seconds;
    for (size_t k = 0; k < one.moved_bytes.size(); ++k) cost.moved_bytes[k] += one.moved_bytes[k];
    if (i > 0) live[&members_[i].value()] = members_[i].bytes;
    double bytes = 0;
    for (const auto& [value, b] : live) bytes += b;
    cost.peak_bytes = std::max(cost.peak_bytes, static_cast<int64_t>(bytes));
    std::erase_if(live, [&](const auto& v) { return last_user(*v.first) >= i; });
  }
  return cost;
}

size_t GrowingChain::last_user(const Value& value) const {
  size_t last = members_.size();
  for (const Use* use : value.uses())
    if (const auto found = index_.find(use->user()); found != index_.end())
      last = std::min(last, found->second.front());
  return last;
}

Result<void> GrowingChain::look_at(Member& m) {
  const Result<StripReads>& reads = cache_.of(*m.op, m.result, m.dims);
  if (!reads.ok()) return reads.error();
  m.reads = &*reads;
  m.bytes = bytes_of(m.value(), cache_.types());
  m.arithmetic = cache_.arithmetic(*m.op, m.result);
  m.again = rereading(m);
  const Dims dims = *strip_dims(m.value(), cache_.types());
  for (size_t l = 0; l < loops_; ++l) m.extent[l] = static_cast<double>(dims[static_cast<size_t>(m.dims[l])]);
  for (int d = 0; d < m.dims.back(); ++d)
    m.strided = m.strided || (dims[static_cast<size_t>(d)] > 1 && std::ranges::count(m.dims, d) == 0);
  return {};
}

double GrowingChain::rereading(const Member& m) const {
  const double each = options_.arithmetic ? options_.arithmetic(*m.op).seconds_per_reread : 0;
  double seconds = 0;
  for (size_t i = 0; each > 0 && i < m.op->operand_count(); ++i) {
    const std::vector<StripWindow>& windows = m.reads->operands[i];
    if (!m.op->operand(i) || std::ranges::any_of(windows, [](const StripWindow& w) { return w.loop >= 0; })) continue;
    double elements = 1;
    for (const StripWindow& w : windows) elements *= w.span;
    seconds += elements * each;
  }
  return seconds;
}

void GrowingChain::add(Member m) {
  outside_.erase(&m.value());
  for (size_t i = 0; i < m.op->operand_count(); ++i) take_from_outside(m, i);
  index_[m.op].push_back(members_.size());
  members_.push_back(std::move(m));
}

void GrowingChain::take_from_outside(const Member& m, size_t operand) {
  const Value* value = m.op->operand(operand);
  if (!value) return;
  Outside& outside = outside_[value];
  outside.bytes = bytes_of(*value, cache_.types());
  for (const StripWindow& w : m.reads->operands[operand]) outside.moves = outside.moves || w.loop >= 0;
}

Result<void> GrowingChain::find_motion(Member& m) const {
  const Value& result = m.value();
  for (const Use* use : result.uses()) {
    if (result.region()->is_return(*use->user()))
      return error(Code::unsupported, "the result of ", m.op->describe(), " is an output of the graph");
    const auto users = index_.find(use->user());
    if (users == index_.end())
      return error(Code::unsupported, "the result of ", m.op->describe(), " is used outside of the chain");
    for (const size_t user : users->second) TENON_OK(move_with(m, members_[user], use->index()));
  }
  return {};
}

Result<void> GrowingChain::move_with(Member& m, const Member& user, size_t operand) const {
  const std::vector<int> dims = user.reads->moved_dims(operand, loops_);
  if (dims.empty() || std::ranges::count(dims, -1))
    return error(Code::unsupported, "the result of ", m.op->describe(), " is read whole by ", user.op->describe());
  if (!m.dims.empty() && m.dims != dims)
    return error(Code::unsupported, "the result of ", m.op->describe(), " is read along different dims");
  m.dims = dims;
  for (size_t l = 0; l < loops_; ++l) {
    const StripWindow& w = user.reads->operands[operand][static_cast<size_t>(dims[l])];
    m.rate[l] = std::max(m.rate[l], user.rate[l] * w.rate);
    m.extra[l] = std::max({m.extra[l], w.span - w.rate, 0.0});
  }
  return {};
}

double GrowingChain::part_kept(const Member& m, const std::vector<int64_t>& steps) const {
  double part = 1;
  for (size_t l = 0; l < loops_; ++l)
    part *= std::min(1.0, (std::ceil(static_cast<double>(steps[l]) * m.rate[l]) + m.extra[l]) / m.extent[l]);
  return part;
}

}  // namespace tenon::irgen::detail
