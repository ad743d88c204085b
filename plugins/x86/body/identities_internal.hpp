// Inside the storey: the kinds of identities (identities.hpp), and the body whose nodes they rewrite.
#pragma once
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// A body whose nodes are rewritten one after the other: the nodes so far, and who reads their results.
class NewBody {
 public:
  NewBody(snippet::Body body, std::vector<char>& rounded);

  // The nodes of the given body; the nodes that are kept replace them.
  std::vector<snippet::BodyNode> take_nodes();
  snippet::Body& body() { return body_; }

  static size_t index(snippet::ValueId id) { return static_cast<size_t>(id); }
  const snippet::BodyValue& value(snippet::ValueId id) const { return body_.values[index(id)]; }
  size_t value_count() const { return body_.values.size(); }
  ElementType element(snippet::ValueId id) const { return value(id).element; }
  snippet::DimSet varies(snippet::ValueId id) const { return value(id).varies; }
  bool is_int(snippet::ValueId id) const { return element(id).is_int() && element(id).bits() >= 32; }
  bool alike(snippet::ValueId a, snippet::ValueId b) const {
    return element(a) == element(b) && varies(a) == varies(b);
  }
  bool vary_as(std::initializer_list<snippet::ValueId> operands, snippet::ValueId result) const;
  // The node that computes the value, among those kept so far; null for an input. Valid until another node is kept.
  const snippet::BodyNode* maker(snippet::ValueId id) const;
  const snippet::BodyNode* maker(snippet::ValueId id, Name op) const;
  // Whether the given body reads the value once.
  bool is_for_one(snippet::ValueId id) const { return index(id) < readers_.size() && readers_[index(id)] == 1; }

  bool rounded(snippet::ValueId id) const { return index(id) < rounded_.size() && rounded_[index(id)]; }
  void set_rounded(snippet::ValueId id) {
    rounded_.resize(body_.values.size(), 0);
    rounded_[index(id)] = 1;
  }

  snippet::ValueId add_value(const snippet::BodyValue& like) { return body_.add_value(like); }
  void keep(snippet::BodyNode node);
  // A Scalar that is not yet kept; and the value of one that is.
  snippet::BodyNode made_scalar(ElementType lane, uint64_t bits, const std::string& label) {
    return body_.make_scalar(lane, bits, label);
  }
  snippet::ValueId scalar(ElementType lane, uint64_t bits, const std::string& label);
  // Turns `node` into `op` of `operands`, without attributes. Always returns true.
  static bool set(snippet::BodyNode& node, Name op, std::vector<snippet::ValueId> operands);

 private:
  snippet::Body body_;
  std::vector<char>& rounded_;
  std::vector<int> readers_;
  std::vector<int> makers_;  // index of the node that computes each value; -1: an input, or not yet computed
};

// The orders of its operands for which a comparison holds: below 1, equal 2, above 4; none: it is no comparison.
std::optional<unsigned> orders_of(Name op);

// One kind of identities. of() returns the existing value that the node equals; or it returns nothing, and has turned
// `node` into a cheaper operator where an identity applies.
class NodeIdentities {
 public:
  virtual ~NodeIdentities() = default;
  virtual std::optional<snippet::ValueId> of(snippet::BodyNode& node) = 0;
};

// Choices between values that are uniform (the same for all elements), and differences with such choices. `nodes`: the
// nodes that are rewritten.
std::unique_ptr<NodeIdentities> choice_identities(NewBody& body, std::span<const snippet::BodyNode> nodes);
// Choices by the order of their alternatives, comparisons of the same values, redundant signs.
std::unique_ptr<NodeIdentities> order_identities(NewBody& body);
// Rounding to integers of floats that have no fraction.
std::unique_ptr<NodeIdentities> whole_number_identities(NewBody& body);
// Conversions of floats to integers, where one of them is bounded. `nodes`: the nodes that are rewritten.
std::unique_ptr<NodeIdentities> conversion_identities(NewBody& body, std::span<const snippet::BodyNode> nodes);
// Expressions of one integer and constants. Must see each node in the form in which it is kept.
std::unique_ptr<NodeIdentities> integer_identities(NewBody& body);
// Maxima and minima of values that are monotone in another value.
std::unique_ptr<NodeIdentities> fold_identities(NewBody& body);
// Integers as linear sums, of 32 bits and more; other nodes are left unchanged.
std::unique_ptr<NodeIdentities> sum_identities(NewBody& body);

}  // namespace tenon::x86
