// Inside the room: the verifier. verify.cpp has declarations and blocks, verify_regions.cpp what statements name,
// verify_statements.cpp buffers and calls, verify_loops.cpp loops and transfers.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/program/ir/symbolic_internal.hpp>
#include <tenon/program/ir/verify.hpp>

namespace tenon::program::detail {

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program),
        scope_(program),
        written_(program.buffers.size()),
        pending_(program.tokens.size(), Expr(0)) {}

  Result<void> verify();

 private:
  const Buffer& buffer(BufferId id) const { return program_.buffer(id); }
  const std::string& name(BufferId id) const { return buffer(id).name; }
  template <class... Parts>
  static Error wrong(const Parts&... parts) {
    return error(Code::invalid_argument, parts...);
  }

  // Declarations ----------------------------------------------------------------------------------------------

  Result<void> declarations();
  Result<void> locals();

  // Names -----------------------------------------------------------------------------------------------------

  Result<void> check_id(BufferId id) const;
  Result<const SymbolicBuffer*> visible(BufferId id) const;
  Result<void> check_expr(const Expr& e) const;

  // A new buffer with `rank` dims.
  Result<void> check_new(BufferId id, size_t rank) const;
  Result<void> check_rank(BufferId id, size_t rank) const;
  // A view of `source`, which may be the source under its own name.
  Result<void> check_view(BufferId id, BufferId source, size_t rank) const;

  // Regions ---------------------------------------------------------------------------------------------------

  Result<void> check_region(const Region& r);
  // The same without the check that the box is inside the buffer.
  Result<const SymbolicBuffer*> check_box(const Region& r) const;

  // Where all ranges are certainly non-empty, none may certainly exceed the buffer.
  Result<void> check_bounds(const Region& r, const SymbolicBuffer& found);
  Result<void> check_read(const Region& r);
  Result<void> check_write(const Region& r);

  // Statements ------------------------------------------------------------------------------------------------

  Result<void> check(const Statement& s);

  // The first line of the statement's text.
  std::string head_of(const Statement& s) const;
  bool names_exist(const Statement& s) const;
  Result<void> check(const Block& block);
  Result<void> check_symbol(const std::string& symbol) const;
  Result<void> check(const Let& let);
  Result<void> check_dims(const std::vector<Dim>& dims) const;
  Result<void> check_allocation(const Allocation& a);
  Result<void> check(const Allocate& s);
  Result<void> with_buffer(BufferId id, SymbolicBuffer made, const Statement& body);
  Result<void> check(const Free& s);
  Result<void> check(const Crop& s);
  Result<void> check(const Slice& s);
  Result<void> check(const Transpose& s);
  Result<void> check(const View& s);
  Result<void> check(const Call& s);
  Result<void> check(const Copy& s);
  Result<void> check_map(const Copy& s);

  Result<void> check(const Prefetch& s);
  Result<void> check(const Check&) { return {}; }

  // Loops -----------------------------------------------------------------------------------------------------

  Result<void> check(const Loop& loop);

  // Results of an iteration may be read at the beginning of a later one.
  void add_written_in(const Statement& body);

  // Tokens: the number of pending transfers is counted as an expression, as far as iterations are alike.
  Result<void> check_iterations(const Loop& loop, const Expr& iterations);
  // A number about which nothing is known.
  Expr unknown_count(size_t token) { return Expr::symbol(str("pending.", token, ".", ++unknowns_)); }

  Result<void> check_token(TokenId id) const;
  Result<void> check(const DmaStart& s);
  Result<void> check(const DmaWait& s);
  Result<void> tokens_are_done(const std::string& where) const;
  Result<void> check_stage(int stage, std::string_view word) const;
  Result<void> check(const Signal& s) { return check_stage(s.stage, "signal"); }
  Result<void> check(const Await& s) { return check_stage(s.stage, "await"); }

  const Program& program_;
  Scope scope_;
  std::vector<bool> written_;  // by root: written before this statement
  std::set<BufferId> coming_;  // roots that an enclosing loop writes somewhere
  std::set<BufferId> freed_;   // enclosing allocations that are freed
  std::set<BufferId> ever_defined_;
  std::map<BufferId, int> loops_at_;  // enclosing allocations: number of loops around them
  std::vector<Expr> pending_;         // by token
  int loops_ = 0;
  int depth_ = 0;
  int unknowns_ = 0;
  bool in_pipeline_ = false;
};

}  // namespace tenon::program::detail
