// OpVisitor: a table from operators to handlers, so that plugins' operators are handled like those of the core.
//
//   OpVisitor<double> flops("flops");
//   flops.on<Conv>([](Conv conv) -> Result<double> { ... }).on<vta::Gemm>(...).otherwise(...);
//   TENON_TRY(count, flops.visit(op));
//
// An operator without a handler is an error that names the operator and the visitor. Const use is thread-safe.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/op_view.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

template <class R = void>
class OpVisitor {
 public:
  using Handler = std::function<Result<R>(Op&)>;
  explicit OpVisitor(std::string name) : name_(std::move(name)) {}

  // The last handler added for an operator wins.
  template <class View, class Fn>
  OpVisitor& on(Fn handler) {
    return on(View::name(), [handler = std::move(handler)](Op& op) -> Result<R> { return handler(View(op)); });
  }
  OpVisitor& on(Name op, Handler handler) {
    handlers_[op] = std::move(handler);
    return *this;
  }
  OpVisitor& otherwise(Handler handler) {
    otherwise_ = std::move(handler);
    return *this;
  }
  bool handles(Name op) const { return otherwise_ || handlers_.contains(op); }

  Result<R> visit(Op& op) const {
    auto found = handlers_.find(op.name());
    const Handler* handler = found != handlers_.end() ? &found->second : otherwise_ ? &otherwise_ : nullptr;
    if (!handler) return error(Code::unsupported, "visitor '", name_, "' has no handler for ", op.describe());
    auto result = (*handler)(op);
    if (!result.ok()) return std::move(result).error().with_frame(str("visitor '", name_, "' at ", op.describe()));
    return result;
  }
  // Visits all operators of the region in order, without nested ones; stops at the first error. For R = void.
  Result<void> visit(Region& region) const
    requires std::is_void_v<R>
  {
    for (Op* op : region.ops()) TENON_OK(visit(*op));
    return {};
  }
  Result<void> visit(Graph& graph) const
    requires std::is_void_v<R>
  { return visit(graph.body()); }

 private:
  std::string name_;
  std::unordered_map<Name, Handler> handlers_;
  Handler otherwise_;
};

// The class form: Derived has an overload `Result<R> visit_op(View)` for each operator in the list, and may have
// `Result<R> visit_other(Op&)`.
//
//   class Flops : public OpVisitorClass<Flops, double, Conv, MatMul> {
//    public:
//     Flops() : OpVisitorClass("flops") {}
//     Result<double> visit_op(Conv conv);
//     Result<double> visit_op(MatMul matmul);
//   };
template <class Derived, class R, class... Views>
class OpVisitorClass {
 public:
  explicit OpVisitorClass(std::string name) : name_(std::move(name)) {}

  Result<R> visit(Op& op) {
    auto& self = static_cast<Derived&>(*this);
    std::optional<Result<R>> result;
    (void)((isa<Views>(op) && (result.emplace(self.visit_op(Views(op))), true)) || ...);
    if (!result) {
      if constexpr (requires { self.visit_other(op); }) result.emplace(self.visit_other(op));
      else return error(Code::unsupported, "visitor '", name_, "' has no handler for ", op.describe());
    }
    if (!result->ok()) return std::move(*result).error().with_frame(str("visitor '", name_, "' at ", op.describe()));
    return *std::move(result);
  }
  Result<void> visit(Graph& graph)
    requires std::is_void_v<R>
  {
    for (Op* op : graph.body().ops()) TENON_OK(visit(*op));
    return {};
  }

 private:
  std::string name_;
};

}  // namespace tenon
