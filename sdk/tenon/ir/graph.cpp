#include <tenon/ir/graph.hpp>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include <tenon/ir/op_def.hpp>
#include <tenon/ir/value_layout.hpp>

namespace tenon {
namespace {

// Distance between the order numbers of neighbours, so that most insertions find room without renumbering.
constexpr uint64_t kOrderGap = uint64_t{1} << 20;
const Name& return_name() {
  static const Name name("return");
  return name;
}

}  // namespace

// ---- Use and Value ----

void Use::link(Value* value) {
  value_ = value;
  if (!value) return;
  next_ = value->first_use_;
  if (next_) next_->previous_ = this;
  value->first_use_ = this;
}

void Use::unlink() {
  if (!value_) return;
  (previous_ ? previous_->next_ : value_->first_use_) = next_;
  if (next_) next_->previous_ = previous_;
  value_ = nullptr;
  previous_ = next_ = nullptr;
}

Region* Value::region() const { return producer_ ? producer_->parent() : input_of_; }

size_t Value::use_count() const {
  size_t count = 0;
  for (const Use* use = first_use_; use; use = use->next()) ++count;
  return count;
}

std::vector<Use*> Value::uses() const {
  std::vector<Use*> out;
  for (Use* use = first_use_; use; use = use->next()) out.push_back(use);
  return out;
}

bool Value::is_region_output() const {
  const Region* home = region();
  for (const Use* use = first_use_; use; use = use->next()) {
    if (home->is_return(*use->user())) return true;
  }
  return false;
}

void Value::replace_all_uses_with(Value* other) {
  TENON_CHECK(other && other != this, "a value's uses replaced by ", other ? "itself" : "nothing");
  while (first_use_) first_use_->user()->set_operand(first_use_->index(), other);
}

// ---- Op ----

Op::~Op() {
  regions_.clear();
  for (size_t i = 0; i < operand_count_; ++i) operands_[i].unlink();
  for (size_t i = 0; i < result_count_; ++i) {
    TENON_CHECK(!results_[i].used(), "result ", i, " of a freed ", name_, " is still used by ",
                results_[i].first_use()->user()->describe());
  }
  delete[] results_;
}

const OpDef* Op::find_def() const {
  const OpDef* found = find_op(name_);
  if (found) def_.store(found, std::memory_order_release);
  return found;
}

std::string Op::describe() const {
  std::string out = name_.str();
  if (!label_.empty()) out += str(" '", label_, "'");
  if (result_count_ > 0 && !results_[0].name().empty() && results_[0].name() != label_) {
    out += str(" (%", results_[0].name(), ")");
  }
  return out;
}

std::vector<Value*> Op::operands() const {
  std::vector<Value*> out(operand_count_);
  for (size_t i = 0; i < operand_count_; ++i) out[i] = operands_[i].value();
  return out;
}

void Op::set_operand(size_t i, Value* value) {
  TENON_CHECK(i < operand_count_, "operand ", i, " set of ", describe(), ", which has ", operand_count_);
  operands_[i].unlink();
  operands_[i].link(value);
}

void Op::set_operands(std::span<Value* const> values) {
  // `values` may be a view of operands that are about to be removed.
  const std::vector<Value*> wanted(values.begin(), values.end());
  for (size_t i = 0; i < operand_count_; ++i) operands_[i].unlink();
  if (wanted.size() != operand_count_) {
    operand_count_ = operand_capacity_ = wanted.size();
    operands_ = std::make_unique<Use[]>(operand_count_);
  }
  for (size_t i = 0; i < operand_count_; ++i) {
    operands_[i].user_ = this;
    operands_[i].index_ = i;
    operands_[i].link(wanted[i]);
  }
}

void Op::append_operand(Value* value) {
  if (operand_count_ == operand_capacity_) {
    const std::vector<Value*> held = operands();
    for (size_t i = 0; i < operand_count_; ++i) operands_[i].unlink();
    operand_capacity_ = std::max<size_t>(4, 2 * operand_capacity_);
    operands_ = std::make_unique<Use[]>(operand_capacity_);
    operand_count_ = 0;
    for (Value* operand : held) append_operand(operand);
  }
  Use& use = operands_[operand_count_];
  use.user_ = this;
  use.index_ = operand_count_++;
  use.link(value);
}

bool Op::has_uses() const {
  return std::any_of(results_, results_ + result_count_, [](const Value& value) { return value.used(); });
}

Region& Op::add_region() {
  regions_.push_back(std::unique_ptr<Region>(new Region(parent_->graph(), this)));
  return *regions_.back();
}

bool Op::is_before(const Op& other) const {
  TENON_CHECK(parent_ == other.parent_, "order asked of ", describe(), " and ", other.describe(),
              " in different regions");
  if (!parent_->numbered_.load(std::memory_order_acquire)) parent_->renumber();
  return order_ < other.order_;
}

void Op::move_before(Op& other) {
  if (this == &other) return;
  parent_->unlink(*this);
  other.parent_->link_before(*this, other);
}

void Op::erase() {
  parent_->unlink(*this);
  delete this;
}

// ---- Region ----

Region::Region(Graph& graph, Op* parent) : graph_(&graph), parent_(parent) {
  return_op_ = new Op;
  return_op_->name_ = return_name();
  return_op_->parent_ = this;
  first_ = return_op_;
}

Region::~Region() {
  drop_uses();
  for (Op* op = first_; op;) {
    Op* next = op->next_;
    delete op;
    op = next;
  }
}

// A graph that the verifier has refused may use values anywhere, so all uses are removed before any value is.
void Region::drop_uses() {
  for (Op* op = first_; op; op = op->next_) {
    for (size_t i = 0; i < op->operand_count_; ++i) op->operands_[i].unlink();
    for (auto& region : op->regions_) region->drop_uses();
  }
}

Value* Region::add_input(std::string name, Type type) {
  std::unique_ptr<Value> made(new Value);
  made->name_ = std::move(name);
  made->type_ = std::move(type);
  made->input_of_ = this;
  made->index_ = inputs_.size();
  inputs_.push_back(std::move(made));
  return inputs_.back().get();
}

void Region::erase_input(size_t i) {
  TENON_CHECK(i < inputs_.size() && !inputs_[i]->used(), "input ", i, " erased while in use or not there");
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(i));
  for (; i < inputs_.size(); ++i) inputs_[i]->index_ = i;
}

void Region::add_output(Value* value, std::string name) {
  output_names_.push_back(std::move(name));
  return_op_->append_operand(value);
}

void Region::set_outputs(std::span<Value* const> values, std::vector<std::string> names) {
  TENON_CHECK(values.size() == names.size(), values.size(), " outputs with ", names.size(), " names");
  return_op_->set_operands(values);
  output_names_ = std::move(names);
}

Op& Region::create(Name name, std::span<Value* const> operands, std::vector<Type> result_types, Attributes attributes,
                   Op* before) {
  Op* op = new Op;
  op->name_ = name;
  op->parent_ = this;
  op->attributes_ = std::move(attributes);
  op->result_count_ = result_types.size();
  op->results_ = result_types.empty() ? nullptr : new Value[result_types.size()];
  for (size_t i = 0; i < result_types.size(); ++i) {
    op->results_[i].type_ = std::move(result_types[i]);
    op->results_[i].producer_ = op;
    op->results_[i].index_ = i;
  }
  op->set_operands(operands);
  link_before(*op, before ? *before : *return_op_);
  return *op;
}

void Region::link_before(Op& op, Op& before) {
  op.parent_ = this;
  op.next_ = &before;
  op.previous_ = before.previous_;
  (before.previous_ ? before.previous_->next_ : first_) = &op;
  before.previous_ = &op;
  ++op_count_;
  if (!numbered_.load(std::memory_order_relaxed)) return;
  const uint64_t low = op.previous_ ? op.previous_->order_ : 0;
  if (&before == return_op_) {
    op.order_ = low + kOrderGap;
    before.order_ = op.order_ + kOrderGap;
  } else {
    op.order_ = low + (before.order_ - low) / 2;
    numbered_.store(op.order_ != low, std::memory_order_relaxed);
  }
}

void Region::unlink(Op& op) {
  (op.previous_ ? op.previous_->next_ : first_) = op.next_;
  op.next_->previous_ = op.previous_;
  op.previous_ = op.next_ = nullptr;
  --op_count_;
}

// Also called by threads that only read the graph: one of them writes.
void Region::renumber() const {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (numbered_.load(std::memory_order_relaxed)) return;
  uint64_t order = 0;
  for (Op* op = first_; op; op = op->next_) op->order_ = order += kOrderGap;
  numbered_.store(true, std::memory_order_release);
}

std::vector<Op*> Region::ops() const {
  std::vector<Op*> out;
  out.reserve(op_count_);
  for (Op& op : *this) out.push_back(&op);
  return out;
}

Result<void> Region::sort_topologically() {
  // An operator waits for the operators of this region whose results it uses, directly or in its regions (Kahn's
  // algorithm; ready operators are taken in their present order).
  const auto all = ops();
  std::unordered_map<const Op*, size_t> position;
  for (size_t i = 0; i < all.size(); ++i) position[all[i]] = i;
  std::vector<std::vector<size_t>> users(all.size());
  std::vector<size_t> waits(all.size(), 0);
  const auto depend = [&](size_t user, const Op& reader) {
    for (size_t k = 0; k < reader.operand_count(); ++k) {
      const Value* value = reader.operand(k);
      if (!value || !value->producer()) continue;
      const auto found = position.find(value->producer());
      if (found == position.end()) continue;
      users[found->second].push_back(user);
      ++waits[user];
    }
  };
  for (size_t i = 0; i < all.size(); ++i) {
    depend(i, *all[i]);
    for (size_t r = 0; r < all[i]->region_count(); ++r) {
      const std::function<void(const Region&)> inside = [&](const Region& region) {
        for (const Op& op : region) {
          depend(i, op);
          for (size_t k = 0; k < op.region_count(); ++k) inside(op.region(k));
        }
        depend(i, region.return_op());
      };
      inside(all[i]->region(r));
    }
  }
  std::vector<size_t> ready;
  for (size_t i = all.size(); i-- > 0;) {
    if (waits[i] == 0) ready.push_back(i);
  }
  std::vector<Op*> sorted;
  sorted.reserve(all.size());
  // A min-heap by position keeps the present order wherever it is valid.
  std::make_heap(ready.begin(), ready.end(), std::greater<>());
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    const size_t at = ready.back();
    ready.pop_back();
    sorted.push_back(all[at]);
    for (const size_t user : users[at]) {
      if (--waits[user] == 0) {
        ready.push_back(user);
        std::push_heap(ready.begin(), ready.end(), std::greater<>());
      }
    }
  }
  if (sorted.size() != all.size()) {
    std::string names;
    int shown = 0;
    for (size_t i = 0; i < all.size() && shown < 4; ++i) {
      if (waits[i] > 0) names += str(shown++ ? ", " : "", all[i]->describe());
    }
    return error(Code::invalid_argument, "the graph has a cycle, or operators that wait for one: ", names);
  }
  for (Op* op : sorted) op->move_before(*return_op_);
  return {};
}

// ---- Graph ----

Graph::Graph(std::string name) : name_(std::move(name)), body_(new Region(*this, nullptr)) {}
Graph::~Graph() = default;

void for_each_op(Region& region, const std::function<void(Op&)>& visit) {
  for (Op* op = region.first(); op && !region.is_return(*op);) {
    Op* next = op->next();
    for (size_t i = 0; i < op->region_count(); ++i) for_each_op(op->region(i), visit);
    visit(*op);
    op = next;
  }
}
void for_each_op(const Region& region, const std::function<void(const Op&)>& visit) {
  for (const Op& op : region) {
    for (size_t i = 0; i < op.region_count(); ++i) for_each_op(std::as_const(op.region(i)), visit);
    visit(op);
  }
}

size_t Graph::total_op_count() const {
  size_t count = 0;
  for_each_op(body(), [&](const Op&) { ++count; });
  return count;
}

}  // namespace tenon
