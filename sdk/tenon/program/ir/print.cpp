#include <array>
#include <unordered_map>

#include <tenon/program/ir/labels.hpp>
#include <tenon/program/ir/text.hpp>
#include <tenon/program/ir/walk.hpp>

namespace tenon::program {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"input", "constant", "output", "state", "local"};

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string print_program() {
    std::string scalars;
    for (const std::string& s : program_.scalars) scalars += str(scalars.empty() ? "" : ", ", s);
    open(str("program @", program_.name, "(", scalars, ")"));
    for (const Buffer& b : program_.buffers)
      if (b.role != Role::local)
        line(str(kRoles[static_cast<size_t>(b.role)], " %", b.name, " : ", b.element, " rank ", b.rank,
                 in_space(b.space)));
    for (const std::string& token : program_.tokens) line(str("token %", token));
    for (const Allocation& a : program_.locals) line("local " + text(a));
    print(program_.body);
    close();
    return std::move(out_);
  }

  std::string print_statement(const Statement& s) {
    print(s);
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += str(std::string(2 * depth_, ' '), text, "\n"); }
  void open(const std::string& head) {
    line(head + " {");
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }
  void with_body(const std::string& head, const Statement& body) {
    if (body.empty()) return line(head + " {}");
    open(head);
    print(body);
    close();
  }
  void print(const Statement& s) {
    if (!s.empty()) s.visit([this](const auto& statement) { print(statement); });
  }

  template <class List, class Item>
  static std::string list(const List& items, std::string_view left, std::string_view right, const Item& item) {
    std::string text(left);
    for (size_t i = 0; i < items.size(); ++i) text += (i ? ", " : "") + item(items[i]);
    return text.append(right);
  }
  static std::string in_space(const std::string& space) { return space == "host" ? "" : " in " + space; }
  std::string name(BufferId id) const { return "%" + program_.buffer(id).name; }
  std::string token(TokenId id) const { return "%" + program_.tokens[static_cast<size_t>(id)]; }
  static std::string text(const Range& r) { return str(r.min, " +: ", r.extent); }
  static std::string text(const Dim& d) {
    std::string result = str(d.min, " +: ", d.extent);
    if (d.stride) result += str(" stride ", *d.stride);
    if (d.fold) result += str(" fold ", *d.fold);
    return result;
  }
  template <class T>
  static std::string text(const std::optional<T>& item) {
    return item ? text(*item) : "_";
  }
  static std::string text(const Expr& e) { return e.to_string(); }
  template <class List>
  static std::string brackets(const List& items) {
    return list(items, "[", "]", [](const auto& item) { return text(item); });
  }
  std::string text(const Region& r) const { return name(r.buffer) + (r.box.empty() ? "" : brackets(r.box)); }
  static std::string tail(const Expr& predicate, const std::string& stage) {
    std::string result;
    if (!predicate.is_constant(1)) result += str(" if ", predicate);
    if (!stage.empty()) result += str(" as ", quote(stage));
    return result;
  }
  std::string definition(std::string_view word, BufferId buffer, BufferId source) const {
    return str(word, " ", buffer == source ? "" : name(buffer) + " = ", name(source));
  }

  void print(const Block& block) {
    for (const Statement& s : block.statements) print(s);
  }
  void print(const Let& s) { with_body(str("let ", s.symbol, " = ", s.value), s.body); }
  std::string text(const Allocation& a) const {
    std::string head =
        str(name(a.buffer), " : ", program_.buffer(a.buffer).element, brackets(a.dims), in_space(a.space));
    if (a.align_bytes != 0) head += str(" align ", a.align_bytes);
    if (a.placement != Placement::automatic) head += a.placement == Placement::heap ? " heap" : " stack";
    if (!a.slots.is_constant(1)) head += str(" slots ", a.slots);
    return head;
  }
  void print(const Allocate& s) { with_body("allocate " + text(s.allocation), s.body); }
  void print(const Free& s) { line("free " + name(s.buffer)); }
  void print(const Loop& s) {
    std::string head = str("for ", s.symbol, " in [", s.begin, ", ", s.end, ")");
    if (!s.step.is_constant(1)) head += str(" step ", s.step);
    if (s.kind != LoopKind::serial) head += str(s.kind == LoopKind::parallel ? " parallel " : " pipelined ", s.workers);
    with_body(head, s.body);
  }
  void print(const Crop& s) { with_body(definition("crop", s.buffer, s.source) + brackets(s.box), s.body); }
  void print(const Slice& s) { with_body(definition("slice", s.buffer, s.source) + brackets(s.at), s.body); }
  void print(const Transpose& s) {
    const auto number = [](int d) { return str(d); };
    with_body(definition("transpose", s.buffer, s.source) + list(s.order, "[", "]", number), s.body);
  }
  void print(const View& s) {
    with_body(str("view ", name(s.buffer), " : ", program_.buffer(s.buffer).element, " = ", name(s.source), " at ",
                  s.offset, " ", brackets(s.dims)),
              s.body);
  }
  void print(const Call& s) {
    std::string text_of = str("call ", s.kernel->name);
    text_of +=
        list(s.operands, "(", "", [this](const Operand& o) { return str(access_name(o.access), " ", text(o.region)); });
    if (!s.scalars.empty()) text_of += list(s.scalars, "; ", "", [](const Expr& e) { return text(e); });
    line(text_of + ")" + tail(s.predicate, s.stage));
  }
  std::string copy(const Copy& s) const {
    const auto same = [](const std::string& index) { return index; };
    std::string result = "copy " + text(s.destination) + list(s.indices, "(", ")", same);
    result += " = " + text(s.source) + list(s.map, "(", ")", [](const Expr& e) { return text(e); });
    if (const auto* element = std::get_if<Copy::Element>(&s.padding)) result += " pad " + hex(*element);
    if (const auto* region = std::get_if<Region>(&s.padding)) result += " pad " + text(*region);
    return result + tail(s.predicate, s.stage);
  }
  static std::string hex(const Copy::Element& bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string result = "0x";
    for (const std::byte b : bytes) {
      result += kDigits[static_cast<size_t>(b) >> 4];
      result += kDigits[static_cast<size_t>(b) & 15];
    }
    return result;
  }
  void print(const Copy& s) { line(copy(s)); }
  void print(const DmaStart& s) { line(str("start ", token(s.token), " ", copy(s.copy))); }
  void print(const DmaWait& s) { line("wait " + token(s.token)); }
  void print(const Signal& s) { line(str("signal ", s.stage)); }
  void print(const Await& s) { line(str("await ", s.stage)); }
  void print(const Prefetch& s) {
    const std::string portion = s.parts == 1 ? "" : str(" part ", s.part, " of ", s.parts);
    line(str("prefetch ", access_name(s.access), " ", text(s.region), portion));
  }
  void print(const Check& s) { line(str("check ", s.condition, " : ", quote(s.message))); }

  const Program& program_;
  std::string out_;
  size_t depth_ = 0;
};

// Old number -> new number, in the order of their first lookup.
class Numbering {
 public:
  int32_t operator()(int32_t old) {
    const auto [it, added] = new_of_.emplace(old, static_cast<int32_t>(order_.size()));
    if (added) order_.push_back(old);
    return it->second;
  }
  const std::vector<int32_t>& order() const { return order_; }

 private:
  std::unordered_map<int32_t, int32_t> new_of_;
  std::vector<int32_t> order_;
};

Statement renumber(const Statement& statement, Numbering& numbers) {
  // Text names what is defined before its sources.
  if (const BufferId defined = defined_buffer(statement); defined >= 0) numbers(defined);
  const Statement result = with_buffers(statement, [&](BufferId id) { return numbers(id); });
  return with_children(result, [&](const Statement& child) { return renumber(child, numbers); });
}

}  // namespace

std::string print(const Program& program) { return Printer(program).print_program(); }
std::string print(const Program& program, const Statement& statement) {
  return Printer(program).print_statement(statement);
}

Program renumbered(const Program& program) {
  Numbering numbers;
  for (size_t id = 0; id < program.buffers.size(); ++id)
    if (program.buffers[id].role != Role::local) numbers(static_cast<BufferId>(id));
  Program result{program.name, program.scalars, {}, program.tokens, {}, program.locals};
  for (Allocation& a : result.locals) a.buffer = numbers(a.buffer);
  result.body = renumber(program.body, numbers);
  for (const BufferId old : numbers.order()) result.buffers.push_back(program.buffer(old));
  return result;
}

}  // namespace tenon::program
