#include "x86/body/byte_tables.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <tenon/snippet/linear/run_linear.hpp>

#include "x86/emitters/byte_tables.hpp"
#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using snippet::Body;
using snippet::BodyNode;
using snippet::BodyPort;
using snippet::LaneBits;
using snippet::ValueId;

// The functions of one byte are a cone of nodes. Each cone is looked at by itself, so the time is linear in the nodes.
class Tabulator {
 public:
  Tabulator(const Body& body, const NodeCycles& cycles)
      : body_(body),
        cycles_(cycles),
        from_(body.values.size(), kElse),
        results_(body.values.size()),
        wanted_(body.values.size(), 0),
        needed_(body.values.size(), 0) {}

  Body run() && {
    for (const BodyPort& port : body_.inputs)
      if (is_byte(port)) from_[index(port.value)] = port.value;
    find_cones();
    for (const BodyPort& port : body_.inputs)
      if (const auto cone = cones_.find(port.value); cone != cones_.end() && is_byte(port))
        tabulate(port, cone->second);
    if (tabulated_) drop_unneeded();
    return std::move(body_);
  }

 private:
  using Cone = std::vector<size_t>;  // nodes, operands before users
  using Flags = std::vector<char>;   // of each value
  // In place of the input that a value is a function of.
  static constexpr ValueId kElse = -2, kConstant = -1;

  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  ElementType element(ValueId id) const { return body_.values[index(id)].element; }
  bool has_int32(ValueId id) const { return element(id).is_int() && element(id).bits() == 32; }
  bool is_byte(const BodyPort& port) const {
    const bool is_row = body_.rank() > 0 && (body_.values[index(port.value)].varies >> (body_.rank() - 1) & 1) != 0;
    return is_row && port.element.is_int() && port.element.bits() == 8 && has_int32(port.value);
  }

  void find_cones() {
    for (size_t i = 0; i < body_.nodes.size(); ++i) {
      const BodyNode& node = body_.nodes[i];
      const ValueId from = from_[index(node.result)] = source_of(node);
      if (from >= 0) cones_[from].push_back(i);
      for (const ValueId operand : node.operands)
        if (from_[index(operand)] != from) wanted_[index(operand)] = 1;
    }
    for (const BodyPort& output : body_.outputs) wanted_[index(output.value)] = 1;
  }
  ValueId source_of(const BodyNode& node) const {
    static const Name kReducedCount("ReducedCount");
    if (node.op == kScalar) return kConstant;
    if (snippet::is_reduction(node.op) || node.op == kReducedCount || node.op == snippet::kSpread) return kElse;
    ValueId from = kConstant;
    for (const ValueId operand : node.operands) {
      const ValueId other = from_[index(operand)];
      if (other == kElse || (other != kConstant && from != kConstant && other != from)) return kElse;
      from = std::max(from, other);
    }
    const auto varies = [&](ValueId id) { return body_.values[index(id)].varies; };
    return from == kConstant || varies(node.result) == varies(from) ? from : kElse;
  }

  // ---- Which values become tables, and whether that pays ----

  void tabulate(const BodyPort& port, const Cone& cone) {
    const auto may_fit = [&](ValueId id) { return has_int32(id); };
    if (gain(cone, worth(cone, ends_of(cone, may_fit))) <= 0) return;
    evaluate(port, cone);
    std::map<ValueId, std::optional<Attributes>> tables;
    const auto fits = [&](ValueId id) {
      auto [table, is_new] = tables.try_emplace(id);
      if (is_new && has_int32(id)) table->second = table_of(results_[index(id)], element(id));
      return table->second.has_value();
    };
    const std::set<ValueId> ends = worth(cone, ends_of(cone, fits));
    if (gain(cone, ends) > 0) {
      tabulated_ = true;
      for (const size_t i : cone)
        if (BodyNode& node = body_.nodes[i]; ends.contains(node.result))
          node = look_up(node, port.value, *std::move(tables[node.result]));
    }
    for (const size_t i : cone) results_[index(body_.nodes[i].result)] = {};
  }

  // Visits the nodes of the cone that are needed, users first; the operands of those for which `is_end` holds are not.
  template <class IsEnd, class Visit>
  void for_needed(const Cone& cone, const IsEnd& is_end, const Visit& visit) {
    for (const size_t i : cone) needed_[index(body_.nodes[i].result)] = wanted_[index(body_.nodes[i].result)];
    for (auto i = cone.rbegin(); i != cone.rend(); ++i) {
      const BodyNode& node = body_.nodes[*i];
      if (!needed_[index(node.result)]) continue;
      const bool end = is_end(node.result);
      visit(node, end);
      for (const ValueId operand : node.operands)
        if (!end) needed_[index(operand)] = 1;
    }
  }

  // The last values that fit, from which all others follow that are needed outside of the cone.
  template <class Fits>
  std::set<ValueId> ends_of(const Cone& cone, const Fits& fits) {
    std::set<ValueId> ends;
    for_needed(cone, fits, [&](const BodyNode& node, bool end) {
      if (end) ends.insert(node.result);
    });
    return ends;
  }

  // Cycles of a vector of 32-bit lanes. Operators on integers and booleans usually run in lanes of bytes
  // (passes/bytes.cpp), four vectors at once, and so do tables; unpacking the result of one may cost more.
  double cycles_of(const BodyNode& node) const {
    constexpr double kVectors = 4;
    const auto may_be_bytes = [&](ValueId id) { return has_int32(id) || element(id).is_bool(); };
    const bool as_bytes = may_be_bytes(node.result) && std::ranges::all_of(node.operands, may_be_bytes);
    return cycles_(body_, node) / (as_bytes ? kVectors : 1);
  }
  double cycles_of_table(const BodyNode& node) const {
    constexpr double kMargin = 1;
    BodyNode table = look_up(node, from_[index(node.result)], {});
    table.op = "ByteTableBytes";
    return cycles_of(table) + kMargin;
  }
  // Cycles that tables save in place of `ends`.
  double gain(const Cone& cone, const std::set<ValueId>& ends) {
    double before = 0, after = 0;
    const auto no_end = [](ValueId) { return false; };
    const auto is_end = [&](ValueId id) { return ends.contains(id); };
    for_needed(cone, no_end, [&](const BodyNode& node, bool) { before += cycles_of(node); });
    for_needed(cone, is_end, [&](const BodyNode& node, bool end) {
      after += end ? cycles_of_table(node) : cycles_of(node);
    });
    return before - after;
  }

  // Without those that are computed in fewer cycles than a table takes. Of many ends all are kept.
  std::set<ValueId> worth(const Cone& cone, std::set<ValueId> ends) {
    constexpr size_t kMany = 64;  // each costs a visit of the cone
    if (ends.size() > kMany) return ends;
    double best = gain(cone, ends);
    for (const ValueId end : std::vector<ValueId>(ends.begin(), ends.end())) {
      ends.erase(end);
      const double without = gain(cone, ends);
      if (without < best) ends.insert(end);
      best = std::max(best, without);
    }
    return ends;
  }

  // ---- The tables ----

  // What each value of the cone is where the byte is 0 to 255, or 0 to 127 and -128 to -1; none where an evaluator
  // refuses. Constants are evaluated once, as one lane.
  void evaluate(const BodyPort& port, const Cone& cone) {
    if (!std::exchange(has_constants_, true))
      for (const BodyNode& node : body_.nodes)
        if (from_[index(node.result)] == kConstant) results_[index(node.result)] = evaluated(node, 1);
    LaneBits& bytes = results_[index(port.value)];
    bytes.resize(kTableEntries);
    std::iota(bytes.begin(), bytes.end(), uint64_t{0});
    if (port.element.is_signed_int())
      for (uint64_t& byte : bytes) byte = static_cast<uint32_t>(static_cast<int8_t>(byte));
    for (const size_t i : cone) results_[index(body_.nodes[i].result)] = evaluated(body_.nodes[i], kTableEntries);
    bytes = {};
  }
  LaneBits evaluated(const BodyNode& node, size_t lanes) const {
    if (node.op == kScalar) return {static_cast<uint64_t>(*node.attributes.find(kBits)->get_if<int64_t>())};
    std::vector<ElementType> types;
    std::vector<LaneBits> operands;
    for (const ValueId operand : node.operands) {
      const LaneBits& bits = results_[index(operand)];
      if (bits.empty()) return {};
      types.push_back(element(operand));
      operands.push_back(bits.size() == lanes ? bits : LaneBits(lanes, bits[0]));
    }
    auto made = snippet::evaluate_lanes(node.op, node.attributes, types, operands, element(node.result));
    return made.ok() ? *std::move(made) : LaneBits();
  }

  // None: a byte does not hold all of them.
  static std::optional<Attributes> table_of(const LaneBits& results, ElementType lane) {
    if (results.size() != kTableEntries) return std::nullopt;
    const auto are_within = [&](int32_t low, int32_t high) {
      return std::ranges::all_of(results, [&](uint64_t bits) {
        const auto value = static_cast<int32_t>(static_cast<uint32_t>(bits));
        return value >= low && value <= high;
      });
    };
    if (are_within(0, 255)) return byte_table(results, false);
    return lane.is_signed_int() && are_within(-128, 127) ? std::optional(byte_table(results, true)) : std::nullopt;
  }

  static BodyNode look_up(const BodyNode& node, ValueId from, Attributes table) {
    return {.op = kByteTable,
            .attributes = std::move(table),
            .operands = {from},
            .result = node.result,
            .label = node.label};
  }

  void drop_unneeded() {
    std::ranges::fill(needed_, 0);
    for (const BodyPort& output : body_.outputs) needed_[index(output.value)] = 1;
    for (auto node = body_.nodes.rbegin(); node != body_.nodes.rend(); ++node)
      for (const ValueId operand : node->operands) needed_[index(operand)] |= needed_[index(node->result)];
    std::erase_if(body_.nodes, [&](const BodyNode& node) {
      const bool drops = !needed_[index(node.result)];
      // A value that nothing computes must not decide how wide lanes are.
      if (drops) body_.values[index(node.result)] = {.element = kI32};
      return drops;
    });
  }

  Body body_;
  const NodeCycles& cycles_;
  std::vector<ValueId> from_;
  std::map<ValueId, Cone> cones_;
  std::vector<LaneBits> results_;
  bool has_constants_ = false, tabulated_ = false;
  Flags wanted_;  // read from outside of its cone
  Flags needed_;
};

}  // namespace

Body with_byte_tables(const Body& body, const NodeCycles& cycles) { return Tabulator(body, cycles).run(); }

}  // namespace tenon::x86
