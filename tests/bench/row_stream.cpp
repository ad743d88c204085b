#include "row_stream.hpp"

#include <utility>
#include <vector>

#include <tenon/support/check.hpp>

namespace tenon::x86 {

using namespace codegen;
using namespace Xbyak::util;

CodeObject row_stream(const JitterRow* row, Isa isa, const Attributes& attributes, int floats) {
  ConstantPool pool(isa == Isa::avx512 ? 1 : 8);
  X86Context c(isa, pool);
  const int lanes = lanes_of(isa, kF32), bytes = lanes * 4;
  const std::vector<EmitValue> in(3, {{RegisterFile::vector, 0}, kF32}), out{{{RegisterFile::vector, 1}, kF32}};
  std::vector<int> vectors, masks;
  for (int i = 0; row && i < row->scratch.vectors; ++i) vectors.push_back(2 + i);
  for (int i = 0; row && i < row->scratch.masks; ++i) masks.push_back(1 + i);
  c.gen().mov(rsi, qword[rdi]);
  c.gen().mov(rdx, qword[rdi + 8]);
  c.gen().mov(ecx, floats / lanes);
  Xbyak::Label loop;
  c.gen().align(64);
  c.gen().L(loop);
  c.gen().vmovups(c.vector(in[0], lanes), c.gen().ptr[rsi]);
  if (row) {
    const auto emitter = row->make(attributes);
    const Emission emission{.op = row->op.view(),
                            .attributes = attributes,
                            .in = in,
                            .out = out,
                            .vectors = vectors,
                            .masks = masks,
                            .generals = {},
                            .lanes = lanes};
    const auto emitted = emitter->emit_code(c, emission);
    TENON_CHECK(emitted.ok(), "cannot emit ", row->op.view(), ": ", emitted.error().to_string());
  }
  c.gen().vmovups(c.gen().ptr[rdx], c.vector(row ? out[0] : in[0], lanes));
  c.gen().add(rsi, bytes);
  c.gen().add(rdx, bytes);
  c.gen().dec(ecx);
  c.gen().jnz(loop);
  c.gen().vzeroupper();
  c.gen().ret();
  return c.finish("stream");
}

std::shared_ptr<const JitCode> runnable(CodeObject object) {
  return JitMemory::shared().add(std::make_shared<CodeObject>(std::move(object))).value();
}

}  // namespace tenon::x86
