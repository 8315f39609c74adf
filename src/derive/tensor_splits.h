// TensorSplits: which tensors of a forward graph the GPUs of a tensor group hold a part of, and where they exchange.
//
// Source: Shoeybi et al. (2019). A linear layer on a whole tensor gives each GPU some of its columns; what follows keeps to
// that part (heads, activations, gates) until a layer whose rows are split the same way adds up what the GPUs have; its
// result is whole again. Tables of tokens are split by rows and their results added up; scores of a vocabulary stay split,
// and the loss is taken of the parts. A split that an op cannot keep (a norm over it, a sum with a whole tensor) is given
// up: the layer it began at stays whole on every GPU. Found for any model whose layers come in such pairs, not by name.
// Grouped products of experts are split as linear layers are, every expert by all GPUs; what the GPUs have of a result is
// added up once the results of a token's experts are. Left out: sequence parallelism, layers that are split over a batch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace forerun::derive {

// The dimension that is split, and its extent on one GPU.
struct Split {
  int dim = -1;  // -1: every GPU has all of it
  int64_t local = 0;
  [[nodiscard]] bool any() const { return dim >= 0; }
};

// What a tensor group does with an op's operands.
enum class GroupRole : uint8_t { alike, columns, rows, table, experts, rows_of_experts };

struct TensorSplits {
  std::vector<Split> tensors;    // by tensor of the forward graph
  std::vector<GroupRole> roles;  // by op
};

// An Error where the group cannot share most of the model's weights; it names sizes of a group that can.
Result<TensorSplits> tensor_splits(const Graph& forward, int64_t gpus);

}  // namespace forerun::derive
