// Transfers between memory spaces, as operators: what a graph of one target says once it has placed its tensors.
//
//   %x.inp, %t = dma.load %x {from = "dram", to = "inp"}
//   %x.here    = dma.wait %x.inp, %t                       // the only reader of %x.inp
//   %y.acc     = fused.QConv %x.here, %w.here ...
//   %y, %u     = dma.store %y.acc {from = "acc", to = "dram"}
//
// A transfer starts where it stands and is over when its token has been waited for. Until then nobody may read its
// result, so that the only user of the result is the dma.wait with the transfer's own token; the verifier sees to it.
// Between the two other operators may stand: that is what overlaps. Operand `after` orders a transfer behind others (a
// buffer that is still read): it starts when these tokens are done. A token is bool[]: true once the transfer is over.
//
// Memory spaces are names of the target's description. Values do not change: every operator decomposes into Identity,
// so graphs with transfers run everywhere.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon::dma {

template <class Derived>
struct TransferView : OpView<Derived> {
  using OpView<Derived>::OpView;
  Value* source() const { return this->operand(0); }
  Value* data() const { return this->result(0); }
  Value* token() const { return this->result(1); }
  std::string from() const { return this->template attr<std::string>("from"); }
  std::string to() const { return this->template attr<std::string>("to"); }
};

// Into a memory near the engines.
struct Load : TransferView<Load> {
  static constexpr std::string_view kName = "dma.load";
  using TransferView::TransferView;
};
// Back from there.
struct Store : TransferView<Store> {
  static constexpr std::string_view kName = "dma.store";
  using TransferView::TransferView;
};
// The data, once the token is done.
struct Wait : OpView<Wait> {
  static constexpr std::string_view kName = "dma.wait";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* token() const { return operand(1); }
};

}  // namespace tenon::dma
