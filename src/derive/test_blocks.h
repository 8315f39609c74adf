// A small model for tests of how models are trained: an embedding, blocks "layers.N" of linear layers "up" and "down" with a
// GELU between and a residual, and a head.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "derive/iteration.h"
#include "graph/forward_builder.h"

namespace forerun::derive {

inline constexpr int64_t kBlockWidth = 64;

enum class UpBias : uint8_t { without, with };

inline Graph blocks_model(int blocks, UpBias bias = UpBias::without) {
  using Scope = ForwardBuilder::Scope;
  ForwardBuilder b;
  const TensorId tokens = b.input("tokens", {64, 32}, DType::int64);
  TensorId x = b.embedding(b.parameter("embed.weight", {100, kBlockWidth}), tokens);
  for (int i = 0; i < blocks; ++i) {
    const Scope layer(b, "layers." + std::to_string(i));
    const TensorId up = b.parameter("up.weight", {4 * kBlockWidth, kBlockWidth});
    std::optional<TensorId> up_bias;
    if (bias == UpBias::with) up_bias = b.parameter("up.bias", {4 * kBlockWidth});
    const TensorId down = b.parameter("down.weight", {kBlockWidth, 4 * kBlockWidth});
    TensorId y;
    {
      const Scope part(b, "up");
      y = b.linear(x, up, up_bias);
    }
    {
      const Scope part(b, "act");
      y = b.gelu(y);
    }
    {
      const Scope part(b, "down");
      y = b.linear(y, down, std::nullopt);
    }
    x = b.add(x, y);
  }
  const Scope head(b, "head");
  b.result(b.linear(x, b.parameter("weight", {100, kBlockWidth}), std::nullopt));
  return *b.finish();
}

// Its whole iteration.
inline Graph trained_blocks(const TrainingSetup& setup, int blocks, UpBias bias) {
  Result<Graph> graph = derive_iteration(blocks_model(blocks, bias), {.kind = InputKind::tokens}, setup);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  const Status status = verify(*graph);
  EXPECT_TRUE(status.ok()) << status.error().message();
  return std::move(*graph);
}

// Bytes that ops made and that live when the first backward pass begins.
inline int64_t kept_for_backward(const Graph& graph) {
  const auto first = static_cast<size_t>(
      std::find_if(graph.ops().begin(), graph.ops().end(), [](const Op& op) { return op.phase == Phase::backward; }) -
      graph.ops().begin());
  std::vector<bool> made(graph.storages().size());
  int64_t bytes = 0;
  for (size_t i = 0; i < first; ++i) {
    for (const TensorId output : graph.outputs(graph.ops()[i])) {
      const StorageId id = graph.tensor(output).storage;
      const Storage& storage = graph.storage(id);
      if (made[id.value] || storage.root != Root::none) continue;
      made[id.value] = true;
      if (!storage.freed_before.valid() || storage.freed_before.value > first) bytes += storage.bytes.value;
    }
  }
  return bytes;
}

}  // namespace forerun::derive
