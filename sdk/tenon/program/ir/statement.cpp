#include <tenon/program/ir/statement.hpp>

namespace tenon::program {
namespace {

std::vector<Statement> flattened(std::vector<Statement> statements) {
  std::vector<Statement> flat;
  flat.reserve(statements.size());
  for (Statement& s : statements) {
    if (s.empty()) continue;
    if (const Block* inner = s.as<Block>())
      flat.insert(flat.end(), inner->statements.begin(), inner->statements.end());
    else
      flat.push_back(std::move(s));
  }
  return flat;
}

}  // namespace

Statement::Handle Statement::make(detail::StatementNode node) {
  if (Block* block = std::get_if<Block>(&node.value)) {
    block->statements = flattened(std::move(block->statements));
    if (block->statements.empty()) return nullptr;
    if (block->statements.size() == 1) return block->statements.front().node_;
  }
  return std::make_shared<const detail::StatementNode>(std::move(node));
}

bool operator==(const Statement& a, const Statement& b) {
  if (a.node_ == b.node_) return true;
  return a.node_ && b.node_ && a.node_->value == b.node_->value;
}

}  // namespace tenon::program
