#include "memory/iteration_replay.h"

#include <gtest/gtest.h>

#include <map>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

struct Iteration {
  GraphBuilder builder;

  TensorId storage(int64_t bytes, Root root = Root::none, bool on_gpu = true) {
    const StorageId id = builder.add_storage(Bytes(bytes), on_gpu);
    if (root != Root::none) builder.mark_root(id, root, "root");
    return builder.add_tensor(id, DType::uint8, Shape{bytes});
  }
  OpId op(std::string_view name, Phase phase, std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    return builder.add_op({.name = name, .phase = phase, .inputs = inputs, .outputs = outputs});
  }
  void free(TensorId tensor, size_t before) {
    builder.mark_freed(builder.graph().tensor(tensor).storage, OpId(before));
  }
};

Bytes sum_of_parts(const MemoryEstimate& e) {
  return e.parameters + e.buffers + e.optimizer_state + e.inputs + e.gradients + e.activations + e.temporaries +
         e.workspaces;
}

// Weight and state of 30 MiB, an activation of 50 MiB, a gradient of 30 MiB.
Graph small_training() {
  Iteration it;
  const TensorId weight = it.storage(30 * kMebibyte, Root::parameter);
  const TensorId state = it.storage(30 * kMebibyte, Root::state);
  const TensorId x = it.storage(10 * kMebibyte, Root::input);
  const TensorId activation = it.storage(50 * kMebibyte);
  const TensorId gradient = it.storage(30 * kMebibyte);
  it.op("aten.neg.default", Phase::forward, {x, weight}, {activation});
  it.op("aten.neg.default", Phase::backward, {activation}, {gradient});
  it.op("aten._fused_sgd_.default", Phase::update, {weight, state, gradient}, {});
  it.free(activation, 2);
  return it.builder.finish();
}

TEST(IterationReplay, BringsStateWithTheFirstUpdate) {
  const Graph graph = small_training();
  const IterationReplay once = replay_iterations(graph, {.iterations = 1});
  EXPECT_EQ(once.peak.peak_allocated, Bytes(120 * kMebibyte));  // weight, input, activation, gradient
  EXPECT_EQ(once.peak.optimizer_state, Bytes(0));
  EXPECT_EQ(once.figures.allocated.current, 100 * kMebibyte);
  const IterationReplay thrice = replay_iterations(graph);
  EXPECT_EQ(thrice.peak.peak_allocated, Bytes(150 * kMebibyte));
  EXPECT_EQ(thrice.peak.optimizer_state, Bytes(30 * kMebibyte));
  EXPECT_EQ(thrice.peak_iteration, 1);
  EXPECT_EQ(thrice.peak.peak_op, OpId(1));
  EXPECT_EQ(sum_of_parts(thrice.peak), thrice.peak.peak_allocated);
}

// The state takes the block that the activation left, and the next activation needs another: reserved memory is what
// the order of requests makes it, and not the sum of what is live.
TEST(IterationReplay, ReservesWhatTheOrderOfRequestsNeeds) {
  const IterationReplay replay = replay_iterations(small_training());
  EXPECT_EQ(replay.peak.peak_reserved, Bytes(170 * kMebibyte));
  EXPECT_EQ(replay.figures.reserved.peak, 170 * kMebibyte);
}

// A kernel of the forward pass that writes over what it reads is timed on a copy, which lies beside the buffer; one of the backward pass
// is not.
TEST(IterationReplay, KernelsThatWriteOverWhatTheyReadAreTimedOnACopy) {
  const auto written = [](Phase phase) {
    Iteration it;
    const TensorId x = it.storage(10 * kMebibyte, Root::input);
    const TensorId sum = it.storage(50 * kMebibyte);
    it.op("inductor.reduction.fused", Phase::forward, {x}, {sum});
    it.op("inductor.pointwise.fused", phase, {sum}, {sum});
    it.free(sum, 2);
    return it.builder.finish();
  };
  const IterationReplayOptions tuned = {.tuning_buffer = Bytes(64 * kMebibyte)};
  const IterationReplay forward = replay_iterations(written(Phase::forward), tuned);
  EXPECT_EQ(forward.peak.peak_reserved, Bytes((10 + 50 + 64 + 50) * kMebibyte));
  EXPECT_EQ(forward.peak.peak_allocated, Bytes((10 + 50) * kMebibyte)) << "neither is counted";
  EXPECT_EQ(replay_iterations(written(Phase::backward), tuned).peak.peak_reserved, Bytes((10 + 50 + 64) * kMebibyte));
}

// A compiled kernel that is timed when it is first launched: what comes later lies where the buffer lay, and a program that empties the
// cache behind its first iteration has it no more.
TEST(IterationReplay, TimingKernelsLeavesASegmentBehind) {
  const auto trained = [](bool updates) {
    Iteration it;
    const TensorId weight = it.storage(30 * kMebibyte, Root::parameter);
    const TensorId x = it.storage(10 * kMebibyte, Root::input);
    const TensorId activation = it.storage(50 * kMebibyte);
    it.op("inductor.pointwise.fused", Phase::forward, {x, weight}, {activation});
    if (updates) {
      const TensorId state = it.storage(30 * kMebibyte, Root::state);
      const TensorId gradient = it.storage(30 * kMebibyte);
      it.op("aten.neg.default", Phase::backward, {activation}, {gradient});
      it.op("aten._fused_sgd_.default", Phase::update, {weight, state, gradient}, {});
    }
    it.free(activation, updates ? 2 : 1);
    return it.builder.finish();
  };
  const IterationReplayOptions tuned = {.tuning_buffer = Bytes(64 * kMebibyte)};
  const IterationReplay training = replay_iterations(trained(true), tuned);
  EXPECT_EQ(training.peak.peak_allocated, Bytes(150 * kMebibyte)) << "the buffer itself is not counted";
  EXPECT_EQ(training.peak.peak_reserved, Bytes((30 + 10 + 50 + 64) * kMebibyte)) << "gradient and state lie in it";
  EXPECT_EQ(replay_iterations(trained(true)).peak.peak_reserved, Bytes(170 * kMebibyte));
  IterationReplayOptions warm = tuned;
  warm.warm = 1;
  EXPECT_EQ(replay_iterations(trained(true), warm).peak.peak_reserved, Bytes(154 * kMebibyte)) << "they keep it";
  EXPECT_EQ(replay_iterations(trained(false), tuned).peak.peak_reserved, Bytes((30 + 10 + 50 + 64) * kMebibyte));
  const IterationReplay emptied = replay_iterations(trained(false), warm);
  EXPECT_EQ(emptied.peak.peak_reserved, Bytes((30 + 10 + 50) * kMebibyte));
  EXPECT_EQ(emptied.peak.peak_allocated, Bytes((30 + 10 + 50) * kMebibyte));
}

// What graphs make is apart from the rest, with a copy of the input: state takes no block that an activation left.
TEST(IterationReplay, KeepsCudaGraphsInAPoolOfTheirOwn) {
  const Graph graph = small_training();
  CompiledParts graphs;
  graphs.inside = {true, true, false};
  graphs.passes = {{.first = OpId(0), .end = OpId(1), .given = {StorageId(2)}},
                   {.first = OpId(1), .end = OpId(2), .given = {}}};
  const IterationReplay replay = replay_iterations(graph, {.cuda_graphs = &graphs});
  EXPECT_EQ(replay.peak.peak_allocated, Bytes(160 * kMebibyte));  // as before, and the copy of the input
  EXPECT_EQ(replay.peak.peak_reserved, Bytes(160 * kMebibyte));   // 90 in the pool, 70 elsewhere; in one pool: 170
}

TEST(IterationReplay, FreesGradientsWhenTheNextIterationBegins) {
  std::map<int, int64_t> balance;
  IterationReplayOptions options;
  options.observe = [&](const ReplayEvent& event) {
    if (event.bytes < 0 && !event.op.valid()) balance[event.iteration] -= event.bytes;
  };
  (void)replay_iterations(small_training(), options);
  EXPECT_EQ(balance[0], 0);
  EXPECT_EQ(balance[1], 30 * kMebibyte);
  EXPECT_EQ(balance[2], 30 * kMebibyte);
}

TEST(IterationReplay, KeepsGradientsThroughTheForwardPassWhereTheLoopDoes) {
  std::map<uint32_t, int64_t> freed;  // by op, in the last iteration
  IterationReplayOptions options;
  options.keeps_gradients = true;
  options.observe = [&](const ReplayEvent& event) {
    if (event.iteration == 2 && event.bytes < 0 && event.op.valid()) freed[event.op.value] -= event.bytes;
  };
  const IterationReplay replay = replay_iterations(small_training(), options);
  EXPECT_EQ(freed[1], 30 * kMebibyte);  // the last gradients, when the backward pass begins
  EXPECT_EQ(replay.peak.peak_op, OpId(0));
  EXPECT_EQ(replay.peak.peak_allocated, Bytes(150 * kMebibyte));
}

TEST(IterationReplay, TakesCublasWorkspacesOnceAThread) {
  Iteration it;
  const TensorId weight = it.storage(kMebibyte, Root::parameter);
  const TensorId a = it.storage(kMebibyte);
  const TensorId b = it.storage(kMebibyte);
  it.op("aten.addmm.default", Phase::forward, {weight}, {a});
  it.op("aten.mm.default", Phase::forward, {weight}, {a});
  it.op("aten.mm.default", Phase::backward, {weight}, {b});
  const Graph graph = it.builder.finish();
  EXPECT_EQ(replay_iterations(graph).peak.workspaces, Bytes(65 * kMebibyte));
  EXPECT_EQ(replay_iterations(graph, {.cublas_workspace = Bytes(8 * kMebibyte)}).peak.workspaces,
            Bytes(17 * kMebibyte));
}

TEST(IterationReplay, AddsGradientsInPlaceWhereTheFirstTermDies) {
  Iteration it;
  const TensorId weight = it.storage(kMebibyte, Root::parameter);
  const TensorId first = it.storage(40 * kMebibyte);
  const TensorId second = it.storage(40 * kMebibyte);
  const TensorId sum = it.storage(40 * kMebibyte);
  it.op("aten.neg.default", Phase::backward, {weight}, {first});
  it.op("aten.neg.default", Phase::backward, {weight}, {second});
  it.op("aten.add.Tensor", Phase::backward, {first, second}, {sum});
  it.op("aten.neg.default", Phase::backward, {sum}, {});
  it.free(first, 3);
  it.free(second, 3);
  EXPECT_EQ(replay_iterations(it.builder.finish()).peak.peak_allocated, Bytes(81 * kMebibyte));
}

// Autograd adds to no view in place: the sum of a tied weight's gradients takes memory of its own.
TEST(IterationReplay, AddsToNoViewInPlace) {
  Iteration it;
  const TensorId weight = it.storage(kMebibyte, Root::parameter);
  const TensorId first = it.storage(40 * kMebibyte);
  const StorageId storage = it.builder.graph().tensor(first).storage;
  const TensorId view = it.builder.add_tensor(storage, DType::uint8, Shape{2, 20 * kMebibyte});
  const TensorId second = it.storage(40 * kMebibyte);
  const TensorId sum = it.storage(40 * kMebibyte);
  it.op("aten.mm.default", Phase::backward, {weight}, {first});
  it.op("aten.t.default", Phase::backward, {first}, {view});
  it.op("aten.neg.default", Phase::backward, {weight}, {second});
  it.op("aten.add.Tensor", Phase::backward, {view, second}, {sum});
  it.op("aten.neg.default", Phase::backward, {sum}, {});
  it.free(first, 4);
  it.free(second, 4);
  EXPECT_EQ(replay_iterations(it.builder.finish(), {.cublas_workspace = Bytes(0)}).peak.peak_allocated,
            Bytes(121 * kMebibyte));
}

// PyTorch adds the bias of a linear layer to its product in place; a capture shows a sum.
TEST(IterationReplay, AddsABiasInPlace) {
  Iteration it;
  const TensorId bias = it.storage(kMebibyte, Root::parameter);
  const StorageId storage = it.builder.add_storage(Bytes(40 * kMebibyte));
  const TensorId product = it.builder.add_tensor(storage, DType::uint8, Shape{40, kMebibyte});
  const TensorId view = it.builder.add_tensor(storage, DType::uint8, Shape{4, 10, kMebibyte});
  const TensorId sum = it.storage(40 * kMebibyte);
  it.op("aten.mm.default", Phase::forward, {bias}, {product});
  it.op("aten._unsafe_view.default", Phase::forward, {product}, {view});
  it.op("aten.add.Tensor", Phase::forward, {view, bias}, {sum});
  it.op("aten.neg.default", Phase::forward, {sum}, {});
  it.free(product, 3);
  EXPECT_EQ(replay_iterations(it.builder.finish(), {.cublas_workspace = Bytes(0)}).peak.peak_allocated,
            Bytes(41 * kMebibyte));
}

TEST(IterationReplay, CountsTemporaries) {
  Iteration it;
  const TensorId x = it.storage(16 * kMebibyte, Root::input);
  const TensorId out = it.storage(16 * kMebibyte);
  it.op("aten._softmax_backward_data.default", Phase::backward, {x, x}, {out});
  it.free(out, 1);
  const IterationReplay replay = replay_iterations(it.builder.finish());
  EXPECT_EQ(replay.peak.peak_allocated, Bytes(48 * kMebibyte));
  EXPECT_EQ(replay.figures.allocated.current, 16 * kMebibyte);
}

TEST(IterationReplay, SaysWhereMemoryEnds) {
  const Graph graph = small_training();
  EXPECT_TRUE(replay_iterations(graph, {.capacity = 140 * kMebibyte}).out_of_memory);
  Iteration it;
  const TensorId first = it.storage(60 * kMebibyte);
  const TensorId second = it.storage(100 * kMebibyte);
  it.op("aten.neg.default", Phase::forward, {}, {first});
  it.op("aten.neg.default", Phase::forward, {}, {second});
  it.free(first, 1);
  it.free(second, 2);
  const Graph one_by_one = it.builder.finish();
  EXPECT_EQ(replay_iterations(one_by_one).peak.peak_reserved, Bytes(160 * kMebibyte));
  const IterationReplay tight =
      replay_iterations(one_by_one, {.capacity = 120 * kMebibyte});  // the first one's goes back
  EXPECT_FALSE(tight.out_of_memory);
  EXPECT_GT(tight.figures.retries, 0);
  EXPECT_EQ(tight.peak.peak_reserved, Bytes(100 * kMebibyte));
}

TEST(IterationReplay, LeavesOutTheHostAndEmptyTensors) {
  Iteration it;
  const TensorId x = it.storage(16 * kMebibyte, Root::input, false);
  const TensorId nothing = it.storage(0);
  it.op("aten.neg.default", Phase::forward, {x}, {nothing});
  EXPECT_EQ(replay_iterations(it.builder.finish()).figures.reserved.peak, 0);
}

}  // namespace
}  // namespace forerun
