// Inside of the storey: the kinds of identities (identities.hpp), and the body whose nodes they make anew.
#pragma once
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// A body while its nodes are put anew, one after the other: what stands so far, and who will read it.
class NewBody {
 public:
  NewBody(snippet::Body body, std::vector<char>& rounded);

  // Of the body that was given; those that are kept take their place.
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
  // The node that makes the value, of those kept so far; null for an input. Good until another one is kept.
  const snippet::BodyNode* maker(snippet::ValueId id) const;
  const snippet::BodyNode* maker(snippet::ValueId id, Name op) const;
  // Of the body that was given.
  bool is_for_one(snippet::ValueId id) const { return index(id) < readers_.size() && readers_[index(id)] == 1; }

  bool rounded(snippet::ValueId id) const { return index(id) < rounded_.size() && rounded_[index(id)]; }
  void set_rounded(snippet::ValueId id) {
    rounded_.resize(body_.values.size(), 0);
    rounded_[index(id)] = 1;
  }

  snippet::ValueId add_value(const snippet::BodyValue& like) { return body_.add_value(like); }
  void keep(snippet::BodyNode node);
  // A Scalar, not yet kept; and one that is.
  snippet::BodyNode made_scalar(ElementType lane, uint64_t bits, const std::string& label) {
    return body_.make_scalar(lane, bits, label);
  }
  snippet::ValueId scalar(ElementType lane, uint64_t bits, const std::string& label);
  // `node` as `op` of `operands`, without attributes. Always true.
  static bool set(snippet::BodyNode& node, Name op, std::vector<snippet::ValueId> operands);

 private:
  snippet::Body body_;
  std::vector<char>& rounded_;
  std::vector<int> readers_;
  std::vector<int> makers_;  // place of the node that makes each value; -1: it is an input, or not yet made
};

// In which of the three orders of its operands a comparison holds, below 1, equal 2, above 4; none: it is no comparison.
std::optional<unsigned> orders_of(Name op);

// What a node comes to: the value that it is, or nothing, and `node` then is one of fewer operators where that is
// known.
class NodeIdentities {
 public:
  virtual ~NodeIdentities() = default;
  virtual std::optional<snippet::ValueId> of(snippet::BodyNode& node) = 0;
};

// Choices between values that are the same for all elements, and differences from what is chosen, of the nodes that are
// put anew.
std::unique_ptr<NodeIdentities> choice_identities(NewBody& body, std::span<const snippet::BodyNode> nodes);
// Choices by the order of what is chosen from, comparisons of the same values, signs that nobody sees.
std::unique_ptr<NodeIdentities> order_identities(NewBody& body);
// Floats that have no fraction to be dropped.
std::unique_ptr<NodeIdentities> whole_number_identities(NewBody& body);
// Integers that floats become, where one is a bound of the other, of the nodes that are put anew.
std::unique_ptr<NodeIdentities> conversion_identities(NewBody& body, std::span<const snippet::BodyNode> nodes);
// What is made of one integer and constants. Of nodes that nobody changes before they are kept.
std::unique_ptr<NodeIdentities> integer_identities(NewBody& body);
// The greatest and least of what rises or falls with what it is made of.
std::unique_ptr<NodeIdentities> fold_identities(NewBody& body);
// Integers as sums, of 32 bits and more; other nodes are left alone.
std::unique_ptr<NodeIdentities> sum_identities(NewBody& body);

}  // namespace tenon::x86
