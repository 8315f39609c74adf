// Holds every op that models are lowered to, to having a class, work and features: one that lacks them would be costed by
// its bytes alone, in silence where no model of the tests happens to call it.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cost/hybrid/op_features.h"
#include "derive/context_parallel.h"
#include "derive/expert_parallel.h"
#include "derive/layout.h"
#include "derive/lowering.h"
#include "derive/work.h"
#include "predict/cost_models.h"
#include "predict/predict.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

// What a forward op is dispatched as, where that bears another name; the rest are dispatched under their own.
const std::map<std::string_view, std::string_view>& dispatched_as() {
  static const std::map<std::string_view, std::string_view> names = {
      {"aten.linear.default", "aten.addmm.default"},
      {"aten.matmul.default", "aten.bmm.default"},
      {"aten.batch_norm.default", "aten.cudnn_batch_norm.default"},
      {"aten.layer_norm.default", "aten.native_layer_norm.default"},
      {"aten.group_norm.default", "aten.native_group_norm.default"},
      {"aten.embedding_bag.default", "aten._embedding_bag.default"},
      {"aten.max_pool2d.default", "aten.max_pool2d_with_indices.default"},
      {"aten.adaptive_avg_pool2d.default", "aten._adaptive_avg_pool2d.default"},
      {"aten.dropout.default", "aten.native_dropout.default"},
      {"aten.dropout_.default", "aten.native_dropout.default"},
      {"aten.scaled_dot_product_attention.default", "aten._scaled_dot_product_efficient_attention.default"},
      {"aten.lstm.input", "aten._cudnn_rnn.default"},
      {"aten.gru.input", "aten._cudnn_rnn.default"},
      {"aten.rnn_tanh.input", "aten._cudnn_rnn.default"},
      {"aten.rnn_relu.input", "aten._cudnn_rnn.default"},
      {"aten.softmax.int", "aten._softmax.default"},
      {"aten.log_softmax.int", "aten._log_softmax.default"},
      {"aten.to.dtype", "aten._to_copy.default"},
      {"aten.reshape.default", "aten._unsafe_view.default"},
      {"aten.flatten.using_ints", "aten.view.default"},
      {"aten.contiguous.default", "aten.clone.default"},
      {"forerun.bloom_gelu.default", "aten.tanh.default"},
      {"forerun.rotate_complex.default", "aten.mul.Tensor"},
      {"forerun.masked_put_.default", "aten.index_put_.default"},
      {"forerun.require_gradient.default", "aten.alias.default"},  // neither dispatches anything
      {"forerun.hold.default", "aten.alias.default"},
      {"forerun.enter_tensor_group.default", "aten.view_as.default"},
      {"forerun.leave_tensor_group.default", "c10d.allreduce_.default"},
      {"forerun.swap_rows.default", derive::kRowSwap},
      {"forerun.gather_sequence.default", derive::kSequenceGathering},
  };
  return names;
}

TEST(OpCoverage, EveryLoweredOpHasAClass) {
  EXPECT_GE(derive::lowered_ops().size(), 50U);
  for (const std::string_view name : derive::lowered_ops()) {
    const auto found = dispatched_as().find(name);
    const std::string_view dispatched = found == dispatched_as().end() ? name : found->second;
    EXPECT_NE(op_class(dispatched), OpClass::opaque) << name << ", dispatched as " << dispatched;
  }
}

// One model of each family: every op of its iteration has a class, and what runs on the GPU has work and features.
TEST(OpCoverage, EveryOpOfTheZooHasWorkAndFeatures) {
  const auto models = load_cost_models();
  ASSERT_TRUE(models) << models.error().message();
  const auto device = models->devices.find("h200");
  ASSERT_TRUE(device) << device.error().message();
  std::set<std::string> families, kinds;
  for (const zoo::NamedModel& model : zoo::models()) {
    if (!families.insert(model.family).second) continue;
    for (const Precision precision : {Precision::fp32, Precision::amp_bf16}) {
      ModelRequest request{.model = model.name, .batch = 2};
      request.setup.precision = precision;
      const auto run = build_run(request, *device);
      ASSERT_TRUE(run) << model.name << ": " << run.error().message();
      LayoutTracker layouts(run->graph, false);
      for (const Op& op : run->graph.ops()) {
        const OpWork work = work_of(run->graph, op);
        const std::string& name = run->graph.name(op);
        EXPECT_NE(work.cls, OpClass::opaque) << model.name << ": " << name;
        if (work.on_gpu && work.cls != OpClass::view && kinds.insert(name).second) {
          EXPECT_GT(work.bytes().value, 0) << model.name << ": " << name;
          EXPECT_FALSE(hybrid::featurize(run->graph, op, work, layouts, *device, run->setup, models->analytic).empty())
              << model.name << ": " << name;
        }
        layouts.pass(op);
      }
    }
  }
  EXPECT_GE(families.size(), 20U);
  EXPECT_GE(kinds.size(), 60U);
}

}  // namespace
}  // namespace forerun
