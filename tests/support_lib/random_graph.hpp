// Seeded random graphs that pass the verifier: for round trips, and for comparing passes and back ends.
#pragma once
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>

namespace tenon::testing {

struct RandomOp {
  RandomOp(const char* name) : name(name) {}
  RandomOp(Name name, std::function<Attributes(std::mt19937_64&)> attributes)
      : name(name), attributes(std::move(attributes)) {}
  Name name;
  // Attributes that the operator needs; defaults otherwise.
  std::function<Attributes(std::mt19937_64&)> attributes;
};

struct RandomGraphOptions {
  uint64_t seed = 0;
  size_t ops = 40;  // in the body, and at most a quarter of that in each region
  // Registered operators without regions. Combinations that their rules refuse are drawn again.
  std::vector<RandomOp> use;
  // An operator like If: operand 0 a bool scalar, two regions without inputs, one result per output of theirs.
  std::string branch;
  int max_depth = 2;
  // For values and labels: missing, repeated, digits, quotes, blanks.
  bool odd_names = true;
};

// Inputs and constants are f32, i64 and bool with small shapes that broadcast with each other, or with a symbolic dim
// "N". Constants are small numbers. All unused values are outputs of the body. The same options give the same graph on
// every machine.
class RandomGraphBuilder {
 public:
  explicit RandomGraphBuilder(RandomGraphOptions options)
      : options_(std::move(options)), random_(options_.seed), graph_(std::make_unique<Graph>("random")) {}

  std::unique_ptr<Graph> build() {
    std::vector<Value*> visible;
    const size_t inputs = 2 + draw(3);
    for (size_t i = 0; i < inputs; ++i) {
      visible.push_back(graph_->body().add_input(str("in", i), Type(draw_element(), draw_shape())));
    }
    fill(graph_->body(), visible, options_.ops, 0);
    size_t outputs = 0;
    for (Value* value : visible) {
      if (!value->used()) graph_->body().add_output(value, str("out", outputs++));
    }
    return std::move(graph_);
  }

 private:
  size_t draw(size_t below) { return static_cast<size_t>(random_() % below); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[draw(from.size())];
  }

  ElementType draw_element() { return std::vector<ElementType>{kF32, kF32, kF32, kI64, kBool}[draw(5)]; }
  Dims draw_dims() { return std::vector<Dims>{{2, 3}, {1, 3}, {2, 1}, {3}, {1}, {}}[draw(6)]; }
  Shape draw_shape() {
    if (draw(6) == 0) return Shape({Dim(Expr::symbol("N")), Dim(int64_t{2}), Dim(int64_t{3})});
    return Shape(draw_dims());
  }

  void dress(Op& op) {
    static const std::vector<std::string> kOdd = {"",  "y",   "y",  "0",     "17", "layer 1/conv", "\"q\"",
                                                  "_", "y'1", "%z", "a.b-c", "\n", "\xff\x01",     "graph"};
    if (!options_.odd_names) return;
    for (size_t i = 0; i < op.result_count(); ++i) op.result(i)->set_name(pick(kOdd));
    if (draw(3) == 0) op.set_label(pick(kOdd));
  }

  Value* constant(Region& region, ElementType element, const Dims& dims) {
    auto tensor = Tensor::zeros(element, dims);
    TENON_CHECK(tensor.ok(), tensor.error().to_string());
    for (int64_t i = 0; i < tensor->size(); ++i) {
      if (element.is_bool())
        tensor->set_int(i, static_cast<int64_t>(draw(2)));
      else
        tensor->set_double(
            i, element.is_int() ? static_cast<double>(draw(7)) - 3 : static_cast<double>(draw(4096)) / 512 - 4);
    }
    Value* made = Builder(region).constant(*std::move(tensor));
    dress(*made->producer());
    return made;
  }

  // Adds `count` operators; their results are added to `visible`.
  void fill(Region& region, std::vector<Value*>& visible, size_t count, int depth) {
    for (size_t i = 0; i < count; ++i) {
      const size_t kind = draw(10);
      if (kind == 0 && !options_.branch.empty() && depth < options_.max_depth && branch(region, visible, depth))
        continue;
      bool done = false;
      for (int attempt = 0; kind > 1 && attempt < 8 && !done; ++attempt) done = one(region, visible);
      if (!done) visible.push_back(constant(region, draw_element(), draw_dims()));
    }
  }

  Value* like(const std::vector<Value*>& visible, const Value* other) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      Value* candidate = pick(visible);
      if (candidate->type().element() == other->type().element()) return candidate;
    }
    return const_cast<Value*>(other);
  }

  bool one(Region& region, std::vector<Value*>& visible) {
    const RandomOp& op = pick(options_.use);
    const OpDef* def = find_op(op.name);
    TENON_CHECK(def, "random graphs of ", op.name, ", which nobody defined");
    const size_t least = def->min_operands(), most = std::min(def->max_operands(), least + 3);
    const size_t operand_count = least + draw(most - least + 1);
    std::vector<Value*> operands;
    for (size_t i = 0; i < operand_count; ++i) {
      const OperandDef& slot = def->operands()[std::min(i, def->operands().size() - 1)];
      if (slot.arity == Arity::optional && draw(4) == 0)
        operands.push_back(nullptr);
      else
        operands.push_back(operands.empty() || !operands[0] ? pick(visible) : like(visible, operands[0]));
    }
    const size_t most_results = std::min(def->max_results(), def->min_results() + 1);
    const size_t results = def->min_results() + draw(most_results - def->min_results() + 1);
    auto made = Builder(region).ops(op.name, operands, results, op.attributes ? op.attributes(random_) : Attributes());
    if (!made.ok()) return false;
    if (!made->empty()) dress(*made->front()->producer());
    visible.insert(visible.end(), made->begin(), made->end());
    return true;
  }

  // The second branch gives the types of the first: the same outer value, or a constant.
  bool branch(Region& region, std::vector<Value*>& visible, int depth) {
    Value* condition = constant(region, kBool, {});
    Builder builder(region);
    const size_t results = 1 + draw(2);
    Op& op = builder.create(options_.branch, std::vector<Value*>{condition}, results);
    for (int side = 0; side < 2; ++side) {
      Region& inside = op.add_region();
      std::vector<Value*> inner = visible;
      fill(inside, inner, options_.ops / 4, depth + 1);
      for (size_t i = 0; i < results; ++i) {
        Value* output = side == 0 ? pick(inner) : of_type(inside, inner, op.region(0).output(i));
        if (side == 0 && !output->type().shape().is_static()) output = pick(visible);  // that both branches can see
        inside.add_output(output, draw(2) ? output->name() : str("r", i));
      }
    }
    auto inferred = infer_result_types(op);
    TENON_CHECK(inferred.ok(), inferred.error().to_string());
    dress(op);
    for (size_t i = 0; i < results; ++i) visible.push_back(op.result(i));
    return true;
  }

  Value* of_type(Region& inside, const std::vector<Value*>& candidates, const Value* wanted) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      Value* candidate = pick(candidates);
      if (candidate->type() == wanted->type()) return candidate;
    }
    if (auto dims = wanted->type().shape().static_dims()) return constant(inside, wanted->type().element(), *dims);
    for (Value* candidate : candidates) {
      if (candidate->type() == wanted->type()) return candidate;
    }
    TENON_CHECK(false, "no value of type ", wanted->type(), " in the second branch");
  }

  RandomGraphOptions options_;
  std::mt19937_64 random_;
  std::unique_ptr<Graph> graph_;
};

inline std::unique_ptr<Graph> random_graph(RandomGraphOptions options) {
  return RandomGraphBuilder(std::move(options)).build();
}

}  // namespace tenon::testing
