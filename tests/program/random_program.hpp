// Random programs over buffers of 12 x 10 i32 elements: a chain of segments, each of which computes a buffer from the
// previous one in a different way.
#pragma once
#include <random>
#include <string>

#include "program/kernels.hpp"

namespace tenon::program::testing {

class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {}

  // Reads %in and writes %out, both 12 x 10 with minima 0; scalars: workers.
  std::string text() {
    std::string body;
    const int segments = number(1, 5);
    for (int i = 0; i < segments; ++i) body += segment(i, i + 1 == segments);
    for (int i = 0; i + 1 < segments; ++i) body += "}\n";
    return "program @random(workers) {\ninput %in : i32 rank 2\noutput %out : i32 rank 2\ntoken %load\n" + body + "}\n";
  }

 private:
  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance() { return number(0, 1) == 1; }
  template <class... Parts>
  std::string add(const Parts&... parts) {
    return str(parts..., "\n");
  }
  std::string pick(std::vector<std::string> words) {
    return words[static_cast<size_t>(number(0, static_cast<int>(words.size()) - 1))];
  }
  std::string kernel() { return pick({"add1", "twice"}); }
  std::string unique(const std::string& stem) { return str(stem, ++names_); }

  // Opens the allocation of its result, unless that is %out.
  std::string segment(int i, bool last) {
    const std::string from = i == 0 ? "in" : str("b", i), to = last ? "out" : str("b", i + 1);
    std::string text;
    if (!last)
      text += add("allocate %", to, " : i32[0 +: 12", chance() ? " stride 8" : "", ", 0 +: 10] ",
                  pick({"", "heap ", "stack "}), "{");
    switch (number(0, 8)) {
      case 0: text += add("call ", kernel(), "(in %", from, ", out %", to, ")"); break;
      case 1: text += rows(from, to); break;
      case 2: text += tiles(from, to); break;
      case 3: text += copies(from, to); break;
      case 4: text += workers(from, to); break;
      case 5: text += window(from, to); break;
      case 6: text += transfers(from, to); break;
      case 7: text += views(from, to); break;
      case 8: text += recurrence(from, to); break;
    }
    if (i > 0 && chance()) text += add("free %", from);
    return text;
  }

  std::string rows(const std::string& from, const std::string& to) {
    const std::string y = unique("y"), crop = chance() ? to : unique("c");
    const int begin = number(-3, 0), step = number(1, 4);
    return add("for ", y, " in [", begin, ", 10) step ", step, chance() ? " parallel workers" : "", " {\n  crop ",
               crop == to ? "" : "%" + crop + " = ", "%", to, "[_, ", y, " +: ", step, "] {", hint(from, y, step),
               "call ", kernel(), "(in %", from, ", out %", crop, ") }\n}");
  }

  // For later rows, also beyond the end of the buffer.
  std::string hint(const std::string& of, const std::string& y, int step) {
    if (chance()) return " ";
    const int parts = number(1, 5);
    return str(" prefetch ", pick({"in", "out"}), " %", of, "[", number(-3, 3), " +: 12, ", y, " + ", step,
               " +: ", step, "] part ", number(0, parts - 1), " of ", parts, "\n");
  }

  std::string tiles(const std::string& from, const std::string& to) {
    const std::string x = unique("x"), y = unique("y"), w = unique("w");
    const int step = number(1, 5);
    return add("for ", y, " in [0, 10) step 3 {\n  for ", x, " in [0, 12) step ", step, " {\n    let ", w, " = min(",
               step, ", 12 - ", x, ") {\n      call add(in %", from, "[", x, " +: ", w, ", ", y, " +: min(3, 10 - ", y,
               ")], in %", from, ", out %", to, "[", x, " +: ", w, ", ", y, " +: min(3, 10 - ", y,
               ")])\n    }\n  }\n}");
  }

  std::string copies(const std::string& from, const std::string& to) {
    const std::string map = pick({"(x, y)", "(11 - x, 9 - y)", "((x + 12*y) mod 12, (x + 12*y) floordiv 12)",
                                  "(x floordiv 2 + 3, y)", "((y + 10*x) mod 12, (y + 10*x) floordiv 12)", "(3, y)"});
    const std::string padded = pick({"(x - 2, y + 1)", "(2*x, y)", "(x, y*y)", "(y, x)"});
    if (chance()) return add("copy %", to, "(x, y) = %", from, map);
    return add("copy %", to, "(x, y) = %", from, padded, " pad 0x07010000");
  }

  // Each worker has a row of its own.
  std::string workers(const std::string& from, const std::string& to) {
    const std::string y = unique("y"), tmp = unique("t");
    const bool inside = chance();
    const std::string make =
        add("allocate %", tmp, " : i32[0 +: 12, 0 +: 10 fold 1]", inside ? "" : " slots max(workers, 1)", " {");
    const std::string loop = add("for ", y, " in [0, 10) parallel workers {");
    return (inside ? loop + make : make + loop) + add("call ", kernel(), "(in %", from, ", out %", tmp, "[0 +: 12, ", y,
                                                      " +: 1])\ncall twice(in %", tmp, "[0 +: 12, ", y, " +: 1], out %",
                                                      to, "[0 +: 12, ", y, " +: 1])\n}\n}");
  }

  // Windows of three rows in a ring buffer.
  std::string window(const std::string& from, const std::string& to) {
    const std::string y = unique("y"), pad = unique("p"), ring = unique("r"), line = unique("l");
    const int step = number(1, 3), fold = step + 2 + number(0, 2);
    return add("allocate %", pad, " : i32[-1 +: 14, -1 +: 12] {\ncopy %", pad, "(x, y) = %", from,
               "(x, y) pad 0x01000000\nallocate %", ring, " : i32[-1 +: 14, -1 +: 12 fold ", fold, "] {\nfor ", y,
               " in [", -step * ((step + 1) / step), ", 10) step ", step, " {\ncrop %", ring, "[_, ", y,
               " + 1 +: ", step, "] { call add1(in %", pad, ", out %", ring, ") }\n", "crop %", line, " = %", to,
               "[_, ", y, " +: ", step, "] { call sum3(in %", ring, ", out %", line, ") }\n}\n}\n}") +
           "";
  }

  // Rows are loaded one iteration before their use.
  std::string transfers(const std::string& from, const std::string& to) {
    const std::string y = unique("y"), tile = unique("t");
    return add("allocate %", tile, " : i32[0 +: 12, 0 +: 10 fold 2] in scratch {\nstart %load copy %", tile,
               "[0 +: 12, 0 +: 1](x, y) = %", from, "(x, y)\nfor ", y, " in [0, 9) {\nstart %load copy %", tile,
               "[0 +: 12, ", y, " + 1 +: 1](x, y) = %", from, "(x, y)\nwait %load\ncall ", kernel(), "(in %", tile,
               "[0 +: 12, ", y, " +: 1], out %", to, "[0 +: 12, ", y, " +: 1])\n}\nwait %load\ncall add1(in %", tile,
               "[0 +: 12, 9 +: 1], out %", to, "[0 +: 12, 9 +: 1])\n}");
  }

  std::string views(const std::string& from, const std::string& to) {
    const std::string a = unique("v"), b = unique("v"), i = unique("i");
    switch (number(0, 2)) {
      case 0:
        return add("transpose %", a, " = %", from, "[1, 0] { transpose %", b, " = %", to, "[1, 0] { call twice(in %", a,
                   ", out %", b, ") } }");
      case 1:
        return add("for ", i, " in [0, 10) { slice %", a, " = %", from, "[_, 9 - ", i, "] { slice %", b, " = %", to,
                   "[_, ", i, "] { call add1(in %", a, ", out %", b, ") } } }");
      default:
        return add("view %", a, " : i32 = %", from, " at 11 * ", from, ".stride0 [0 +: 12 stride 0 - ", from,
                   ".stride0, 0 +: 10 stride ", from, ".stride1] { call add1(in %", a, ", out %", to, ") }");
    }
  }

  // Each row depends on the previous one.
  std::string recurrence(const std::string& from, const std::string& to) {
    const std::string y = unique("y"), a = unique("a");
    return add("call add1(in %", from, "[0 +: 12, 0 +: 1], out %", to, "[0 +: 12, 0 +: 1])\nallocate %", a,
               " : i32[0 +: 12, 0 +: 1] slots max(workers, 1) {\nfor ", y, " in [1, 10) pipelined workers {\nview %", a,
               "v : i32 = %", a, " at 0 [0 +: 12, ", y, " +: 1] {\ncall twice(in %", from, ", out %", a,
               "v)\nawait 0\nview %", a, "w : i32 = %", to, " at (", y, " - 1) * ", to, ".stride1 [0 +: 12 stride ", to,
               ".stride0, ", y, " +: 1 stride ", to, ".stride1] {\ncall add(in %", a, "v, in %", a, "w, out %", to,
               "[0 +: 12, ", y, " +: 1])\n}\nsignal 0\n}\n}\n}");
  }

  std::mt19937_64 random_;
  int names_ = 0;
};

}  // namespace tenon::program::testing
