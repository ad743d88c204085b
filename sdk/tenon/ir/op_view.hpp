// Typed views: named accessors over a generic Op. A view is one pointer; it adds nothing to the binary interface.
//
//   struct Softmax : OpView<Softmax> {
//     static constexpr std::string_view kName = "Softmax";
//     using OpView::OpView;
//     Value* x() const { return operand(0); }
//     int64_t axis() const { return attr<int64_t>("axis", -1); }
//   };
//   if (auto softmax = dyn_cast<Softmax>(op)) use(softmax.axis());
#pragma once
#include <tenon/ir/graph.hpp>

namespace tenon {

template <class Derived>
class OpView {
 public:
  OpView() = default;  // no operator: false
  explicit OpView(Op& op) : op_(&op) {}

  static Name name() {
    static const Name interned(Derived::kName);
    return interned;
  }
  explicit operator bool() const { return op_ != nullptr; }
  Op& op() const { return *op_; }
  Op* operator->() const { return op_; }
  Value* operand(size_t i) const { return op_->operand(i); }
  Value* result(size_t i = 0) const { return op_->result(i); }
  template <class T>
  T attr(Name name, T fallback = T()) const { return op_->attr<T>(name, fallback); }

 private:
  Op* op_ = nullptr;
};

// Compares names, so it works across shared libraries.
template <class View>
bool isa(const Op& op) { return op.is(View::name()); }
template <class View>
bool isa(const Op* op) { return op && op->is(View::name()); }
template <class View>
View dyn_cast(Op& op) { return isa<View>(op) ? View(op) : View(); }
template <class View>
View dyn_cast(Op* op) { return isa<View>(op) ? View(*op) : View(); }
// A view of the operator that produces `value`, if it is of that kind.
template <class View>
View producer_as(const Value* value) { return value ? dyn_cast<View>(value->producer()) : View(); }
template <class View>
View cast(Op& op) {
  TENON_CHECK(isa<View>(op), "cast to ", View::kName, " of ", op.describe());
  return View(op);
}

}  // namespace tenon
