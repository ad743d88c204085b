// The C side of the seam, adapted to the core's own interfaces.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tenon/plugin/abi.h>
#include <tenon/plugin/guard_internal.hpp>

namespace tenon::plugin_room {

inline tenon_text text_view(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(tenon_text text);

const tenon_host& host_services();

// One call of a slot: the message that it passes to fail() becomes the Error.
class Call {
 public:
  Call() : call_{{sizeof(tenon_call), fail}, this} {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  tenon_call* get() { return &call_.plain; }
  // `code`: what the slot returned.
  Result<void> result(const Origin& origin, std::string_view slot, int32_t code) const;

 private:
  struct Linked {
    tenon_call plain;
    Call* self;
  };
  static int32_t fail(tenon_call* call, int32_t code, tenon_text message);
  Linked call_;
  std::string message_;
};

// A host function called by a plugin has failed: reports why, and returns the code to return.
int32_t fail_with(tenon_call* call, const Error& error);

// Calls a slot that can fail: its first argument is the call. Exceptions become errors, too.
template <class... Parameters, class... Arguments>
Result<void> call_slot(const Origin& origin, std::string_view slot, int32_t (*function)(tenon_call*, Parameters...),
                       Arguments... arguments) {
  Call call;
  return guarded(origin, slot, [&] { return call.result(origin, slot, function(call.get(), arguments...)); });
}

// A target on the slots of a library, which the loader has checked. In host memory unless the library has the group
// `memory`.
Result<std::unique_ptr<TargetBackend>> create_plain_backend(OriginPtr origin, const tenon_slots& slots,
                                                            const TargetDescription& description);
Result<void> plain_available(const Origin& origin, const tenon_slots& slots, const TargetDescription& description);

// Operators, types and graphs as the structures of abi.h. A view borrows from the objects that it presents and owns the
// rest.
class PlainView {
 public:
  explicit PlainView(const Graph& graph);
  // One operator on its own: operand i is value i, result i is value operand_count + i.
  explicit PlainView(const Op& op);
  PlainView(const PlainView&) = delete;
  PlainView& operator=(const PlainView&) = delete;

  const tenon_graph& graph() const { return graph_; }
  const tenon_op& op() const { return ops_.front(); }
  // Tensors that the graph view points into; they must live as long as the holder of the view's constants.
  const std::vector<Tensor>& constants() const { return tensors_; }

 private:
  template <class T>
  const T* keep(std::vector<T> values, std::deque<std::vector<T>>& pool) {
    values.reserve(values.size() + 1);  // never null, which C functions do not accept even for zero bytes
    pool.push_back(std::move(values));
    return pool.back().data();
  }
  tenon_text keep_text(std::string text) {
    texts_.push_back(std::move(text));
    return text_view(texts_.back());
  }
  tenon_type type_of(const Type& type);
  size_t number(const Value* value);
  void add(const Op& op, const tenon_type* types);

  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> integers_;
  std::deque<std::vector<double>> numbers_;
  std::deque<std::vector<size_t>> indices_;
  std::deque<std::vector<tenon_attribute>> attributes_;
  std::map<const Value*, size_t> numbering_;
  std::vector<tenon_type> types_;
  std::vector<tenon_op> ops_;
  std::vector<Tensor> tensors_;
  std::vector<tenon_constant> constants_;
  tenon_graph graph_{};
};

}  // namespace tenon::plugin_room
