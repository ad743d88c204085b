// NumPy's .npy files, format versions 1 to 3 (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once
#include <string>

#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// Little- or big-endian, row- or column-major; booleans, integers, floats, complex. For an invalid file, the error
// names the path.
TENON_API Result<Tensor> read_npy(const std::string& path);
// Types that NumPy lacks (bf16, 8-bit floats, narrow integers) are Code::unsupported, naming the type.
TENON_API Result<void> write_npy(const std::string& path, const Tensor& tensor);

}  // namespace tenon
