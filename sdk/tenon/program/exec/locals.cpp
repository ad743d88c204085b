#include <tenon/program/exec/locals_internal.hpp>

#include <functional>
#include <string_view>
#include <unordered_map>

#include <tenon/program/ir/walk.hpp>

namespace tenon::program::detail {
namespace {

// The locals that no statement has named yet.
class Unseen {
 public:
  explicit Unseen(const Program& program) : program_(program), by_id_(program.buffers.size()) {
    for (const Allocation& a : program.locals) by_id_[static_cast<size_t>(a.buffer)] = &a;
  }

  void add_named_first_in(const Statement& statement, std::vector<const Allocation*>& found) {
    const auto see = [&](BufferId id) {
      const Allocation*& unseen = by_id_[static_cast<size_t>(id)];
      if (unseen) found.push_back(unseen);
      unseen = nullptr;
    };
    const auto see_buffer = [&](BufferId id, Access) { see(id); };
    const auto see_expr = [&](const Expr& e) { see_metadata(e, see); };
    const auto see_statement = [&](const Statement& s) {
      for_each_buffer(s, std::cref(see_buffer));
      for_each_expr(s, std::cref(see_expr));
    };
    for_each_statement(statement, std::cref(see_statement));
  }

 private:
  template <class See>
  void see_metadata(const Expr& e, const See& see) {
    if (e.is_constant()) return;
    for (const std::string& symbol : e.symbols()) {
      const auto meta = parse_meta(symbol);
      if (!meta) continue;
      if (ids_.empty())
        for (const Allocation& a : program_.locals) ids_.emplace(program_.buffer(a.buffer).name, a.buffer);
      const auto id = ids_.find(meta->buffer);
      if (id != ids_.end()) see(id->second);
    }
  }

  const Program& program_;
  std::vector<const Allocation*> by_id_;                // null: seen, or not a local
  std::unordered_map<std::string_view, BufferId> ids_;  // of locals, once one is looked up
};

}  // namespace

std::span<const Statement> outermost(const Program& program) {
  if (program.body.empty()) return {};
  const Block* block = program.body.as<Block>();
  return block ? std::span(block->statements) : std::span(&program.body, 1);
}

LocalsByFirstUse locals_by_first_use(const Program& program) {
  LocalsByFirstUse locals;
  Unseen unseen(program);
  for (const Statement& s : outermost(program)) {
    unseen.add_named_first_in(s, locals.all);
    locals.end.push_back(locals.all.size());
  }
  return locals;
}

}  // namespace tenon::program::detail
