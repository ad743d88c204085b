#include <algorithm>
#include <array>
#include <charconv>

#include <tenon/expr/text.hpp>
#include <tenon/program/text.hpp>

namespace tenon::program {
namespace {

// Words that end an expression, and those that begin a statement; none may be a name.
constexpr std::array<std::string_view, 14> kAfterExpr = {"stride", "fold",  "step", "parallel", "pipelined",
                                                         "in",     "align", "heap", "stack",    "slots",
                                                         "if",     "as",    "pad",  "at"};
constexpr std::array<std::string_view, 7> kOtherWords = {"min", "max", "floordiv", "ceildiv", "mod", "select", "_"};

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

template <class Words>
bool contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class Parser {
 public:
  Parser(std::string_view text, const KernelTable& kernels, std::string_view where)
      : text_(text), kernels_(kernels), where_(where) {}

  Result<Program> parse() {
    TENON_OK(expect_word("program"));
    TENON_OK(expect("@"));
    TENON_TRY(name, dotted_name("the name of the program"));
    program_.name = name;
    TENON_OK(expect("("));
    TENON_OK(list(")", [&]() -> Result<void> {
      TENON_TRY(scalar, simple_name("a scalar"));
      program_.scalars.push_back(scalar);
      return {};
    }));
    TENON_OK(expect("{"));
    while (at_declaration()) TENON_OK(declaration());
    TENON_TRY(body, statements());
    program_.body = std::move(body);
    skip_blanks();
    if (at_ != text_.size()) return fail("the end of the text is expected");
    return std::move(program_);
  }

 private:
  // Characters ------------------------------------------------------------------------------------------------

  Error fail(const std::string& what) const { return fail_at(at_, what); }
  Error fail_at(size_t at, const std::string& what) const {
    const std::string_view before = text_.substr(0, std::min(at, text_.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    return error(Code::parse, where_, ":", line, ":", at - start + 1, ": ", what);
  }

  void skip_blanks() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      else if (!std::isspace(static_cast<unsigned char>(text_[at_])))
        return;
    }
  }
  bool peek(std::string_view mark) {
    skip_blanks();
    return text_.substr(at_).starts_with(mark);
  }
  bool take(std::string_view mark) {
    if (!peek(mark)) return false;
    at_ += mark.size();
    return true;
  }
  Result<void> expect(std::string_view mark) {
    if (take(mark)) return {};
    return fail(str("'", mark, "' is expected"));
  }

  // Words -----------------------------------------------------------------------------------------------------

  std::string_view word_at(size_t at) const {
    size_t end = at;
    while (end < text_.size() && is_word_char(text_[end])) ++end;
    return text_.substr(at, end - at);
  }
  std::string_view peek_word() {
    skip_blanks();
    return word_at(at_);
  }
  bool take_word(std::string_view word) {
    if (peek_word() != word) return false;
    at_ += word.size();
    return true;
  }
  Result<void> expect_word(std::string_view word) {
    if (take_word(word)) return {};
    return fail(str("'", word, "' is expected"));
  }
  Result<std::string> simple_name(std::string_view what) {
    const std::string word(peek_word());
    if (!is_name(word)) return fail(str("the name of ", what, " is expected, not '", word, "'"));
    at_ += word.size();
    return word;
  }
  // Parts with dots between them.
  Result<std::string> dotted_name(std::string_view what) {
    skip_blanks();
    const size_t start = at_;
    while (at_ < text_.size() && (is_word_char(text_[at_]) || text_[at_] == '.')) ++at_;
    if (start == at_ || std::isdigit(static_cast<unsigned char>(text_[start]))) return fail(str(what, " is expected"));
    return std::string(text_.substr(start, at_ - start));
  }
  Result<int64_t> integer() {
    skip_blanks();
    int64_t value = 0;
    const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (status != std::errc()) return fail("an integer is expected");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  Result<int> small_integer(int64_t low, int64_t high) {
    skip_blanks();
    const size_t start = at_;
    TENON_TRY(value, integer());
    if (value < low || value > high) return fail_at(start, str(value, " is outside of ", low, " .. ", high));
    return static_cast<int>(value);
  }
  Result<std::string> string() {
    skip_blanks();
    std::string_view rest = text_.substr(at_);
    auto value = unquote(rest);
    if (!value) return fail("a string in double quotes is expected");
    at_ = text_.size() - rest.size();
    return *std::move(value);
  }
  Result<ElementType> element() {
    const std::string word(peek_word());
    const auto type = ElementType::parse(word);
    if (!type) return fail(str("an element type is expected, not '", word, "'"));
    at_ += word.size();
    return *type;
  }

  // item {"," item} and the closing mark; nothing before the mark is an empty list.
  template <class Item>
  Result<void> list(std::string_view close, const Item& item) {
    if (take(close)) return {};
    do TENON_OK(item());
    while (take(","));
    return expect(close);
  }

  // Expressions -----------------------------------------------------------------------------------------------

  // Where an expression that begins here ends: see text.hpp.
  size_t end_of_expr() const {
    int depth = 0;
    size_t at = at_;
    while (at < text_.size()) {
      const char c = text_[at];
      if (c == '"') {
        std::string_view rest = text_.substr(at);
        if (!unquote(rest)) return at;
        at = text_.size() - rest.size();
        continue;
      }
      if (c == '\n' || c == '#' || c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == ';') return at;
      if (depth == 0 && (c == ',' || c == ')' || text_.substr(at).starts_with("+:"))) return at;
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      const size_t behind = skip_symbol(at);
      if (contains(kAfterExpr, text_.substr(at, behind - at))) return at;
      at = std::max(at + 1, behind);
    }
    return at;
  }
  // Behind the word and what dots join to it.
  size_t skip_symbol(size_t at) const {
    while (at < text_.size() && (is_word_char(text_[at]) || text_[at] == '.')) ++at;
    return at;
  }
  Result<Expr> expr() {
    skip_blanks();
    const size_t end = end_of_expr();
    auto parsed = parse_expr(trim(text_.substr(at_, end - at_)));
    if (!parsed) return fail(str("in the expression here: ", parsed.error().message()));
    at_ = end;
    return *std::move(parsed);
  }
  Result<Range> range() {
    TENON_TRY(min, expr());
    TENON_OK(expect("+:"));
    TENON_TRY(extent, expr());
    return Range{min, extent};
  }
  Result<Dim> dim() {
    TENON_TRY(r, range());
    Dim result{r.min, r.extent, {}, {}};
    if (take_word("stride")) {
      TENON_TRY(stride, expr());
      result.stride = stride;
    }
    if (take_word("fold")) {
      TENON_TRY(fold, expr());
      result.fold = fold;
    }
    return result;
  }
  Result<std::vector<Dim>> dims() {
    std::vector<Dim> result;
    TENON_OK(expect("["));
    TENON_OK(list("]", [&]() -> Result<void> {
      TENON_TRY(d, dim());
      result.push_back(std::move(d));
      return {};
    }));
    return result;
  }

  // Buffers ---------------------------------------------------------------------------------------------------

  Result<std::string> percent_name(std::string_view what) {
    TENON_OK(expect("%"));
    const std::string word(peek_word());
    if (!is_buffer_name(word)) return fail(str("the name of ", what, " is expected, not '", word, "'"));
    at_ += word.size();
    return word;
  }
  Result<BufferId> buffer() {
    skip_blanks();
    const size_t start = at_;
    TENON_TRY(name, percent_name("a buffer"));
    const auto id = program_.find_buffer(name);
    if (!id) return fail_at(start, str("no buffer is called '", name, "' up to here"));
    return *id;
  }
  // A buffer that a statement makes: a new one, or one that another statement has made as well.
  Result<BufferId> define(const std::string& name, ElementType element, size_t rank) {
    if (rank > static_cast<size_t>(kMaxRank)) return fail(str("rank ", rank, " is more than ", kMaxRank));
    const Buffer made{name, element, static_cast<int>(rank), Role::local, "host"};
    const auto id = program_.find_buffer(name);
    if (!id) return program_.add_buffer(made);
    if (program_.buffer(*id) != made)
      return fail(str("'", name, "' is the name of another buffer, of type ", program_.buffer(*id).element,
                      " and rank ", program_.buffer(*id).rank));
    return *id;
  }
  Result<Region> region() {
    TENON_TRY(id, buffer());
    Region result{id, {}};
    // On the same line: a box, not what comes after the statement.
    if (!take("[")) return result;
    TENON_OK(list("]", [&]() -> Result<void> {
      TENON_TRY(r, range());
      result.box.push_back(std::move(r));
      return {};
    }));
    return result;
  }

  // Declarations ----------------------------------------------------------------------------------------------

  static std::optional<Role> role_of(std::string_view word) {
    if (word == "input") return Role::input;
    if (word == "constant") return Role::constant;
    if (word == "output") return Role::output;
    if (word == "state") return Role::state;
    return std::nullopt;
  }
  bool at_declaration() { return role_of(peek_word()) || peek_word() == "token" || peek_word() == "local"; }
  Result<void> declaration() {
    if (take_word("token")) {
      TENON_TRY(name, percent_name("a token"));
      program_.add_token(name);
      return {};
    }
    if (take_word("local")) {
      TENON_TRY(local, allocation());
      program_.locals.push_back(std::move(local));
      return {};
    }
    const std::string_view word = peek_word();
    Buffer declared;
    declared.role = *role_of(word);
    at_ += word.size();
    TENON_TRY(name, percent_name("a buffer"));
    if (program_.find_buffer(name)) return fail(str("buffer '", name, "' is declared before"));
    TENON_OK(expect(":"));
    TENON_TRY(type, element());
    TENON_OK(expect_word("rank"));
    TENON_TRY(rank, small_integer(0, kMaxRank));
    declared.name = name;
    declared.element = type;
    declared.rank = rank;
    TENON_OK(space(declared.space));
    program_.add_buffer(std::move(declared));
    return {};
  }
  Result<void> space(std::string& to) {
    if (!take_word("in")) return {};
    TENON_TRY(name, dotted_name("the name of a memory"));
    to = name;
    return {};
  }

  // Statements ------------------------------------------------------------------------------------------------

  using Rule = Result<Statement> (Parser::*)();

  // Up to the closing brace, which is taken.
  Result<Statement> statements() {
    if (++depth_ > kMaxDepth) return fail(str("more than ", kMaxDepth, " statements within one another"));
    Block block;
    while (!take("}")) {
      TENON_TRY(s, statement());
      block.statements.push_back(std::move(s));
    }
    --depth_;
    return Statement(std::move(block));
  }
  Result<Statement> body() {
    TENON_OK(expect("{"));
    return statements();
  }
  Result<Statement> statement() {
    static constexpr std::pair<std::string_view, Rule> kRules[] = {{"let", &Parser::let},
                                                                   {"allocate", &Parser::allocate},
                                                                   {"free", &Parser::free},
                                                                   {"for", &Parser::loop},
                                                                   {"crop", &Parser::crop},
                                                                   {"slice", &Parser::slice},
                                                                   {"transpose", &Parser::transpose},
                                                                   {"view", &Parser::view},
                                                                   {"call", &Parser::call},
                                                                   {"copy", &Parser::copy},
                                                                   {"start", &Parser::start},
                                                                   {"wait", &Parser::wait},
                                                                   {"signal", &Parser::signal},
                                                                   {"await", &Parser::await},
                                                                   {"check", &Parser::check}};
    for (const auto& [word, rule] : kRules)
      if (take_word(word)) return (this->*rule)();
    return fail(str("a statement or '}' is expected, not '", peek_word(), "'"));
  }

  Result<Statement> let() {
    TENON_TRY(name, simple_name("a symbol"));
    TENON_OK(expect("="));
    TENON_TRY(value, expr());
    TENON_TRY(inner, body());
    return Statement(Let{name, value, inner});
  }

  Result<Statement> allocate() {
    TENON_TRY(a, allocation());
    TENON_TRY(inner, body());
    return Statement(Allocate{std::move(a), inner});
  }
  Result<Allocation> allocation() {
    Allocation a;
    TENON_TRY(name, percent_name("a buffer"));
    TENON_OK(expect(":"));
    TENON_TRY(type, element());
    TENON_TRY(of, dims());
    a.dims = std::move(of);
    TENON_TRY(id, define(name, type, a.dims.size()));
    a.buffer = id;
    TENON_OK(space(a.space));
    if (take_word("align")) {
      TENON_TRY(align, integer());
      a.align_bytes = align;
    }
    if (take_word("heap")) a.placement = Placement::heap;
    if (take_word("stack")) a.placement = Placement::stack;
    if (take_word("slots")) {
      TENON_TRY(slots, expr());
      a.slots = slots;
    }
    return a;
  }

  Result<Statement> free() {
    TENON_TRY(id, buffer());
    return Statement(Free{id});
  }

  Result<Statement> loop() {
    Loop s;
    TENON_TRY(name, simple_name("a symbol"));
    s.symbol = name;
    TENON_OK(expect_word("in"));
    TENON_OK(expect("["));
    TENON_TRY(begin, expr());
    TENON_OK(expect(","));
    TENON_TRY(end, expr());
    TENON_OK(expect(")"));
    s.begin = begin;
    s.end = end;
    if (take_word("step")) {
      TENON_TRY(step, expr());
      s.step = step;
    }
    if (take_word("parallel")) s.kind = LoopKind::parallel;
    if (s.kind == LoopKind::serial && take_word("pipelined")) s.kind = LoopKind::pipelined;
    if (s.kind != LoopKind::serial) {
      TENON_TRY(workers, expr());
      s.workers = workers;
    }
    TENON_TRY(inner, body());
    s.body = inner;
    return Statement(std::move(s));
  }

  // [ NAME = ] SOURCE; `name` is that of the source when no other is given.
  Result<BufferId> definition(std::string& name) {
    TENON_TRY(first, percent_name("a buffer"));
    name = first;
    if (take("=")) return buffer();
    const auto id = program_.find_buffer(name);
    if (!id) return fail(str("no buffer is called '", name, "' up to here"));
    return *id;
  }
  // The buffer of a view whose source has been read; a view of its own source keeps that one's number.
  Result<BufferId> define_view(const std::string& name, BufferId source, size_t rank) {
    const Buffer& of = program_.buffer(source);
    if (name == of.name) return source;
    return define(name, of.element, rank);
  }
  // A list in brackets with an item or _ for each dim of the source.
  template <class T, class Item>
  Result<std::vector<std::optional<T>>> items(const Item& item) {
    std::vector<std::optional<T>> result;
    TENON_OK(expect("["));
    TENON_OK(list("]", [&]() -> Result<void> {
      if (take_word("_")) {
        result.emplace_back();
        return {};
      }
      TENON_TRY(value, item());
      result.emplace_back(std::move(value));
      return {};
    }));
    return result;
  }

  Result<Statement> crop() {
    std::string name;
    TENON_TRY(source, definition(name));
    TENON_TRY(box, items<Range>([this] { return range(); }));
    TENON_TRY(id, define_view(name, source, box.size()));
    TENON_TRY(inner, body());
    return Statement(Crop{id, source, std::move(box), inner});
  }

  Result<Statement> slice() {
    std::string name;
    TENON_TRY(source, definition(name));
    TENON_TRY(at, items<Expr>([this] { return expr(); }));
    const auto left = std::count(at.begin(), at.end(), std::nullopt);
    TENON_TRY(id, define_view(name, source, static_cast<size_t>(left)));
    TENON_TRY(inner, body());
    return Statement(Slice{id, source, std::move(at), inner});
  }

  Result<Statement> transpose() {
    std::string name;
    TENON_TRY(source, definition(name));
    std::vector<int> order;
    TENON_OK(expect("["));
    TENON_OK(list("]", [&]() -> Result<void> {
      TENON_TRY(d, small_integer(0, kMaxRank - 1));
      order.push_back(d);
      return {};
    }));
    TENON_TRY(id, define_view(name, source, order.size()));
    TENON_TRY(inner, body());
    return Statement(Transpose{id, source, std::move(order), inner});
  }

  Result<Statement> view() {
    TENON_TRY(name, percent_name("a buffer"));
    TENON_OK(expect(":"));
    TENON_TRY(type, element());
    TENON_OK(expect("="));
    TENON_TRY(source, buffer());
    TENON_OK(expect_word("at"));
    TENON_TRY(offset, expr());
    TENON_TRY(of, dims());
    TENON_TRY(id, define(name, type, of.size()));
    TENON_TRY(inner, body());
    return Statement(View{id, source, std::move(offset), std::move(of), inner});
  }

  Result<Operand> operand() {
    Operand o;
    if (take_word("in"))
      o.access = Access::in;
    else if (take_word("out"))
      o.access = Access::out;
    else if (take_word("inout"))
      o.access = Access::inout;
    else
      return fail("an operand is expected: in, out or inout, and a buffer");
    TENON_TRY(r, region());
    o.region = std::move(r);
    return o;
  }
  Result<KernelHandle> kernel() {
    skip_blanks();
    const size_t start = at_;
    TENON_TRY(name, dotted_name("the name of a kernel"));
    if (const auto it = kernels_.find(name); it != kernels_.end()) return it->second;
    std::vector<std::string> known;
    for (const auto& [known_name, handle] : kernels_) known.push_back(known_name);
    const std::string hint = nearest(name, known);
    return fail_at(start,
                   str("no kernel is called '", name, "'", hint.empty() ? "" : "; did you mean '" + hint + "'?"));
  }
  Result<Statement> call() {
    Call s;
    TENON_TRY(called, kernel());
    s.kernel = called;
    TENON_OK(expect("("));
    while (!peek(";") && !peek(")")) {
      if (!s.operands.empty()) TENON_OK(expect(","));
      TENON_TRY(o, operand());
      s.operands.push_back(std::move(o));
    }
    if (take(";")) {
      TENON_TRY(scalars, exprs());
      s.scalars = std::move(scalars);
    } else {
      TENON_OK(expect(")"));
    }
    TENON_OK(tail(s.predicate, s.stage));
    return Statement(std::move(s));
  }
  Result<std::vector<Expr>> exprs() {
    std::vector<Expr> result;
    TENON_OK(list(")", [&]() -> Result<void> {
      TENON_TRY(e, expr());
      result.push_back(std::move(e));
      return {};
    }));
    return result;
  }
  Result<void> tail(Expr& predicate, std::string& stage) {
    if (take_word("if")) {
      TENON_TRY(e, expr());
      predicate = e;
    }
    if (take_word("as")) {
      TENON_TRY(name, string());
      stage = name;
    }
    return {};
  }

  Result<Copy> copy_rest() {
    Copy s;
    TENON_TRY(destination, region());
    s.destination = std::move(destination);
    TENON_OK(expect("("));
    TENON_OK(list(")", [&]() -> Result<void> {
      TENON_TRY(index, simple_name("an index"));
      s.indices.push_back(index);
      return {};
    }));
    TENON_OK(expect("="));
    TENON_TRY(source, region());
    s.source = std::move(source);
    TENON_OK(expect("("));
    TENON_TRY(map, exprs());
    s.map = std::move(map);
    if (take_word("pad")) TENON_OK(padding(s));
    TENON_OK(tail(s.predicate, s.stage));
    return s;
  }
  Result<void> padding(Copy& s) {
    if (peek("%")) {
      TENON_TRY(from, region());
      s.padding = std::move(from);
      return {};
    }
    TENON_OK(expect("0x"));
    const std::string_view digits = word_at(at_);
    Copy::Element bytes;
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
      unsigned value = 0;
      const auto [end, status] = std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
      if (status != std::errc() || end != digits.data() + i + 2)
        return fail("bytes in hexadecimal digits are expected");
      bytes.push_back(static_cast<std::byte>(value));
    }
    if (digits.empty() || digits.size() % 2 != 0) return fail("two hexadecimal digits for each byte are expected");
    at_ += digits.size();
    s.padding = std::move(bytes);
    return {};
  }
  Result<Statement> copy() {
    TENON_TRY(s, copy_rest());
    return Statement(std::move(s));
  }

  Result<TokenId> token() {
    TENON_TRY(name, percent_name("a token"));
    const auto it = std::find(program_.tokens.begin(), program_.tokens.end(), name);
    if (it == program_.tokens.end()) return fail(str("no token '", name, "' is declared"));
    return static_cast<TokenId>(it - program_.tokens.begin());
  }
  Result<Statement> start() {
    TENON_TRY(id, token());
    TENON_OK(expect_word("copy"));
    TENON_TRY(s, copy_rest());
    return Statement(DmaStart{id, std::move(s)});
  }
  Result<Statement> wait() {
    TENON_TRY(id, token());
    return Statement(DmaWait{id});
  }
  Result<Statement> signal() {
    TENON_TRY(stage, small_integer(0, kMostStages));
    return Statement(Signal{stage});
  }
  Result<Statement> await() {
    TENON_TRY(stage, small_integer(0, kMostStages));
    return Statement(Await{stage});
  }
  Result<Statement> check() {
    TENON_TRY(condition, expr());
    TENON_OK(expect(":"));
    TENON_TRY(message, string());
    return Statement(Check{condition, message});
  }

  std::string_view text_;
  const KernelTable& kernels_;
  std::string_view where_;
  size_t at_ = 0;
  int depth_ = 0;
  Program program_;
};

}  // namespace

bool is_buffer_name(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front()))) return false;
  return std::all_of(text.begin(), text.end(), is_word_char);
}

bool is_name(std::string_view text) {
  return is_buffer_name(text) && !contains(kAfterExpr, text) && !contains(kOtherWords, text);
}

Result<Program> parse_program(std::string_view text, const KernelTable& kernels, std::string_view where) {
  return Parser(text, kernels, where).parse();
}

}  // namespace tenon::program
