#include "x86/assembly/context.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "x86/assembly/vector_instruction.hpp"

namespace tenon::x86 {

using Xbyak::util::rip;
using Xbyak::util::rsp;

namespace {

// Never executable. Code is aligned to cache lines by its address here, because kernels also begin at a line where they
// run.
class PlainMemory final : public Xbyak::Allocator {
 public:
  uint8_t* alloc(size_t bytes) override { return static_cast<uint8_t*>(::operator new(bytes, kLine)); }
  void free(uint8_t* memory) override { ::operator delete(memory, kLine); }
  bool useProtect() const override { return false; }

 private:
  static constexpr std::align_val_t kLine{64};
};

PlainMemory& plain_memory() {
  static PlainMemory memory;  // stateless
  return memory;
}

constexpr size_t kPoolAlignment = 64;

}  // namespace

GrowingCode::GrowingCode() : CodeGenerator(kFirstBytes, nullptr, &plain_memory()) {}

void GrowingCode::grow() {
  uint8_t* const larger = plain_memory().alloc(2 * maxSize_);
  std::memcpy(larger, top_, size_);
  plain_memory().free(top_);
  top_ = larger;
  maxSize_ *= 2;
}

void GrowingCode::append(std::span<const uint8_t> code) {
  while (maxSize_ - size_ < code.size()) grow();
  std::memcpy(top_ + size_, code.data(), code.size());
  size_ += code.size();
}

X86Context::X86Context(Isa isa, codegen::ConstantPool& constants) : EmitContext(constants), isa_(isa) {
  code_.setDefaultJmpNEAR(true);
}

X86Context::~X86Context() = default;

void X86Context::mark(std::string_view label, std::string_view instruction) {
  marks_.add({static_cast<uint32_t>(gen().getSize()), label, instruction});
}

Xbyak::Xmm X86Context::vector(int number, int bits) {
  if (bits > 256) return zmm(number);
  if (bits > 128) return ymm(number);
  return xmm(number);
}

Xbyak::Xmm X86Context::vector(int number, ElementType element, int lanes) const {
  return vector(number, lanes * (element.is_bool() ? mask_bits(lanes) : element.bits()));
}

Xbyak::Xmm X86Context::vector(const codegen::EmitValue& value, int lanes) const {
  return vector(value.at.number, value.element, lanes);
}

Xbyak::Address X86Context::in_lanes(size_t offset) {
  return avx512() ? gen().ptr_b[in_pool(offset)] : gen().ptr[in_pool(offset)];
}

Xbyak::Address X86Context::constant(ElementType element, uint64_t bits) {
  return in_lanes(constants().add(element, bits));
}

Xbyak::Address X86Context::constant_address(ElementType element, uint64_t bits) {
  return gen().ptr[in_pool(constants().add(element, bits))];
}

Xbyak::Address X86Context::table(std::span<const uint32_t> entries, size_t more_bytes) {
  return gen().ptr[in_pool(constants().add_table(entries) + more_bytes)];
}

void X86Context::broadcast(const Xbyak::Xmm& out, ElementType element, uint64_t bits) {
  const bool wide = element.bits() == 64;
  const bool ones = wide ? bits == ~uint64_t{0} : static_cast<uint32_t>(bits) == ~uint32_t{0};
  const bool high = out.getIdx() >= 16;  // has no VEX encoding
  if (bits == 0 && high) return gen().vpxord(out, out, out);
  if (bits == 0) return gen().vpxor(xmm(out.getIdx()), xmm(out.getIdx()), xmm(out.getIdx()));
  if (ones && avx512()) return gen().vpternlogd(out, out, out, 0xff);
  if (ones) return gen().vpcmpeqd(out, out, out);
  if (!avx512()) return gen().vmovups(out, constant_address(element, bits));
  if (wide) return gen().vpbroadcastq(out, constant_address(element, bits));
  gen().vpbroadcastd(out, constant_address(element, bits));
}

void X86Context::keep_constants_in(std::vector<int> vectors) {
  if (vectors.empty()) return;
  free_ = std::move(vectors);
  entry_ = gen().getSize();
  gen().jmp(load_kept_, Xbyak::CodeGenerator::T_NEAR);
  gen().L(begin_);
}

std::optional<int> X86Context::kept(const Kept& what) {
  if (const auto found = kept_.find(what); found != kept_.end()) return found->second;
  if (loops_ == 0 || free_.empty()) return std::nullopt;
  const int number = free_.back();
  free_.pop_back();
  return kept_[what] = number;
}

void X86Context::load(int number, const Kept& what) {
  const Xbyak::Xmm out = vector(number, vector_bits(isa_));
  const Xbyak::Address from = gen().ptr[in_pool(what.offset)];
  if (!avx512() || what.bits == 0) return gen().vmovups(out, from);
  what.bits == 64 ? gen().vpbroadcastq(out, from) : gen().vpbroadcastd(out, from);
}

void X86Context::place_kept(std::string_view label) {
  if (!entry_) return;
  gen().L(load_kept_);
  if (kept_.empty()) return;
  mark(label, "constants");
  for (const auto& [what, number] : kept_) load(number, what);
  gen().jmp(begin_, Xbyak::CodeGenerator::T_NEAR);
}

ConstantOperand X86Context::kept_constant(ElementType element, uint64_t value, int bits) {
  const size_t offset = constants().add(element, value);
  if (const auto number = kept({offset, element.bits()})) return vector(*number, bits);
  return in_lanes(offset);
}

ConstantOperand X86Context::kept_table(std::span<const uint32_t> entries, size_t more_bytes) {
  const size_t offset = constants().add_table(entries) + more_bytes;
  if (const auto number = kept({offset, 0})) return vector(*number, vector_bits(isa_));
  return gen().ptr[in_pool(offset)];
}

void X86Context::broadcast_kept(const Xbyak::Xmm& out, ElementType element, uint64_t bits) {
  if (bits != 0)
    if (const auto number = kept({constants().add(element, bits), element.bits()}))
      return move(out, vector(*number, out.getBit()));
  broadcast(out, element, bits);
}

void X86Context::write_behind(std::function<void(X86Context&)> write) {
  const CodeMark now = marks_.empty() ? CodeMark{} : marks_.back();
  behind_.push_back({std::string(now.label), std::string(now.instruction), std::move(write)});
}

// The code of the pieces goes into taken_.
Result<std::vector<X86Context::Piece>> X86Context::take_out(size_t pieces,
                                                            const std::function<Result<void>(size_t)>& write) {
  const size_t begin = gen().getSize();
  std::vector<Piece> all;
  Result<void> written;
  moves_ = true;
  for (size_t piece = 0; piece < pieces && written.ok(); ++piece) {
    const size_t at = gen().getSize() - begin;
    written = write(piece);
    all.push_back({at, gen().getSize() - begin});
  }
  moves_ = false;
  TENON_OK(written);
  taken_.assign(gen().getCode() + begin, gen().getCurr());
  gen().setSize(begin);
  return all;
}

// Appends the next instruction of `piece`.
Result<void> X86Context::move_in(Piece& piece) {
  const std::span<const uint8_t> code(taken_.data() + piece.at, piece.end - piece.at);
  const auto first = first_vector_instruction(code);
  if (!first) return error(Code::internal, "code that is to go in turn with other has more than vector instructions");
  const size_t begin = gen().getSize();
  code_.append(code.first(first->bytes));
  if (first->distance_at) pool_uses_.push_back({begin + *first->distance_at, gen().getSize()});
  piece.at += first->bytes;
  return {};
}

Result<void> X86Context::in_turn(size_t pieces, const std::function<Result<void>(size_t)>& write) {
  TENON_TRY(all, take_out(pieces, write));
  for (bool more = true; more;) {
    more = false;
    for (Piece& piece : all) {
      if (piece.at == piece.end) continue;
      TENON_OK(move_in(piece));
      more = true;
    }
  }
  return {};
}

void X86Context::narrow_mask(const Xbyak::Xmm& out, const Xbyak::Ymm& in) {
  gen().vextractf128(xmm(out.getIdx()), in, 1);
  gen().vshufps(xmm(out.getIdx()), xmm(in.getIdx()), xmm(out.getIdx()), 0x88);
}

void X86Context::widen_mask(const Xbyak::Ymm& out, const Xbyak::Xmm& in) { gen().vpmovsxdq(out, xmm(in.getIdx())); }

void X86Context::move(const Xbyak::Xmm& out, const Xbyak::Xmm& in) {
  if (out.getIdx() != in.getIdx()) gen().vmovaps(out, in);
}

void X86Context::move(const Xbyak::Opmask& out, const Xbyak::Opmask& in) {
  if (out.getIdx() != in.getIdx()) gen().kmovq(out, in);
}

void X86Context::move(const Xbyak::Reg64& out, const Xbyak::Reg64& in) {
  if (out.getIdx() != in.getIdx()) gen().mov(out, in);
}

namespace {

Xbyak::RegExp expression(const codegen::EmitAddress& memory, int64_t more_bytes) {
  Xbyak::RegExp at = X86Context::general(memory.base.number);
  if (memory.index) at = at + X86Context::general(memory.index->number) * (memory.element.bits() / 8);
  return at + static_cast<size_t>(memory.displacement_bytes + more_bytes);
}

}  // namespace

Xbyak::Address X86Context::address(const codegen::EmitAddress& memory, int64_t more_bytes) const {
  return code_.ptr[expression(memory, more_bytes)];
}

Xbyak::Address X86Context::address_broadcast(const codegen::EmitAddress& memory) const {
  return code_.ptr_b[expression(memory, 0)];
}

Xbyak::Address X86Context::param(int64_t number) const {
  return code_.ptr[Xbyak::util::rdi + static_cast<size_t>(8 * number)];
}

Xbyak::Address X86Context::slot(int64_t number) const { return code_.ptr[rsp + static_cast<size_t>(64 * number)]; }

CodeObject X86Context::finish(std::string name) {
  for (const Behind& code : behind_) {
    mark(code.label, code.instruction);
    code.write(*this);
  }
  CodeObject object{.name = std::move(name), .isa = isa_};
  object.code_bytes = gen().getSize();
  while (gen().getSize() % kPoolAlignment != 0) gen().int3();
  const size_t pool_at = gen().getSize();
  gen().L(pool_);
  gen().ready();
  const auto* code = reinterpret_cast<const std::byte*>(gen().getCode());
  object.bytes.reserve(pool_at + constants().bytes().size());
  object.bytes.assign(code, code + pool_at);
  object.bytes.insert(object.bytes.end(), constants().bytes().begin(), constants().bytes().end());
  for (const PoolUse& use : pool_uses_) {
    int32_t distance = 0;
    std::memcpy(&distance, object.bytes.data() + use.distance_at, sizeof distance);
    distance += static_cast<int32_t>(pool_at - use.end);
    std::memcpy(object.bytes.data() + use.distance_at, &distance, sizeof distance);
  }
  // No constant was kept in a register, so there is nothing to jump to.
  constexpr unsigned char kNothing[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};  // of the jump's length
  if (entry_ && kept_.empty()) std::memcpy(object.bytes.data() + *entry_, kNothing, sizeof kNothing);
  object.marks = std::move(marks_);
  return object;
}

}  // namespace tenon::x86
