// Value: a tensor while the iteration is being derived, with what the Graph does not keep: strides and autograd history.
//
// Strides decide what PyTorch dispatches (a reshape of a transposed tensor copies, a contiguous one does not), so the
// layout rules here are PyTorch's: contiguity, memory formats, view strides and the strides of elementwise results.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace forerun::derive {

// Where storages report their death: the op count at that moment is what run records call "freed before".
struct FreeLog {
  std::function<void(StorageId)> freed;  // empty once the iteration is over
};

// Keeps a storage alive; the last holder's death frees it, as reference counting does in PyTorch.
class StorageToken {
 public:
  StorageToken(StorageId id, std::shared_ptr<FreeLog> log) : id_(id), log_(std::move(log)) {}
  ~StorageToken() {
    if (log_->freed) log_->freed(id_);
  }
  StorageToken(const StorageToken&) = delete;
  StorageToken& operator=(const StorageToken&) = delete;
  [[nodiscard]] StorageId id() const { return id_; }

 private:
  StorageId id_;
  std::shared_ptr<FreeLog> log_;
};

struct Node;

struct TensorState {
  std::shared_ptr<StorageToken> storage;
  DType dtype = DType::float32;
  Shape sizes;
  Shape strides;
  TensorId id;                        // in the graph under construction
  Node* history = nullptr;            // the node that made it; for a parameter its accumulation node
  size_t result_index = 0;            // which of the node's results
  bool is_leaf = false;               // a parameter
  std::shared_ptr<TensorState> base;  // of a view: the tensor it looks into
};

// Shared like a Python reference; null is an undefined tensor.
using Value = std::shared_ptr<TensorState>;
using Values = std::vector<Value>;

inline bool needs_gradient(const Value& v) { return v != nullptr && v->history != nullptr; }

size_t wrap_dim(int64_t dim, size_t rank);  // negative dims count from the end
int64_t element_count(const Shape& sizes);  // at most 2^58: no overflow
Shape contiguous_strides(const Shape& sizes);
Shape channels_last_strides(const Shape& sizes);  // rank 4 (NHWC) or 5 (NDHWC)

bool is_contiguous(const TensorState& v);
bool is_channels_last(const TensorState& v);  // contiguous in that format
bool suggests_channels_last(const TensorState& v);
bool is_dense(const TensorState& v);  // non-overlapping and without gaps

// Strides of a fresh tensor of these sizes in the memory format that v suggests.
Shape suggested_strides(const TensorState& v, const Shape& sizes);
// Strides of a fresh tensor like v (memory format "preserve").
Shape preserved_strides(const TensorState& v);
// Strides of the result of an elementwise op over these inputs (already broadcast to `sizes`).
Shape elementwise_strides(const Shape& sizes, const Values& inputs);
// Strides that show v as `sizes` without copying, if there are any.
std::optional<Shape> view_strides(const TensorState& v, const Shape& sizes);

}  // namespace forerun::derive
