// RegroupedGraph: a forward graph copied op by op for one GPU of a group, with other shapes and ops put in between.
#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/graph_builder.h"

namespace forerun::derive {

class RegroupedGraph {
 public:
  // `shape_of`: what the GPU has of a tensor.
  RegroupedGraph(const Graph& forward, const std::function<Shape(TensorId)>& shape_of);

  // What ops read now in place of a tensor of the forward graph.
  [[nodiscard]] TensorId now(TensorId id) const { return now_[id.value]; }
  void replace(TensorId id, TensorId by) { now_[id.value] = by; }
  [[nodiscard]] Shape shape(TensorId made) const;

  // An op of one operand and one result, of the same type; returns the result.
  TensorId put_in(const char* name, std::string_view module, TensorId read, const Shape& shape);
  void copy(const Op& op, const std::vector<TensorId>& inputs, const Attributes& attributes);
  [[nodiscard]] std::vector<TensorId> inputs_now(const Op& op) const;

  Graph finish();

 private:
  TensorId add(TensorId id, const Shape& shape);

  const Graph& from_;
  GraphBuilder to_;
  std::vector<TensorId> now_;               // by tensor of the forward graph
  std::vector<TensorId> own_;               // the same, as it was copied
  std::map<uint32_t, StorageId> storages_;  // by storage of the forward graph
};

}  // namespace forerun::derive
