#include "opencl/compute/epilogue.hpp"

#include <algorithm>
#include <vector>

#include <tenon/codegen/register.hpp>
#include <tenon/snippet/linear/emit.hpp>
#include <tenon/snippet/lower/lower.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/places.hpp"
#include "opencl/emitters/memory.hpp"

namespace tenon::opencl {
namespace {

using codegen::EmitValue;
using snippet::Body;
using snippet::DimSet;

class EpilogueWriter {
 public:
  EpilogueWriter(const Epilogue& epilogue, int lanes, const ComputeTarget& target)
      : body_(epilogue.body), result_(epilogue.result), given_(lanes), target_(target) {
    const bool wide = std::ranges::any_of(body_.values, [](const auto& value) { return value.element.bits() == 64; });
    lanes_ = wide ? std::min(lanes, std::max(target.lanes / 2, 1)) : lanes;
    for (size_t i = 0; i < body_.inputs.size(); ++i)
      names_.push_back(i == result_ ? "x" : str("e", i - (i > result_ ? 1 : 0)));
  }

  Result<EpilogueSource> run() {
    if (std::string reason = why_no_epilogue(body_, result_); !reason.empty()) return error(Code::unsupported, reason);
    kernel_.name = body_.name, kernel_.lanes = lanes_;
    std::vector<snippet::RegisterId> inputs;
    for (const snippet::BodyPort& input : body_.inputs) inputs.push_back(kernel_.add_lanes(value_of(input).element));
    TENON_TRY(code, snippet::lower_inline(body_, kernel_, inputs));
    kernel_.body = std::move(code.invariant);
    std::ranges::move(code.body, std::back_inserter(kernel_.body));
    // A register is a variable; no two share one.
    for (size_t i = 0; i < kernel_.registers.size(); ++i)
      kernel_.places.push_back({kernel_.registers[i].file, static_cast<int>(i)});
    codegen::ConstantPool constants;
    SourceContext context(constants, kernel_, 0, target_.comments);
    for (size_t i = 0; i < inputs.size(); ++i) TENON_OK(read(context, i, inputs[i]));
    TENON_OK(snippet::emit(kernel_, target_.table, target_.description, context));
    for (size_t i = 0; i < code.outputs.size(); ++i) TENON_OK(write(context, i, code.outputs[i]));
    return assembled(std::move(context).parts());
  }

 private:
  const snippet::BodyValue& value_of(const snippet::BodyPort& port) const {
    return body_.values[static_cast<size_t>(port.value)];
  }
  EmitValue variable(snippet::RegisterId id) const {
    return {kernel_.places[static_cast<size_t>(id)], kernel_.registers[static_cast<size_t>(id)].element};
  }
  std::string raw_vector(ElementType element) const { return str(scalar_name(element), lanes_); }

  // The offset of the element at `place` in a port that varies over some dims; ports are dense over these.
  std::string offset_of(DimSet varies) const {
    if (varies == body_.all_dims()) return {};
    std::string text;
    for (size_t d = 0; d < body_.rank(); ++d)
      if (varies >> d & 1)
        text = text.empty() ? str("place.at", d) : str("(", text, " * f[", d, "] + place.at", d, ")");
    return text;
  }

  Result<void> read(SourceContext& c, size_t i, snippet::RegisterId id) {
    const ElementType element = body_.inputs[i].element;
    const std::string name = c.name(variable(id));
    std::string packed = str("m", i);
    if (i == result_) {
      packed = "x";
      // Rounds as if the result had been stored.
      if (codegen::lane_type(element) != element) {
        TENON_TRY(stored, narrowed(c, packed, element, lanes_));
        TENON_TRY(lanes, widened(c, stored, element, lanes_));
        packed = lanes;
      }
    } else {
      gather(i);
      TENON_TRY(lanes, widened(c, packed, element, lanes_));
      packed = lanes;
    }
    c.line(str(name, " = ", packed, ";"));
    return {};
  }

  void gather(size_t i) {
    const DimSet varies = value_of(body_.inputs[i]).varies;
    const ElementType element = body_.inputs[i].element;
    const std::string pointer = str("((__global const ", scalar_name(element), "*)", names_[i], ")");
    const std::string vector = raw_vector(element), all = offset_of(varies);
    if (varies == 0) {
      loads_ += str("  const ", vector, " m", i, " = (", vector, ")(", pointer, "[0]);\n");
      return;
    }
    places_ = places_ || !all.empty();
    const std::string at = all.empty() ? "e" : all;
    const bool inner = varies >> (body_.rank() - 1) & 1;
    loads_ += str("  ", vector, " m", i, ";\n");
    whole_ += str(
        "    m", i, " = ",
        inner ? near_load(element, lanes_, str(pointer, " + ", at)) : str("(", vector, ")(", pointer, "[", at, "])"),
        ";\n");
    some_ += str("    ", scalar_name(element), " some", i, "[", lanes_, "];\n");
    each_ += str("      some", i, "[t] = ", pointer, "[", all.empty() ? "e + min(t, count - 1)" : all, "];\n");
    after_ += str("    m", i, " = vload", lanes_, "(0, some", i, ");\n");
  }

  Result<void> write(SourceContext& c, size_t i, snippet::RegisterId id) {
    const ElementType element = body_.outputs[i].element;
    TENON_TRY(packed, narrowed(c, c.name(variable(id)), element, lanes_));
    const std::string_view type = scalar_name(element);
    const std::string vector = raw_vector(element), to = str("(__global ", type, "*)r", i, " + e");
    c.open("");
    c.line(str("const ", vector, " stored = ", packed, ";"));
    c.open(str("if (whole || count == ", lanes_, ")"));
    c.line(near_store(element, lanes_, to, "stored"));
    c.close();
    c.open("else");
    c.line(str(type, " some[", lanes_, "];"));
    c.line(str("vstore", lanes_, "(stored, 0, some);"));
    c.line("int done = 0;");
    for (int part = lanes_ / 2; part > 1; part /= 2)
      c.line(str("if (count & ", part, ") { ",
                 near_store(element, part, str(to, " + done"), str("vload", part, "(0, some + done)")),
                 " done += ", part, "; }"));
    c.line(str("if (count & 1) (", to, ")[done] = some[done];"));
    c.close();
    c.close();
    return {};
  }

  // Reads vectors of ports: at once where they are in one line of the innermost dim, else element by element, with the
  // last one repeated.
  std::string reads() const {
    if (each_.empty()) return loads_;
    std::string fits = str("count == ", lanes_);
    if (places_) fits = str("(", fits, " && ", in_line("place", str(lanes_)), ")");
    const std::string next =
        places_ ? "      if (t + 1 < count) place = tenon_place_behind(f, place, e + t, 1);\n" : "";
    return str(loads_, "  if (whole || ", fits, ") {\n", whole_, "  } else {\n", some_, "    for (int t = 0; t < ",
               lanes_, "; ++t) {\n", each_, next, "    }\n", after_, "  }\n");
  }
  std::string in_line(std::string_view place, std::string_view length) const {
    return str(place, ".at", body_.rank() - 1, " + ", length, " <= f[", body_.rank() - 1, "]");
  }

  Result<EpilogueSource> assembled(SourceContext::Parts parts) const {
    std::string ports = places_ ? ", struct tenon_place place" : "", passed;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (i == result_) continue;
      ports += str(", __global const uchar* ", names_[i]);
      passed += str(", ", names_[i]);
    }
    for (size_t i = 0; i < body_.outputs.size(); ++i) {
      ports += str(", __global uchar* r", i);
      passed += str(", r", i);
    }
    EpilogueSource made;
    made.rank = body_.rank();
    const std::string type = lanes_name(value_of(body_.inputs[result_]).element, lanes_);
    made.functions = str(parts.prelude, places_ ? place_functions(body_.rank()) : "",
                         "void tenon_finish(__global const long* f, long e, int count, int whole, ", type, " x", ports,
                         ") {\n", reads(), parts.declarations, parts.body, "}\n");
    made.finish = macros(passed);
    return made;
  }

  // Vectors wider than the body's lanes are finished in halves.
  std::string macros(std::string_view passed) const {
    const auto call = [&](int from, std::string_view count, std::string_view whole, std::string_view x) {
      const std::string j = from > 0 ? str("(j) + ", from) : "(j)";
      return str("tenon_finish(f, (e) + ", j, ", ", count, ", ", whole, ", ", x,
                 places_ ? str(", tenon_place_behind(f, place, e, ", j, ")") : "", passed, ")");
    };
    std::string some = call(0, "count", "0", "x"), all = call(0, str(lanes_), "1", "x");
    if (lanes_ != given_) {
      some = str("do { ", call(0, str("min((int)(count), ", lanes_, ")"), "0", "(x).lo"), "; if ((count) > ", lanes_,
                 ") ", call(lanes_, str("(count) - ", lanes_), "0", "(x).hi"), "; } while (0)");
      all = str("do { ", call(0, str(lanes_), "1", "(x).lo"), "; ", call(lanes_, str(lanes_), "1", "(x).hi"),
                "; } while (0)");
    }
    return str("#define PLACE(place, e) ",
               places_ ? "const struct tenon_place place = tenon_place_of(f, e)" : "(void)0",
               "\n#define PLACE_BEHIND(to, place, e, j) ",
               places_ ? "const struct tenon_place to = tenon_place_behind(f, place, e, j)" : "(void)0",
               "\n#define IN_LINE(place, length) ", places_ ? str("(", in_line("(place)", "(length)"), ")") : "1",
               "\n#define FINISH(place, e, j, count, x) ", some, "\n#define FINISH_WHOLE(place, e, j, x) ", all, "\n");
  }

  const Body& body_;
  const size_t result_;
  const int given_;
  const ComputeTarget& target_;
  int lanes_ = 1;
  std::vector<std::string> names_;  // by input
  snippet::LinearKernel kernel_;
  bool places_ = false;
  std::string loads_, whole_, some_, each_, after_;
};

}  // namespace

Epilogue plain_epilogue(ElementType element) {
  const ElementType lane = codegen::lane_type(element);
  Epilogue made;
  made.body.name = "store";
  made.body.values.push_back({lane.valid() ? lane : element, 0});
  made.body.inputs.push_back({0, element});
  made.body.outputs.push_back({0, element});
  return made;
}

std::string why_no_epilogue(const Body& body, size_t result) {
  if (body.reduces()) return str("snippet '", body.name, "' reduces");
  if (result >= body.inputs.size()) return str("snippet '", body.name, "' has no input ", result);
  const auto has_all = [&](const snippet::BodyPort& port) {
    return body.values[static_cast<size_t>(port.value)].varies == body.all_dims();
  };
  if (!has_all(body.inputs[result])) return str("the kernel's result is repeated in snippet '", body.name, "'");
  if (!std::ranges::all_of(body.outputs, has_all)) return str("an output of snippet '", body.name, "' is smaller");
  return {};
}

Result<EpilogueSource> write_epilogue(const Epilogue& epilogue, int lanes, const ComputeTarget& target) {
  return EpilogueWriter(epilogue, lanes, target).run();
}

}  // namespace tenon::opencl
