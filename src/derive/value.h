// Value: a tensor while the iteration is being derived, with what the Graph does not keep: strides and autograd history.
//
// Strides decide what PyTorch dispatches (a reshape of a transposed tensor copies, a contiguous one does not), so the
// layout rules here are PyTorch's: contiguity, memory formats, view strides and the strides of elementwise results.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "graph/graph.h"

namespace forerun::derive {

// Where storages report their death: the op count at that moment is what run records call "freed before".
struct FreeLog : Counted {
  std::function<void(StorageId)> freed;  // empty once the iteration is over
};

// Keeps a storage alive; the last holder's death frees it, as reference counting does in PyTorch.
class StorageToken : public Counted {
 public:
  StorageToken(StorageId id, Ref<FreeLog> log) : id_(id), log_(std::move(log)) {}
  ~StorageToken() {
    if (log_->freed) log_->freed(id_);
  }
  StorageToken(const StorageToken&) = delete;
  StorageToken& operator=(const StorageToken&) = delete;
  [[nodiscard]] StorageId id() const { return id_; }

 private:
  StorageId id_;
  Ref<FreeLog> log_;
};

struct Node;

struct TensorState : Counted {
  Ref<StorageToken> storage;
  DType dtype = DType::float32;
  Shape sizes;
  Shape strides;
  TensorId id;              // in the graph under construction
  Node* history = nullptr;  // the node that made it; for a parameter its accumulation node
  size_t result_index = 0;  // which of the node's results
  bool is_leaf = false;     // a parameter
  Ref<TensorState> base;    // of a view: the tensor it looks into
};

// Shared like a Python reference; null is an undefined tensor.
using Value = Ref<TensorState>;
using Values = std::vector<Value>;

// Values that somebody else holds for as long as a call lasts: a list in braces, or all of a vector.
class ValueSpan {
 public:
  ValueSpan() = default;
  ValueSpan(std::initializer_list<Value> values) : values_(values.begin(), values.size()) {}
  ValueSpan(const Values& values) : values_(values) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }
  [[nodiscard]] size_t size() const { return values_.size(); }
  const Value& operator[](size_t i) const { return values_[i]; }

 private:
  std::span<const Value> values_;
};

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
Shape elementwise_strides(const Shape& sizes, ValueSpan inputs);
// Strides that show v as `sizes` without copying, if there are any.
std::optional<Shape> view_strides(const TensorState& v, const Shape& sizes);

}  // namespace forerun::derive
