#include <tenon/program/pipeline/forward_copies.hpp>

#include <algorithm>
#include <functional>
#include <map>

#include <tenon/program/ir/walk.hpp>

namespace tenon::program {
namespace {

constexpr size_t kNowhere = SIZE_MAX;

// The places in the program's block where statements name a buffer, or a view of it.
struct Places {
  std::vector<size_t> reads, writes;
  size_t free = kNowhere;
  bool has_views = false;
  bool matters = false;  // others are not recorded
};

bool is_plain(const Copy& copy) {
  return copy.source.box.empty() && copy.predicate.is_constant(1) && copy.padding.index() == 0;
}

bool names_metadata(const Expr& e) {
  return std::ranges::any_of(e.symbols(), [](const std::string& s) { return parse_meta(s).has_value(); });
}

class Forwarder {
 public:
  explicit Forwarder(const Program& program) : program_(program), local_(program.buffers.size()) {
    for (const Allocation& a : program.locals) local_[static_cast<size_t>(a.buffer)] = &a;
  }

  // Rewrites the body.
  Statement run() {
    const Block* block = program_.body.as<Block>();
    // Most programs have no such copies.
    if (!block || std::ranges::none_of(block->statements, [&](const Statement& s) { return fills_local(s); }))
      return program_.body;
    statements_ = block->statements;
    places_.resize(program_.buffers.size());
    for (const Statement& s : statements_) {
      if (!fills_local(s)) continue;
      const Copy& copy = *s.as<Copy>();
      places(copy.destination.buffer).matters = places(copy.source.buffer).matters = true;
    }
    for (size_t at = 0; at < statements_.size(); ++at) look_at(at);
    for (size_t at = 0; at < statements_.size(); ++at) {
      const Copy* copy = statements_[at].as<Copy>();
      if (fills_local(statements_[at]) && may_be_skipped(*copy)) forward(Copy(*copy), at);
    }
    return Block{with_later_frees()};
  }

 private:
  Places& places(BufferId id) { return places_[static_cast<size_t>(id)]; }
  const Allocation* local(BufferId id) const { return local_[static_cast<size_t>(id)]; }

  // Whether it copies anything to a whole local.
  bool fills_local(const Statement& s) const {
    const Copy* copy = s.as<Copy>();
    return copy && local(copy->destination.buffer) && is_plain(*copy) && copy->destination.box.empty() &&
           std::ranges::none_of(copy->map, names_metadata);
  }

  void look_at(size_t at) {
    std::map<BufferId, BufferId> root;
    const auto root_of = [&](BufferId id) {
      const auto view = root.find(id);
      return view == root.end() ? id : view->second;
    };
    const auto see_statement = [&](const Statement& s) {
      if (const Free* f = s.as<Free>()) {
        places(f->buffer).free = at;
        return;
      }
      const BufferId defined = defined_buffer(s);
      const auto see = [&](BufferId id, Access access) {
        Places& of = places(root_of(id));
        if (defined >= 0) {
          root[defined] = root_of(id);
          of.has_views = true;
          return;
        }
        if (!of.matters) return;
        if (access != Access::out) of.reads.push_back(at);
        if (access != Access::in) of.writes.push_back(at);
      };
      for_each_buffer(s, std::cref(see));
    };
    for_each_statement(statements_[at], std::cref(see_statement));
  }

  // Whether it fills a whole local that has no other writer and is read only by copies of it.
  bool may_be_skipped(const Copy& copy) {
    const BufferId id = copy.destination.buffer;
    const Places& of = places(id);
    if (of.has_views || of.writes.size() != 1 || of.reads.empty()) return false;
    return std::ranges::all_of(of.reads, [&](size_t at) {
      const Copy* reader = statements_[at].as<Copy>();
      return reader && is_plain(*reader) && reader->source.buffer == id && reader->destination.buffer != id &&
             reader->destination.buffer != copy.source.buffer;
    });
  }

  void forward(const Copy& first, size_t at) {
    Places &skipped = places(first.destination.buffer), &source = places(first.source.buffer);
    const size_t last = *std::ranges::max_element(skipped.reads);
    const bool changes = std::ranges::any_of(source.writes, [&](size_t w) { return at < w && w <= last; });
    const bool freed_before = source.free != kNowhere && source.free < last;
    if (changes || (freed_before && !is_not_larger(first.source.buffer, first.destination.buffer))) return;
    for (const size_t reader : skipped.reads) {
      Copy direct = *statements_[reader].as<Copy>();
      Substitution indices;
      for (size_t d = 0; d < first.indices.size(); ++d) indices[first.indices[d]] = direct.map[d];
      direct.source = first.source;
      direct.map.clear();
      for (const Expr& e : first.map) direct.map.push_back(e.substitute(indices));
      statements_[reader] = std::move(direct);
      source.reads.push_back(reader);
    }
    skipped.reads.clear();
    if (freed_before) free_after(first.source.buffer, last);
  }

  bool is_not_larger(BufferId a, BufferId b) {
    const auto bytes = [&](BufferId id) {
      Expr product = program_.buffer(id).element.bits() / 8;
      for (const Dim& d : local(id)->dims) product = product * d.extent;
      return product;
    };
    if (!local(a)) return false;
    const Expr less = bytes(b) - bytes(a);
    return less.is_constant() && less.constant() >= 0;
  }

  void free_after(BufferId id, size_t at) {
    statements_[places(id).free] = {};
    places(id).free = at;
    later_[at].push_back(id);
  }

  std::vector<Statement> with_later_frees() {
    if (later_.empty()) return std::move(statements_);
    std::vector<Statement> all;
    for (size_t at = 0; at < statements_.size(); ++at) {
      if (!statements_[at].empty()) all.push_back(std::move(statements_[at]));
      if (const auto frees = later_.find(at); frees != later_.end())
        for (const BufferId id : frees->second)
          if (places(id).free == at) all.push_back(Free{id});
    }
    return all;
  }

  const Program& program_;
  std::vector<Statement> statements_;
  std::vector<Places> places_;                     // by buffer; views count as their sources
  std::vector<const Allocation*> local_;           // by buffer
  std::map<size_t, std::vector<BufferId>> later_;  // frees that were moved after a statement
};

}  // namespace

Program forward_copies(Program program) {
  program.body = Forwarder(program).run();
  return program;
}

}  // namespace tenon::program
