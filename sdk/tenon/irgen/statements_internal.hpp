// Inside the room: the statement of a node.
#pragma once
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/irgen/lowering_internal.hpp>
#include <tenon/support/hash.hpp>

namespace tenon::irgen::detail {

// Makes statements over the buffers of places. A value that does not cover its buffer is accessed through a view around
// the statement; all statements share the view's buffer.
class StatementMaker final : public GroupContext {
 public:
  explicit StatementMaker(Lowering& lowering);
  // The empty statement where nothing remains to be done.
  Result<program::Statement> make(const Node& node);
  // Locals used by the node alone: workspaces.
  const std::vector<program::BufferId>& workspaces() const { return workspaces_; }

  program::Program& program() override { return lowering_.made_.program; }
  program::BufferId buffer_of(const Value& value) override;
  std::string fresh_name(std::string_view wanted) override { return lowering_.names_.fresh(wanted); }
  const KernelSource& kernels() const override { return lowering_.kernels_; }

 private:
  struct Alias {
    program::BufferId buffer;
    program::View view;
  };
  struct HashOfPlace {
    size_t operator()(const std::pair<const Value*, StorageId>& place) const {
      return static_cast<size_t>(hash_mix(reinterpret_cast<uintptr_t>(place.first), place.second));
    }
  };

  program::Statement call(const Node& node);
  // The buffer of an operand or result of a call, or a copy of it, made in `copies`, where views are nested too deeply.
  program::BufferId near_buffer_of(const Value& value, program::Access access, std::string_view stage,
                                   program::Block& copies);
  program::Statement crop(const Node& node);
  program::Statement concat(const Node& node);
  program::Statement transpose(const Node& node);
  program::Statement expand(const Node& node);
  program::Statement output(const Node& node);
  program::Statement within_views(program::Statement inner);
  // The statement that `make` makes, inside exactly the views that it uses.
  template <class Make>
  program::Statement with_own_views(Make make);
  // The map is by dims of the program.
  program::Statement copy(program::Region to, program::Region from, std::vector<Expr> map, std::string stage) const;
  Expr index(size_t d) const { return Expr::symbol(indices_[d]); }
  const Shape& shape(const Value& value) const { return lowering_.types_.type_of(value).shape(); }
  program::BufferId root_buffer(StorageId id);
  program::BufferId add_local(std::string_view name, ElementType element, std::vector<program::Dim> dims);

  Lowering& lowering_;
  std::vector<std::string> indices_;  // names of the copies' indices
  std::unordered_map<std::pair<const Value*, StorageId>, Alias, HashOfPlace> aliases_;
  std::vector<std::pair<program::BufferId, const Alias*>> used_;  // by the statement that is being made; ascending
  std::vector<program::BufferId> workspaces_;
};

}  // namespace tenon::irgen::detail
