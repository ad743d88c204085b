#include <tenon/program/ir/program.hpp>

#include <charconv>

#include <tenon/program/ir/settled.hpp>

namespace tenon::program {
namespace {

constexpr std::array<std::string_view, 4> kMetaNames = {"min", "extent", "stride", "fold"};

}  // namespace

BufferId Program::add_buffer(Buffer buffer) {
  buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(buffers.size() - 1);
}

TokenId Program::add_token(std::string name) {
  tokens.push_back(std::move(name));
  return static_cast<TokenId>(tokens.size() - 1);
}

std::optional<BufferId> Program::find_buffer(std::string_view name) const {
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].name == name) return static_cast<BufferId>(i);
  return std::nullopt;
}

Expr meta_of(std::string_view buffer, Meta meta, int dim) {
  return Expr::symbol(str(buffer, ".", kMetaNames[static_cast<size_t>(meta)], dim));
}

std::optional<MetaSymbol> parse_meta(std::string_view symbol) {
  const size_t dot = symbol.find('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  const std::string_view rest = symbol.substr(dot + 1);
  for (size_t m = 0; m < kMetaNames.size(); ++m) {
    if (!rest.starts_with(kMetaNames[m])) continue;
    const std::string_view digits = rest.substr(kMetaNames[m].size());
    int dim = -1;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), dim);
    if (status != std::errc() || end != digits.data() + digits.size() || dim < 0 || dim >= kMaxRank)
      return std::nullopt;
    return MetaSymbol{symbol.substr(0, dot), static_cast<Meta>(m), dim};
  }
  return std::nullopt;
}

KernelState::~KernelState() = default;
SettlingState::~SettlingState() = default;

KernelHandle make_kernel(std::string name, KernelFunction run, bool takes_folded) {
  return std::make_shared<const Kernel>(
      Kernel{.name = std::move(name), .run = std::move(run), .takes_folded = takes_folded});
}

}  // namespace tenon::program
