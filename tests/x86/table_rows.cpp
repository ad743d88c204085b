#include "table_rows.hpp"

#include <array>
#include <span>
#include <string>

#include <tenon/support/check.hpp>

#include "x86/emitters/emitters.hpp"

namespace tenon::x86::test {

using namespace codegen;

const JitterTable& elementwise_table() {
  static const JitterTable* const table = [] {
    auto* made = new JitterTable(std::string(kContextKind));
    TENON_CHECK(add_elementwise_rows(*made).ok(), "rows that the table refuses");
    return made;
  }();
  return *table;
}

const JitterRow* math_row(const tenon::test::MathCase& math, Isa isa) {
  const std::array in{kF32, kF32};
  const Signature signature{math.op, std::span(in).first(math.unary ? 1 : 2), std::span(in).first(1), math.attributes};
  for (const JitterRow* row : elementwise_table().rows())
    if (isa_of(*row) == isa && row->matches(signature)) return row;
  return nullptr;
}

std::vector<Isa> machine_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::avx2, Isa::avx512})
    if (machine_has(isa)) isas.push_back(isa);
  return isas;
}

}  // namespace tenon::x86::test
