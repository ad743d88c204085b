#include <tenon/tensor/npy.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>

#include <tenon/support/str.hpp>

namespace tenon {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kHeaderLimit = size_t{1} << 20;  // bytes; NumPy's own headers are about a hundred
constexpr size_t kRankLimit = 64;                 // as in NumPy
constexpr size_t kHeaderAlign = 64;

struct FileClose {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileClose>;

struct Header {
  std::string descr;
  bool fortran_order = false;
  Dims dims;
};

// Reads the header: a Python dict literal with the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  Result<Header> parse() {
    Header out;
    bool seen_descr = false, seen_order = false, seen_shape = false;
    TENON_OK(expect('{'));
    while (!accept('}')) {
      TENON_TRY(key, string());
      TENON_OK(expect(':'));
      if (key == "descr") {
        if (peek() == '[') return error(Code::unsupported, "a structured dtype; only plain numbers can be read");
        TENON_TRY(descr, string());
        out.descr = std::string(descr);
        seen_descr = true;
      } else if (key == "fortran_order") {
        TENON_TRY(order, boolean());
        out.fortran_order = order;
        seen_order = true;
      } else if (key == "shape") {
        TENON_TRY(dims, shape());
        out.dims = std::move(dims);
        seen_shape = true;
      } else {
        return error(Code::parse, "the header has an unknown key ", quote(key));
      }
      if (accept(',')) continue;
      TENON_OK(expect('}'));
      break;
    }
    if (!seen_descr || !seen_order || !seen_shape)
      return error(Code::parse, "the header lacks one of 'descr', 'fortran_order' and 'shape'");
    return out;
  }

 private:
  char peek() {
    const size_t begin = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(std::min(begin, rest_.size()));
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool accept(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  Error expected(std::string_view what) {
    constexpr size_t kShown = 16;
    return error(Code::parse, "the header has ", quote(rest_.substr(0, kShown)), " where ", what, " should be");
  }
  Result<void> expect(char c) {
    if (!accept(c)) return expected(quote(std::string_view(&c, 1)));
    return {};
  }
  Result<std::string_view> string() {
    const char mark = peek();
    const size_t end = mark == '\'' || mark == '"' ? rest_.find(mark, 1) : std::string_view::npos;
    if (end == std::string_view::npos) return expected("a string");
    const auto out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return out;
  }
  Result<bool> boolean() {
    peek();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    return expected("True or False");
  }
  Result<Dims> shape() {
    Dims dims;
    TENON_OK(expect('('));
    while (!accept(')')) {
      peek();
      int64_t dim = 0;
      const auto [stop, failure] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dim);
      if (failure != std::errc() || dim < 0) return expected("a dim from 0 to 2^63 - 1");
      if (dims.size() == kRankLimit) return error(Code::parse, "the shape has more than ", kRankLimit, " dims");
      dims.push_back(dim);
      rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
      accept('L');  // from Python 2, which wrote long integers with it
      if (accept(',')) continue;
      TENON_OK(expect(')'));
      break;
    }
    return dims;
  }

  std::string_view rest_;
};

struct Row {
  std::string_view code;  // of a dtype, after the byte order
  ElementType element;
};
constexpr Row kDtypes[] = {
    {"b1", kBool}, {"i1", kI8},  {"i2", kI16}, {"i4", kI32}, {"i8", kI64}, {"u1", kU8},  {"u2", kU16},
    {"u4", kU32},  {"u8", kU64}, {"f2", kF16}, {"f4", kF32}, {"f8", kF64}, {"c8", kC64}, {"c16", kC128},
};

struct Dtype {
  ElementType element;
  bool swapped = false;  // the byte order differs from this machine's
};

Result<Dtype> parse_dtype(std::string_view descr) {
  constexpr std::string_view kOrders = "<>|=";
  const char order = descr.empty() ? '\0' : descr[0];
  const bool ordered = order != '\0' && kOrders.find(order) != std::string_view::npos;
  for (const auto& [code, element] : kDtypes) {
    if (descr.substr(ordered ? 1 : 0) != code) continue;
    const char foreign = std::endian::native == std::endian::little ? '>' : '<';
    return Dtype{element, order == foreign && element.bits() > 8};
  }
  return error(Code::unsupported, "the dtype ", quote(descr),
               "; supported are bool, integers of 1 to 8 bytes, floats of 2 to 8, complex of 8 and 16");
}

Result<void> read_exactly(std::FILE* file, void* data, size_t bytes, std::string_view what) {
  const size_t got = bytes == 0 ? 0 : std::fread(data, 1, bytes, file);
  if (got == bytes) return {};
  return error(Code::parse, "the file ends within its ", what, ": ", got, " of ", bytes, " bytes are there");
}

Result<Header> read_header(std::FILE* file) {
  unsigned char start[8];
  TENON_OK(read_exactly(file, start, sizeof start, "first 8 bytes"));
  if (std::memcmp(start, kMagic.data(), kMagic.size()) != 0)
    return error(Code::parse, "this is no .npy file: it does not start with \\x93NUMPY");
  const int major = start[6];
  if (major < 1 || major > 3) return error(Code::unsupported, "format version ", major, "; versions 1 to 3 are known");
  unsigned char size_bytes[4] = {};
  TENON_OK(read_exactly(file, size_bytes, major == 1 ? 2 : 4, "header length"));
  size_t size = 0;
  for (size_t i = 0; i < sizeof size_bytes; ++i) size |= static_cast<size_t>(size_bytes[i]) << (8 * i);
  if (size > kHeaderLimit)
    return error(Code::parse, "the header's length is ", size, " bytes; at most ", kHeaderLimit, " are taken");
  std::string text(size, '\0');
  TENON_OK(read_exactly(file, text.data(), size, "header"));
  return HeaderParser(text).parse();
}

void swap_bytes(Tensor& tensor) {
  const int parts = tensor.element().is_complex() ? 2 : 1;  // the real and the imaginary part are swapped separately
  const auto unit = static_cast<size_t>(tensor.element().bits() / 8 / parts);
  for (std::byte *p = tensor.mutable_data(), *end = p + tensor.bytes(); p < end; p += unit) std::reverse(p, p + unit);
}

// `column_major` holds the elements with the first index varying fastest.
Result<Tensor> to_row_major(const Tensor& column_major) {
  TENON_TRY(out, Tensor::allocate(column_major.element(), column_major.dims()));
  const Dims& dims = column_major.dims();
  const auto unit = static_cast<size_t>(column_major.element().bits() / 8);
  Dims index(dims.size()), strides(dims.size());
  int64_t stride = 1, offset = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  for (int64_t i = 0; i < out.size(); ++i) {
    std::memcpy(out.mutable_data() + static_cast<size_t>(i) * unit,
                column_major.data() + static_cast<size_t>(offset) * unit, unit);
    for (size_t axis = dims.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < dims[axis]) break;
      offset -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
  return out;
}

Result<Tensor> read_tensor(std::FILE* file, uintmax_t file_bytes) {
  TENON_TRY(header, read_header(file));
  TENON_TRY(dtype, parse_dtype(header.descr));
  TENON_TRY(count, element_count(header.dims));
  TENON_TRY(bytes, storage_bytes(dtype.element, count));
  // Checked before any memory is allocated, because a header may claim any size.
  const auto left = file_bytes - static_cast<uintmax_t>(std::max(std::ftell(file), 0L));
  if (bytes > left)
    return error(Code::parse, "the file is truncated: ", dtype.element, Shape(header.dims), " takes ", bytes,
                 " bytes, ", left, " are left");
  TENON_TRY(out, Tensor::allocate(dtype.element, header.dims));
  TENON_OK(read_exactly(file, out.mutable_data(), bytes, "elements"));
  if (dtype.swapped) swap_bytes(out);
  if (dtype.element.is_bool())
    for (uint8_t& value : out.mutable_as<uint8_t>()) value = value != 0;
  if (header.fortran_order && out.rank() > 1 && out.size() > 0) return to_row_major(out);
  return out;
}

Error system_error(std::string_view action, const std::string& path, int code) {
  return error(Code::io, "cannot ", action, " ", quote(path), ": ", std::generic_category().message(code));
}

std::optional<std::string> dtype_text(ElementType element) {
  for (const auto& [code, listed] : kDtypes) {
    if (listed != element) continue;
    const char order = element.bits() == 8 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
    return str(order, code);
  }
  return std::nullopt;
}

// Magic, version, length and dict, padded with spaces to a multiple of kHeaderAlign.
std::string header_text(const std::string& dtype, const Dims& dims) {
  std::string dict = str("{'descr': '", dtype, "', 'fortran_order': False, 'shape': (");
  for (const int64_t dim : dims) dict += str(dim, ", ");
  dict += "), }";
  const size_t start = kMagic.size() + 2;
  const bool wide = start + 2 + dict.size() + kHeaderAlign > std::numeric_limits<uint16_t>::max();
  const size_t fixed = start + (wide ? 4 : 2);
  const size_t size = (fixed + dict.size() + 1 + kHeaderAlign - 1) / kHeaderAlign * kHeaderAlign - fixed;
  dict.resize(size - 1, ' ');
  std::string out(kMagic);
  out += wide ? '\2' : '\1';
  out += '\0';
  for (size_t i = 0; i < (wide ? 4 : 2); ++i) out += static_cast<char>(size >> (8 * i));
  return out + dict + '\n';
}

}  // namespace

Result<Tensor> read_npy(const std::string& path) {
  std::error_code failure;
  // Checked before opening, because opening a FIFO would wait for its writer.
  const auto status = std::filesystem::status(path, failure);
  if (failure) return system_error("open", path, failure.value());
  if (!std::filesystem::is_regular_file(status)) return error(Code::io, quote(path), " is no regular file");
  const uintmax_t bytes = std::filesystem::file_size(path, failure);
  if (failure) return system_error("open", path, failure.value());
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) return system_error("open", path, errno);
  TENON_TRY(out, read_tensor(file.get(), bytes), "reading ", quote(path));
  return out;
}

Result<void> write_npy(const std::string& path, const Tensor& tensor) {
  const auto dtype = dtype_text(tensor.element());
  if (!dtype)
    return error(Code::unsupported, "NumPy has no type for ", tensor.element(), "; convert the tensor ", tensor,
                 " before writing ", quote(path));
  const std::string header = header_text(*dtype, tensor.dims());
  File file(std::fopen(path.c_str(), "wb"));
  if (!file) return system_error("create", path, errno);
  const bool written =
      std::fwrite(header.data(), 1, header.size(), file.get()) == header.size() &&
      (tensor.bytes() == 0 || std::fwrite(tensor.data(), 1, tensor.bytes(), file.get()) == tensor.bytes());
  const int write_code = errno;
  const bool closed = std::fclose(file.release()) == 0;
  if (!written) return system_error("write", path, write_code);
  if (!closed) return system_error("write", path, errno);
  return {};
}

}  // namespace tenon
