// Launches of updates over lists, against a count chunk by chunk and by hand.
#include "derive/multi_tensor.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

constexpr int64_t kChunk = 65536;

TEST(MultiTensor, TakesSoManyTensorsOrChunksALaunch) {
  EXPECT_EQ(multi_tensor_launches({}, 1, false), 0);
  EXPECT_EQ(multi_tensor_launches(std::vector<int64_t>(110, 5), 1, false), 1);
  EXPECT_EQ(multi_tensor_launches(std::vector<int64_t>(111, 5), 1, false), 2);
  EXPECT_EQ(multi_tensor_launches(std::vector<int64_t>(97, 5), 1, true), 2);  // each with a number of its own
  EXPECT_EQ(multi_tensor_launches(std::vector<int64_t>(64, 5), 2, false), 1);
  EXPECT_EQ(multi_tensor_launches(std::vector<int64_t>(65, 5), 2, false), 2);
  EXPECT_EQ(multi_tensor_launches(std::vector<int64_t>{320 * kChunk}, 3, false), 1);
  EXPECT_EQ(multi_tensor_launches(std::vector<int64_t>{320 * kChunk + 1}, 3, false), 2);
  EXPECT_EQ(multi_tensor_launches(std::vector<int64_t>{0, 7, 0}, 1, false), 1);
}

// The plain way: block by block.
int64_t plain(const std::vector<int64_t>& sizes, size_t most_tensors) {
  int64_t launches = 0;
  size_t tensors = 0;
  int64_t blocks = 0;
  for (const int64_t size : sizes) {
    if (size == 0) continue;
    ++tensors;
    const int64_t chunks = (size + kChunk - 1) / kChunk;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      ++blocks;
      const bool last = chunk == chunks - 1;
      if (!(last && tensors == most_tensors) && blocks != 320) continue;
      ++launches;
      blocks = 0;
      tensors = last ? 0 : 1;
    }
  }
  return launches + (blocks > 0 ? 1 : 0);
}

TEST(MultiTensor, CountsAsBlockByBlock) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> sizes(random() % 200);
    for (int64_t& size : sizes) size = random() % 3 == 0 ? random() % (60 * kChunk) : random() % 3000;
    EXPECT_EQ(multi_tensor_launches(sizes, 3, false), plain(sizes, 48));
    EXPECT_EQ(multi_tensor_launches(sizes, 4, false), plain(sizes, 36));
  }
}

// A result is a list more; of fused Adam four lists are cut up, and a norm is put together by kernels of its own.
TEST(MultiTensor, CountsTheListsOfAnOp) {
  const auto launches = [](std::string_view name, size_t inputs, size_t outputs) {
    GraphBuilder build;
    const int64_t shape[] = {9};
    std::vector<TensorId> in, out;
    for (size_t i = 0; i < inputs; ++i)
      in.push_back(build.add_tensor(build.add_storage(Bytes(36)), DType::float32, shape));
    for (size_t i = 0; i < outputs; ++i) {
      out.push_back(build.add_tensor(build.add_storage(Bytes(36)), DType::float32, shape));
    }
    build.add_op({.name = name, .phase = Phase::update, .inputs = in, .outputs = out});
    const Graph graph = build.finish();
    return multi_tensor_launches(graph, graph.ops()[0]);
  };
  EXPECT_EQ(launches("aten._foreach_sqrt_.default", 65, 0), 1);
  EXPECT_EQ(launches("aten._foreach_sqrt.default", 65, 65), 2);
  EXPECT_EQ(launches("aten._foreach_addcdiv_.ScalarList", 3 * 49, 0), 2);
  EXPECT_EQ(launches("aten._fused_adamw_.default", 5 * 36, 0), 1);
  EXPECT_EQ(launches("aten._fused_adamw_.default", 5 * 37, 0), 2);
  EXPECT_EQ(launches("aten._foreach_norm.Scalar", 20, 20), 3);
  EXPECT_EQ(launches("aten.mm.default", 2, 1), 0);
}

}  // namespace
}  // namespace forerun
