#include <tenon/snippet/tokenize/tokenize.hpp>

#include <algorithm>
#include <unordered_set>

#include <tenon/ir/builder.hpp>
#include <tenon/snippet/canonical/decompose.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/store_again.hpp>
#include <tenon/snippet/tokenize/tokenize_candidates_internal.hpp>
#include <tenon/snippet/tokenize/tokenize_contraction_internal.hpp>

namespace tenon::snippet {
namespace {

bool is_scalar_constant(const Value& value) {
  const Tensor* tensor = constant_of(&value);
  return tensor && tensor->size() == 1;
}

// Operators of one region, numbered in order. Constants have no numbers: they precede everything.
class RegionOps {
 public:
  explicit RegionOps(Region& region) {
    for (Op& op : region) {
      if (op.is("Constant")) continue;
      number_.emplace(&op, static_cast<int>(ops_.size()));
      ops_.push_back(&op);
    }
  }
  size_t size() const { return ops_.size(); }
  Op& operator[](int number) const { return *ops_[static_cast<size_t>(number)]; }
  // -1: a constant, an operator of another region, or none.
  int find(const Op* op) const {
    const auto known = number_.find(op);
    return known == number_.end() ? -1 : known->second;
  }
  // The operator of this region that `op` is, or that contains it; -1: it is the region's output.
  int enclosing(const Op* op) const {
    for (; op; op = op->parent() ? op->parent()->parent() : nullptr) {
      if (const int number = find(op); number != -1) return number;
    }
    return -1;
  }

 private:
  std::vector<Op*> ops_;
  std::unordered_map<const Op*, int> number_;
};

// Two operators that share a value, and the bytes that are saved when they are one kernel.
struct Link {
  int64_t bytes = 0;
  int first = -1, second = -1;
};

class Tokenizer {
 public:
  Tokenizer(Region& region, Candidates& candidates, const TokenizeOptions& options)
      : region_(region), options_(options), ops_(region), groups_(ops_.size()), contraction_(ops_.size()) {
    for (size_t i = 0; i < ops_.size(); ++i) {
      groups_[i].members = {static_cast<int>(i)};
      groups_[i].space = candidates.space_of(ops_[static_cast<int>(i)]);
      groups_[i].folding = groups_[i].space && groups_[i].space->folds() ? 1 : 0;
    }
  }

  Result<size_t> run() {
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (size_t r = 0; r < ops_[static_cast<int>(i)].result_count(); ++r)
        add_value(*ops_[static_cast<int>(i)].result(r), static_cast<int>(i));
    }
    add_shared_inputs();
    merge_all();
    return replace();
  }

 private:
  struct Group {
    std::vector<int> members;
    size_t folding = 0;          // of them
    std::optional<Space> space;  // none: not fusable, or part of another group
  };
  Group& group(int node) { return groups_[static_cast<size_t>(node)]; }
  bool fusable(int node) { return node != -1 && group(node).space.has_value(); }

  // ---- Links ----

  int64_t bytes_of(const Value& value) const {
    int64_t bytes = (value.type().element().bits() + 7) / 8;
    for (const Dim& dim : value.type().shape().dims()) {
      int64_t extent = options_.assumed_extent;
      if (dim.is_static()) extent = dim.value();
      bytes = bytes > INT64_MAX / std::max<int64_t>(extent, 1) ? INT64_MAX : bytes * extent;
    }
    return bytes;
  }

  // Edges and links of a value computed by operator `producer` (-1: outside of this region).
  void add_value(const Value& value, int producer) {
    std::vector<int> users;
    bool leaves = false;
    for (const Use* use = value.first_use(); use; use = use->next()) {
      const int user = ops_.enclosing(use->user());
      leaves = leaves || user == -1;
      if (user == -1) continue;
      if (producer != -1) contraction_.add_edge(producer, user);
      // A value for which the user has no axes is read from outside, or not at all.
      const bool reads = fusable(user) && group(user).space->find(value);
      leaves = leaves || !reads;
      if (reads) users.push_back(user);
    }
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    if (users.empty() || !value.type().is_tensor() || !value.type().shape().ranked()) return;
    const int64_t bytes = bytes_of(value);
    const int64_t kept = !leaves && users.size() == 1 ? std::min(bytes, INT64_MAX / 2) * 2 : bytes;
    if (fusable(producer)) {
      for (const int user : users) links_.push_back({kept, producer, user});
    }
    for (size_t i = 1; i < users.size(); ++i) links_.push_back({bytes, users[i - 1], users[i]});
  }

  // Values from outside that several operators read.
  void add_shared_inputs() {
    std::unordered_set<const Value*> seen;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!fusable(static_cast<int>(i))) continue;
      for (const Value* operand : ops_[static_cast<int>(i)].operands()) {
        if (!operand || ops_.find(operand->producer()) != -1 || is_scalar_constant(*operand)) continue;
        if (seen.insert(operand).second) add_value(*operand, -1);
      }
    }
  }

  // ---- Merges ----

  // Sorts links between groups, the heaviest first; several values shared by two groups are one link.
  void tidy(std::vector<Link>& links) {
    for (Link& link : links) {
      link = {link.bytes, contraction_.find(link.first), contraction_.find(link.second)};
      if (link.first > link.second) std::swap(link.first, link.second);
    }
    const auto ends = [](const Link& link) { return std::pair(link.first, link.second); };
    std::sort(links.begin(), links.end(), [&](const Link& a, const Link& b) { return ends(a) < ends(b); });
    size_t kept = 0;
    for (const Link& link : links) {
      if (link.first == link.second) continue;
      if (kept != 0 && ends(links[kept - 1]) == ends(link))
        links[kept - 1].bytes += std::min(link.bytes, INT64_MAX - links[kept - 1].bytes);
      else
        links[kept++] = link;
    }
    links.resize(kept);
    std::stable_sort(links.begin(), links.end(), [](const Link& a, const Link& b) { return a.bytes > b.bytes; });
  }

  // Merges the heaviest links first, those of similar weight together, since merges change the weights of lighter ones.
  // A merge may enable another one: repeats until nothing changes.
  void merge_all() {
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<Link> waiting = std::move(links_), refused;
      for (bool tidied = false; !waiting.empty();) {
        if (!std::exchange(tidied, true)) tidy(waiting);
        const int64_t least = waiting.empty() ? 0 : waiting[0].bytes / 2;
        const auto end = std::find_if(waiting.begin(), waiting.end(), [&](const Link& l) { return l.bytes < least; });
        for (auto link = waiting.begin(); link != end; ++link) {
          if (merge(*link))
            tidied = false;
          else
            refused.push_back(*link);
        }
        waiting.erase(waiting.begin(), end);
        changed = changed || !tidied;
      }
      links_ = std::move(refused);
    }
  }

  // True when the two are now one group.
  bool merge(const Link& link) {
    const int a = contraction_.find(link.first), b = contraction_.find(link.second);
    if (a == b) return true;
    if (!within_limits(group(a), group(b)) || !contraction_.mergeable(a, b)) return false;
    if (!group(a).space->merge(std::move(*group(b).space))) return false;
    const int kept = contraction_.merge(), gone = kept == a ? b : a;
    if (kept == b) std::swap(group(a).space, group(b).space);
    group(gone).space.reset();
    group(kept).folding += group(gone).folding;
    std::vector<int>&into = group(kept).members, &from = group(gone).members;
    if (into.size() < from.size()) std::swap(into, from);
    into.insert(into.end(), from.begin(), from.end());
    std::vector<int>().swap(from);
    return true;
  }

  bool within_limits(const Group& a, const Group& b) const {
    const size_t operators = a.members.size() + b.members.size();
    if (options_.max_operators != 0 && operators > options_.max_operators) return false;
    if (options_.max_folding != 0 && a.folding + b.folding > options_.max_folding) return false;
    if (options_.max_ports == 0) return true;
    std::vector<int> members = a.members;
    members.insert(members.end(), b.members.begin(), b.members.end());
    const Ports ports = ports_of(members);
    return ports.inputs.size() + ports.outputs.size() <= options_.max_ports;
  }

  //  // ---- Inputs and outputs ----

  struct Ports {
    std::vector<Value*> inputs, outputs, inner_constants;
  };

  Ports ports_of(const std::vector<int>& members) const {
    std::unordered_set<const Op*> inside;
    for (const int member : members) inside.insert(&ops_[member]);
    Ports ports;
    std::unordered_set<const Value*> seen;
    for (const int member : members) {
      Op& op = ops_[member];
      for (Value* operand : op.operands()) {
        if (!operand || inside.contains(operand->producer()) || !seen.insert(operand).second) continue;
        (stays_constant(*operand, inside) ? ports.inner_constants : ports.inputs).push_back(operand);
      }
      for (size_t r = 0; r < op.result_count(); ++r) {
        if (is_used_outside(*op.result(r), inside)) ports.outputs.push_back(op.result(r));
      }
    }
    return ports;
  }

  static bool is_used_outside(const Value& value, const std::unordered_set<const Op*>& inside) {
    for (const Use* use = value.first_use(); use; use = use->next()) {
      if (!inside.contains(use->user())) return true;
    }
    return false;
  }

  // Scalars, and operands that are not data: axes, shapes.
  bool stays_constant(const Value& value, const std::unordered_set<const Op*>& inside) const {
    if (!constant_of(&value)) return false;
    if (is_scalar_constant(value)) return true;
    for (const Use* use = value.first_use(); use; use = use->next()) {
      if (inside.contains(use->user()) && is_data(*use)) return false;
    }
    return true;
  }

  // Whether the operator reads elements of the value in the kernel.
  static bool is_data(const Use& use);

  // ---- Replacing ----

  // Removes views at the end of a group: outside they cost nothing, inside a second copy where their operand is an
  // output, too.
  void drop_views(std::vector<int>& members) const {
    std::unordered_set<const Op*> inside;
    for (const int member : members) inside.insert(&ops_[member]);
    for (size_t i = members.size(); i-- > 0;) {
      const Op& op = ops_[members[i]];
      bool used_inside = false;
      for (const Use* use = op.result()->first_use(); use; use = use->next())
        used_inside = used_inside || inside.contains(use->user());
      if (!is_view(op) || used_inside) continue;
      inside.erase(&op);
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  Result<size_t> replace() {
    size_t made = 0;
    for (Group& group : groups_) {
      if (!group.space) continue;
      std::sort(group.members.begin(), group.members.end());
      drop_views(group.members);
      const auto works = [&](int member) { return !is_view(ops_[member]); };
      if (std::none_of(group.members.begin(), group.members.end(), works)) continue;
      made += make_subgraph(group.members) ? 1 : 0;
    }
    if (made != 0) TENON_OK(region_.sort_topologically());
    return made;
  }

  // False for operators whose results are unused.
  bool make_subgraph(const std::vector<int>& members) {
    const Ports ports = ports_of(members);
    if (ports.outputs.empty()) return false;
    std::vector<Type> types;
    for (const Value* output : ports.outputs) types.push_back(output->type());
    Op& subgraph = region_.create(Subgraph::name(), ports.inputs, std::move(types), {}, &ops_[members.back()]);
    Region& body = subgraph.add_region();
    ValueMap map;
    for (const Value* input : ports.inputs) map[input] = body.add_input(input->name(), input->type());
    for (const Value* constant : ports.inner_constants) clone_op(*constant->producer(), body, nullptr, map);
    std::string label;
    for (const int member : members) {
      clone_op(ops_[member], body, nullptr, map);
      if (!ops_[member].label().empty()) label = ops_[member].label();
    }
    subgraph.set_label(std::move(label));
    for (size_t i = 0; i < ports.outputs.size(); ++i) {
      Value& output = *ports.outputs[i];
      body.add_output(map.at(&output), output.name().empty() ? str("out", i) : output.name());
      subgraph.result(i)->set_name(output.name());
      output.replace_all_uses_with(subgraph.result(i));
    }
    for (size_t i = members.size(); i-- > 0;) ops_[members[i]].erase();
    for (const Value* constant : ports.inner_constants) {
      if (!constant->used()) constant->producer()->erase();
    }
    return true;
  }

  Region& region_;
  const TokenizeOptions& options_;
  RegionOps ops_;
  std::vector<Group> groups_;
  Contraction contraction_;
  std::vector<Link> links_;
};

bool Tokenizer::is_data(const Use& use) {
  const DecomposeRow* row = find_decomposition(use.user()->name());
  if (!row) return true;
  auto space = row->space(*use.user());
  return !space.ok() || space->find(*use.value());
}

Result<size_t> tokenize_region(Region& region, Candidates& candidates, const TokenizeOptions& options) {
  TENON_TRY(made, Tokenizer(region, candidates, options).run());
  for (Op* op : region.ops()) {
    if (isa<Subgraph>(*op)) continue;
    for (size_t i = 0; i < op->region_count(); ++i) {
      TENON_TRY(inside, tokenize_region(op->region(i), candidates, options), "region ", i, " of ", op->describe());
      made += inside;
    }
  }
  return made;
}

}  // namespace

Result<size_t> tokenize_snippets(Graph& graph, const TokenizeOptions& options) {
  Candidates candidates(options);
  TENON_TRY(made, tokenize_region(graph.body(), candidates, options));
  if (made != 0 && options.stores_again) store_again(graph, options.stores_again);
  return made;
}

}  // namespace tenon::snippet
