// A profile of ResNet-18 is valid with another batch size, with other names, and after reading it from a file.
#include <gtest/gtest.h>

#include <ir_ext/small_network.hpp>
#include <tenon-ext/quant/calibrate.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/passes/standard.hpp>
#include <zoo/zoo.hpp>

namespace tenon::quant {
namespace {

std::unique_ptr<Graph> resnet18(int64_t batch) {
  auto graph = zoo::build("resnet18", {.size = zoo::Size::tiny, .batch = batch});
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  auto passes = standard_passes();
  EXPECT_TRUE(passes.ok() && passes->run(**graph).ok());
  return *std::move(graph);
}

// The integer network that results from a profile, and its output.
Tensor quantised_output(Graph& graph, const Profile& profile, const std::vector<Datum>& inputs) {
  const auto rounds = insert_rounds(graph, profile, Method::minmax);
  EXPECT_TRUE(rounds.ok()) << rounds.error().to_string();
  const auto changed = legalise_quantised(graph);
  EXPECT_TRUE(changed.ok()) << changed.error().to_string();
  EXPECT_GE(count_operators(graph)["fused.QConv"], 8);
  EXPECT_TRUE(float_operators(graph).empty());
  return output_of(graph, inputs);
}

// The image, repeated `times` times along the batch.
Tensor repeated(const Tensor& image, int64_t times) {
  Dims dims = image.dims();
  dims[0] = times;
  Tensor out = *Tensor::zeros(image.element(), dims);
  for (int64_t i = 0; i < out.size(); ++i) out.set_double(i, image.double_at(i % image.size()));
  return out;
}

TEST(NetworkProfile, ServesAnotherBatchUnderOtherNames) {
  const auto one = resnet18(1), four = resnet18(4);
  const auto inputs = zoo::inputs(*one, 5);
  ASSERT_TRUE(inputs.ok()) << inputs.error().to_string();
  Profile measured;
  ASSERT_TRUE(calibrate(*one, {*inputs}, measured).ok());
  const auto profile = Profile::parse(measured.to_json(), "profile.json");
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  int number = 0;
  for (Op& op : four->body()) {
    op.set_label(str("node", number));
    for (size_t i = 0; i < op.result_count(); ++i) op.result(i)->set_name(str("value", number++));
  }
  const Tensor single = quantised_output(*one, *profile, *inputs);
  const Tensor batch = quantised_output(*four, *profile, {repeated((*inputs)[0].tensor(), 4)});
  ASSERT_EQ(batch.size(), 4 * single.size());
  for (int64_t i = 0; i < batch.size(); ++i) ASSERT_EQ(batch.double_at(i), single.double_at(i % single.size())) << i;
}

}  // namespace
}  // namespace tenon::quant
