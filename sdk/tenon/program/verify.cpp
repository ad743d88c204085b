#include <tenon/program/verify.hpp>

#include <algorithm>
#include <bit>
#include <set>

#include <tenon/program/labels.hpp>
#include <tenon/program/symbolic_internal.hpp>
#include <tenon/program/text.hpp>
#include <tenon/program/walk.hpp>

namespace tenon::program {
namespace {

using namespace detail;

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program),
        scope_(program),
        written_(program.buffers.size()),
        pending_(program.tokens.size(), Expr(0)) {}

  Result<void> verify() {
    TENON_OK(declarations());
    scope_.declare_unknown();
    for (size_t id = 0; id < program_.buffers.size(); ++id)
      written_[id] = program_.buffers[id].role != Role::output && program_.buffers[id].role != Role::local;
    TENON_OK(locals());
    TENON_OK(check(program_.body));
    return tokens_are_done("the program");
  }

 private:
  const Buffer& buffer(BufferId id) const { return program_.buffer(id); }
  const std::string& name(BufferId id) const { return buffer(id).name; }
  template <class... Parts>
  static Error wrong(const Parts&... parts) {
    return error(Code::invalid_argument, parts...);
  }

  // Declarations ----------------------------------------------------------------------------------------------

  Result<void> declarations() {
    std::set<std::string> taken;
    const auto take = [&](const std::string& what, const std::string& text) -> Result<void> {
      if (!(what == "scalar" ? is_name(text) : is_buffer_name(text)))
        return wrong("'", text, "' cannot be the name of a ", what, ": see program/text.hpp");
      if (!taken.insert(text).second) return wrong("the name '", text, "' is taken twice");
      return {};
    };
    for (const std::string& scalar : program_.scalars) TENON_OK(take("scalar", scalar));
    for (const std::string& token : program_.tokens) TENON_OK(take("token", token));
    for (const Buffer& b : program_.buffers) {
      TENON_OK(take("buffer", b.name));
      if (b.rank < 0 || b.rank > kMaxRank)
        return wrong("buffer '", b.name, "' has rank ", b.rank, ", 0 to ", kMaxRank, " are possible");
      if (!b.element.byte_addressable())
        return error(
            Code::unsupported, "buffer '", b.name, "' has elements of ", b.element.to_string(),
            ", which do not fill 1, 2, 4, 8 or 16 bytes: declare it as u8, with as many as the packed elements fill");
    }
    return {};
  }

  Result<void> locals() {
    std::vector<std::pair<BufferId, SymbolicBuffer>> made;
    for (const Allocation& a : program_.locals) {
      TENON_OK(check_id(a.buffer), "a local");
      TENON_OK(check_allocation(a), "local '", name(a.buffer), "'");
      if (!ever_defined_.insert(a.buffer).second) return wrong("'", name(a.buffer), "' is a local twice");
      made.emplace_back(a.buffer, scope_.allocation(a));
    }
    for (auto& [id, buffer] : made) scope_.exchange(id, std::move(buffer));
    return {};
  }

  // Names -----------------------------------------------------------------------------------------------------

  Result<void> check_id(BufferId id) const {
    if (id < 0 || static_cast<size_t>(id) >= program_.buffers.size())
      return wrong("buffer number ", id, " does not exist: there are ", program_.buffers.size());
    return {};
  }
  Result<const SymbolicBuffer*> visible(BufferId id) const {
    TENON_OK(check_id(id));
    const SymbolicBuffer* found = scope_.find(id);
    if (found == nullptr)
      return wrong("buffer '", name(id), "' is not visible here",
                   ever_defined_.contains(id) ? ": it is used after its end" : "");
    if (freed_.contains(found->root))
      return wrong("buffer '", name(id), "' is used after the free of '", name(found->root), "'");
    return found;
  }
  Result<void> check_expr(const Expr& e) const {
    for (const std::string& symbol : e.symbols()) {
      if (const auto meta = parse_meta(symbol)) {
        const auto id = program_.find_buffer(meta->buffer);
        if (!id) return wrong("the symbol ", symbol, ": no buffer is called '", meta->buffer, "'");
        TENON_OK(visible(*id), "the symbol ", symbol);
      }
      if (!scope_.first_unknown(Expr::symbol(symbol)).empty())
        return wrong("the symbol ", symbol, " is not known here");
    }
    return {};
  }

  // A new buffer with `rank` dims.
  Result<void> check_new(BufferId id, size_t rank) const {
    TENON_OK(check_id(id));
    if (buffer(id).role != Role::local) return wrong("'", name(id), "' is declared, and cannot be made by a statement");
    if (scope_.find(id) != nullptr) return wrong("buffer '", name(id), "' is made again where it is visible");
    return check_rank(id, rank);
  }
  Result<void> check_rank(BufferId id, size_t rank) const {
    if (rank == static_cast<size_t>(buffer(id).rank)) return {};
    return wrong("buffer '", name(id), "' has rank ", buffer(id).rank, ", the statement gives it ", rank, " dims");
  }
  // A view of `source`, which may be the source under its own name.
  Result<void> check_view(BufferId id, BufferId source, size_t rank) const {
    TENON_OK(visible(source));
    if (id != source) {
      TENON_OK(check_new(id, rank));
    } else {
      TENON_OK(check_rank(id, rank));
    }
    if (buffer(id).element != buffer(source).element)
      return wrong("'", name(id), "' has elements of ", buffer(id).element, ", its source '", name(source), "' of ",
                   buffer(source).element);
    return {};
  }

  // Regions ---------------------------------------------------------------------------------------------------

  Result<void> check_region(const Region& r) {
    TENON_TRY(found, visible(r.buffer));
    if (r.box.empty()) return {};
    if (r.box.size() != found->dims.size())
      return wrong("the box of '", name(r.buffer), "' has ", r.box.size(), " ranges, the buffer has rank ",
                   found->dims.size());
    for (const Range& range : r.box) {
      TENON_OK(check_expr(range.min));
      TENON_OK(check_expr(range.extent));
    }
    return check_bounds(r, *found);
  }

  // Where all ranges certainly hold something, each must not certainly leave the buffer.
  Result<void> check_bounds(const Region& r, const SymbolicBuffer& found) {
    std::vector<SymbolicDim> box;
    for (const Range& range : r.box) {
      box.push_back({scope_.resolve(range.min), scope_.resolve(range.extent), 0, 0});
      if (!prove_le(1, box.back().extent, scope_.assumptions())) return {};
    }
    for (size_t d = 0; d < box.size(); ++d) {
      const SymbolicDim& has = found.dims[d];
      const Expr end = box[d].min + box[d].extent, limit = has.min + has.extent;
      if (prove_lt(box[d].min, has.min, scope_.assumptions()) || prove_lt(limit, end, scope_.assumptions()))
        return wrong("dim ", d, " of the box leaves '", name(r.buffer), "': it has indices from ", box[d].min,
                     " to before ", end, ", the buffer from ", has.min, " to before ", limit);
    }
    return {};
  }

  Result<void> check_read(const Region& r) {
    TENON_OK(check_region(r));
    const BufferId root = scope_.find(r.buffer)->root;
    if (written_[static_cast<size_t>(root)] || coming_.contains(root)) return {};
    return wrong("'", name(r.buffer), "' is read", r.buffer == root ? "" : ", which is '" + name(root) + "'",
                 ", and nothing has written it before");
  }

  Result<void> check_write(const Region& r) {
    TENON_OK(check_region(r));
    const BufferId root = scope_.find(r.buffer)->root;
    const Role role = buffer(root).role;
    if (role == Role::input || role == Role::constant)
      return wrong("'", name(r.buffer), "' is written", r.buffer == root ? "" : ", which is '" + name(root) + "'", ", ",
                   role == Role::input ? "an input" : "a constant");
    written_[static_cast<size_t>(root)] = true;
    return {};
  }

  // Statements ------------------------------------------------------------------------------------------------

  Result<void> check(const Statement& s) {
    if (s.empty()) return {};
    if (++depth_ > kMaxDepth)
      return error(Code::resource_exhausted, "more than ", kMaxDepth, " statements within one another");
    Result<void> result;
    for_each_expr(s, [&](const Expr& e) {
      if (result.ok() && !s.as<Copy>() && !s.as<DmaStart>() && !s.as<Allocate>()) result = check_expr(e);
    });
    if (result.ok()) result = s.visit([this](const auto& statement) { return check(statement); });
    --depth_;
    TENON_OK(std::move(result), "", head_of(s));
    return {};
  }

  // The first line of the statement's text.
  std::string head_of(const Statement& s) const {
    if (s.as<Block>()) return "a block";
    const Statement alone = with_children(s, [](const Statement&) { return Statement(); });
    std::string text;
    if (names_exist(alone)) text = print(program_, alone);
    return str("'", trim(text.substr(0, text.find('\n'))), "'");
  }
  bool names_exist(const Statement& s) const {
    bool exist = true;
    const auto see = [&](BufferId id) { exist &= check_id(id).ok(); };
    for_each_buffer(s, [&](BufferId id, Access) { see(id); });
    if (const BufferId id = defined_buffer(s); s.as<Allocate>() || id != -1) see(id);
    if (const auto* f = s.as<Free>()) see(f->buffer);
    if (const auto* c = s.as<Call>()) exist &= c->kernel != nullptr;
    if (const auto* t = s.as<DmaStart>()) exist &= check_token(t->token).ok();
    if (const auto* t = s.as<DmaWait>()) exist &= check_token(t->token).ok();
    return exist;
  }

  Result<void> check(const Block& block) {
    for (const Statement& s : block.statements)
      // No frame for blocks: they have no line.
      if (auto result = check(s); !result.ok()) return result;
    return {};
  }

  Result<void> check_symbol(const std::string& symbol) const {
    if (!is_name(symbol)) return wrong("'", symbol, "' cannot be the name of a symbol: see program/text.hpp");
    if (scope_.has(symbol)) return wrong("the symbol ", symbol, " is bound again where it is visible");
    return {};
  }

  Result<void> check(const Let& let) {
    TENON_OK(check_symbol(let.symbol));
    scope_.define(let.symbol, scope_.resolve(let.value));
    TENON_OK(check(let.body));
    scope_.erase(let.symbol);
    return {};
  }

  Result<void> check_dims(const std::vector<Dim>& dims) const {
    for (size_t d = 0; d < dims.size(); ++d) {
      TENON_OK(check_expr(dims[d].min));
      TENON_OK(check_expr(dims[d].extent));
      if (dims[d].stride) TENON_OK(check_expr(*dims[d].stride));
      if (dims[d].fold) TENON_OK(check_expr(*dims[d].fold));
      if (prove_lt(scope_.resolve(dims[d].extent), 0, scope_.assumptions()))
        return wrong("dim ", d, " has the extent ", dims[d].extent, ", which is negative");
    }
    return {};
  }

  Result<void> check_allocation(const Allocation& a) {
    TENON_OK(check_new(a.buffer, a.dims.size()));
    TENON_OK(check_dims(a.dims));
    TENON_OK(check_expr(a.slots));
    if (a.align_bytes < 0 || (a.align_bytes != 0 && !std::has_single_bit(static_cast<uint64_t>(a.align_bytes))))
      return wrong("'", name(a.buffer), "' is aligned to ", a.align_bytes, " bytes, which is no power of two");
    if (prove_lt(scope_.resolve(a.slots), 1, scope_.assumptions()))
      return wrong("'", name(a.buffer), "' has ", a.slots, " slots, at least 1 is needed");
    written_[static_cast<size_t>(a.buffer)] = false;
    loops_at_[a.buffer] = loops_;
    return {};
  }

  Result<void> check(const Allocate& s) {
    const Allocation& a = s.allocation;
    TENON_OK(check_allocation(a));
    TENON_OK(with_buffer(a.buffer, scope_.allocation(a), s.body));
    freed_.erase(a.buffer);
    loops_at_.erase(a.buffer);
    return {};
  }

  Result<void> with_buffer(BufferId id, SymbolicBuffer made, const Statement& body) {
    ever_defined_.insert(id);
    auto before = scope_.exchange(id, std::move(made));
    TENON_OK(check(body));
    scope_.exchange(id, std::move(before));
    return {};
  }

  Result<void> check(const Free& s) {
    TENON_OK(visible(s.buffer));
    const auto at = loops_at_.find(s.buffer);
    if (at == loops_at_.end()) return wrong("'", name(s.buffer), "' is no allocation around this statement");
    if (at->second != loops_)
      return wrong("'", name(s.buffer), "' is freed inside of a loop that does not hold its allocation");
    freed_.insert(s.buffer);
    return {};
  }

  Result<void> check(const Crop& s) {
    TENON_OK(check_view(s.buffer, s.source, s.box.size()));
    TENON_OK(check_rank(s.source, s.box.size()));
    return with_buffer(s.buffer, scope_.crop(s), s.body);
  }

  Result<void> check(const Slice& s) {
    const auto left = std::count(s.at.begin(), s.at.end(), std::nullopt);
    TENON_OK(check_view(s.buffer, s.source, static_cast<size_t>(left)));
    TENON_OK(check_rank(s.source, s.at.size()));
    return with_buffer(s.buffer, scope_.slice(s), s.body);
  }

  Result<void> check(const Transpose& s) {
    TENON_OK(check_view(s.buffer, s.source, s.order.size()));
    for (const int d : s.order)
      if (d < 0 || d >= buffer(s.source).rank)
        return wrong("dim ", d, " of '", name(s.source), "' does not exist: it has rank ", buffer(s.source).rank);
    return with_buffer(s.buffer, scope_.transpose(s), s.body);
  }

  Result<void> check(const View& s) {
    TENON_OK(visible(s.source));
    TENON_OK(check_new(s.buffer, s.dims.size()));
    TENON_OK(check_dims(s.dims));
    return with_buffer(s.buffer, scope_.view(s), s.body);
  }

  Result<void> check(const Call& s) {
    if (s.kernel == nullptr || s.kernel->run == nullptr) return wrong("a call has no kernel");
    for (size_t i = 0; i < s.operands.size(); ++i)
      if (s.operands[i].access != Access::out) TENON_OK(check_read(s.operands[i].region), "operand ", i);
    for (size_t i = 0; i < s.operands.size(); ++i)
      if (s.operands[i].access != Access::in) TENON_OK(check_write(s.operands[i].region), "operand ", i);
    return {};
  }

  Result<void> check(const Copy& s) {
    TENON_OK(check_expr(s.predicate));
    TENON_OK(check_read(s.source), "the source");
    const Region* padding = std::get_if<Region>(&s.padding);
    if (padding) TENON_OK(check_read(*padding), "the padding");
    TENON_OK(check_write(s.destination), "the destination");
    TENON_OK(check_map(s));
    const ElementType element = buffer(s.destination.buffer).element;
    for (const Region* r : {&s.source, padding})
      if (r && buffer(r->buffer).element != element)
        return wrong("the destination has elements of ", element, ", '", name(r->buffer), "' of ",
                     buffer(r->buffer).element);
    if (const auto* bytes = std::get_if<Copy::Element>(&s.padding);
        bytes && bytes->size() * 8 != static_cast<size_t>(element.bits()))
      return wrong("the padding has ", bytes->size(), " bytes, an element of ", element, " has ", element.bits() / 8);
    if (padding && buffer(padding->buffer).rank != 0 &&
        buffer(padding->buffer).rank != buffer(s.destination.buffer).rank)
      return wrong("the padding '", name(padding->buffer), "' has rank ", buffer(padding->buffer).rank, ": 0 or ",
                   buffer(s.destination.buffer).rank, " are possible");
    return {};
  }

  Result<void> check_map(const Copy& s) {
    if (s.indices.size() != static_cast<size_t>(buffer(s.destination.buffer).rank))
      return wrong("the destination has rank ", buffer(s.destination.buffer).rank, ", ", s.indices.size(),
                   " indices are named");
    if (s.map.size() != static_cast<size_t>(buffer(s.source.buffer).rank))
      return wrong("the source has rank ", buffer(s.source.buffer).rank, ", the map has ", s.map.size(),
                   " expressions");
    for (const std::string& index : s.indices) {
      TENON_OK(check_symbol(index));
      scope_.define(index, Expr::symbol(index));
    }
    for (const Expr& e : s.map) TENON_OK(check_expr(e));
    for (const std::string& index : s.indices) scope_.erase(index);
    return {};
  }

  Result<void> check(const Check&) { return {}; }

  // Loops -----------------------------------------------------------------------------------------------------

  Result<void> check(const Loop& loop) {
    TENON_OK(check_symbol(loop.symbol));
    const Expr begin = scope_.resolve(loop.begin), end = scope_.resolve(loop.end), step = scope_.resolve(loop.step);
    if (prove_lt(step, 1, scope_.assumptions()))
      return wrong("loop ", loop.symbol, " has the step ", loop.step, ", at least 1 is needed");
    scope_.define(loop.symbol, Expr::symbol(loop.symbol));
    scope_.assumptions()[loop.symbol] = {bounds(begin, scope_.assumptions()).lower,
                                         bounds(end - 1, scope_.assumptions()).upper};
    ++loops_;
    const bool was_pipelined = std::exchange(in_pipeline_, in_pipeline_ || loop.kind == LoopKind::pipelined);
    const std::set<BufferId> coming = coming_;
    add_written_in(loop.body);
    TENON_OK(check_iterations(loop, max(ceildiv(end - begin, max(step, 1)), 0)));
    coming_ = coming;
    in_pipeline_ = was_pipelined;
    --loops_;
    scope_.assumptions().erase(loop.symbol);
    scope_.erase(loop.symbol);
    return {};
  }

  // What an iteration writes, a later one may read at its begin.
  void add_written_in(const Statement& body) {
    std::vector<std::pair<BufferId, BufferId>> view_of;
    for_each_statement(body, [&](const Statement& s) {
      for_each_buffer(s, [&](BufferId id, Access access) {
        if (access == Access::in) return;
        for (auto it = view_of.rbegin(); it != view_of.rend(); ++it)
          if (it->first == id) id = it->second;
        if (const SymbolicBuffer* known = check_id(id).ok() ? scope_.find(id) : nullptr) coming_.insert(known->root);
      });
      if (const BufferId made = defined_buffer(s); made >= 0 && !s.as<Allocate>())
        for_each_buffer(s, [&](BufferId source, Access) {
          if (source != made) view_of.emplace_back(made, source);
        });
    });
  }

  // Tokens: how many transfers are under way is counted as an expression, as far as one iteration is like another.
  Result<void> check_iterations(const Loop& loop, const Expr& iterations) {
    const std::vector<Expr> before = pending_;
    const bool alone = loop.kind != LoopKind::serial;
    for (size_t t = 0; t < pending_.size(); ++t) pending_[t] = alone ? Expr(0) : unknown_count(t);
    const std::vector<Expr> at_begin = pending_;
    TENON_OK(check(loop.body));
    if (alone) TENON_OK(tokens_are_done(str("an iteration of loop ", loop.symbol)));
    for (size_t t = 0; t < pending_.size(); ++t) {
      const Expr added = pending_[t] - at_begin[t];
      const auto symbols = added.symbols();
      const bool constant = std::find(symbols.begin(), symbols.end(), loop.symbol) == symbols.end();
      pending_[t] = alone ? before[t] : constant ? before[t] + added * iterations : unknown_count(t);
    }
    return {};
  }
  // A number that nothing is known of.
  Expr unknown_count(size_t token) { return Expr::symbol(str("pending.", token, ".", ++unknowns_)); }

  Result<void> check_token(TokenId id) const {
    if (id < 0 || static_cast<size_t>(id) >= program_.tokens.size())
      return wrong("token number ", id, " does not exist: there are ", program_.tokens.size());
    return {};
  }
  Result<void> check(const DmaStart& s) {
    TENON_OK(check_token(s.token));
    TENON_OK(check(s.copy));
    pending_[static_cast<size_t>(s.token)] += 1;
    return {};
  }
  Result<void> check(const DmaWait& s) {
    TENON_OK(check_token(s.token));
    Expr& pending = pending_[static_cast<size_t>(s.token)];
    if (prove_le(pending, 0, scope_.assumptions()))
      return wrong("token '", program_.tokens[static_cast<size_t>(s.token)],
                   "' is waited for, and no transfer is under way");
    pending -= 1;
    return {};
  }
  Result<void> tokens_are_done(const std::string& where) const {
    for (size_t t = 0; t < pending_.size(); ++t)
      if (prove_le(1, pending_[t], scope_.assumptions()))
        return wrong("at the end of ", where, ", ", pending_[t], " transfers of token '", program_.tokens[t],
                     "' have not been waited for");
    return {};
  }

  Result<void> check_stage(int stage, std::string_view word) const {
    if (!in_pipeline_) return wrong(word, " ", stage, " stands in no pipelined loop");
    if (stage < 0 || stage > kMostStages) return wrong(word, " ", stage, ": stages are 0 to ", kMostStages);
    return {};
  }
  Result<void> check(const Signal& s) { return check_stage(s.stage, "signal"); }
  Result<void> check(const Await& s) { return check_stage(s.stage, "await"); }

  const Program& program_;
  Scope scope_;
  std::vector<bool> written_;  // by root: before this statement
  std::set<BufferId> coming_;  // roots that a loop around writes somewhere
  std::set<BufferId> freed_;   // allocations around that are freed
  std::set<BufferId> ever_defined_;
  std::map<BufferId, int> loops_at_;  // allocations around: how many loops are around them
  std::vector<Expr> pending_;         // by token
  int loops_ = 0;
  int depth_ = 0;
  int unknowns_ = 0;
  bool in_pipeline_ = false;
};

}  // namespace

Result<void> verify(const Program& program) {
  TENON_OK(Verifier(program).verify(), "program '", program.name, "'");
  return {};
}

}  // namespace tenon::program
