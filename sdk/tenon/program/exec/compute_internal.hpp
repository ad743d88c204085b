// Inside the room: the instructions of a bound program that compute numbers.
#pragma once
#include <algorithm>

#include <tenon/program/exec/arithmetic_internal.hpp>
#include <tenon/program/exec/code_internal.hpp>

namespace tenon::program::detail {

inline int64_t linear(Frame& f, const ByteCode& code, const Instr& i) {
  int64_t sum = i.number;
  for (int32_t t = i.first; t < i.last; ++t) {
    const Term& term = code.terms[static_cast<size_t>(t)];
    sum = add(sum, multiply(term.factor, f.at(term.place)));
  }
  return sum;
}

// Removes the fold of dims whose box does not wrap around their ring. Returns the last dim whose box does; null: none.
inline const DimView* place_view(Frame& f, const RingView& ring) {
  const DimView* wraps = nullptr;
  int64_t base = f.get(ring.base);
  for (const Fold& fold : ring.folds) {
    DimView& dim = f.as<DimView>(fold.dim);
    const int64_t places = f.get(fold.fold), first = f.get(fold.place);
    dim.fold = places > 0 && add(first, f.get(fold.extent)) > places ? places : 0;
    if (places > 0 && dim.fold == 0) base = add(base, multiply(first, f.get(fold.stride)));
    if (dim.fold > 0) wraps = &dim;
  }
  f.at(ring.view) = base;
  return wraps;
}

// An instruction that computes().
inline void compute(Frame& f, const ByteCode& code, const Instr& i) {
  switch (i.op) {
    case Op::set: f.at(i.to) = i.number; break;
    case Op::move: f.at(i.to) = f.at(i.a.place); break;
    case Op::linear: f.at(i.to) = linear(f, code, i); break;
    case Op::product: f.at(i.to) = multiply(f.get(i.a), f.get(i.b)); break;
    case Op::floordiv: f.at(i.to) = floor_divide(f.get(i.a), f.get(i.b)); break;
    case Op::mod: f.at(i.to) = floor_modulo(f.get(i.a), f.get(i.b)); break;
    case Op::min: f.at(i.to) = std::min(f.get(i.a), f.get(i.b)); break;
    case Op::max: f.at(i.to) = std::max(f.get(i.a), f.get(i.b)); break;
    case Op::select: f.at(i.to) = f.get(i.a) != 0 ? f.get(i.b) : f.get(i.c); break;
    case Op::at_least_0: f.at(i.to) = f.get(i.a) >= 0; break;
    case Op::is_0: f.at(i.to) = f.get(i.a) == 0; break;
    default: place_view(f, code.rings[static_cast<size_t>(i.index)]); break;
  }
}

// What loops step ----------------------------------------------------------------------------------------------

inline void add_each(std::byte* frame, const Step* first, const Step* last) {
#pragma GCC unroll 4  // unrolled by 4: a step is as short as the loop overhead
  for (const Step* s = first; s != last; ++s) {
    auto& to = *reinterpret_cast<int64_t*>(frame + s->place);
    to = add(to, s->by);
  }
}

// Applies turn `number` of the loop; returns the next one.
inline int64_t turn(std::byte* frame, const ByteCode& code, const LoopCode& loop, int64_t number) {
  const Turn& turn = code.turns[static_cast<size_t>(number)];
  add_each(frame, code.jumps.data() + turn.first, code.jumps.data() + turn.last);
  return number + 1 == loop.last_turn ? loop.first_turn : number + 1;
}

}  // namespace tenon::program::detail
