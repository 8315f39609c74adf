// ForwardBuilder: writes a model's forward graph the way its PyTorch source would call it.
//
// Used by zoo/ and by the ONNX importer. Each call appends one op at the granularity of source code (aten.linear.default,
// aten.batch_norm.default, aten.lstm.input), infers the result's shape and returns its tensor; derive/ later turns it into
// what PyTorch dispatches. The ops below are the whole vocabulary; `opaque` carries anything else.
//
// Errors are sticky: the first one (a shape that does not fit, an extent below 1) is kept with the module it happened in,
// later calls return a harmless tensor, and finish() gives the error. So builders need no checks of their own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph_builder.h"

namespace forerun {

struct ConvOptions {
  Shape stride = {1, 1};
  Shape padding = {0, 0};
  Shape dilation = {1, 1};
  int64_t groups = 1;
  bool transposed = false;
  Shape output_padding = {0, 0};
};

struct PoolOptions {
  Shape kernel = {2, 2};
  Shape stride = {};  // empty: the kernel
  Shape padding = {0, 0};
  Shape dilation = {1, 1};  // max pooling only
  bool ceil_mode = false;
  bool count_include_pad = true;  // average pooling only
};

struct AttentionOptions {
  std::optional<TensorId> mask;
  double dropout = 0;
  bool causal = false;
  std::optional<double> scale;
  bool grouped_query = false;  // fewer key-value heads than query heads
  bool never_masked = false;   // the model makes no mask for it, be it traced or not
};

enum class RnnKind : uint8_t { lstm, gru, tanh, relu };

struct RnnOptions {
  RnnKind kind = RnnKind::lstm;
  int64_t hidden = 0;
  int64_t layers = 1;
  bool bidirectional = false;
  bool batch_first = true;
  bool bias = true;
  double dropout = 0;
};

class ForwardBuilder {
 public:
  ForwardBuilder();

  // Enters a module for the lifetime of the Scope: names of parameters and modules get its path.
  class Scope {
   public:
    enum Absolute { absolute };
    Scope(ForwardBuilder& builder, std::string_view name);
    Scope(ForwardBuilder& builder, const std::string& path, Absolute tag);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ForwardBuilder& builder_;
    std::string restored_;
  };

  // The path of a module `name` declared here; Scope(b, path, Scope::absolute) re-enters it when the module is called.
  [[nodiscard]] std::string path_of(std::string_view name) const;

  // --- roots. Parameters are listed to the optimizer in the order of these calls (PyTorch: registration order).
  TensorId parameter(std::string_view name, const Shape& shape, DType dtype = DType::float32);
  // One that is never trained: it lies with the buffers and counts among the parameters.
  TensorId frozen_parameter(std::string_view name, const Shape& shape, DType dtype = DType::float32);
  TensorId buffer(std::string_view name, const Shape& shape, DType dtype = DType::float32);
  TensorId input(std::string_view name, const Shape& shape, DType dtype = DType::float32);

  // --- layers
  TensorId conv(TensorId x, TensorId weight, std::optional<TensorId> bias, const ConvOptions& options);
  TensorId linear(TensorId x, TensorId weight, std::optional<TensorId> bias);
  TensorId batch_norm(TensorId x, TensorId weight, TensorId bias, TensorId mean, TensorId variance,
                      std::optional<TensorId> batches_tracked, double momentum = 0.1, double eps = 1e-5);
  TensorId layer_norm(TensorId x, std::optional<TensorId> weight, std::optional<TensorId> bias, const Shape& normalized,
                      double eps = 1e-5);
  TensorId group_norm(TensorId x, TensorId weight, TensorId bias, int64_t groups, double eps = 1e-5);
  TensorId embedding(TensorId weight, TensorId indices, int64_t padding_index = -1);
  TensorId embedding_bag(TensorId weight, TensorId indices, TensorId offsets);  // mode sum
  TensorId max_pool2d(TensorId x, const PoolOptions& options);
  TensorId avg_pool2d(TensorId x, const PoolOptions& options);
  TensorId adaptive_avg_pool2d(TensorId x, const Shape& output);
  TensorId dropout(TensorId x, double p);
  TensorId attention(TensorId query, TensorId key, TensorId value, const AttentionOptions& options = {});
  // Weights per layer and direction: w_ih, w_hh, and b_ih, b_hh where options.bias. Returns the output sequence.
  TensorId rnn(TensorId x, const std::vector<TensorId>& weights, const RnnOptions& options);

  // --- elementwise. A name with a trailing underscore ("aten.relu_.default") works in place and returns x.
  TensorId unary(std::string_view name, TensorId x, const Attributes& attributes = {});
  TensorId relu(TensorId x) { return unary("aten.relu.default", x); }
  TensorId relu_(TensorId x) { return unary("aten.relu_.default", x); }
  TensorId gelu(TensorId x, bool tanh_approximation = false);
  TensorId binary(std::string_view name, TensorId a, TensorId b, const Attributes& attributes = {});
  TensorId add(TensorId a, TensorId b) { return binary("aten.add.Tensor", a, b); }
  TensorId add_(TensorId a, TensorId b) { return binary("aten.add_.Tensor", a, b); }
  TensorId mul(TensorId a, TensorId b) { return binary("aten.mul.Tensor", a, b); }
  TensorId add_scalar(TensorId x, double other) { return unary("aten.add.Tensor", x, {{"other", other}}); }
  TensorId mul_scalar(TensorId x, double other) { return unary("aten.mul.Tensor", x, {{"other", other}}); }
  TensorId where(TensorId condition, TensorId a, TensorId b);
  TensorId to_dtype(TensorId x, DType dtype);   // aten.to.dtype
  TensorId type_as(TensorId x, TensorId like);  // x.to(like.dtype), of the type that `like` has when it runs

  // --- products and reductions
  TensorId matmul(TensorId a, TensorId b, bool autocast = true);  // false: in a region where autocast is off
  TensorId bmm(TensorId a, TensorId b);                           // rank 3, the same batch
  TensorId addmm(TensorId bias, TensorId a, TensorId b);          // bias + a @ b, both rank 2
  TensorId softmax(TensorId x, int64_t dim);
  TensorId log_softmax(TensorId x, int64_t dim);
  TensorId mean(TensorId x, const Shape& dims, bool keep_dims);
  TensorId sum(TensorId x, const Shape& dims, bool keep_dims);
  // Any other reduction that keeps the type: aten.amax.default, aten.prod.dim_int, ... with dim and keepdim.
  TensorId reduce(std::string_view name, TensorId x, const Shape& dims, bool keep_dims);

  // --- shape. `view` must not copy, `reshape` and `flatten` may; -1 stands for one inferred extent.
  TensorId view(TensorId x, const Shape& size);
  TensorId reshape(TensorId x, const Shape& size);
  TensorId flatten(TensorId x, int64_t first, int64_t last = -1);
  TensorId permute(TensorId x, const Shape& dims);
  TensorId transpose(TensorId x, int64_t dim0, int64_t dim1);
  TensorId contiguous(TensorId x);
  TensorId unsqueeze(TensorId x, int64_t dim);
  TensorId squeeze(TensorId x, int64_t dim);
  TensorId expand(TensorId x, const Shape& size);  // -1 keeps an extent
  TensorId select(TensorId x, int64_t dim, int64_t index);
  TensorId slice(TensorId x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
  std::vector<TensorId> split(TensorId x, const Shape& sizes, int64_t dim);  // aten.split_with_sizes
  std::vector<TensorId> split_every(TensorId x, int64_t size, int64_t dim);  // aten.split.Tensor
  std::vector<TensorId> chunk(TensorId x, int64_t chunks, int64_t dim);      // Tensor.chunk
  std::vector<TensorId> unbind(TensorId x, int64_t dim);
  TensorId cat(const std::vector<TensorId>& parts, int64_t dim);
  TensorId stack(const std::vector<TensorId>& parts, int64_t dim);
  TensorId roll(TensorId x, const Shape& shifts, const Shape& dims);
  TensorId pad(TensorId x, const Shape& pads);  // last dimension first: {left, right, top, bottom, ...}, zeros
  TensorId upsample_nearest2d(TensorId x, int64_t height, int64_t width);
  TensorId upsample_bilinear2d(TensorId x, int64_t height, int64_t width, bool align_corners);

  // --- indexing and creation (no gradient to indices)
  TensorId gather(TensorId x, int64_t dim, TensorId index);
  TensorId index_select(TensorId x, int64_t dim, TensorId index);
  TensorId index(TensorId x, const std::vector<TensorId>& indices, const Shape& result);  // aten.index.Tensor
  TensorId create(std::string_view name, const Shape& shape, DType dtype, const Attributes& attributes = {});

  // An op this vocabulary does not know, kept by name with the shapes its source states.
  std::vector<TensorId> opaque(std::string_view name, const std::vector<TensorId>& inputs,
                               const std::vector<std::pair<Shape, DType>>& results, const Attributes& attributes = {});

  void result(TensorId x) { graph_.add_result(x); }

  // --- looking at what is built
  [[nodiscard]] Shape shape(TensorId x) const;
  [[nodiscard]] int64_t extent(TensorId x, int64_t dim) const;  // negative dims count from the end; 1 after an error
  [[nodiscard]] DType dtype(TensorId x) const { return graph_.graph().tensor(x).dtype; }
  [[nodiscard]] bool failed() const { return error_.has_value(); }
  // Records the input's fault; the first one counts.
  void fail(std::string what, std::string remedy = "");

  Result<Graph> finish();

 private:
  TensorId emit(std::string_view name, const std::vector<TensorId>& inputs, const Shape& shape, DType dtype,
                const Attributes& attributes = {});
  std::vector<TensorId> emit_many(std::string_view name, const std::vector<TensorId>& inputs,
                                  const std::vector<std::pair<Shape, DType>>& results, const Attributes& attributes);
  TensorId emit_in_place(std::string_view name, const std::vector<TensorId>& inputs, const Attributes& attributes);
  TensorId new_tensor(const Shape& shape, DType dtype);
  TensorId root(Root kind, std::string_view name, const Shape& shape, DType dtype);
  int64_t wrap(int64_t dim, int64_t rank);  // negative dims; fails when out of range
  Shape pooled(TensorId x, const PoolOptions& options);
  Shape reduced(TensorId x, const Shape& dims, bool keep_dims);
  std::optional<Shape> broadcast(TensorId a, TensorId b);
  std::optional<Shape> resolved(TensorId x, const Shape& size);  // with -1 inferred
  TensorId dummy();

  GraphBuilder graph_;
  std::string scope_;
  std::optional<Error> error_;
};

}  // namespace forerun
