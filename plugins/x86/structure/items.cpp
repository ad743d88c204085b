// The stage of items (passes/items.cpp): what an item becomes, as lines that later go past the caches. It begins with
// what is known of it, and behind that lie two items, which take turns: one is made while the other goes out.
#include "x86/structure/internal.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::Reg64;

// Of the stage's first line.
enum : int {
  kLine = 0,     // the next line that goes out
  kLast = 8,     // behind the last one
  kTo = 16,      // bytes from there to the output
  kHere = 24,    // the item that is made
  kThere = 32,   // the other
  kStates = 64,  // bytes of all
};

Result<Reg64> load_state(X86Context& c, const Emission& e) {
  TENON_TRY(state, integer_attribute(e, "state"));
  const Reg64 stage = c.general(e.generals[0]);
  c.gen().mov(stage, c.param(state));
  return stage;
}

// An item begins up to 63 bytes into its first line.
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

// The lines that have bytes of neighbours go through the caches, where these meet theirs.
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
  // The item is what goes out now, and the other what is made next.
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
  g.add(end, a);  // from the first line's begin
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
  g.prefetchw(g.ptr[to]);  // about where the next item ends
  g.L(done);
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
  rows.push_back(row("StageLine", {.vectors = 1, .generals = 1}, make_function<emit_stage_line>));
  rows.push_back(row("StageDone", {.vectors = 1, .masks = 1, .generals = 4}, make_function<emit_stage_done>));
  rows.push_back(row("StageRest", {.vectors = 1, .generals = 2}, make_function<emit_stage_rest>));
  return rows;
}

}  // namespace tenon::x86
