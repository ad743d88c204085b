#include "opencl/listing.hpp"

#include <unordered_map>
#include <vector>

#include <tenon/irgen/from_graph.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/support/str.hpp>

#include "opencl/compute/epilogue.hpp"
#include "opencl/fuse.hpp"
#include "opencl/source_context.hpp"

namespace tenon::opencl {
namespace {

// "" for operators that have no kernel of their own.
Result<std::string> listing_of(const Op& op, const Fused* fused, const Compiler& compiler) {
  if (fused) {
    TENON_TRY(body, snippet::make_body(*fused->behind));
    return compiler.listing(*fused->op, Epilogue{std::move(body), fused->input});
  }
  if (isa<snippet::Subgraph>(op)) {
    TENON_TRY(body, snippet::make_body(op));
    return compiler.listing(body);
  }
  return has_compute_kernel(op) ? compiler.listing(op, std::nullopt) : std::string();
}

}  // namespace

Result<std::string> listing(const Region& body, const Compiler& compiler, std::string_view device) {
  std::vector<const Op*> ops;
  for (const Op& op : body) ops.push_back(&op);
  std::unordered_map<const Op*, const Fused*> fused;  // by either operator
  const std::vector<Fused> all = compiler.options().fuse ? fuse_epilogues(ops, compiler) : std::vector<Fused>();
  for (const Fused& one : all) fused[one.op] = fused[one.behind] = &one;
  std::string text;
  for (const Op* op : ops) {
    const auto both = fused.find(op);
    if (both != fused.end() && both->second->op == op) continue;  // listed with the snippet
    TENON_TRY(source, listing_of(*op, both == fused.end() ? nullptr : both->second, compiler));
    if (source.empty()) continue;
    const std::string stage = both == fused.end() ? irgen::stage_of_op(*op) : both->second->stage();
    text += str("// ", comment_text(str(stage, ", for ", device)), "\n", source, "\n");
  }
  return text;
}

}  // namespace tenon::opencl
