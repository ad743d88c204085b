#include <tenon/program/exec/locals_internal.hpp>

#include <string_view>
#include <unordered_map>

#include <tenon/program/ir/walk.hpp>

namespace tenon::program::detail {
namespace {

// The locals that no statement has named yet.
class Unseen {
 public:
  explicit Unseen(const Program& program) {
    for (const Allocation& a : program.locals) {
      by_id_.emplace(a.buffer, &a);
      ids_.emplace(program.buffer(a.buffer).name, a.buffer);
    }
  }

  std::vector<const Allocation*> named_first_in(const Statement& statement) {
    std::vector<const Allocation*> found;
    const auto see = [&](BufferId id) {
      const auto it = by_id_.find(id);
      if (it == by_id_.end()) return;
      found.push_back(it->second);
      by_id_.erase(it);
    };
    for_each_statement(statement, [&](const Statement& s) {
      for_each_buffer(s, [&](BufferId id, Access) { see(id); });
      for_each_expr(s, [&](const Expr& e) { see_metadata(e, see); });
    });
    return found;
  }

 private:
  template <class See>
  void see_metadata(const Expr& e, const See& see) {
    if (e.is_constant()) return;
    for (const std::string& symbol : e.symbols()) {
      const auto meta = parse_meta(symbol);
      const auto id = meta ? ids_.find(meta->buffer) : ids_.end();
      if (id != ids_.end()) see(id->second);
    }
  }

  std::unordered_map<BufferId, const Allocation*> by_id_;
  std::unordered_map<std::string_view, BufferId> ids_;
};

}  // namespace

std::span<const Statement> outermost(const Program& program) {
  if (program.body.empty()) return {};
  const Block* block = program.body.as<Block>();
  return block ? std::span(block->statements) : std::span(&program.body, 1);
}

std::vector<std::vector<const Allocation*>> locals_by_first_use(const Program& program) {
  std::vector<std::vector<const Allocation*>> by_statement;
  Unseen unseen(program);
  for (const Statement& s : outermost(program)) by_statement.push_back(unseen.named_first_in(s));
  return by_statement;
}

}  // namespace tenon::program::detail
