#include <tenon/tensor/datum.hpp>

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Datum, Kinds) {
  const Datum absent, tensor(Tensor::of<float>({2}, {1, 2}));
  const Datum sequence = Datum::sequence({tensor, Tensor::scalar<float>(3)}, Type(kF32, Shape()));
  EXPECT_TRUE(absent.absent() && !absent.is_tensor() && !absent.is_sequence());
  EXPECT_TRUE(tensor.is_tensor() && !tensor.absent());
  EXPECT_TRUE(sequence.is_sequence() && sequence.elements().size() == 2);
  EXPECT_EQ(absent.type(), Type());
  EXPECT_EQ(tensor.type().to_string(), "f32[2]");
  EXPECT_EQ(sequence.type().to_string(), "seq(f32[*])");
}

TEST(Datum, EmptySequenceKeepsItsType) {
  EXPECT_EQ(Datum::sequence({}, Type(kI64, Shape(Dims{3}))).type().to_string(), "seq(i64[3])");
}

TEST(Datum, CopiesShare) {
  Datum a(Tensor::of<float>({1}, {1}));
  const Datum b = a;
  a.tensor().mutable_as<float>()[0] = 7;
  EXPECT_EQ(b.tensor().as<float>()[0], 7);
}

TEST(DatumDeathTest, MixedSequenceIsOurFault) {
  const Datum tensor(Tensor::scalar<float>(1));
  EXPECT_DEATH((void)Datum::sequence({tensor, Datum::sequence({tensor}, Type())}, Type()), "a sequence of");
}

}  // namespace
}  // namespace tenon
