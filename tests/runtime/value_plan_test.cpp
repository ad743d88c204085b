#include <tenon/runtime/value_plan.hpp>

#include <gtest/gtest.h>

namespace tenon {
namespace {

bool overlap(const Tensor& a, const Tensor& b) {
  return a.data() < b.data() + b.bytes() && b.data() < a.data() + a.bytes();
}

TEST(ValuePlan, ValuesAliveTogetherLieApart) {
  const ValuePlan plan({{kF32, {100}, 0, 1}, {kF32, {100}, 1, 2}, {kF32, {100}, 2, 3}});
  EXPECT_EQ(plan.bytes(), 2u * 448) << "two at a time, in whole lines";
  EXPECT_EQ(plan.lower_bound_bytes(), plan.bytes());
  const auto places = plan.places();
  ASSERT_TRUE(places.ok()) << places.error().to_string();
  EXPECT_FALSE(overlap((*places)[0].tensor(), (*places)[1].tensor()));
  EXPECT_FALSE(overlap((*places)[1].tensor(), (*places)[2].tensor()));
  EXPECT_TRUE(overlap((*places)[0].tensor(), (*places)[2].tensor()));
  for (const Datum& place : *places) EXPECT_EQ(reinterpret_cast<uintptr_t>(place.tensor().data()) % kAlignBytes, 0u);
}

TEST(ValuePlan, EachSetOfPlacesIsMemoryOfItsOwn) {
  const ValuePlan plan({{kF32, {100}, 0, 1}});
  auto first = *plan.places();
  const auto second = *plan.places();
  EXPECT_FALSE(overlap(first[0].tensor(), second[0].tensor()));
  // Who still has a place keeps all of its arena.
  const Tensor kept = first[0].tensor();
  first.clear();
  EXPECT_EQ(kept.bytes(), 400u);
  std::fill_n(const_cast<std::byte*>(kept.data()), kept.bytes(), std::byte{1});
}

TEST(ValuePlan, SomeValuesGetNoPlace) {
  const ValuePlan plan(
      {{kString, {3}, 0, 1}, {{}, {}, 0, 1}, {kI4, {3}, 0, 1}, {kF32, {INT64_MAX, 4}, 0, 1}, {kF32, {0}, 0, 1}});
  const auto places = *plan.places();
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(places[i].absent()) << i;
  EXPECT_EQ(places[4].tensor().size(), 0);
  EXPECT_EQ(plan.bytes(), 0u);
}

TEST(ValuePlan, MoreThanThereIsMemoryIsAnErrorWhenItIsTaken) {
  const ValuePlan plan({{kU8, {int64_t{1} << 62}, 0, 1}, {kU8, {int64_t{1} << 62}, 0, 1}});
  const auto places = plan.places();
  ASSERT_FALSE(places.ok());
  EXPECT_EQ(places.error().code(), Code::resource_exhausted);
}

TEST(CopyValue, GoesIntoAPlaceThatFits) {
  const Tensor place = *Tensor::zeros(kF32, {2}), other = *Tensor::zeros(kF32, {3});
  Datum fits(place), too_large(other), absent;
  const Datum from(Tensor::of<float>({2}, {1, 2}));
  for (Datum* to : {&fits, &too_large, &absent}) {
    ASSERT_TRUE(copy_value(from, *to).ok());
    EXPECT_TRUE(to->tensor().identical(from.tensor()));
    EXPECT_NE(to->tensor().data(), from.tensor().data());
  }
  EXPECT_EQ(fits.tensor().data(), place.data());
  EXPECT_EQ(other.double_at(0), 0);
  Datum words(*Tensor::allocate(kString, {1}));
  const Datum text(Tensor::of<std::string>({1}, {"word"}));
  ASSERT_TRUE(copy_value(text, words).ok());
  EXPECT_TRUE(words.tensor().identical(text.tensor()));
  ASSERT_TRUE(copy_value(Datum(), words).ok());
  EXPECT_TRUE(words.absent());
}

}  // namespace
}  // namespace tenon
