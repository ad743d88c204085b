// Loops and tails.
#include <array>
#include <bit>

#include "x86/structure/internal.hpp"

namespace tenon::x86 {
namespace {

// Sets the flags to counter - limit.
void compare_with_limit(X86Context& c, const Emission& e, const Xbyak::Reg64& counter, int64_t limit) {
  const auto known = known_param(e);
  known ? c.gen().cmp(counter, static_cast<uint32_t>(*known)) : c.gen().cmp(counter, c.param(limit));
}

// The test is at the end of the loop, and once before the first iteration.
Result<void> emit_loop_begin(X86Context& c, const Emission& e) {
  TENON_TRY(limit, integer_attribute(e, "limit"));
  TENON_TRY(increment, integer_attribute(e, "increment"));
  X86Context::LoopLabels& labels = c.loop_labels(e.number);
  compare_with_limit(c, e, c.general(e.in[0]), limit);
  c.gen().jg(labels.end, Xbyak::CodeGenerator::T_NEAR);
  // Vector loops are short: their alignment to lines of code changes their time by a fifth.
  c.gen().align(increment >= e.lanes ? 64 : 16);
  c.gen().L(labels.begin);
  c.begin_loop();
  return {};
}

Result<void> emit_loop_end(X86Context& c, const Emission& e) {
  TENON_TRY(limit, integer_attribute(e, "limit"));
  TENON_TRY(increment, integer_attribute(e, "increment"));
  X86Context::LoopLabels& labels = c.loop_labels(e.number);
  const Xbyak::Reg64 counter = c.general(e.in[0]);
  c.gen().add(counter, static_cast<uint32_t>(increment));
  compare_with_limit(c, e, counter, limit);
  c.gen().jle(labels.begin, Xbyak::CodeGenerator::T_NEAR);
  c.gen().L(labels.end);
  c.end_loop();
  return {};
}

// out = the mask of the lanes below `count`, which is below 32.
void emit_first_lanes(X86Context& c, const EmitValue& out, const Xbyak::Reg64& count, int lanes) {
  if (c.avx512()) {
    const Xbyak::Reg32 bits = c.scratch().cvt32();
    c.gen().mov(bits, -1);
    c.gen().bzhi(bits, bits, count.cvt32());
    return c.gen().kmovd(c.mask(out), bits);
  }
  const Xbyak::Xmm mask = c.vector(out, lanes);
  c.gen().vmovq(c.xmm(mask.getIdx()), count);
  if (mask_bits(lanes) == 64) {
    constexpr std::array<uint32_t, 8> kNumbers{0, 0, 1, 0, 2, 0, 3, 0};
    c.gen().vpbroadcastq(mask, c.xmm(mask.getIdx()));
    return c.gen().vpcmpgtq(mask, mask, c.table(kNumbers));
  }
  constexpr std::array<uint32_t, 8> kNumbers{0, 1, 2, 3, 4, 5, 6, 7};
  c.gen().vpbroadcastd(mask, c.xmm(mask.getIdx()));
  c.gen().vpcmpgtd(mask, mask, c.table(kNumbers));
}

// The number of elements in memory before the next whole vector, at most the value of the param.
Result<void> emit_head_lanes(X86Context& c, const Emission& e) {
  const Xbyak::Reg64 out = c.general(e.out[0]);
  const int bytes = e.memory->element.bits() / 8;
  c.gen().lea(out, c.address(*e.memory));
  c.gen().neg(out);
  c.gen().and_(out, static_cast<uint32_t>(e.lanes * bytes - 1));
  if (bytes > 1) c.gen().shr(out, std::countr_zero(static_cast<uint32_t>(bytes)));
  const auto known = known_param(e);
  if (known && *known >= e.lanes) return {};
  const Xbyak::Reg64 most = c.scratch();
  known ? c.gen().mov(most, *known) : c.gen().mov(most, c.param(e.number));
  c.gen().cmp(out, most);
  c.gen().cmovg(out, most);
  return {};
}

// For a known count.
void emit_known_lanes(X86Context& c, const EmitValue& out, int64_t count, int lanes) {
  if (c.avx512()) {
    const Xbyak::Reg32 bits = c.scratch().cvt32();
    c.gen().mov(bits, static_cast<uint32_t>((uint64_t{1} << count) - 1));
    return c.gen().kmovd(c.mask(out), bits);
  }
  std::array<uint32_t, 8> mask{};
  const size_t words = mask_bits(lanes) / 32;
  std::fill_n(mask.begin(), std::min(static_cast<size_t>(count) * words, mask.size()), ~uint32_t{0});
  c.gen().vmovups(c.vector(out, lanes), c.table(mask));
}

Result<void> emit_first_lanes_of(X86Context& c, const Emission& e) {
  if (const Attribute* count = e.attributes.find("count")) {
    emit_known_lanes(c, e.out[0], *count->get_if<int64_t>(), e.lanes);
    return {};
  }
  emit_first_lanes(c, e.out[0], c.general(e.in[0]), e.lanes);
  return {};
}

Result<void> emit_tail_begin(X86Context& c, const Emission& e) {
  TENON_TRY(limit, integer_attribute(e, "limit"));
  const Xbyak::Reg64 counter = c.general(e.in[0]), count = c.general(e.out[1]);
  if (count.getIdx() == counter.getIdx()) {
    c.gen().neg(count);
    c.gen().add(count, c.param(limit));
    c.gen().test(count, count);  // not the flags of add, which also reflect an overflow
  } else {
    const auto known = known_param(e);
    known ? c.gen().mov(count, *known) : c.gen().mov(count, c.param(limit));
    c.gen().sub(count, counter);
  }
  c.gen().jle(c.loop_labels(e.number).end, Xbyak::CodeGenerator::T_NEAR);
  emit_first_lanes(c, e.out[0], count, e.lanes);
  return {};
}

Result<void> emit_tail_end(X86Context& c, const Emission& e) {
  c.gen().L(c.loop_labels(e.number).end);
  return {};
}

// Jumps to the end where lane 0 of the mask has the other value.
Result<void> emit_when_begin(X86Context& c, const Emission& e) {
  static const Name kHolds("holds");
  const Attribute* const wanted = e.attributes.find(kHolds);
  const bool holds = wanted == nullptr || *wanted->get_if<int64_t>() != 0;
  const Xbyak::Reg32 lane = c.scratch().cvt32();
  c.avx512() ? c.gen().kmovd(lane, c.mask(e.in[0])) : c.gen().vmovd(lane, c.xmm(e.in[0].at.number));
  c.gen().test(lane, 1);
  Xbyak::Label& end = c.begin_when();
  holds ? c.gen().jz(end, Xbyak::CodeGenerator::T_NEAR) : c.gen().jnz(end, Xbyak::CodeGenerator::T_NEAR);
  return {};
}

Result<void> emit_when_end(X86Context& c, const Emission&) {
  Xbyak::Label end = c.end_when();
  c.gen().L(end);
  return {};
}

}  // namespace

std::vector<JitterRow> loop_rows() {
  const codegen::LaneTypes general{kI64};
  std::vector<JitterRow> rows;
  rows.push_back({.op = "LoopBegin", .types = general, .make = make_function<emit_loop_begin>});
  rows.push_back({.op = "LoopEnd", .types = general, .make = make_function<emit_loop_end>});
  rows.push_back({.op = "TailBegin", .types = general, .cycles = 4, .make = make_function<emit_tail_begin>});
  rows.push_back({.op = "HeadLanes", .types = general, .cycles = 4, .make = make_function<emit_head_lanes>});
  rows.push_back({.op = "FirstLanes", .types = general, .make = make_function<emit_first_lanes_of>});
  rows.push_back({.op = "WhenBegin", .types = {kBool}, .cycles = 2, .make = make_function<emit_when_begin>});
  rows.push_back({.op = "WhenEnd", .types = general, .cycles = 0, .make = make_function<emit_when_end>});
  rows.push_back({.op = "TailEnd", .types = general, .cycles = 0, .make = make_function<emit_tail_end>});
  return rows;
}

}  // namespace tenon::x86
