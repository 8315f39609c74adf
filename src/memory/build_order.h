// In which order a program allocates the model and frees its gradients.
//
// Follows `model.to(device)`, which moves the children of a module before its own parameters and then its buffers, and
// `optimizer.zero_grad()`, which drops gradients in the order of parameters. A recurrent layer's weights come one by one
// and are then copied to one storage. The order of children is that in which their names appear first.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace forerun {

struct BuildStep {
  StorageId storage;
  std::vector<int64_t> parts;  // bytes of pieces that are held apart until the storage is there
};

// The storages of parameters and buffers.
std::vector<BuildStep> build_order(const Graph& graph);

// The storages that the update reads and the backward phase made, in the order in which the update reads them first.
std::vector<StorageId> gradient_order(const Graph& graph);

}  // namespace forerun
