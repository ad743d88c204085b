// Inside the room: the reference implementation of Copy, element by element.
#pragma once
#include <functional>

#include <tenon/program/ir/statement.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program::detail {

// The views are cropped to their boxes; `padding` is null unless the padding is a region. `symbols` has a value for
// each symbol of the map except the indices.
Result<void> copy_reference(const Copy& copy, const BufferView& destination, const BufferView& source,
                            const BufferView* padding, SymbolValues symbols);

// Calls visit(index) for each index of the box, dim 0 fastest; stops at the first error.
Result<void> for_each_index(std::span<const DimView> dims,
                            const std::function<Result<void>(std::span<const int64_t>)>& visit);

}  // namespace tenon::program::detail
