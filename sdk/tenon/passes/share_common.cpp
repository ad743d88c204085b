#include <algorithm>
#include <unordered_set>

#include <tenon/ir/value_layout.hpp>
#include <tenon/passes/change.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/support/hash.hpp>

namespace tenon {
namespace {

// a op b is b op a. With more operands, regrouping would be needed as well, which changes how floats round.
bool swaps(const Op& op) { return op.operand_count() == 2 && op.def()->has(Trait::commutative); }

// Long tensors are hashed by their ends; the whole is compared when these agree.
constexpr size_t kHashedEnd = 256;

uint64_t hash_of(const Tensor& tensor) {
  uint64_t state = hash_mix(static_cast<uint64_t>(tensor.size()), static_cast<uint64_t>(tensor.element().bits()));
  if (tensor.element().is_string()) return state;
  const std::span<const std::byte> bytes(tensor.data(), tensor.bytes());
  state = hash_bytes(bytes.first(std::min(bytes.size(), kHashedEnd)), state);
  return bytes.size() <= kHashedEnd ? state : hash_bytes(bytes.last(kHashedEnd), state);
}

struct SameWork {
  size_t operator()(const Op* op) const {
    uint64_t state = op->name().hash();
    const auto id = [&](size_t i) { return reinterpret_cast<uintptr_t>(op->operand(i)) >> 4; };
    if (swaps(*op)) {
      state = hash_mix(state, id(0) + id(1));
    } else {
      for (size_t i = 0; i < op->operand_count(); ++i) state = hash_mix(state, id(i));
    }
    for (const auto& [name, value] : op->attributes()) {
      const Tensor* tensor = value.get_if<Tensor>();
      state = hash_mix(hash_mix(state, name.hash()), tensor ? hash_of(*tensor) : value.hash());
    }
    return state;
  }
  bool operator()(const Op* a, const Op* b) const {
    return a->name() == b->name() && a->operand_count() == b->operand_count() &&
           a->result_count() == b->result_count() && same_operands(*a, *b) && a->attributes() == b->attributes() &&
           same_layouts(*a, *b);
  }

 private:
  // Results with different layouts are different work: two reorders of one value differ in nothing else.
  static bool same_layouts(const Op& a, const Op& b) {
    for (size_t i = 0; i < a.result_count(); ++i) {
      const ValueLayout *first = a.result(i)->layout(), *second = b.result(i)->layout();
      if (first != second && (!first || !second || !(*first == *second))) return false;
    }
    return true;
  }
  static bool same_operands(const Op& a, const Op& b) {
    bool same = true;
    for (size_t i = 0; same && i < a.operand_count(); ++i) same = a.operand(i) == b.operand(i);
    return same || (swaps(a) && a.operand(0) == b.operand(1) && a.operand(1) == b.operand(0));
  }
};

class Sharer {
 public:
  Result<bool> share_in(Region& region) {
    bool changed = false;
    seen_.reserve(seen_.size() + region.op_count());
    std::vector<Op*> here;  // visible from here to the end of an inner region
    for (Op* op = region.first(); op && !region.is_return(*op);) {
      Op* next = op->next();
      for (size_t i = 0; i < op->region_count(); ++i) {
        TENON_TRY(inside, share_in(op->region(i)));
        changed |= inside;
      }
      if (op->region_count() == 0 && op->result_count() > 0 && is_repeatable(*op)) {
        const auto [known, is_new] = seen_.insert(op);
        if (is_new) {
          if (region.parent()) here.push_back(op);
        } else {
          TENON_OK(share(**known, *op));
          changed = true;
        }
      }
      op = next;
    }
    for (Op* op : here) seen_.erase(op);
    return changed;
  }

 private:
  static Result<void> share(Op& first, Op& again) {
    for (size_t i = 0; i < again.result_count(); ++i) TENON_OK(replace_value(*again.result(i), *first.result(i)));
    again.erase();
    return {};
  }

  std::unordered_set<Op*, SameWork, SameWork> seen_;
};

const PassRegistration kShareCommonRegistered({{
    .name = "share-common",
    .contract = "Of operators that do the same to the same operands, the first serves all; constants too.\n"
                "Needs nothing; keeps output names. Random operators, effects and operators with regions stay.",
    .run = [](Graph& graph) -> Result<Change> {
      TENON_TRY(changed, Sharer().share_in(graph.body()));
      return Change{changed};
    },
}});

}  // namespace
}  // namespace tenon
