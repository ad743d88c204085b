#include "x86/body/byte_tables.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
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

class Tabulator {
 public:
  Tabulator(const Body& body, const NodeCycles& cycles)
      : body_(body), cycles_(cycles), from_(body.values.size(), kElse) {}

  Body run() && {
    std::vector<BodyPort> bytes;
    std::ranges::copy_if(body_.inputs, std::back_inserter(bytes), [&](const BodyPort& port) { return is_byte(port); });
    if (bytes.empty()) return std::move(body_);
    for (const BodyPort& port : bytes) from_[index(port.value)] = port.value;
    for (const BodyNode& node : body_.nodes) from_[index(node.result)] = source_of(node);
    for (const BodyPort& port : bytes) tabulate(port);
    return std::move(body_);
  }

 private:
  using Flags = std::vector<char>;  // one for each value
  // Alternatives to the input that a value is a function of.
  static constexpr ValueId kElse = -2, kConstant = -1;

  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  ElementType element(ValueId id) const { return body_.values[index(id)].element; }
  bool has_int32(ValueId id) const { return element(id).is_int() && element(id).bits() == 32; }
  bool is_byte(const BodyPort& port) const {
    const bool is_row = body_.rank() > 0 && (body_.values[index(port.value)].varies >> (body_.rank() - 1) & 1) != 0;
    return is_row && port.element.is_int() && port.element.bits() == 8 && has_int32(port.value);
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

  void tabulate(const BodyPort& port) {
    const auto may_be_table = [&](ValueId id) { return has_int32(id); };
    if (gain(worth(ends_of(port.value, may_be_table), port.value), port.value) <= 0) return;
    const std::vector<LaneBits> results = results_of(port);
    std::vector<std::optional<Attributes>> tables(body_.values.size());
    const auto is_table = [&](ValueId id) {
      if (has_int32(id) && !tables[index(id)]) tables[index(id)] = table_of(results[index(id)], element(id));
      return tables[index(id)].has_value();
    };
    const Flags ends = worth(ends_of(port.value, is_table), port.value);
    if (gain(ends, port.value) > 0) rewrite(ends, tables, port.value);
  }

  // Functions of `from` that determine all others that are outputs or are read by values that are not such functions:
  // the last ones that are `fit`.
  template <class Fit>
  Flags ends_of(ValueId from, const Fit& fit) const {
    Flags wanted(body_.values.size(), 0), ends(body_.values.size(), 0);
    for (const BodyPort& output : body_.outputs) wanted[index(output.value)] = 1;
    for (auto node = body_.nodes.rbegin(); node != body_.nodes.rend(); ++node) {
      const size_t at = index(node->result);
      const bool is_function = from_[at] == from;
      if (is_function && !wanted[at]) continue;
      if (is_function && fit(node->result))
        ends[at] = 1;
      else
        for (const ValueId operand : node->operands) wanted[index(operand)] = 1;
    }
    return ends;
  }

  // Drops functions that are cheaper to compute than to look up; if there are too many, keeps all.
  Flags worth(Flags ends, ValueId from) const {
    constexpr int64_t kMany = 64;  // each test traverses all nodes
    if (std::ranges::count(ends, 1) > kMany) return ends;
    double best = gain(ends, from);
    for (char& end : ends) {
      if (!end) continue;
      end = 0;
      const double without = gain(ends, from);
      end = without < best;
      best = std::max(best, without);
    }
    return ends;
  }

  // What still has to be computed when the values `tables` are looked up.
  Flags needed_beside(const Flags& tables) const {
    Flags needed(body_.values.size(), 0);
    for (const BodyPort& output : body_.outputs) needed[index(output.value)] = 1;
    for (auto node = body_.nodes.rbegin(); node != body_.nodes.rend(); ++node) {
      if (!needed[index(node->result)] || tables[index(node->result)]) continue;
      for (const ValueId operand : node->operands) needed[index(operand)] = 1;
    }
    return needed;
  }

  // Cycles saved for one vector.
  double gain(const Flags& tables, ValueId from) const {
    const Flags before = needed_beside(Flags(body_.values.size(), 0)), after = needed_beside(tables);
    double gained = 0;
    for (const BodyNode& node : body_.nodes) {
      const size_t at = index(node.result);
      if (from_[at] != from || !before[at]) continue;
      if (tables[at]) gained -= cycles_(body_, look_up(node, from, {}));
      if (tables[at] || !after[at]) gained += cycles_(body_, node);
    }
    return gained;
  }

  // ---- The tables ----

  // The results of constants and of functions of the byte, for bytes 0 to 255, or 0 to 127 and then -128 to -1; empty
  // where an evaluator fails.
  std::vector<LaneBits> results_of(const BodyPort& port) const {
    std::vector<LaneBits> results(body_.values.size());
    LaneBits& bytes = results[index(port.value)];
    bytes.resize(kTableEntries);
    std::iota(bytes.begin(), bytes.end(), uint64_t{0});
    if (port.element.is_signed_int())
      for (uint64_t& byte : bytes) byte = static_cast<uint32_t>(static_cast<int8_t>(byte));
    for (const BodyNode& node : body_.nodes) {
      const ValueId from = from_[index(node.result)];
      if (from == port.value || from == kConstant) results[index(node.result)] = evaluated(node, results);
    }
    return results;
  }
  LaneBits evaluated(const BodyNode& node, const std::vector<LaneBits>& results) const {
    if (node.op == kScalar)
      return LaneBits(kTableEntries, static_cast<uint64_t>(*node.attributes.find(kBits)->get_if<int64_t>()));
    std::vector<ElementType> types;
    std::vector<LaneBits> operands;
    for (const ValueId operand : node.operands) {
      types.push_back(element(operand));
      operands.push_back(results[index(operand)]);
      if (operands.back().empty()) return {};
    }
    auto made = snippet::evaluate_lanes(node.op, node.attributes, types, operands, element(node.result));
    return made.ok() ? *std::move(made) : LaneBits();
  }

  // None: some results do not fit a byte.
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

  void rewrite(const Flags& ends, std::vector<std::optional<Attributes>>& tables, ValueId from) {
    const Flags needed = needed_beside(ends);
    std::vector<BodyNode> all;
    for (BodyNode& node : body_.nodes) {
      const size_t at = index(node.result);
      if (!needed[at])
        body_.values[at] = {.element = kI32};  // unused now, so it must not determine the number of lanes
      else
        all.push_back(ends[at] ? look_up(node, from, *std::move(tables[at])) : std::move(node));
    }
    body_.nodes = std::move(all);
  }

  Body body_;
  const NodeCycles& cycles_;
  std::vector<ValueId> from_;
};

}  // namespace

Body with_byte_tables(const Body& body, const NodeCycles& cycles) { return Tabulator(body, cycles).run(); }

}  // namespace tenon::x86
