#include <tenon/ir/serialize.hpp>

#include <cstring>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/support/memory.hpp>

namespace tenon {
namespace {

// Layout, all numbers little-endian and 64 bits wide:
//   magic | text bytes | block count | (offset, bytes) per block | text | blocks, each aligned
// A Constant whose tensor is in a block has the attribute `block` (its number) and no `value`; its result type, which
// is always in the text, gives element type and shape.
constexpr char kMagic[8] = {'T', 'E', 'N', 'O', 'N', 'I', 'R', '1'};
constexpr size_t kInlineBytes = 256;  // smaller tensors stay readable in the text

const Name& payload_name() {
  static const Name name("value");
  return name;
}
const Name& block_name() {
  static const Name name("block");
  return name;
}

size_t aligned(size_t offset) { return (offset + kAlignBytes - 1) / kAlignBytes * kAlignBytes; }

void append_u64(std::string& out, uint64_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Result<uint64_t> u64() {
    TENON_TRY(view, take(sizeof(uint64_t)));
    uint64_t value;
    std::memcpy(&value, view.data(), sizeof value);
    return value;
  }
  Result<std::span<const std::byte>> take(size_t count) {
    if (count > bytes_.size() - at_) {
      return error(Code::parse, "a stored graph ends after ", bytes_.size(), " bytes, ", count, " more are needed at ",
                   at_);
    }
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

}  // namespace

std::string serialize(const Graph& graph) {
  const auto stripped = graph.clone();
  std::vector<Tensor> blocks;
  for_each_op(stripped->body(), [&](Op& op) {
    const Tensor* tensor = op.result_count() == 1 ? constant_of(op.result()) : nullptr;
    if (!tensor || tensor->element().is_string() || tensor->bytes() < kInlineBytes) return;
    op.result()->set_type(Type(tensor->type()));
    blocks.push_back(*tensor);
    op.attributes().erase(payload_name());
    op.set_attr(block_name(), static_cast<int64_t>(blocks.size() - 1));
  });
  const std::string text = print(*stripped, {.layout_maps = true});

  std::string out(kMagic, sizeof kMagic);
  append_u64(out, text.size());
  append_u64(out, blocks.size());
  size_t offset = aligned(out.size() + blocks.size() * 16 + text.size());
  for (const Tensor& block : blocks) {
    append_u64(out, offset);
    append_u64(out, block.bytes());
    offset = aligned(offset + block.bytes());
  }
  out.reserve(offset);
  out += text;
  for (const Tensor& block : blocks) {
    out.resize(aligned(out.size()));
    out.append(reinterpret_cast<const char*>(block.data()), block.bytes());
  }
  return out;
}

Result<std::unique_ptr<Graph>> deserialize(std::span<const std::byte> bytes, std::shared_ptr<void> owner) {
  Reader reader(bytes);
  TENON_TRY(magic, reader.take(sizeof kMagic));
  if (std::memcmp(magic.data(), kMagic, sizeof kMagic) != 0)
    return error(Code::parse, "these bytes are no stored graph");
  TENON_TRY(text_bytes, reader.u64());
  TENON_TRY(count, reader.u64());
  if (count > bytes.size() / 16) return error(Code::parse, "a stored graph claims ", count, " blocks");
  std::vector<std::span<const std::byte>> blocks;
  for (uint64_t i = 0; i < count; ++i) {
    TENON_TRY(offset, reader.u64());
    TENON_TRY(size, reader.u64());
    if (offset > bytes.size() || size > bytes.size() - offset) {
      return error(Code::parse, "block ", i, " of a stored graph reaches beyond its ", bytes.size(), " bytes");
    }
    blocks.push_back(bytes.subspan(offset, size));
  }
  TENON_TRY(text, reader.take(text_bytes));
  TENON_TRY(graph, parse_graph({reinterpret_cast<const char*>(text.data()), text.size()}, "stored graph"));
  Result<void> status;
  for_each_op(graph->body(), [&](Op& op) {
    const int64_t block = op.attr<int64_t>(block_name(), -1);
    if (!status.ok() || !op.is("Constant") || block < 0) return;
    const Type& type = op.result()->type();
    const auto dims = type.is_tensor() ? type.shape().static_dims() : std::nullopt;
    if (!dims || static_cast<uint64_t>(block) >= blocks.size()) {
      status = error(Code::parse, op.describe(), " of a stored graph names block ", block, " of ", blocks.size());
      return;
    }
    if (type.element().is_string()) {
      status = error(Code::parse, op.describe(), " of a stored graph has strings in block ", block,
                     "; blocks hold numbers alone");
      return;
    }
    const auto data = blocks[static_cast<size_t>(block)];
    auto tensor = Tensor::share(type.element(), *dims, owner, const_cast<std::byte*>(data.data()), data.size());
    if (!tensor.ok()) {
      status = std::move(tensor).error().with_frame(str("block ", block, " of a stored graph"));
      return;
    }
    op.attributes().erase(block_name());
    op.set_attr(payload_name(), *std::move(tensor));
  });
  TENON_OK(std::move(status));
  return graph;
}

}  // namespace tenon
