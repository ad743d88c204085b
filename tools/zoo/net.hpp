// Net: a small layer library over Builder, so that an architecture reads like its paper.
//
//   Net net("mlp", seed);
//   Value* x = net.input("x", {1, 64});
//   x = net.relu(net.linear("hidden", x, 128));
//   net.output(net.linear("logits", x, 10), "logits");
//   TENON_TRY(graph, net.finish());
//
// Errors are sticky: after the first one, layers do nothing and return null, and finish() returns it. Names are dotted
// paths of the enclosing scopes; weights depend only on the seed and their own name. Activations are [batch, channels,
// height, width].
//
// Weights are scaled so that a layer's output has about the deviation of its input (He et al. 2015, "Delving Deep into
// Rectifiers", if a rectifier follows): deep networks stay finite, and their outputs depend on their inputs.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::zoo {

enum class Activation : uint8_t { none, relu, relu6, swish };

struct ConvShape {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t groups = 1;
  std::optional<int64_t> pad = {};  // all four sides; absent: kernel / 2
  bool bias = true;                 // conv_norm needs none
};
struct PoolShape {
  int64_t kernel = 2;
  int64_t stride = 2;
  int64_t pad = 0;
  bool ceil = false;  // the last window may extend over the edge
};

class Net {
 public:
  struct Options {
    // conv_norm makes one Conv with a bias instead of Conv and BatchNormalization: the same function.
    bool fold_batch_norm = false;
  };
  Net(std::string name, uint64_t seed) : Net(std::move(name), seed, Options()) {}
  Net(std::string name, uint64_t seed, Options options);

  // Names created during its lifetime begin with `part` and a dot.
  class Scope {
   public:
    Scope(Net& net, std::string_view part);
    ~Scope() { net_.path_.resize(length_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Net& net_;
    size_t length_;
  };

  Value* input(std::string name, Dims dims);  // f32
  // i64 in [0, limit). The limit is stored as the graph's property "metadata.limit.NAME", for generators of inputs.
  Value* index_input(std::string name, Dims dims, int64_t limit);
  void output(Value* value, std::string name);
  Result<std::unique_ptr<Graph>> finish();

  // Adds any operator. Its label and the name of its result are the path and `name`.
  Value* op(std::string_view kind, std::string_view name, std::vector<Value*> operands, Attributes attributes = {});
  std::vector<Value*> ops(std::string_view kind, std::string_view name, std::vector<Value*> operands, size_t results,
                          Attributes attributes = {});

  // A weight, uniformly distributed with this deviation around `mean`.
  Value* weight(std::string_view name, Dims dims, double deviation, double mean = 0);
  Value* constant(std::string_view name, Tensor value);
  Value* scalar(std::string_view name, float value);
  Value* ints(std::string_view name, std::vector<int64_t> values);

  Value* conv(std::string_view name, Value* x, int64_t channels, ConvShape shape = {},
              Activation then = Activation::none);
  // Convolution without a bias, then BatchNormalization. `gain` scales the normalised values: below 1 for a branch that
  // is added to its input, so that the sum does not grow with depth.
  Value* conv_norm(std::string_view name, Value* x, int64_t channels, ConvShape shape = {},
                   Activation then = Activation::relu, double gain = 1);
  Value* batch_norm(std::string_view name, Value* x, double gain = 1);
  Value* activation(std::string_view name, Value* x, Activation kind);
  Value* relu(std::string_view name, Value* x) { return activation(name, x, Activation::relu); }
  Value* max_pool(std::string_view name, Value* x, PoolShape shape);
  Value* average_pool(std::string_view name, Value* x, PoolShape shape);
  // [n, c, h, w] -> [n, c]
  Value* global_pool(std::string_view name, Value* x);

  // [n, in] -> [n, out] as Gemm with a bias.
  Value* classifier(std::string_view name, Value* x, int64_t classes);
  // [..., in] -> [..., out] as MatMul and Add. `gain` as above.
  Value* linear(std::string_view name, Value* x, int64_t features, double gain = 1);
  Value* layer_norm(std::string_view name, Value* x);
  // Looks up rows of a table by index: [...] -> [..., features].
  Value* embedding(std::string_view name, Value* indices, int64_t rows, int64_t features);

  Value* add(std::string_view name, Value* a, Value* b) { return op("Add", name, {a, b}); }
  Value* mul(std::string_view name, Value* a, Value* b) { return op("Mul", name, {a, b}); }
  Value* concat(std::string_view name, std::vector<Value*> parts, int64_t axis);
  // 0 keeps the extent, -1 is inferred.
  Value* reshape(std::string_view name, Value* x, std::vector<int64_t> dims);
  Value* transpose(std::string_view name, Value* x, std::vector<int64_t> order);
  // x[..., begin : end, ...] along `axis`.
  Value* slice(std::string_view name, Value* x, int64_t axis, int64_t begin, int64_t end);

  // The extent of a dim of an earlier value; 1 after an error.
  int64_t dim(const Value* x, int64_t axis) const;

 private:
  std::string path(std::string_view name) const;
  Tensor uniform(std::string_view name, Dims dims, double deviation, double mean);
  Tensor filters(std::string_view name, int64_t channels, int64_t inputs, ConvShape shape);
  Value* conv_with(std::string_view name, Value* x, Tensor filters, std::optional<Tensor> bias, ConvShape shape);
  bool failed() const { return error_.has_value(); }

  std::unique_ptr<Graph> graph_;
  uint64_t seed_;
  Options options_;
  std::string path_;
  std::optional<Error> error_;
};

// Moves the constants of a region before its other operators, in order, as in an imported model.
void put_constants_first(Region& region);

}  // namespace tenon::zoo
