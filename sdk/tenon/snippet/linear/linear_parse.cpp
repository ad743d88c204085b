#include <charconv>
#include <optional>
#include <unordered_map>

#include <tenon/snippet/linear/linear.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

using codegen::RegisterFile;

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-'; }

// Reads line by line; every reading function skips blanks first.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  // Advances to the next non-empty line; false at the end.
  bool next_line() {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end), at_ = 0, ++number_;
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      if (!done()) return true;
    }
    return false;
  }
  bool done() { return skip(), at_ == line_.size(); }
  std::string_view left() { return skip(), line_.substr(at_); }
  bool eat(std::string_view token) {
    if (!left().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  // A whole word.
  bool eat_word(std::string_view word) {
    const size_t before = at_;
    if (this->word() == word) return true;
    at_ = before;
    return false;
  }
  std::string_view word() {
    skip();
    const size_t begin = at_;
    while (at_ < line_.size() && is_word_char(line_[at_])) ++at_;
    return line_.substr(begin, at_ - begin);
  }
  Result<void> expect(std::string_view token) {
    if (eat(token)) return {};
    return fail("expected '", token, "'");
  }
  Result<int64_t> integer() {
    skip();
    const bool negative = eat("-");
    const int base = eat("0x") ? 16 : 10;
    uint64_t value = 0;
    const std::string_view text = line_.substr(at_);
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (code != std::errc()) return fail("expected an integer");
    at_ += static_cast<size_t>(end - text.data());
    return static_cast<int64_t>(negative ? 0 - value : value);
  }
  // A number that is valid as a count: an index, a size.
  Result<int> count() {
    TENON_TRY(value, integer());
    if (value < 0 || value > 1'000'000'000) return fail("a number here is 0 to 1000000000");
    return static_cast<int>(value);
  }
  Result<ElementType> element() {
    const std::optional<ElementType> found = ElementType::parse(word());
    if (!found) return fail("expected an element type");
    return *found;
  }
  Result<Attribute> attribute() {
    std::string_view text = left();
    if (const std::optional<std::string> quoted = unquote(text)) {
      at_ = line_.size() - text.size();
      return Attribute(*quoted);
    }
    const std::string_view number = text.substr(0, text.find_first_of(",}"));
    if (number.starts_with("0x") || number.find_first_of(".einf") == std::string_view::npos) {
      TENON_TRY(value, integer());
      return Attribute(value);
    }
    float value = 0;
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (code != std::errc()) return fail("expected an integer, a float or a text");
    at_ += static_cast<size_t>(end - number.data());
    return Attribute(value);
  }

  template <class... Parts>
  Error fail(const Parts&... parts) const {
    return error(Code::parse, "linear kernel:", number_, ":", at_ + 1, ": ", parts...);
  }

 private:
  void skip() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r')) ++at_;
  }
  std::string_view rest_, line_;
  size_t at_ = 0, number_ = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  Result<LinearKernel> run() {
    TENON_OK(header());
    for (;;) {
      if (!in_.next_line()) return in_.fail("the kernel's '}' is missing");
      if (in_.left().starts_with("}") && open_.empty()) break;
      TENON_OK(line());
      TENON_OK(label());
    }
    TENON_OK(in_.expect("}"));
    if (!in_.done() || in_.next_line()) return in_.fail("nothing may follow the kernel's '}'");
    for (const RegisterId id : used_)
      if (!kernel_.registers[static_cast<size_t>(id)].element.valid()) return in_.fail("%", id, " is never defined");
    return std::move(kernel_);
  }

 private:
  Result<void> header() {
    if (!in_.next_line() || !in_.eat_word("kernel")) return in_.fail("expected 'kernel @NAME lanes N {'");
    TENON_OK(in_.expect("@"));
    kernel_.name = in_.word();
    TENON_OK(in_.expect("lanes"));
    TENON_TRY(lanes, in_.count());
    kernel_.lanes = lanes;
    if (in_.eat_word("frame")) {
      TENON_TRY(slots, in_.count());
      kernel_.frame_slots = slots;
    }
    return in_.expect("{");
  }

  Result<void> line() {
    if (in_.left().starts_with("#")) return param();
    if (in_.eat_word("scratch")) return scratch();
    if (in_.eat_word("blocks")) return blocks();
    if (in_.eat_word("stretch")) return keyed_into("from", kernel_.stretch);
    if (in_.eat_word("joined")) return keyed_into("rows", kernel_.joined.rows);
    if (in_.eat_word("loop")) return loop();
    if (in_.eat_word("tail")) return tail();
    if (in_.eat_word("when")) return when();
    if (in_.eat("}")) return close();
    return instruction();
  }

  Result<void> label() {
    if (in_.done()) return {};
    TENON_OK(in_.expect(";"));
    const std::string text(trim(in_.left()));
    const auto [at, is_new] = labels_.try_emplace(text, static_cast<int>(kernel_.labels.size()));
    if (is_new) kernel_.labels.push_back(text);
    if (!kernel_.body.empty()) kernel_.body.back().label = at->second;
    return {};
  }

  Result<void> param() {
    TENON_TRY(id, param_id());
    if (id != static_cast<ParamId>(kernel_.params.size())) return in_.fail("params are numbered from 0 on");
    TENON_OK(in_.expect("="));
    Param param;
    if (in_.eat_word("pointer")) {
      param.kind = Param::Kind::pointer;
      TENON_OK(number_into(param.port));
    } else if (in_.eat_word("limit")) {
      param.kind = Param::Kind::limit;
      TENON_OK(keyed_into("loop", param.loop));
      if (in_.left().starts_with("ahead")) TENON_OK(keyed_into("ahead", param.ahead));
      if (in_.left().starts_with("inner")) {
        TENON_OK(keyed_into("inner", param.inner));
        TENON_OK(keyed_into("longest", param.longest));
      }
    } else if (in_.eat_word("shift")) {
      param.kind = Param::Kind::shift;
      TENON_OK(number_into(param.port));
      TENON_OK(keyed_into("loop", param.loop));
      if (in_.left().starts_with("inner")) TENON_OK(keyed_into("inner", param.inner));
    } else if (in_.eat_word("rewind")) {
      param.kind = Param::Kind::rewind;
      TENON_OK(number_into(param.port));
      TENON_OK(keyed_into("loop", param.loop));
    } else if (in_.eat_word("count")) {
      param.kind = Param::Kind::count;
      TENON_TRY(element, in_.element());
      param.element = element;
    } else if (in_.eat_word("stream")) {
      TENON_OK(stream(param));
    } else {
      return in_.fail("expected pointer, limit, shift, rewind, count or stream");
    }
    if (in_.eat_word("known")) {
      TENON_TRY(known, in_.integer());
      param.known = known;
    }
    kernel_.params.push_back(param);
    return {};
  }

  Result<void> scratch() {
    LinearKernel::Scratch scratch;
    TENON_TRY(element, in_.element());
    scratch.element = element;
    TENON_OK(in_.expect("dims"));
    TENON_TRY(dims, in_.integer());
    scratch.dims = static_cast<uint32_t>(dims);
    int width = 1;
    TENON_OK(keyed_into("width", width));
    scratch.width = width;
    int more = 0;
    if (in_.left().starts_with("more")) TENON_OK(keyed_into("more", more));
    scratch.more_bytes = more;
    kernel_.scratch.push_back(scratch);
    return {};
  }

  Result<void> blocks() {
    TENON_OK(keyed_into("dim", kernel_.blocks.dim));
    kernel_.blocks.again = in_.eat_word("again");
    kernel_.blocks.inside = in_.eat_word("inside");
    if (!in_.eat_word("of")) return {};
    do {
      LinearKernel::Blocks::Size& size = kernel_.blocks.sizes.emplace_back();
      TENON_TRY(elements, in_.integer());
      size.elements = elements;
      if (!in_.eat_word("within")) continue;
      TENON_TRY(bytes, in_.integer());
      size.within_bytes = bytes;
    } while (in_.eat(","));
    return {};
  }

  Result<void> stream(Param& param) {
    if (in_.eat_word("limit")) {
      param.kind = Param::Kind::stream_limit;
    } else if (in_.eat_word("step")) {
      param.kind = Param::Kind::stream_step;
      TENON_OK(number_into(param.port));
    } else if (in_.eat_word("rest")) {
      param.kind = Param::Kind::stream_rest;
    } else {
      return in_.fail("expected limit, step or rest");
    }
    TENON_OK(keyed_into("loop", param.loop));
    TENON_OK(keyed_into("of", param.streams));
    return keyed_into("least", param.stream_least);
  }

  // The common part of loops and tails: "N NAME dim D %counter".
  Result<Loop> region(const char* op) {
    Loop loop;
    LoopId id = -1;
    TENON_OK(number_into(id));
    if (id != static_cast<LoopId>(kernel_.loops.size())) return in_.fail("loops and tails are numbered from 0 on");
    loop.name = in_.word();
    TENON_OK(in_.expect("dim"));
    TENON_TRY(dim, in_.integer());
    loop.dim = static_cast<int>(dim);
    TENON_TRY(counter, use());
    loop.counter = counter;
    kernel_.body.push_back({.op = op, .in = {counter}, .number = id});
    open_.push_back(id);
    return loop;
  }

  Result<void> loop() {
    TENON_TRY(loop, region("LoopBegin"));
    if (in_.eat_word("vector")) loop.kind = Loop::Kind::vector;
    int step = 1;
    TENON_OK(keyed_into("step", step));
    loop.increment = step;
    TENON_OK(limit(loop));
    if (in_.eat_word("moves")) {
      do {
        TENON_TRY(shift, moved());
        loop.shifts.push_back(shift);
      } while (in_.eat(","));
    }
    kernel_.loops.push_back(std::move(loop));
    return in_.expect("{");
  }

  Result<void> tail() {
    TENON_TRY(loop, region("TailBegin"));
    loop.kind = Loop::Kind::tail;
    TENON_OK(limit(loop));
    TENON_OK(in_.expect("->"));
    TENON_OK(definitions(kernel_.body.back().out));
    kernel_.loops.push_back(std::move(loop));
    return in_.expect("{");
  }

  Result<void> when() {
    Instruction begin{.op = kWhenBegin};
    if (in_.eat_word("not")) begin.attributes.set(kHolds, 0);
    TENON_TRY(condition, use());
    begin.in = {condition};
    kernel_.body.push_back(std::move(begin));
    open_.push_back(kWhen);
    return in_.expect("{");
  }

  Result<void> close() {
    const LoopId id = open_.back();
    open_.pop_back();
    if (id == kWhen) {
      kernel_.body.push_back({.op = kWhenEnd});
      return {};
    }
    const Loop& loop = kernel_.loops[static_cast<size_t>(id)];
    if (loop.kind == Loop::Kind::tail)
      kernel_.body.push_back({.op = "TailEnd", .number = id});
    else
      kernel_.body.push_back({.op = "LoopEnd", .in = {loop.counter}, .number = id});
    return {};
  }

  Result<void> instruction() {
    Instruction made;
    if (in_.left().starts_with("%")) {
      TENON_OK(definitions(made.out));
      TENON_OK(in_.expect("="));
    }
    const std::string_view word = in_.word(), op = word.substr(0, word.find('.')), touched = word.substr(op.size());
    if (op.empty()) return in_.fail("expected an instruction");
    if (touched == ".partial")
      made.touched = codegen::Lanes::partial;
    else if (touched == ".one")
      made.touched = codegen::Lanes::one;
    else if (!touched.empty())
      return in_.fail("an instruction may end in .partial or .one, not in ", touched);
    made.op = op;
    TENON_OK(operands(made));
    if (in_.left().starts_with("#")) {
      TENON_TRY(id, param_id());
      made.number = id;
    }
    if (in_.eat_word("slot")) {
      TENON_TRY(slot, in_.count());
      made.number = slot;
    }
    if (in_.eat("{")) TENON_OK(attributes(made.attributes));
    if (in_.eat_word("uses")) TENON_OK(scratch_registers(made));
    kernel_.body.push_back(std::move(made));
    return {};
  }

  Result<void> operands(Instruction& made) {
    if (const std::string_view left = in_.left(); left.find('[') < left.find_first_of("%{;")) {
      TENON_TRY(memory, this->memory());
      made.memory = memory;
    }
    while (in_.left().starts_with("%")) {
      TENON_TRY(id, use());
      made.in.push_back(id);
      if (!in_.eat(",")) break;
    }
    return {};
  }

  Result<Memory> memory() {
    Memory memory;
    TENON_TRY(element, in_.element());
    memory.element = element;
    TENON_OK(in_.expect("["));
    TENON_TRY(base, use());
    memory.base = base;
    while (in_.eat("+")) {
      if (in_.left().starts_with("%")) {
        TENON_TRY(index, use());
        memory.index = index;
      } else {
        TENON_TRY(displacement, in_.integer());
        memory.displacement_bytes = displacement;
      }
    }
    TENON_OK(in_.expect("]"));
    in_.eat(",");
    return memory;
  }

  Result<void> attributes(Attributes& made) {
    do {
      const Name name = in_.word();
      TENON_OK(in_.expect("="));
      TENON_TRY(value, in_.attribute());
      made.set(name, std::move(value));
    } while (in_.eat(","));
    return in_.expect("}");
  }

  Result<void> scratch_registers(Instruction& made) {
    while (!in_.done() && !in_.left().starts_with(";")) {
      TENON_TRY(place, this->place());
      auto& list = place.file == RegisterFile::vector ? made.vectors
                   : place.file == RegisterFile::mask ? made.masks
                                                      : made.generals;
      list.push_back(place.number);
    }
    return {};
  }

  // The caller reads a comma between two shifts; a comma between operands does not occur here.
  Result<Loop::Shift> moved() {
    Loop::Shift shift;
    TENON_TRY(pointer, use());
    shift.pointer = pointer;
    for (ParamId* id : {&shift.each, &shift.rewind}) {
      if (in_.eat("-")) continue;
      TENON_TRY(param, param_id());
      *id = param;
    }
    return shift;
  }

  Result<void> limit(Loop& loop) {
    TENON_OK(in_.expect("limit"));
    TENON_TRY(id, param_id());
    loop.limit = id;
    return {};
  }
  Result<ParamId> param_id() {
    TENON_OK(in_.expect("#"));
    return in_.count();
  }
  Result<void> number_into(int& out) {
    TENON_TRY(value, in_.count());
    out = value;
    return {};
  }
  Result<void> keyed_into(std::string_view key, int& out) {
    TENON_OK(in_.expect(key));
    return number_into(out);
  }

  // A register that some line defines; which one is resolved at the end.
  Result<RegisterId> use() {
    TENON_TRY(id, register_id());
    used_.push_back(id);
    return id;
  }
  Result<RegisterId> register_id() {
    TENON_OK(in_.expect("%"));
    TENON_TRY(id, in_.count());
    if (id > kMaxRegisters) return in_.fail("registers are numbered 0 to ", kMaxRegisters);
    if (static_cast<size_t>(id) >= kernel_.registers.size()) kernel_.registers.resize(static_cast<size_t>(id) + 1);
    return id;
  }

  Result<void> definitions(RegisterIds& out) {
    do {
      TENON_TRY(id, register_id());
      TENON_OK(in_.expect(":"));
      Register reg{RegisterFile::general, kI64};
      if (!in_.eat_word("g")) {
        TENON_TRY(element, in_.element());
        reg = {element.is_bool() ? RegisterFile::mask : RegisterFile::vector, element};
      }
      kernel_.registers[static_cast<size_t>(id)] = reg;
      const bool placed = in_.eat("@");
      if (placed_.value_or(placed) != placed)
        return in_.fail("%", id, placed ? " has a place" : " has no place", ", others before it ",
                        placed ? "have none" : "have one");
      placed_ = placed;
      if (placed) {
        TENON_TRY(place, this->place());
        kernel_.places.resize(std::max(kernel_.places.size(), kernel_.registers.size()));
        kernel_.places[static_cast<size_t>(id)] = place;
      }
      out.push_back(id);
    } while (in_.eat(","));
    return {};
  }

  Result<codegen::PhysicalRegister> place() {
    codegen::PhysicalRegister place;
    if (in_.eat("v"))
      place.file = RegisterFile::vector;
    else if (in_.eat("m"))
      place.file = RegisterFile::mask;
    else if (in_.eat("g"))
      place.file = RegisterFile::general;
    else
      return in_.fail("expected a place such as v3, m1 or g0");
    TENON_TRY(number, in_.count());
    place.number = number;
    return place;
  }

  static constexpr int kMaxRegisters = 10'000'000;
  Reader in_;
  LinearKernel kernel_;
  static constexpr LoopId kWhen = -1;
  std::vector<LoopId> open_;  // or kWhen
  std::vector<RegisterId> used_;
  std::optional<bool> placed_;  // whether registers have places
  std::unordered_map<std::string, int> labels_;
};

}  // namespace

Result<LinearKernel> parse_linear(std::string_view text) { return Parser(text).run(); }

}  // namespace tenon::snippet
