// A tensor in memory in a layout: conversion between elements and bytes, and the padding slots.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <tenon/ir/value_layout.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/reorder.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::interpreter {

// What a run writes over dirty padding, to show who relies on it.
enum class Poison : uint8_t { none, ones, nan };

// For one shape; any number of threads may use it. `physical` always has layout().bytes() bytes.
class LaidOut {
 public:
  // Fails when the text is not a layout for this shape, or maps several elements to one slot.
  static Result<std::shared_ptr<const LaidOut>> make(const ValueLayout& layout, ElementType element, const Dims& dims);
  LaidOut(const ValueLayout& value_layout, ElementType element, Layout layout, ReorderPlan pack, ReorderPlan unpack);

  const Layout& layout() const { return layout_; }
  ElementType element() const { return element_; }
  const Dims& dims() const { return layout_.shape(); }
  size_t bytes() const { return static_cast<size_t>(layout_.bytes()); }

  // Conversion from elements to physical bytes and back. Includes settle_padding().
  Result<void> pack(const Tensor& logical, std::span<std::byte> physical, Poison poison, ParallelFor& parallel) const;
  Result<Tensor> unpack(std::span<const std::byte> physical, ParallelFor& parallel) const;

  // For use after a reorder, which has written the layout's fill: writes what the pad state promises, or poison where
  // it is dirty.
  void settle_padding(std::span<std::byte> physical, Poison poison) const;
  // For use after an operator, which may have written anything into padding: an error names the first slot that does
  // not hold what the pad state promises. Only with poison; dirty padding is then poisoned.
  Result<void> check_padding(std::span<std::byte> physical, Poison poison) const;
  // Writes the lowest bits of `bits` to every slot without an element; the cost is proportional to these slots.
  void fill_padding(std::span<std::byte> physical, uint64_t bits) const;

  // Whether the slots are the elements of a dense tensor of layout().physical_elements().
  bool is_flat() const;
  // Whether each slot has the same index in both, whatever the element types.
  bool same_slots(const LaidOut& other) const;
  // With padding as elements: the same bytes as a tensor with larger extents. Nothing where padding is not a box
  // (ragged, fused, shifted, folded dims, and index maps).
  struct Box {
    Layout layout;
    ReorderPlan pack, unpack;
  };
  const std::optional<Box>& box() const;

 private:
  struct Slots {
    int64_t first_bit;
    int64_t count;
  };
  std::vector<Slots> find_padding() const;
  const std::vector<Slots>& padding() const;
  std::optional<Box> make_box() const;
  std::optional<uint64_t> promised() const;
  uint64_t poison_bits(Poison poison) const;
  std::string describe_slot(int64_t bit) const;

  ValueLayout value_layout_;
  ElementType element_;
  Layout layout_;
  ReorderPlan pack_, unpack_;
  // Computed on first use.
  mutable std::once_flag padding_found_, box_found_;
  mutable std::vector<Slots> padding_;
  mutable std::optional<Box> box_;
};
using LaidOutPointer = std::shared_ptr<const LaidOut>;

std::span<std::byte> bytes_of(Tensor& tensor);
std::span<const std::byte> bytes_of(const Tensor& tensor);
// Allocates the physical bytes.
Result<Tensor> allocate_physical(const LaidOut& laid_out);

}  // namespace tenon::interpreter
