// The graph IR: operators as data over typed values in single-assignment form.
//
//   Graph   owns one body Region
//   Region  inputs (values), operators in an order in which producers precede users, outputs (named uses)
//   Op      name, operands (values; null = an optional operand that is absent), results (values), attributes, regions
//   Value   one result of an Op or one input of a Region; knows its type and all its uses
//
// A region inside an operator (If, Loop, Scan, Subgraph) may use values of the enclosing regions.
//
// Ownership: regions own their operators and inputs, operators own their results and regions. Pointers to them stay
// valid until erased. Threads: one thread may change a graph; several may read it while nobody changes it.
#pragma once
#include <atomic>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/ir/attribute.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/name.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon {

class Graph;
class Op;
class OpDef;
class Region;
class Value;
struct ValueLayout;

// One operand slot, linked into the list of its value's uses.
class Use {
 public:
  Value* value() const { return value_; }
  Op* user() const { return user_; }
  size_t index() const { return index_; }  // which operand of the user
  Use* next() const { return next_; }      // the next use of the same value; the order is unspecified

 private:
  friend class Op;
  friend class Region;
  friend class Value;
  void link(Value* value);
  void unlink();
  Value* value_ = nullptr;
  Op* user_ = nullptr;
  size_t index_ = 0;
  Use* previous_ = nullptr;
  Use* next_ = nullptr;
};

class TENON_API Value {
 public:
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;

  const Type& type() const { return type_; }
  void set_type(Type type) { type_ = std::move(type); }
  // The name in the model; may be empty, need not be unique. The text form makes names unique when printing.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  // Its layout in memory; null: row-major. Shared with copies of the graph, never changed in place. See
  // value_layout.hpp.
  const ValueLayout* layout() const { return layout_.get(); }
  const std::shared_ptr<const ValueLayout>& shared_layout() const { return layout_; }
  void set_layout(std::shared_ptr<const ValueLayout> layout) { layout_ = std::move(layout); }

  Op* producer() const { return producer_; }  // null for a region's input
  size_t index() const { return index_; }     // which result, or which input
  Region* region() const;                     // where it is defined

  Use* first_use() const { return first_use_; }
  bool used() const { return first_use_ != nullptr; }
  bool has_one_use() const { return first_use_ && !first_use_->next(); }
  size_t use_count() const;
  // All uses, as a snapshot that stays valid while uses change. A region's outputs count as uses.
  std::vector<Use*> uses() const;
  // Whether it is an output of the region that defines it.
  bool is_region_output() const;
  // Makes every use a use of `other`.
  void replace_all_uses_with(Value* other);

 private:
  friend class Op;
  friend class Region;
  friend class Use;
  Value() = default;

  Type type_;
  std::string name_;
  std::shared_ptr<const ValueLayout> layout_;
  Op* producer_ = nullptr;
  Region* input_of_ = nullptr;
  size_t index_ = 0;
  Use* first_use_ = nullptr;
};

class TENON_API Op {
 public:
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  Name name() const { return name_; }
  bool is(Name name) const { return name_ == name; }
  // The definition registered under name(), null while there is none.
  const OpDef* def() const {
    const OpDef* known = def_.load(std::memory_order_acquire);
    return known ? known : find_def();
  }
  // The node's own name in the model, for messages; may be empty.
  const std::string& label() const { return label_; }
  void set_label(std::string label) { label_ = std::move(label); }
  // "Conv 'layer1/conv' (%y)": for messages.
  std::string describe() const;

  size_t operand_count() const { return operand_count_; }
  // Null when `i` is beyond the last operand, or when the operand is absent.
  Value* operand(size_t i) const { return i < operand_count_ ? operands_[i].value() : nullptr; }
  std::vector<Value*> operands() const;
  void set_operand(size_t i, Value* value);
  void set_operands(std::span<Value* const> values);
  const Use& operand_use(size_t i) const { return operands_[i]; }

  size_t result_count() const { return result_count_; }
  Value* result(size_t i = 0) const { return &results_[i]; }
  bool has_uses() const;

  const Attributes& attributes() const { return attributes_; }
  Attributes& attributes() { return attributes_; }
  // The attribute, or `fallback` if it is absent or of another kind (the verifier reports a wrong kind).
  template <class T>
  T attr(Name name, T fallback = T()) const {
    const Attribute* found = attributes_.find(name);
    const T* value = found ? found->get_if<T>() : nullptr;
    return value ? *value : fallback;
  }
  void set_attr(Name name, Attribute value) { attributes_.set(name, std::move(value)); }

  size_t region_count() const { return regions_.size(); }
  Region& region(size_t i) const { return *regions_[i]; }
  Region& add_region();

  Region* parent() const { return parent_; }
  Op* next() const { return next_; }
  Op* previous() const { return previous_; }
  // Whether it precedes `other`, which is in the same region. Amortised constant time.
  bool is_before(const Op& other) const;
  // Moves within the same graph, before `other` (possibly in another region).
  void move_before(Op& other);
  // Frees the operator. Its results must have no uses (a program fault otherwise).
  void erase();

 private:
  friend class Region;
  friend class Graph;
  Op() = default;
  ~Op();
  void append_operand(Value* value);  // amortised constant time
  const OpDef* find_def() const;

  Name name_;
  mutable std::atomic<const OpDef*> def_ = nullptr;  // cached: definitions are never removed
  std::string label_;
  Region* parent_ = nullptr;
  Op* previous_ = nullptr;
  Op* next_ = nullptr;
  mutable uint64_t order_ = 0;
  size_t operand_count_ = 0;
  size_t operand_capacity_ = 0;
  size_t result_count_ = 0;
  std::unique_ptr<Use[]> operands_;
  Value* results_ = nullptr;
  Attributes attributes_;
  std::vector<std::unique_ptr<Region>> regions_;
};

class TENON_API Region {
 public:
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  Graph& graph() const { return *graph_; }
  Op* parent() const { return parent_; }  // null for a graph's body
  Region* outer() const { return parent_ ? parent_->parent() : nullptr; }

  size_t input_count() const { return inputs_.size(); }
  Value* input(size_t i) const { return inputs_[i].get(); }
  Value* add_input(std::string name, Type type);
  // The input must have no uses. Later inputs move up.
  void erase_input(size_t i);

  // Outputs are operands of a hidden operator, `return_op()`, after the last one, so they are uses like any other.
  size_t output_count() const { return return_op_->operand_count(); }
  Value* output(size_t i) const { return return_op_->operand(i); }
  void add_output(Value* value, std::string name);
  void set_output(size_t i, Value* value) { return_op_->set_operand(i, value); }
  void set_outputs(std::span<Value* const> values, std::vector<std::string> names);
  // The name under which callers know an output, whichever value it is.
  const std::string& output_name(size_t i) const { return output_names_[i]; }
  const Op& return_op() const { return *return_op_; }
  bool is_return(const Op& op) const { return &op == return_op_; }

  // Creates an operator before `before` (null: at the end), with `result_types.size()` results. Checks nothing: see
  // verify().
  Op& create(Name name, std::span<Value* const> operands, std::vector<Type> result_types, Attributes attributes = {},
             Op* before = nullptr);

  bool empty() const { return first_ == return_op_; }
  size_t op_count() const { return op_count_; }
  Op* first() const { return empty() ? nullptr : first_; }
  Op* last() const { return return_op_->previous_; }
  class Iterator {
   public:
    using value_type = Op;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(Op* op = nullptr) : op_(op) {}
    Op& operator*() const { return *op_; }
    Op* operator->() const { return op_; }
    Iterator& operator++() { return op_ = op_->next(), *this; }
    Iterator operator++(int) { auto old = *this; ++*this; return old; }
    bool operator==(const Iterator&) const = default;

   private:
    Op* op_;
  };
  // In order. Erasing the current operator invalidates the iterator; use for_each_op to change while iterating.
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(return_op_); }
  // A snapshot of the operators: safe to iterate over while operators are added; erased ones must not be accessed.
  std::vector<Op*> ops() const;

  // Sorts the operators so that producers come first, and keeps the present order where possible. A cycle is an error
  // that names its values.
  Result<void> sort_topologically();

 private:
  friend class Graph;
  friend class Op;
  Region(Graph& graph, Op* parent);
  void link_before(Op& op, Op& before);
  void unlink(Op& op);
  void renumber() const;
  void drop_uses();

  Graph* graph_;
  Op* parent_;
  std::vector<std::unique_ptr<Value>> inputs_;
  std::vector<std::string> output_names_;
  Op* return_op_ = nullptr;
  Op* first_ = nullptr;
  size_t op_count_ = 0;
  mutable std::atomic<bool> numbered_ = false;  // the operators' order_ is valid; reading threads may set it
};

class TENON_API Graph {
 public:
  explicit Graph(std::string name = "");
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  Region& body() { return *body_; }
  const Region& body() const { return *body_; }

  // Facts about the model that passes keep and export writes: "producer_name", "doc_string", "metadata.KEY" ...
  std::map<std::string, std::string>& properties() { return properties_; }
  const std::map<std::string, std::string>& properties() const { return properties_; }

  // Deep copy; tensors in attributes are shared.
  std::unique_ptr<Graph> clone() const;
  // The number of operators in all regions.
  size_t total_op_count() const;

 private:
  std::string name_;
  std::unique_ptr<Region> body_;
  std::map<std::string, std::string> properties_;
};

// Visits every operator of `region` and of nested regions, inner ones first. `visit` may erase the operator that it is
// given and add operators (which are not visited), but must not erase others.
TENON_API void for_each_op(Region& region, const std::function<void(Op&)>& visit);
TENON_API void for_each_op(const Region& region, const std::function<void(const Op&)>& visit);

// Copies `op` with its regions to before `before`. `map` gives the copies of values; values that it does not contain
// are used as they are. The copy's results are added to it.
using ValueMap = std::unordered_map<const Value*, Value*>;
TENON_API Op& clone_op(const Op& op, Region& into, Op* before, ValueMap& map);
// Copies the operators of `from` into `into` before `before`, with `inputs` in place of from's inputs; returns the
// copies of its outputs. For inlining a function or a branch.
TENON_API std::vector<Value*> clone_body(const Region& from, std::span<Value* const> inputs, Region& into, Op* before);
// Compares operators, connections, attributes, types, layouts and names of inputs and outputs; names of inner values
// and labels only if requested. `difference`, if given, receives a sentence.
struct EqualOptions {
  bool names = false;
  bool types = true;
};
// Not named `equal`: outside namespace tenon, std::equal would be found, too, and match better.
TENON_API bool same_graph(const Graph& a, const Graph& b, const EqualOptions& options = {},
                          std::string* difference = nullptr);

}  // namespace tenon
