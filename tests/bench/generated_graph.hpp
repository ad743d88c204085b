// Seeded graphs with any number of operators, similar to networks: for measuring how the compiler scales.
#pragma once
#include <memory>
#include <random>
#include <vector>

#include <tenon/ir/builder.hpp>

namespace tenon::bench {

// About `ops` operators on activations f32[1,4,8,8]: convolutions with their own weights, normalisations, activations,
// additions of earlier values, pairs of Transposes, chains of Reshapes, shape arithmetic, repeated work, identities.
class NetworkMaker {
 public:
  NetworkMaker(size_t ops, uint64_t seed) : wanted_(ops), random_(seed), graph_(std::make_unique<Graph>("generated")) {}

  std::unique_ptr<Graph> make() {
    live_ = {graph_->body().add_input("x", Type(kF32, Shape(Dims{1, 4, 8, 8})))};
    while (graph_->body().op_count() < wanted_) layer();
    size_t outputs = 0;
    for (Value* value : live_) {
      if (!value->used()) graph_->body().add_output(value, str("out", outputs++));
    }
    return std::move(graph_);
  }

 private:
  // Earlier values that may be used: as many as a real network's branches keep.
  static constexpr size_t kLive = 16;

  size_t draw(size_t below) { return static_cast<size_t>(random_() % below); }
  Value* any() { return live_[draw(live_.size())]; }

  Value* constant(Dims dims) {
    Tensor tensor = *Tensor::zeros(kF32, std::move(dims));
    for (float& value : tensor.mutable_as<float>()) value = static_cast<float>(draw(2048)) / 4096 + 0.25f;
    return builder_.constant(tensor);
  }
  Value* op(Name name, std::vector<Value*> operands, Attributes attributes = {}) {
    auto made = builder_.op(name, operands, std::move(attributes));
    TENON_CHECK(made.ok(), made.error().to_string());
    (*made)->set_name(str("v", names_));
    (*made)->producer()->set_label(str("layer", names_++, "/", name));
    return *made;
  }

  void keep(Value* value) {
    if (live_.size() < kLive) {
      live_.push_back(value);
      return;
    }
    Value*& place = live_[draw(live_.size())];
    // What nobody used yet goes into what comes.
    place = place->used() ? value : op("Add", {place, value});
  }

  void layer() {
    Value* x = any();
    switch (draw(10)) {
      case 0:
      case 1:
        x = op("Conv", {x, constant({4, 4, 3, 3})}, {{"pads", Attribute::Integers{1, 1, 1, 1}}});
        x = op("BatchNormalization", {x, constant({4}), constant({4}), constant({4}), constant({4})});
        return keep(op("Relu", {x}));
      case 2: return keep(op("Add", {x, any()}));
      case 3: return keep(op("Mul", {x, constant({4, 1, 1})}));
      case 4: {
        Value* last = op("Transpose", {x}, {{"perm", Attribute::Integers{0, 2, 3, 1}}});
        last = op("Sigmoid", {last});
        return keep(op("Transpose", {last}, {{"perm", Attribute::Integers{0, 3, 1, 2}}}));
      }
      case 5: {
        Value* shape = op("Shape", {x});
        Value* flat = op("Reshape", {x, builder_.constant_ints({4, 64})});
        flat = op("Tanh", {op("Reshape", {flat, builder_.constant_ints({-1})})});
        return keep(op("Reshape", {flat, shape}));
      }
      case 6: return keep(op("Identity", {op("Neg", {op("Neg", {x})})}));
      case 7: return keep(op("Sub", {op("Relu", {x}), op("Relu", {x})}));
      case 8: return keep(op("Clip", {op("Clip", {x, constant({}), constant({})}), constant({}), constant({})}));
      default: return keep(op("Add", {op("Mul", {constant({4, 1, 1}), constant({1, 8, 8})}), x}));
    }
  }

  size_t wanted_;
  std::mt19937_64 random_;
  std::unique_ptr<Graph> graph_;
  Builder builder_{graph_->body()};
  std::vector<Value*> live_;
  size_t names_ = 0;
};

inline std::unique_ptr<Graph> generated_network(size_t ops, uint64_t seed = 1) {
  return NetworkMaker(ops, seed).make();
}

}  // namespace tenon::bench
