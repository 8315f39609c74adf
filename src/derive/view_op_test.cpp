#include "derive/view_op.h"

#include <gtest/gtest.h>

namespace forerun::derive {
namespace {

TensorState viewed(Shape sizes, Shape strides) {
  TensorState v;
  v.sizes = std::move(sizes);
  v.strides = std::move(strides);
  return v;
}

Shape strides_of(std::string_view name, const Attributes& attributes, const Shape& result) {
  const ViewResult view = view_of(name, attributes, viewed({2, 3, 4}, {1, 8, 2}), result);
  return view.kind == ViewResult::strided ? view.strides : Shape{-1};
}

TEST(ViewOp, KnowsTheStridesOfViews) {
  EXPECT_EQ(strides_of("aten.detach.default", {}, {2, 3, 4}), (Shape{1, 8, 2}));
  EXPECT_EQ(strides_of("aten.transpose.int", {{"dim0", int64_t{0}}, {"dim1", int64_t{-1}}}, {4, 3, 2}),
            (Shape{2, 8, 1}));
  EXPECT_EQ(strides_of("aten.permute.default", {{"dims", Shape{1, -1, 0}}}, {3, 4, 2}), (Shape{8, 2, 1}));
  EXPECT_EQ(strides_of("aten.select.int", {{"dim", int64_t{1}}, {"index", int64_t{2}}}, {2, 4}), (Shape{1, 2}));
  EXPECT_EQ(strides_of("aten.unsqueeze.default", {{"dim", int64_t{1}}}, {2, 1, 3, 4}), (Shape{1, 24, 8, 2}));
  EXPECT_EQ(strides_of("aten.view.default", {}, {2, 12}), (Shape{1, 2}));
  EXPECT_EQ(view_of("aten.t.default", {}, viewed({2, 3}, {3, 1}), {3, 2}).strides, (Shape{1, 3}));
  EXPECT_EQ(view_of("aten.squeeze.dim", {{"dim", int64_t{0}}}, viewed({1, 3}, {3, 1}), {3}).strides, (Shape{1}));
}

TEST(ViewOp, TellsWhereAReshapeCopies) {
  EXPECT_EQ(view_of("aten.view.default", {}, viewed({2, 3, 4}, {1, 8, 2}), {24}).kind, ViewResult::copied);
  EXPECT_EQ(view_of("aten._unsafe_view.default", {}, viewed({2, 3}, {1, 2}), {6}).kind, ViewResult::copied);
}

TEST(ViewOp, PassesOverWhatItDoesNotKnow) {
  EXPECT_EQ(strides_of("aten.relu.default", {}, {2, 3, 4}), (Shape{-1}));
  EXPECT_EQ(strides_of("aten.select.int", {{"dim", int64_t{3}}}, {2, 4}), (Shape{-1}));
  EXPECT_EQ(strides_of("aten.transpose.int", {{"dim0", int64_t{-9}}, {"dim1", int64_t{0}}}, {4, 3, 2}), (Shape{-1}));
  EXPECT_EQ(strides_of("aten.permute.default", {{"dims", Shape{0, 1}}}, {2, 3, 4}), (Shape{-1}));
  EXPECT_EQ(strides_of("aten.view.default", {}, {5, 5}), (Shape{-1}));  // another number of elements
}

}  // namespace
}  // namespace forerun::derive
