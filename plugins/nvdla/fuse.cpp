#include <algorithm>

#include <tenon/passes/rewrite.hpp>

#include "nvdla/buffer_plan.hpp"
#include "nvdla/operators.hpp"
#include "nvdla/passes.hpp"

namespace tenon::nvdla {
namespace {

using Integers = Attribute::Integers;
using Names = std::vector<std::string>;

bool is_activation(std::string_view name) { return name == "Relu" || name == "Clip"; }

// A chain that the machine supports: a product, bounds, max pooling. Each at most once, in this order.
struct Chain {
  std::string product, activation;
  bool pool = false;
};

Result<Chain> chain_of(const Names& names, const std::string& target) {
  Chain chain;
  size_t at = 0;
  if (at < names.size() && (names[at] == "Conv" || names[at] == "Gemm")) chain.product = names[at++];
  if (at < names.size() && is_activation(names[at])) chain.activation = names[at++];
  if (at < names.size() && names[at] == "MaxPool" && chain.product == "Conv") chain.pool = true, ++at;
  if (!chain.product.empty() && at == names.size() && at > 1) return chain;
  std::string list;
  for (const std::string& name : names) list += str(list.empty() ? "" : ", ", name);
  return error(Code::invalid_argument, "fusion [", list, "] of target '", target,
               "' is none of Conv or Gemm, then Relu or Clip, then behind Conv MaxPool");
}

bool was(const Value& value, std::string_view name) { return original_name(*value.producer()) == name; }

bool is_bounded(const Op& conv) { return bound(conv, "low") || bound(conv, "high"); }
bool is_pooled(const Op& conv) { return conv.attributes().has("pool_kernel"); }
// Whether the product's own bounds include a ReLU.
bool has_relu(const Op& conv) { return bound(conv, "low") == 0.0f; }

Pattern product(const std::string& name) {
  using namespace pattern;
  return op(Conv::name(), {any(), any()}).and_more().as("conv").where([name](const Value& v) {
    return was(v, name) && !is_pooled(*v.producer());
  });
}

Pattern activation(const std::string& name, Pattern of) {
  using namespace pattern;
  return op(Sdp::name(), {std::move(of)}).as("act").where([name](const Value& v) { return was(v, name); });
}

// After a product with bounds of its own, an activation would be a second one.
bool can_take_bounds(const Match& match) {
  return !match.has("act") || match.op("act").operand_count() > 1 || !is_bounded(match.op("conv"));
}

void take_pool(const Op& pool, Attributes& attributes) {
  const auto take = [&](const char* from, const char* to) {
    if (const auto list = pool.attr<Integers>(from); !list.empty()) attributes.set(to, list);
  };
  take("kernel_shape", "pool_kernel"), take("strides", "pool_strides"), take("pads", "pool_pads");
}

// Not fused where the buffer holds the input rows of a convolution's window, but not those of the pool after it.
Result<Value*> fused(Builder& builder, const Match& match, const Hardware& hardware) {
  const Op& conv = match.op("conv");
  Attributes attributes = conv.attributes();
  if (match.has("act"))
    for (const char* name : {"low", "high"})
      if (const Attribute* found = match.op("act").attributes().find(name)) attributes.set(name, *found);
  if (match.has("pool")) take_pool(match.op("pool"), attributes);
  TENON_TRY(made, builder.op(Conv::name(), conv.operands(), std::move(attributes)));
  return check_fits(*made->producer(), hardware).ok() ? made : nullptr;
}

Pattern pool_of(Pattern of) {
  using namespace pattern;
  return op(Pdp::name(), {std::move(of)}).as("pool").where([](const Value& v) { return was(v, "MaxPool"); });
}

// Matches the chain as separate operators, and with the activation in the bounds of the product, as in quantised
// models.
void add_rewrites(const Chain& chain, MachinePtr machine, std::vector<Rewrite>& rewrites) {
  const auto build = [machine](Builder& builder, const Match& match) {
    return fused(builder, match, machine->hardware);
  };
  const std::string name = str("fuse-", chain.product);
  Pattern body = product(chain.product);
  if (!chain.activation.empty()) body = activation(chain.activation, std::move(body));
  Pattern root = chain.pool ? pool_of(body) : body;
  rewrites.push_back(Rewrite(name).match(std::move(root)).when(can_take_bounds).with(build));
  if (!chain.pool || chain.activation != "Relu") return;
  rewrites.push_back(Rewrite(name + "-bounded")
                         .match(pool_of(product(chain.product)))
                         .when([](const Match& match) { return has_relu(match.op("conv")); })
                         .with(build));
}

}  // namespace

Result<Pass> fuse_pass(MachinePtr machine) {
  std::vector<Rewrite> rewrites;
  std::vector<Names> lists = machine->hardware.fusions;
  std::ranges::stable_sort(lists, [](const Names& a, const Names& b) { return a.size() > b.size(); });
  for (const Names& names : lists) {
    TENON_TRY(chain, chain_of(names, machine->hardware.name));
    add_rewrites(chain, machine, rewrites);
  }
  return rewrite_pass("fuse-nvdla",
                      "Chains that the target file lists under `fusions` become one operator, where nobody else reads "
                      "what is between.\nNeeds the machine's operators; changes no bit. A chain that is not listed "
                      "stays.",
                      std::move(rewrites), {});
}

}  // namespace tenon::nvdla
