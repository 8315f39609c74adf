// Memory of one of several GPUs, on graphs small enough to add up by hand.
#include "memory/data_parallel.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "memory/iteration_replay.h"
#include "memory/memory_log.h"
#include "memory/sharded_blocks.h"
#include "memory/update_columns.h"

namespace forerun {
namespace {

// Two blocks of a list with a weight each, [rows, 1 MiB] bytes, trained by SGD with momentum over lists:
//   0, 1 forward (activation of 8 MiB each); 2, 3 backward, the last block first; 4, 5 the update.
struct TwoBlocks {
  GraphBuilder builder;
  TensorId weights[2], states[2], gradients[2];

  TensorId tensor(int64_t rows, Root root = Root::none, const std::string& name = "") {
    const StorageId id = builder.add_storage(Bytes(rows * kMebibyte));
    if (root != Root::none) builder.mark_root(id, root, name);
    return builder.add_tensor(id, DType::uint8, std::vector<int64_t>{rows, kMebibyte});
  }
  OpId op(std::string_view name, Phase phase, const std::string& module, std::vector<TensorId> inputs,
          std::vector<TensorId> outputs) {
    return builder.add_op({.name = name, .phase = phase, .module = module, .inputs = inputs, .outputs = outputs});
  }
  void free(TensorId tensor, size_t before) {
    builder.mark_freed(builder.graph().tensor(tensor).storage, OpId(before));
  }

  Graph finish(int64_t first_rows, int64_t second_rows) {
    const int64_t rows[2] = {first_rows, second_rows};
    const std::string names[2] = {"h.0.fc", "h.1.fc"};
    for (int i = 0; i < 2; ++i) weights[i] = tensor(rows[i], Root::parameter, names[i] + ".weight");
    for (int i = 0; i < 2; ++i) states[i] = tensor(rows[i], Root::state, "momentum");
    const TensorId x = tensor(8, Root::input, "x");
    const TensorId a = tensor(8);
    const TensorId b = tensor(8);
    for (int i = 0; i < 2; ++i) gradients[i] = tensor(rows[i]);
    op("aten.neg.default", Phase::forward, names[0], {x, weights[0]}, {a});
    op("aten.neg.default", Phase::forward, names[1], {a, weights[1]}, {b});
    op("aten.neg.default", Phase::backward, names[1], {b, weights[1]}, {gradients[1]});
    op("aten.neg.default", Phase::backward, names[0], {a, weights[0]}, {gradients[0]});
    op("aten._foreach_add_.List", Phase::update, "", {states[0], states[1], gradients[0], gradients[1]}, {});
    op("aten._foreach_add_.List", Phase::update, "", {weights[0], weights[1], states[0], states[1]}, {});
    free(b, 3);
    free(a, 4);
    for (int i = 0; i < 2; ++i) builder.add_parameter(weights[i]);
    return builder.finish();
  }
};

MemoryEstimate peak_of(const Graph& graph) { return replay_iterations(graph).peak; }

// All bytes that any allocation of an iteration asked for under a use.
int64_t at_the_end(const Graph& graph, Use use) {
  const MemoryLog log = log_iterations(graph, {});
  int64_t bytes = 0;
  for (const LiveBlock& block : live_after(log, log.events.size() - 1)) bytes += block.use == use ? block.bytes : 0;
  return bytes;
}

TEST(Buckets, CloseOnceTheyAreFull) {
  const auto mib = [](double count) { return Bytes(static_cast<int64_t>(count * kMebibyte)); };
  const std::vector<Bytes> sizes = {mib(0.5), mib(0.5), mib(10), mib(10), mib(10), mib(30), mib(1)};
  EXPECT_EQ(bucket_sizes(sizes, mib(1), mib(25)), (std::vector<Bytes>{mib(1), mib(30), mib(30), mib(1)}));
  EXPECT_TRUE(bucket_sizes({}, mib(1), mib(25)).empty());
}

TEST(UpdateColumns, TieParameterStateAndGradient) {
  TwoBlocks two;
  const Graph graph = two.finish(16, 16);
  const UpdateColumns columns(graph);
  const auto column = [&](TensorId id) { return columns.column(graph.tensor(id).storage); };
  EXPECT_EQ(column(two.weights[0]), column(two.states[0]));
  EXPECT_EQ(column(two.weights[0]), column(two.gradients[0]));
  EXPECT_EQ(column(two.weights[1]), column(two.gradients[1]));
  EXPECT_NE(column(two.weights[0]), column(two.weights[1]));
  const std::vector<Gradient> gradients = gradients_of(graph);
  ASSERT_EQ(gradients.size(), 2U);
  EXPECT_EQ(gradients[0].made, 2U);
  EXPECT_EQ(gradients[0].storage, graph.tensor(two.gradients[1]).storage);
}

TEST(DataParallel, OneGpuTakesWhatItTakes) {
  const Graph graph = TwoBlocks().finish(16, 32);
  // Weights 48, state 48, input 8, activations 16 and the first gradient 32 at op 2; at op 3 activations 8, gradients 48.
  EXPECT_EQ(peak_of(graph).peak_allocated, Bytes(160 * kMebibyte));
}

TEST(DataParallel, BucketsHoldTheGradientsOnceMore) {
  const Graph graph = TwoBlocks().finish(16, 32);
  const Graph replica = per_gpu(graph, {.gpus = 4, .replicas = true});
  ASSERT_TRUE(verify(replica).ok()) << verify(replica).error().message();
  EXPECT_EQ(peak_of(replica).peak_allocated, Bytes((160 + 48) * kMebibyte));
  EXPECT_EQ(peak_of(replica).buffers, Bytes(48 * kMebibyte));
}

TEST(DataParallel, BucketViewsHoldTheGradientsAlone) {
  const Graph graph = TwoBlocks().finish(16, 32);
  const Graph replica = per_gpu(graph, {.gpus = 4, .replicas = true, .bucket_views = true});
  ASSERT_TRUE(verify(replica).ok()) << verify(replica).error().message();
  // Weights, state and buckets 144, input 8, activations 16, and the gradient 32 until it is copied.
  EXPECT_EQ(peak_of(replica).peak_allocated, Bytes(200 * kMebibyte));
  EXPECT_EQ(at_the_end(replica, Use::gradient), 0);
}

TEST(DataParallel, ZeroOneGivesEachParametersStateToOneGpu) {
  const Graph graph = TwoBlocks().finish(16, 32);
  const Graph rank = per_gpu(graph, {.gpus = 2, .replicas = true, .zero = 1});
  ASSERT_TRUE(verify(rank).ok()) << verify(rank).error().message();
  EXPECT_EQ(at_the_end(rank, Use::state), 32 * kMebibyte);  // of the larger weight
  EXPECT_EQ(at_the_end(graph, Use::state), 48 * kMebibyte);
  EXPECT_EQ(peak_of(rank).peak_allocated, Bytes((160 + 48 - 16) * kMebibyte));
}

TEST(DataParallel, ShardsArePaddedToEqualPieces) {
  EXPECT_EQ(piece_of(std::vector<int64_t>{10, 3}, 4), (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(piece_of(std::vector<int64_t>{2}, 4), std::vector<int64_t>{1});
  EXPECT_EQ(piece_of(std::vector<int64_t>{2, 3}, 4), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(piece_of(std::vector<int64_t>{8, 512, 64}, 256), (std::vector<int64_t>{8, 2, 64}));  // stacked experts
  EXPECT_TRUE(piece_of({}, 4).empty());
}

TEST(DataParallel, FsdpKeepsPiecesAndGathersBlocks) {
  const Graph graph = TwoBlocks().finish(16, 32);
  const Graph rank = per_gpu(graph, {.gpus = 4, .zero = 3});
  ASSERT_TRUE(verify(rank).ok()) << verify(rank).error().message();
  EXPECT_EQ(at_the_end(rank, Use::parameter), 12 * kMebibyte);
  EXPECT_EQ(at_the_end(rank, Use::state), 12 * kMebibyte);
  EXPECT_EQ(at_the_end(rank, Use::gradient), 12 * kMebibyte);
  // Pieces 24, input 8. The last block's backward: activations 16, its weight 32, the next block's buffer 16, and its
  // gradient 32; then the buffer to reduce, 32, and the piece of the gradient, 8. Its weight is gone then.
  EXPECT_EQ(peak_of(rank).peak_allocated, Bytes((24 + 8 + 16 + 32 + 16 + 32) * kMebibyte));
}

TEST(DataParallel, ZeroTwoKeepsGatheredParametersForTheBackwardPass) {
  const Graph graph = TwoBlocks().finish(16, 32);
  const Graph rank = per_gpu(graph, {.gpus = 4, .zero = 2});
  ASSERT_TRUE(verify(rank).ok()) << verify(rank).error().message();
  // Pieces 24, input 8, the first activation 8, both weights 48, the second block's buffer 32 and the first one's 16, which
  // goes then. The backward pass takes less: pieces and input 32, weights 48, activations 16, the last gradient 32.
  EXPECT_EQ(peak_of(rank).peak_allocated, Bytes((24 + 8 + 8 + 48 + 32 + 16) * kMebibyte));
  EXPECT_EQ(peak_of(rank).peak_op, OpId(4));  // copying out the second block
}

// ZeRO 2 and 3 add up pieces: what stays between micro-batches is a GPU's share.
TEST(DataParallel, MicroBatchesAddUpPiecesOfGradients) {
  const Graph graph = TwoBlocks().finish(16, 32);
  for (const int zero : {2, 3}) {
    const Graph rank = per_gpu(graph, {.gpus = 4, .zero = zero});
    const Graph again = accumulating(rank);
    ASSERT_TRUE(verify(again).ok()) << verify(again).error().message();
    EXPECT_EQ(peak_of(again).buffers, Bytes(12 * kMebibyte)) << zero;
    EXPECT_LE(peak_of(again).peak_allocated, peak_of(rank).peak_allocated + Bytes(12 * kMebibyte)) << zero;
    EXPECT_EQ(at_the_end(again, Use::gradient), 0) << zero;
  }
}

TEST(DataParallel, MicroBatchesAddToGradientsThatAreThere) {
  const Graph graph = TwoBlocks().finish(16, 32);
  const Graph again = accumulating(graph);
  ASSERT_TRUE(verify(again).ok()) << verify(again).error().message();
  // As with bucket views: weights, state and gradients 144, input 8, activations 16, the new gradient 32.
  EXPECT_EQ(peak_of(again).peak_allocated, Bytes(200 * kMebibyte));
}

}  // namespace
}  // namespace forerun
