#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

const Shape kShape = {4, 8};
const Bytes kSize = Bytes(4 * 8 * 4);

// x -> relu -> y -> neg -> z, each with a storage of its own.
struct Chain {
  GraphBuilder builder;
  StorageId x, y, z;
  TensorId tx, ty, tz;
  Chain() {
    x = builder.add_storage(kSize);
    y = builder.add_storage(kSize);
    z = builder.add_storage(kSize);
    builder.mark_root(x, Root::input, "x");
    tx = builder.add_tensor(x, DType::float32, kShape);
    ty = builder.add_tensor(y, DType::float32, kShape);
    tz = builder.add_tensor(z, DType::float32, kShape);
  }
  OpId op(std::string_view name, TensorId in, TensorId out, Phase phase = Phase::forward) {
    return builder.add_op({.name = name, .phase = phase, .inputs = std::span(&in, 1), .outputs = std::span(&out, 1)});
  }
  std::string verdict() {
    const Graph graph = builder.finish();
    const Status status = verify(graph);
    return status.ok() ? "ok" : status.error().what;
  }
};

TEST(Verify, AcceptsAChainAndAnEmptyGraph) {
  Chain chain;
  chain.op("relu", chain.tx, chain.ty);
  chain.op("neg", chain.ty, chain.tz, Phase::backward);
  chain.builder.mark_freed(chain.y, OpId(2));
  EXPECT_EQ(chain.verdict(), "ok");
  EXPECT_TRUE(verify(GraphBuilder().finish()).ok());
}

TEST(Verify, FindsUseAfterFree) {
  Chain chain;
  chain.op("relu", chain.tx, chain.ty);
  chain.op("neg", chain.ty, chain.tz);
  chain.builder.mark_freed(chain.y, OpId(1));
  EXPECT_EQ(chain.verdict(), "op 1 (neg): input 0 uses storage 1, freed before op 1");
}

TEST(Verify, FindsAFreeBeyondTheEnd) {
  Chain chain;
  chain.op("relu", chain.tx, chain.ty);
  chain.builder.mark_freed(chain.y, OpId(2));
  EXPECT_EQ(chain.verdict(), "storage 1 is freed before op 2 of 1");
}

TEST(Verify, FindsUseBeforeItIsMade) {
  Chain chain;
  chain.op("neg", chain.ty, chain.tz);
  chain.op("relu", chain.tx, chain.ty);
  EXPECT_EQ(chain.verdict(), "op 1 (relu): makes storage 1, which an op before it reads");
}

TEST(Verify, TakesAnUnnamedConstantAndWritesInPlace) {
  Chain chain;
  chain.op("lift_fresh", chain.ty, chain.ty);
  chain.op("relu_", chain.ty, chain.ty);
  EXPECT_EQ(chain.verdict(), "ok");
}

TEST(Verify, LetsMicroBatchesTakeTurns) {
  Chain chain;
  chain.op("relu", chain.tx, chain.ty, Phase::forward);
  chain.op("neg", chain.ty, chain.tz, Phase::backward);
  chain.op("relu", chain.tx, chain.ty, Phase::forward);
  chain.op("neg", chain.ty, chain.tz, Phase::update);
  EXPECT_EQ(chain.verdict(), "ok");
}

TEST(Verify, FindsPhasesOutOfOrder) {
  Chain chain;
  chain.op("relu", chain.tx, chain.ty, Phase::update);
  chain.op("neg", chain.ty, chain.tz, Phase::backward);
  EXPECT_EQ(chain.verdict(), "op 1 (neg): phase backward after phase update");
}

TEST(Verify, FindsOperandsOutOfRange) {
  Chain chain;
  chain.op("relu", TensorId(17), chain.ty);
  EXPECT_EQ(chain.verdict(), "op 0 (relu): input 0 is tensor 17 of 3");
  Chain result;
  result.builder.add_result(TensorId());
  EXPECT_EQ(result.verdict(), "a result is tensor 4294967295 of 3");
}

std::string verdict_of_tensor(Bytes bytes, const Shape& shape, const Shape& strides, DType dtype = DType::float32) {
  GraphBuilder builder;
  builder.add_tensor(builder.add_storage(bytes), dtype, shape, strides);
  const Status status = verify(builder.finish());
  return status.ok() ? "ok" : status.error().what;
}

TEST(Verify, HoldsTensorsInsideTheirStorages) {
  EXPECT_EQ(verdict_of_tensor(kSize, {4, 8}, {8, 1}), "ok");
  EXPECT_EQ(verdict_of_tensor(kSize, {8, 4}, {1, 8}), "ok");
  EXPECT_EQ(verdict_of_tensor(Bytes(8 * 4), {400, 8}, {0, 1}), "ok") << "expanded";
  EXPECT_EQ(verdict_of_tensor(kSize, {4, 8}, {9, 1}), "tensor 0 needs 140 bytes of storage 0, which has 128");
  EXPECT_EQ(verdict_of_tensor(kSize, {4, 8}, {8, -1}), "tensor 0 has a negative stride (-1)");
  EXPECT_EQ(verdict_of_tensor(Bytes(0), {0, 8}, {8, 1}), "ok");
  EXPECT_EQ(verdict_of_tensor(Bytes(0), {}, {}), "tensor 0 needs 4 bytes of storage 0, which has 0");
  EXPECT_EQ(verdict_of_tensor(kSize, {1 << 20, 1 << 20}, {int64_t{1} << 45, 1}), "tensor 0 reaches beyond 2^62 bytes");
}

TEST(Verify, WithoutStridesAsksForOneElement) {
  EXPECT_EQ(verdict_of_tensor(Bytes(8 * 4), {400, 8}, {}), "ok");
  EXPECT_EQ(verdict_of_tensor(Bytes(2), {400, 8}, {}), "tensor 0 needs 4 bytes of storage 0, which has 2");
  EXPECT_EQ(verdict_of_tensor(Bytes(0), {400, 8}, {}), "ok");
}

TEST(Verify, FindsImpossibleExtents) {
  EXPECT_EQ(verdict_of_tensor(kSize, {4, -3}, {}), "tensor 0 has a negative extent (-3)");
  EXPECT_EQ(verdict_of_tensor(kSize, {0, -3}, {}), "tensor 0 has a negative extent (-3)");
  EXPECT_EQ(verdict_of_tensor(kSize, {int64_t{1} << 40, int64_t{1} << 40}, {}), "tensor 0 has more than 2^62 bytes");
  EXPECT_EQ(verdict_of_tensor(Bytes(-1), {1}, {}), "storage 0 has -1 bytes");
}

}  // namespace
}  // namespace forerun
