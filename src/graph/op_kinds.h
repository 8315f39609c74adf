// OpKinds: numbers the ops of a graph such that ops with the same number differ only in which tensors they have.
//
// The blocks of a model repeat, so what follows from an op alone needs to be found out once for each kind. Two ops are of one kind where
// name, attributes, and of each operand type, shape, strides, and size and place of its storage are the same, and the same
// operands share a storage. An op without known strides (run/1), which may depend on the ops before it, is a kind of its own; so is
// one with very many operands, which come once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/id_index.h"
#include "graph/graph.h"

namespace forerun {

class OpKinds {
 public:
  explicit OpKinds(const Graph& graph) : graph_(graph) {}

  struct Kind {
    uint32_t number = 0;
    bool first = false;  // no op before was of this kind
  };
  Kind of(const Op& op);

 private:
  // Writes all that tells the op's kind to key_; false where it is a kind of its own.
  bool write_key(const Op& op);

  const Graph& graph_;
  IdIndex index_;
  uint32_t count_ = 0;
  std::vector<uint32_t> key_;
  std::vector<uint32_t> keys_;    // of all kinds that may come again, one behind the other
  std::vector<uint32_t> number_;  // of those, by key
  std::vector<size_t> end_;       // where their keys end
};

}  // namespace forerun
