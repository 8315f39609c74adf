#include "derive/value.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun::derive {
namespace {

TensorState tensor(Shape sizes, Shape strides) {
  TensorState v;
  v.sizes = std::move(sizes);
  v.strides = std::move(strides);
  return v;
}

Value shared(Shape sizes, Shape strides) { return Value::make(tensor(std::move(sizes), std::move(strides))); }

// Addresses of all elements in row-major order of the sizes.
std::vector<int64_t> addresses(const Shape& sizes, const Shape& strides) {
  std::vector<int64_t> result = {0};
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    std::vector<int64_t> next;
    for (const int64_t base : result) {
      for (int64_t i = 0; i < sizes[dim]; ++i) next.push_back(base + i * strides[dim]);
    }
    result = std::move(next);
  }
  return result;
}

TEST(Layout, KnowsMemoryFormats) {
  EXPECT_TRUE(is_contiguous(tensor({2, 3, 4, 5}, {60, 20, 5, 1})));
  EXPECT_FALSE(is_contiguous(tensor({2, 3, 4, 5}, {60, 1, 15, 3})));
  EXPECT_TRUE(is_channels_last(tensor({2, 3, 4, 5}, {60, 1, 15, 3})));
  EXPECT_TRUE(suggests_channels_last(tensor({2, 3, 4, 5}, {60, 1, 15, 3})));
  EXPECT_FALSE(suggests_channels_last(tensor({2, 3, 4, 5}, {60, 20, 5, 1})));
  // An N x C x 1 x 1 tensor is both; its strides tell which is meant.
  EXPECT_FALSE(suggests_channels_last(tensor({2, 8, 1, 1}, {8, 1, 1, 1})));
  EXPECT_TRUE(suggests_channels_last(tensor({2, 8, 1, 1}, {8, 1, 8, 8})));
  EXPECT_TRUE(is_dense(tensor({2, 3}, {1, 2})));
  EXPECT_FALSE(is_dense(tensor({2, 3}, {0, 1})));
  EXPECT_FALSE(is_dense(tensor({2, 3}, {4, 1})));
}

TEST(Layout, ElementwiseResultsFollowTheFirstInputWithAnOpinion) {
  const Shape sizes = {2, 3, 4, 5};
  const Value plain = shared(sizes, contiguous_strides(sizes));
  const Value last = shared(sizes, channels_last_strides(sizes));
  EXPECT_EQ(elementwise_strides(sizes, {plain, plain}), contiguous_strides(sizes));
  EXPECT_EQ(elementwise_strides(sizes, {last, last}), channels_last_strides(sizes));
  EXPECT_EQ(elementwise_strides(sizes, {plain, last}), contiguous_strides(sizes));
  EXPECT_EQ(elementwise_strides(sizes, {last, plain}), channels_last_strides(sizes));
  // A broadcast input says nothing about the dimensions it lacks.
  EXPECT_EQ(elementwise_strides(sizes, {shared({3, 1, 1}, {1, 1, 1}), last}), channels_last_strides(sizes));
}

// The plain twin: a view exists exactly if the addresses, in order, are those of some strides over the new sizes.
std::optional<Shape> reference_view_strides(const TensorState& v, const Shape& sizes) {
  const std::vector<int64_t> wanted = addresses(v.sizes, v.strides);
  Shape strides(sizes.size(), 1);
  int64_t step = 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    if (sizes[dim] > 1) strides[dim] = wanted[static_cast<size_t>(step)] - wanted[0];
    step *= sizes[dim];
  }
  if (addresses(sizes, strides) != wanted) return std::nullopt;
  return strides;
}

TEST(Layout, ViewsAgreeWithThePlainTwin) {
  std::mt19937 random(7);
  const auto pick = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  int possible = 0;
  int impossible = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    Shape sizes;
    for (int64_t rank = 1 + pick(4); rank > 0; --rank) sizes.push_back(1 + pick(4));
    std::vector<size_t> order(sizes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (pick(3) > 0) std::shuffle(order.begin(), order.end(), random);
    Shape strides(sizes.size());
    int64_t stride = 1;
    for (const size_t dim : order) {
      strides[dim] = stride;
      stride *= sizes[dim] + (pick(6) == 0 ? 1 : 0);
    }
    Shape target;
    int64_t rest = element_count(sizes);
    while (rest > 1) {
      int64_t factor = 1 + pick(rest);
      while (rest % factor != 0) --factor;
      if (factor == 1 && pick(2) == 0) continue;
      target.push_back(factor);
      rest /= factor;
    }
    const TensorState v = tensor(sizes, strides);
    const auto fast = view_strides(v, target);
    const auto plain = reference_view_strides(v, target);
    ASSERT_EQ(fast.has_value(), plain.has_value()) << trial;
    if (fast) {
      EXPECT_EQ(addresses(target, *fast), addresses(sizes, strides)) << trial;
    }
    ++(fast ? possible : impossible);
  }
  EXPECT_GT(possible, 500);
  EXPECT_GT(impossible, 500);
}

}  // namespace
}  // namespace forerun::derive
