#include <algorithm>
#include <array>

#include <tenon/program/ir/parse_internal.hpp>

namespace tenon::program {
namespace detail {

Result<Program> Parser::parse() {
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

Result<std::string> Parser::percent_name(std::string_view what) {
  TENON_OK(expect("%"));
  const std::string word(peek_word());
  if (!is_buffer_name(word)) return fail(str("the name of ", what, " is expected, not '", word, "'"));
  at_ += word.size();
  return word;
}

Result<BufferId> Parser::buffer() {
  skip_blanks();
  const size_t start = at_;
  TENON_TRY(name, percent_name("a buffer"));
  const auto id = program_.find_buffer(name);
  if (!id) return fail_at(start, str("no buffer is called '", name, "' up to here"));
  return *id;
}

Result<BufferId> Parser::define(const std::string& name, ElementType element, size_t rank) {
  if (rank > static_cast<size_t>(kMaxRank)) return fail(str("rank ", rank, " is more than ", kMaxRank));
  const Buffer made{name, element, static_cast<int>(rank), Role::local, "host"};
  const auto id = program_.find_buffer(name);
  if (!id) return program_.add_buffer(made);
  if (program_.buffer(*id) != made)
    return fail(str("'", name, "' is the name of another buffer, of type ", program_.buffer(*id).element, " and rank ",
                    program_.buffer(*id).rank));
  return *id;
}

std::optional<Role> Parser::role_of(std::string_view word) {
  if (word == "input") return Role::input;
  if (word == "constant") return Role::constant;
  if (word == "output") return Role::output;
  if (word == "state") return Role::state;
  return std::nullopt;
}

Result<void> Parser::declaration() {
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

Result<void> Parser::space(std::string& to) {
  if (!take_word("in")) return {};
  TENON_TRY(name, dotted_name("the name of a memory"));
  to = name;
  return {};
}

}  // namespace detail

namespace {

constexpr std::array<std::string_view, 7> kOtherWords = {"min", "max", "floordiv", "ceildiv", "mod", "select", "_"};

}  // namespace

bool is_buffer_name(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front()))) return false;
  return std::all_of(text.begin(), text.end(), detail::is_word_char);
}

bool is_name(std::string_view text) {
  return is_buffer_name(text) && !std::ranges::count(detail::kAfterExpr, text) &&
         !std::ranges::count(kOtherWords, text);
}

Result<Program> parse_program(std::string_view text, const KernelTable& kernels, std::string_view where) {
  return detail::Parser(text, kernels, where).parse();
}

}  // namespace tenon::program
