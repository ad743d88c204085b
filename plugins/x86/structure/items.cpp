// Staging buffers of items and of rows (passes/items.cpp): results are collected in them until they fill cache lines,
// which are then stored with non-temporal stores. The buffer of items has its state in the first line and then two
// items, which alternate: one is computed while the other is stored.
#include "x86/structure/internal.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::Reg64;

// Offsets in the first line of the buffer.
enum : int {
  kLine = 0,     // the next line to be stored
  kLast = 8,     // end of the lines to be stored
  kTo = 16,      // distance in bytes from there to the output
  kHere = 24,    // the item that is being computed
  kThere = 32,   // the other item
  kStates = 64,  // bytes of the whole state
};

Result<Reg64> load_state(X86Context& c, const Emission& e) {
  TENON_TRY(state, integer_attribute(e, "state"));
  const Reg64 stage = c.general(e.generals[0]);
  c.gen().mov(stage, c.param(state));
  return stage;
}

// An item begins up to 63 bytes after the begin of its first line.
Result<void> emit_stage_begin(X86Context& c, const Emission& e) {
  TENON_TRY(stage, load_state(c, e));
  TENON_TRY(bytes, integer_attribute(e, "bytes"));
  auto& g = c.gen();
  const Reg64 item = c.general(e.generals[1]), a = c.scratch();
  g.xor_(a.cvt32(), a.cvt32());
  for (const int at : {kLine, kLast, kTo}) g.mov(g.ptr[stage + at], a);
  g.lea(item, g.ptr[stage + kStates]);
  g.mov(g.ptr[stage + kHere], item);
  g.mov(a, c.param(bytes));
  g.add(a, 126);
  g.and_(a, -64);
  g.add(item, a);
  g.mov(g.ptr[stage + kThere], item);
  return {};
}

Result<void> emit_stage_item(X86Context& c, const Emission& e) {
  TENON_TRY(stage, load_state(c, e));
  const Reg64 out = c.general(e.out[0]), a = c.scratch();
  c.gen().lea(a, c.address(*e.memory));
  c.gen().and_(a, 63);
  c.gen().mov(out, c.gen().ptr[stage + kHere]);
  c.gen().add(out, a);
  return {};
}

Result<void> emit_stage_line(X86Context& c, const Emission& e) {
  TENON_TRY(stage, load_state(c, e));
  const Xbyak::Zmm line = c.zmm(e.vectors[0]);
  const Reg64 a = c.scratch();
  auto& g = c.gen();
  Xbyak::Label none;
  g.mov(a, g.ptr[stage + kLine]);
  g.cmp(a, g.ptr[stage + kLast]);
  g.jae(none);
  g.vmovaps(line, g.ptr[a]);
  g.add(g.qword[stage + kLine], 64);
  g.add(a, g.ptr[stage + kTo]);
  g.vmovntps(g.ptr[a], line);
  g.L(none);
  return {};
}

void store_rest(X86Context& c, const Reg64& stage, const Reg64& to, const Xbyak::Zmm& line) {
  const Reg64 a = c.scratch();
  auto& g = c.gen();
  Xbyak::Label next, none;
  g.mov(a, g.ptr[stage + kLine]);
  g.mov(to, g.ptr[stage + kTo]);
  g.L(next);
  g.cmp(a, g.ptr[stage + kLast]);
  g.jae(none);
  g.vmovaps(line, g.ptr[a]);
  g.vmovntps(g.ptr[a + to], line);
  g.add(a, 64);
  g.jmp(next);
  g.L(none);
}

Result<void> emit_stage_rest(X86Context& c, const Emission& e) {
  TENON_TRY(stage, load_state(c, e));
  store_rest(c, stage, c.general(e.generals[1]), c.zmm(e.vectors[0]));
  return {};
}

Result<void> emit_fetch_on(X86Context& c, const Emission& e) {
  TENON_TRY(bytes, integer_attribute(e, "bytes"));
  const Reg64 next = c.general(e.out[0]);
  c.gen().prefetcht1(c.address(*e.memory));
  c.gen().lea(next, c.address(*e.memory));
  c.gen().add(next, static_cast<int>(bytes));
  return {};
}

// Lines shared with neighbouring items are stored into the caches, where the parts are merged.
Result<void> emit_stage_done(X86Context& c, const Emission& e) {
  TENON_TRY(stage, load_state(c, e));
  TENON_TRY(bytes, integer_attribute(e, "bytes"));
  const Reg64 to = c.general(e.generals[1]), end = c.general(e.generals[2]), bits = c.general(e.generals[3]),
              a = c.scratch();
  const Xbyak::Zmm line = c.zmm(e.vectors[0]);
  const Xbyak::Opmask part = c.mask(e.masks[0]);
  auto& g = c.gen();
  Xbyak::Label begins, within, done;
  store_rest(c, stage, to, line);
  // Swaps the items: the finished one is to be stored now, the other one is computed next.
  g.mov(a, g.ptr[stage + kHere]);
  g.mov(to, g.ptr[stage + kThere]);
  g.mov(g.ptr[stage + kHere], to);
  g.mov(g.ptr[stage + kThere], a);
  g.mov(g.ptr[stage + kLine], a);
  g.lea(to, c.address(*e.memory));
  g.mov(end, to);
  g.and_(to, -64);
  g.sub(to, a);
  g.mov(g.ptr[stage + kTo], to);
  g.mov(a, end);
  g.and_(a, 63);
  g.mov(end, c.param(bytes));
  g.add(end, a);  // from the begin of the first line
  g.test(a, a);
  g.jz(begins);
  g.mov(bits, -1);
  g.shlx(bits, bits, a);
  g.cmp(end, 64);
  g.jae(within);
  g.bzhi(bits, bits, end);
  g.L(within);
  g.kmovq(part, bits);
  g.mov(a, g.ptr[stage + kLine]);
  g.vmovaps(line, g.ptr[a]);
  g.vmovdqu8(g.ptr[a + to] | part, line);
  g.add(g.qword[stage + kLine], 64);
  g.L(begins);
  g.mov(a, end);
  g.and_(a, -64);
  g.add(a, g.ptr[stage + kThere]);
  g.mov(g.ptr[stage + kLast], a);
  g.and_(end, 63);
  g.jz(done);
  g.cmp(a, g.ptr[stage + kLine]);
  g.jb(done);
  g.mov(bits, -1);
  g.bzhi(bits, bits, end);
  g.kmovq(part, bits);
  g.vmovaps(line, g.ptr[a]);
  g.vmovdqu8(g.ptr[a + to] | part, line);
  g.add(to, a);
  g.add(to, c.param(bytes));
  g.prefetchw(g.ptr[to]);  // approximately where the next item ends
  g.L(done);
  return {};
}

// The buffer of rows: its state, then what has not been stored yet, from the begin of a line on.
enum : int {
  kRowsTo = 0,    // bytes from its first line to that of the output
  kRowsHead = 8,  // bytes of the first line that do not belong to this call; 0: none, or the line has been stored
};

Result<void> emit_stage_rows_begin(X86Context& c, const Emission& e) {
  TENON_TRY(stage, load_state(c, e));
  const Reg64 staged = c.general(e.out[0]), a = c.scratch();
  auto& g = c.gen();
  g.lea(a, c.address(*e.memory));
  g.and_(a, 63);
  g.mov(g.ptr[stage + kRowsHead], a);
  g.lea(staged, g.ptr[stage + a + kStates]);
  g.lea(a, c.address(*e.memory));
  g.and_(a, -64);
  g.sub(a, stage);
  g.sub(a, kStates);
  g.mov(g.ptr[stage + kRowsTo], a);
  return {};
}

// Stores bytes [at, end) of the buffer into the caches, because the rest of the line belongs to other calls.
void store_bytes(X86Context& c, const Reg64& at, const Reg64& end, const Reg64& to, const Reg64& byte) {
  auto& g = c.gen();
  Xbyak::Label next, done;
  g.L(next);
  g.cmp(at, end);
  g.jae(done);
  g.mov(byte.cvt8(), g.byte[at]);
  g.mov(g.byte[at + to], byte.cvt8());
  g.inc(at);
  g.jmp(next);
  g.L(done);
}

// Stores the whole lines before `end`, of the first one only the part that belongs to this call. Afterwards the scratch
// register points to their end. `to` is the distance that the state at `stage` holds.
void store_whole_lines(X86Context& c, const Emission& e, const Reg64& stage, const Reg64& end, const Reg64& to) {
  const Reg64 at = c.general(e.generals[2]), a = c.scratch();
  const bool wide = c.isa() == Isa::avx512;
  auto& g = c.gen();
  Xbyak::Label first, next, done;
  g.lea(a, g.ptr[stage + kStates]);
  g.mov(to, g.ptr[stage + kRowsTo]);
  g.L(next);
  g.lea(at, g.ptr[a + 64]);
  g.cmp(at, end);
  g.ja(done, Xbyak::CodeGenerator::T_NEAR);
  g.cmp(g.qword[stage + kRowsHead], 0);
  g.jne(first);
  if (wide) {
    g.vmovaps(c.zmm(e.vectors[0]), g.ptr[a]);
    g.vmovntps(g.ptr[a + to], c.zmm(e.vectors[0]));
  } else {
    for (int half = 0; half < 64; half += 32) {
      g.vmovaps(c.ymm(e.vectors[0]), g.ptr[a + half]);
      g.vmovntps(g.ptr[a + to + half], c.ymm(e.vectors[0]));
    }
  }
  g.mov(a, at);
  g.jmp(next);
  g.L(first);
  g.mov(at, a);
  g.add(at, g.ptr[stage + kRowsHead]);
  g.mov(g.qword[stage + kRowsHead], 0);
  g.add(a, 64);
  store_bytes(c, at, a, to, c.general(e.generals[3]));
  g.jmp(next);
  g.L(done);
}

Result<void> emit_stage_rows(X86Context& c, const Emission& e) {
  TENON_TRY(stage, load_state(c, e));
  TENON_TRY(waiting, integer_attribute(e, "waiting"));
  const Reg64 staged = c.general(e.out[0]), to = c.general(e.generals[1]), at = c.general(e.generals[2]),
              a = c.scratch();
  auto& g = c.gen();
  Xbyak::Label few;
  g.lea(staged, c.address(*e.memory));
  g.lea(a, g.ptr[stage + kStates + static_cast<int>(waiting)]);
  g.cmp(staged, a);
  g.jb(few, Xbyak::CodeGenerator::T_NEAR);
  store_whole_lines(c, e, stage, staged, to);
  for (int half = 0; half < 64; half += 32) {
    g.vmovaps(c.ymm(e.vectors[0]), g.ptr[a + half]);
    g.vmovaps(g.ptr[stage + kStates + half], c.ymm(e.vectors[0]));
  }
  g.lea(at, g.ptr[a - kStates]);
  g.sub(at, stage);
  g.sub(staged, at);
  g.add(to, at);
  g.mov(g.ptr[stage + kRowsTo], to);
  g.L(few);
  return {};
}

Result<void> emit_stage_rows_rest(X86Context& c, const Emission& e) {
  TENON_TRY(stage, load_state(c, e));
  const Reg64 end = c.general(e.generals[4]), to = c.general(e.generals[1]), at = c.general(e.generals[2]);
  c.gen().lea(end, c.address(*e.memory));
  store_whole_lines(c, e, stage, end, to);
  c.gen().mov(at, c.scratch());
  c.gen().add(at, c.gen().ptr[stage + kRowsHead]);
  store_bytes(c, at, end, to, c.general(e.generals[3]));
  return {};
}

}  // namespace

std::vector<JitterRow> item_rows() {
  const auto row = [](const char* op, codegen::ScratchNeeds scratch, auto make) {
    return JitterRow{
        .op = op, .types = codegen::kAnyLanes, .feature = kAvx512Feature, .scratch = scratch, .make = make};
  };
  std::vector<JitterRow> rows;
  rows.push_back(row("StageBegin", {.generals = 2}, make_function<emit_stage_begin>));
  JitterRow item = row("StageItem", {.generals = 1}, make_function<emit_stage_item>);
  item.early_result = true;
  rows.push_back(std::move(item));
  const auto any = [](const char* op, codegen::ScratchNeeds scratch, auto make) {
    return JitterRow{.op = op, .types = codegen::kAnyLanes, .scratch = scratch, .make = make};
  };
  JitterRow begin = any("StageRowsBegin", {.generals = 1}, make_function<emit_stage_rows_begin>);
  begin.early_result = true;
  rows.push_back(std::move(begin));
  rows.push_back(any("StageRows", {.vectors = 1, .generals = 4}, make_function<emit_stage_rows>));
  rows.push_back(any("StageRowsRest", {.vectors = 1, .generals = 5}, make_function<emit_stage_rows_rest>));
  rows.push_back(any("FetchOn", {}, make_function<emit_fetch_on>));
  rows.push_back(row("StageLine", {.vectors = 1, .generals = 1}, make_function<emit_stage_line>));
  rows.push_back(row("StageDone", {.vectors = 1, .masks = 1, .generals = 4}, make_function<emit_stage_done>));
  rows.push_back(row("StageRest", {.vectors = 1, .generals = 2}, make_function<emit_stage_rest>));
  return rows;
}

}  // namespace tenon::x86
