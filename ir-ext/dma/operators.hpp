// Transfers between memory spaces, as operators of a graph for one target whose tensors have been placed.
//
//   %x.inp, %t = dma.load %x {from = "dram", to = "inp"}
//   %x.here    = dma.wait %x.inp, %t                       // the only reader of %x.inp
//   %y.acc     = fused.QConv %x.here, %w.here ...
//   %y, %u     = dma.store %y.acc {from = "acc", to = "dram"}
//
// A transfer starts at its position. A transfer with a token has ended once the token has been waited for. Until then
// nobody may read its result, so the only user of the result is the dma.wait with the transfer's own token; the
// verifier checks this. Operators between the two may overlap with the transfer. Operand `after` orders a transfer
// after others (such as those of a buffer that is still read): it starts when these tokens are done. A token is bool[]:
// true once the transfer has ended. A transfer without a token has ended where its result is read: code generators
// derive the waits.
//
// Parts of tensors, for tiles:
//
//   %t  = dma.load %x {from = "dram", to = "inp", begin = [0, 16, 8, 0], extent = [1, 16, 4, 8], slot = 1}
//   %y0 = dma.alloc {memory = "dram"} : i8[1,64,8,8]
//   %y1 = dma.store %t, %y0 {from = "acc", to = "dram", begin = [0, 16, 8, 0]}
//
//   load    y[i] = x[begin + (i - before) * steps] inside `extent`, 0 in the padding around it; `pads` are those before
//           each dim, then those after each dim. Without `extent`, all of x.
//   store   y = `into`, with x written at `begin`
//
// `slot` states which of a memory's equal parts holds the result, for buffers that are used in rotation; `at`, once it
// has been decided, is the position in units of the memory. Memory spaces are names from the target's description, and
// "host". Values do not change: every operator decomposes into generic ones, so graphs with transfers run everywhere.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon::dma {

template <class Derived>
struct TransferView : OpView<Derived> {
  using OpView<Derived>::OpView;
  Value* source() const { return this->operand(0); }
  Value* data() const { return this->result(0); }
  Value* token() const { return this->op().result_count() > 1 ? this->result(1) : nullptr; }  // may be null
  std::string from() const { return this->template attr<std::string>("from"); }
  std::string to() const { return this->template attr<std::string>("to"); }
  Attribute::Integers begin() const { return this->template attr<Attribute::Integers>("begin"); }  // empty: zeros
};

// A transfer to a memory near the engines.
struct Load : TransferView<Load> {
  static constexpr std::string_view kName = "dma.load";
  using TransferView::TransferView;
};
// A transfer back from there.
struct Store : TransferView<Store> {
  static constexpr std::string_view kName = "dma.store";
  using TransferView::TransferView;
  Value* into() const { return operand(1); }  // may be null: the stored tensor is the whole result
};
// The data, once the token is done.
struct Wait : OpView<Wait> {
  static constexpr std::string_view kName = "dma.wait";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* token() const { return operand(1); }
};
// An uninitialised tensor in a memory.
struct Alloc : OpView<Alloc> {
  static constexpr std::string_view kName = "dma.alloc";
  using OpView::OpView;
};

}  // namespace tenon::dma
