#include <tenon/irgen/statements_internal.hpp>

#include <algorithm>
#include <set>

#include <tenon/irgen/dims.hpp>

namespace tenon::irgen::detail {
namespace {

// Most nested views around a call: fewer than program::kMaxDepth.
constexpr size_t kMostViews = 256;

// Sets the strides of a dense tensor of the shape `within`.
void set_strides(std::vector<program::Dim>& dims, const Shape& within, ElementType element) {
  Expr stride = element.bits() / 8;
  for (size_t d = 0; d < dims.size(); ++d) {
    dims[d].stride = stride;
    stride = stride * within[dims.size() - 1 - d].expr();
  }
}

bool is_same(const Place& a, const Place& b) {
  return a.storage == b.storage && a.offset == b.offset && a.within == b.within;
}

}  // namespace

using program::Access;
using program::Block;
using program::BufferId;
using program::Call;
using program::Copy;
using program::Region;
using program::Statement;
using program::View;

StatementMaker::StatementMaker(Lowering& lowering) : lowering_(lowering) {
  for (int d = 0; d < program::kMaxRank; ++d) indices_.push_back(fresh_name(str("i", d)));
}

Result<Statement> StatementMaker::make(const Node& node) {
  used_.clear();
  workspaces_.clear();
  if (node.group) {
    TENON_TRY(statement, node.group->lower(*this), "the group of ", node.group->ops.front()->describe());
    return within_views(std::move(statement));
  }
  if (node.output != kNever) return within_views(output(node));
  switch (node.plan->form) {
    case OpForm::call: return within_views(call(node));
    case OpForm::crop: return crop(node);
    case OpForm::concat: return concat(node);
    case OpForm::transpose: return within_views(transpose(node));
    case OpForm::expand: return within_views(expand(node));
    case OpForm::host:
    case OpForm::late:
    case OpForm::constant:
    case OpForm::view: break;
  }
  return error(Code::internal, node.op->describe(), " has no statement");
}

// ---- Buffers ----

BufferId StatementMaker::add_local(std::string_view name, ElementType element, std::vector<program::Dim> dims) {
  const BufferId id =
      program().add_buffer({fresh_name(name), element, static_cast<int>(dims.size()), program::Role::local, "host"});
  program::Allocation local;
  local.buffer = id;
  local.dims = std::move(dims);
  program().locals.push_back(std::move(local));
  return id;
}

BufferId StatementMaker::root_buffer(StorageId id) {
  Storage& storage = lowering_.places_.storage(id);
  if (storage.buffer < 0)
    storage.buffer =
        add_local(storage.value->name(), storage.type->element(), program_dims(storage.type->shape()).value());
  return storage.buffer;
}

BufferId StatementMaker::buffer_of(const Value& value) {
  const Place place = lowering_.places_.place(value);
  const BufferId root = root_buffer(place.storage);
  const Type& type = lowering_.types_.type_of(value);
  if (!place.within && place.offset.is_constant(0) && *lowering_.places_.storage(place.storage).type == type)
    return root;
  const auto [alias, fresh] = aliases_.try_emplace({&value, place.storage});
  if (fresh) {
    View view;
    view.source = root;
    view.offset = place.offset;
    view.dims = program_dims(type.shape()).value();
    if (place.within) set_strides(view.dims, *place.within, type.element());
    view.buffer = program().add_buffer(
        {fresh_name(value.name()), type.element(), static_cast<int>(view.dims.size()), program::Role::local, "host"});
    alias->second = {view.buffer, std::move(view)};
  }
  const std::pair<BufferId, const Alias*> used(alias->second.buffer, &alias->second);
  const auto at = std::ranges::lower_bound(used_, used.first, {}, &std::pair<BufferId, const Alias*>::first);
  if (at == used_.end() || at->first != used.first) used_.insert(at, used);
  return used.first;
}

Statement StatementMaker::within_views(Statement inner) {
  if (inner.empty()) return inner;
  for (auto it = used_.rbegin(); it != used_.rend(); ++it) {
    View view = it->second->view;
    view.body = std::move(inner);
    inner = Statement(std::move(view));
  }
  return inner;
}

template <class Make>
Statement StatementMaker::with_own_views(Make make) {
  auto around = std::exchange(used_, {});
  Statement made = within_views(make());
  used_ = std::move(around);
  return made;
}

// ---- Statements ----

BufferId StatementMaker::near_buffer_of(const Value& value, Access access, std::string_view stage, Block& copies) {
  if (used_.size() < kMostViews) return buffer_of(value);
  const Type& type = lowering_.types_.type_of(value);
  const BufferId near = add_local(value.name(), type.element(), program_dims(type.shape()).value());
  workspaces_.push_back(near);
  copies.statements.push_back(with_own_views([&] {
    Region inside{near, {}}, outside{buffer_of(value), {}};
    if (access == Access::in) std::swap(inside, outside);
    std::vector<Expr> map;
    for (size_t d = 0; d < type.shape().dims().size(); ++d) map.push_back(index(d));
    return copy(std::move(outside), std::move(inside), std::move(map), std::string(stage));
  }));
  return near;
}

Statement StatementMaker::call(const Node& node) {
  Call call;
  call.kernel = node.choice().kernel;
  call.stage = stage_of_op(*node.op);
  Block before, after;
  call.operands.reserve(node.operands.size() + node.results.size() + 1);
  for (const NodeValue& operand : node.operands)
    call.operands.push_back({Access::in, {near_buffer_of(*operand.value, Access::in, call.stage, before), {}}});
  for (const NodeValue& result : node.results)
    call.operands.push_back({Access::out, {near_buffer_of(*result.value, Access::out, call.stage, after), {}}});
  if (const Expr& bytes = node.choice().workspace_bytes; !bytes.is_constant(0)) {
    workspaces_.push_back(add_local("workspace", kU8, {{0, bytes, std::nullopt, std::nullopt}}));
    call.operands.push_back({Access::out, {workspaces_.back(), {}}});
  }
  if (before.statements.empty() && after.statements.empty()) return call;
  Block all = std::move(before);
  all.statements.push_back(std::move(call));
  for (Statement& copied : after.statements) all.statements.push_back(std::move(copied));
  return all;
}

Statement StatementMaker::copy(Region to, Region from, std::vector<Expr> map, std::string stage) const {
  Copy copy;
  const int rank = lowering_.made_.program.buffer(to.buffer).rank;
  copy.destination = std::move(to);
  copy.source = std::move(from);
  copy.indices.assign(indices_.begin(), indices_.begin() + rank);
  copy.map = std::move(map);
  copy.stage = std::move(stage);
  return copy;
}

// Results that are not in the operand's memory.
Statement StatementMaker::crop(const Node& node) {
  Block block;
  const Value& operand = *node.operands[0].value;
  for (size_t r = 0; r < node.results.size(); ++r) {
    const Value& result = *node.results[r].value;
    const std::vector<Expr>& at = node.plan->at[r];
    if (is_same(lowering_.places_.place(result), lowering_.place_of_part(operand, at, shape(result)))) continue;
    std::vector<Expr> map;
    for (size_t d = 0; d < at.size(); ++d) map.push_back(index(d) + at[at.size() - 1 - d]);
    block.statements.push_back(with_own_views([&] {
      return copy({buffer_of(result), {}}, {buffer_of(operand), {}}, std::move(map), stage_of_op(*node.op));
    }));
  }
  return block;
}

// Operands that were not computed in their place in the result.
Statement StatementMaker::concat(const Node& node) {
  Block block;
  const Value& result = *node.results[0].value;
  const size_t rank = shape(result).dims().size(), axis = rank - 1 - node.plan->axis;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Value& operand = *node.operands[i].value;
    const std::vector<Expr> begin = Lowering::begin_of(*node.plan, rank, i);
    if (is_same(lowering_.places_.place(operand), lowering_.place_of_part(result, begin, shape(operand)))) continue;
    block.statements.push_back(with_own_views([&] {
      Region to{buffer_of(result), {}};
      std::vector<Expr> map;
      for (size_t d = 0; d < rank; ++d) {
        const Expr start = d == axis ? node.plan->starts[i] : Expr(0);
        to.box.push_back({start, shape(operand)[rank - 1 - d].expr()});
        map.push_back(index(d) - start);
      }
      return copy(std::move(to), {buffer_of(operand), {}}, std::move(map), stage_of_op(*node.op));
    }));
  }
  return block;
}

// Axis d of the result is axis perm[d] of the operand.
Statement StatementMaker::transpose(const Node& node) {
  const size_t rank = shape(*node.operands[0].value).dims().size();
  auto perm = node.op->attr<Attribute::Integers>("perm");
  if (perm.empty())
    for (size_t d = rank; d-- > 0;) perm.push_back(static_cast<int64_t>(d));
  std::vector<Expr> map(rank);
  for (size_t d = 0; d < rank; ++d) map[rank - 1 - static_cast<size_t>(perm[d])] = index(rank - 1 - d);
  return copy({buffer_of(*node.results[0].value), {}}, {buffer_of(*node.operands[0].value), {}}, std::move(map),
              stage_of_op(*node.op));
}

Statement StatementMaker::expand(const Node& node) {
  const Shape& from = shape(*node.operands[0].value);
  std::vector<Expr> map;
  for (size_t d = 0; d < from.dims().size(); ++d) {
    const Dim& dim = from[from.dims().size() - 1 - d];
    map.push_back(dim.is_static() && dim.value() == 1 ? Expr(0) : index(d));
  }
  return copy({buffer_of(*node.results[0].value), {}}, {buffer_of(*node.operands[0].value), {}}, std::move(map),
              stage_of_op(*node.op));
}

// An output whose bytes are elsewhere.
Statement StatementMaker::output(const Node& node) {
  const BufferId to = lowering_.made_.outputs[node.output];
  std::vector<Expr> map;
  for (int d = 0; d < program().buffer(to).rank; ++d) map.push_back(index(static_cast<size_t>(d)));
  return copy({to, {}}, {buffer_of(*node.operands[0].value), {}}, std::move(map),
              str("Output ", lowering_.part_.output_names[node.output]));
}

// ---- All of them ----

Result<void> Lowering::emit() {
  StatementMaker maker(*this);
  std::vector<std::vector<StorageId>> dead(order_.size());
  for (StorageId id = 0; id < places_.size(); ++id) {
    const Storage& s = places_.storage(id);
    if (s.kind == Storage::Kind::local && s.parent == kNever && s.is_used() && s.last < order_.size())
      dead[s.last].push_back(id);
  }
  program::Block block;
  for (size_t position = 0; position < order_.size(); ++position) {
    TENON_TRY(statement, maker.make(nodes_[order_[position]]));
    if (!statement.empty()) block.statements.push_back(std::move(statement));
    for (const BufferId id : maker.workspaces()) block.statements.push_back(program::Free{id});
    for (const StorageId id : dead[position])
      if (places_.storage(id).buffer >= 0) block.statements.push_back(program::Free{places_.storage(id).buffer});
  }
  made_.program.body = std::move(block);
  std::set<std::string> symbols;
  for (const program::Allocation& a : made_.program.locals)
    for (const program::Dim& d : a.dims)
      for (std::string& s : d.extent.symbols()) symbols.insert(std::move(s));
  for (const auto* list : {&made_.input_types, &made_.output_types})
    for (const Type& type : *list)
      for (const Dim& d : type.shape().dims())
        for (std::string& s : d.expr().symbols()) symbols.insert(std::move(s));
  made_.program.scalars.assign(symbols.begin(), symbols.end());
  return {};
}

}  // namespace tenon::irgen::detail
