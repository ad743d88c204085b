// Operators that rearrange elements by position: permute, join, crop, repeat, pad. Every element type.
//
// Axes may be negative and then count from the back.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// y[i[perm[0]], i[perm[1]], ...] = x[i]: axis d of y is axis perm[d] of x. Without `perm` the axes are reversed.
struct Transpose : OpView<Transpose> {
  static constexpr std::string_view kName = "Transpose";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Attribute::Integers perm() const { return attr<Attribute::Integers>("perm"); }  // empty: reversed
};

// Concatenates the operands along `axis`; their other extents are equal.
struct Concat : OpView<Concat> {
  static constexpr std::string_view kName = "Concat";
  using OpView::OpView;
  int64_t axis() const { return attr<int64_t>("axis"); }
};

// Splits `input` along `axis` into parts of the lengths `split`, or into as many as there are results (`num_outputs`),
// of equal length except for the last ones, which take the remainder.
struct Split : OpView<Split> {
  static constexpr std::string_view kName = "Split";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* split() const { return operand(1); }  // may be null
  int64_t axis() const { return attr<int64_t>("axis", 0); }
};

// y[..., i, ...] = data[..., starts[k] + i * steps[k], ...] along axes[k], up to but without ends[k]. Negative starts
// and ends count from the back; both are clamped to the axis, so a slice may be empty. Steps may be negative. Without
// `axes`, the first axes are used; without `steps`, the steps are 1.
struct Slice : OpView<Slice> {
  static constexpr std::string_view kName = "Slice";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* starts() const { return operand(1); }
  Value* ends() const { return operand(2); }
  Value* axes() const { return operand(3); }   // may be null
  Value* steps() const { return operand(4); }  // may be null
};

// `data` with pads[k] elements added before axis axes[k] and pads[n + k] after it (n axes; negative: cropped). By
// `mode`, they are constant_value (0 when absent); data mirrored at its first and last element (reflect); the first and
// last element (edge); data repeated (wrap).
struct Pad : OpView<Pad> {
  static constexpr std::string_view kName = "Pad";
  using OpView::OpView;
  Value* data() const { return operand(0); }
  Value* pads() const { return operand(1); }
  Value* constant_value() const { return operand(2); }  // may be null
  Value* axes() const { return operand(3); }            // may be null: all
  std::string mode() const { return attr<std::string>("mode", "constant"); }
};

// `input` repeated repeats[d] times along each axis d.
struct Tile : OpView<Tile> {
  static constexpr std::string_view kName = "Tile";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* repeats() const { return operand(1); }
};

// The elements [..., i, j] with j - i >= k (`upper`, the default) or j - i <= k, zeros (false, "") elsewhere.
struct Trilu : OpView<Trilu> {
  static constexpr std::string_view kName = "Trilu";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* k() const { return operand(1); }  // may be null: 0
  bool upper() const { return attr<int64_t>("upper", 1) != 0; }
};

// [N, C, H, W] -> [N, C / b^2, H * b, W * b], b = blocksize: channels become b x b squares of pixels. The position in
// the square is the slow part of the channel number (mode DCR), or the fast part (CRD).
struct DepthToSpace : OpView<DepthToSpace> {
  static constexpr std::string_view kName = "DepthToSpace";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  int64_t blocksize() const { return attr<int64_t>("blocksize"); }
  bool depth_first() const { return attr<std::string>("mode", "DCR") == "DCR"; }
};

// [N, C, H, W] -> [N, C * b^2, H / b, W / b]: the inverse of DepthToSpace in mode DCR.
struct SpaceToDepth : OpView<SpaceToDepth> {
  static constexpr std::string_view kName = "SpaceToDepth";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  int64_t blocksize() const { return attr<int64_t>("blocksize"); }
};

// Reverses the first sequence_lens[b] elements along `time_axis` of each batch entry b; the others are unchanged.
struct ReverseSequence : OpView<ReverseSequence> {
  static constexpr std::string_view kName = "ReverseSequence";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* sequence_lens() const { return operand(1); }
  int64_t batch_axis() const { return attr<int64_t>("batch_axis", 1); }
  int64_t time_axis() const { return attr<int64_t>("time_axis", 0); }
};

// Cropped or padded with zeros symmetrically, so that axes[k] gets extent shape[k]; an odd element is at the end.
struct CenterCropPad : OpView<CenterCropPad> {
  static constexpr std::string_view kName = "CenterCropPad";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  Value* shape() const { return operand(1); }
  Attribute::Integers axes() const { return attr<Attribute::Integers>("axes"); }  // empty: all
};

}  // namespace tenon
