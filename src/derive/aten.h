// The aten ops of a training iteration, each with its backward rule, as PyTorch dispatches them on CUDA.
//
// A function emits the op (and those it decomposes into), records the autograd node where gradients are on, and returns
// the result. Backward rules call the same functions with gradients off, so one rule serves every use. Order of emission,
// layouts and saved tensors follow PyTorch 2.11.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "derive/dispatch.h"
#include "derive/tracer.h"
#include "graph/forward_builder.h"

namespace forerun::derive::aten {

// --- views (aten_view.cpp)
Value view(Tracer& t, const Value& x, const Shape& size);     // strides must allow it
Value reshape(Tracer& t, const Value& x, const Shape& size);  // view, or clone and _unsafe_view
Value unsafe_view(Tracer& t, const Value& x, const Shape& size);
Value transpose2d(Tracer& t, const Value& x);  // aten.t
Value transpose(Tracer& t, const Value& x, int64_t dim0, int64_t dim1);
Value permute(Tracer& t, const Value& x, const Shape& dims);
Value unsqueeze(Tracer& t, const Value& x, int64_t dim);
Value squeeze(Tracer& t, const Value& x, int64_t dim);
Value alias(Tracer& t, const Value& x);
Value expand(Tracer& t, const Value& x, const Shape& size);
Value select(Tracer& t, const Value& x, int64_t dim, int64_t index);
Value slice(Tracer& t, const Value& x, int64_t dim, int64_t start, int64_t end, int64_t step);
Values split_with_sizes(Tracer& t, const Value& x, const Shape& sizes, int64_t dim);
Values split_every(Tracer& t, const Value& x, int64_t size, int64_t dim);
Values unbind(Tracer& t, const Value& x, int64_t dim);
void as_strided_in_place(Tracer& t, const Value& x, const Shape& strides);
Value as_strided_backward(Tracer& t, Value gradient, const Shape& sizes, const Shape& strides, const Shape& base_sizes,
                          const Shape& base_strides);

// --- copies and joins (aten_copy.cpp)
Value clone_contiguous(Tracer& t, const Value& x);
Value contiguous(Tracer& t, const Value& x);                       // x itself where it already is
Value to_format_of(Tracer& t, const Value& x, const Value& like);  // contiguous in like's suggested memory format
Value to_copy(Tracer& t, const Value& x, DType dtype);
void copy_in_place(Tracer& t, const Value& x, const Value& source);
void read_on_host(Tracer& t, const Value& x);  // Tensor.item(): the host waits for a value that is on the GPU
Value cat(Tracer& t, const Values& parts, int64_t dim);
Value stack(Tracer& t, const Values& parts, int64_t dim);
Value constant_pad(Tracer& t, const Value& x, const Shape& pads);
Value repeat(Tracer& t, const Value& x, const Shape& times);  // once for each dimension
Value roll(Tracer& t, const Value& x, const Shape& shifts, const Shape& dims);
Value create(Tracer& t, std::string_view name, const Shape& sizes, DType dtype, const Attributes& attributes = {});
Value gather(Tracer& t, const Value& x, int64_t dim, const Value& index);
Value index_select(Tracer& t, const Value& x, int64_t dim, const Value& index);
Value index(Tracer& t, const Value& x, const Values& indices, const Shape& size);
// x[mask] = value, where `count` of the mask's elements are set.
void masked_put_in_place(Tracer& t, const Value& x, const Value& mask, const Value& value, int64_t count);

// --- elementwise (aten_pointwise.cpp)
// The bare op: broadcasts, promotes, emits; no history.
Value pointwise(Tracer& t, std::string_view name, const Values& inputs, const Attributes& attributes = {},
                std::optional<DType> dtype = std::nullopt);
Value add(Tracer& t, const Value& a, const Value& b);
Value mul(Tracer& t, const Value& a, const Value& b);
Value sub(Tracer& t, const Value& a, const Value& b);
Value div(Tracer& t, const Value& a, const Value& b);
void add_in_place(Tracer& t, const Value& a, const Value& b);
void mul_in_place(Tracer& t, const Value& a, const Value& b);
void div_in_place(Tracer& t, const Value& a, const Value& b);
// One input and numbers: aten.mul.Tensor with "other", aten.gelu.default, aten.pow.Tensor_Scalar, ...
Value unary(Tracer& t, std::string_view name, const Value& x, const Attributes& attributes);
void unary_in_place(Tracer& t, std::string_view name, const Value& x, const Attributes& attributes);
Value masked_fill(Tracer& t, const Value& x, const Value& mask, const Attributes& attributes);
Value where(Tracer& t, const Value& condition, const Value& a, const Value& b);
Value dropout(Tracer& t, const Value& x, double p);
void dropout_in_place(Tracer& t, const Value& x, double p);

// --- products (aten_matmul.cpp)
Value mm(Tracer& t, const Value& a, const Value& b);
Value addmm(Tracer& t, const Value& bias, const Value& a, const Value& b);
Value bmm(Tracer& t, const Value& a, const Value& b);
Value baddbmm(Tracer& t, const Value& addend, const Value& a, const Value& b, const Attributes& attributes);
Value matmul(Tracer& t, const Value& a, const Value& b);
Value linear(Tracer& t, const Value& x, const Value& weight, const Value& bias);  // bias may be null
// Rows of `a` times one matrix of `b` each: rows up to offsets[0] take the first, and so on.
Value grouped_mm(Tracer& t, const Value& a, const Value& b, const Value& offsets);

// --- reductions (aten_reduce.cpp)
Value sum(Tracer& t, const Value& x, const Shape& dims, bool keep_dims);
Value mean(Tracer& t, const Value& x, const Shape& dims, bool keep_dims);
Value reduce(Tracer& t, std::string_view name, const Value& x, const Shape& dims, bool keep_dims);
// Sizes after reducing `dims` (all where there are none); empty where a dim does not exist.
Shape reduced_sizes(const Shape& sizes, const Shape& dims, bool keep_dims);
Value sum_to(Tracer& t, const Value& x, const Shape& sizes);
Values topk(Tracer& t, const Value& x, const Shape& size, const Attributes& attributes);  // values and places, last dim
Value softmax(Tracer& t, const Value& x, int64_t dim);
Value safe_softmax(Tracer& t, const Value& x, int64_t dim);  // rows that are masked out whole give zeros
Value log_softmax(Tracer& t, const Value& x, int64_t dim);
Value nll_loss(Tracer& t, const Value& log_probabilities, const Value& target);
Value mse_loss(Tracer& t, const Value& x, const Value& target);
struct CtcOperands {
  Value log_probabilities;  // [frames, batch, labels there are]
  Value labels;             // of all samples, one after the other
  Value frame_counts, label_counts;
};
// Losses of the samples; `alpha`: the sizes of what the forward pass keeps.
Values ctc_loss(Tracer& t, const CtcOperands& operands, const Shape& alpha, const Attributes& attributes);

// --- layers (aten_layers.cpp, aten_norm.cpp, aten_pool.cpp)
Value convolution(Tracer& t, const Value& x, const Value& weight, const Value& bias, const Attributes& attributes);
// parameters: weight, bias, running mean, running variance; each may be null.
Value batch_norm(Tracer& t, const Value& x, const Values& parameters, const Attributes& attributes);
Value layer_norm(Tracer& t, const Value& x, const Value& weight, const Value& bias, const Attributes& attributes);
Value group_norm(Tracer& t, const Value& x, const Value& weight, const Value& bias, const Attributes& attributes);
// A weight of `direction` with the lengths `length` along one dimension, and those it had.
Values weight_norm(Tracer& t, const Value& direction, const Value& length, const Attributes& attributes);
Value max_pool2d(Tracer& t, const Value& x, const Shape& size, const Attributes& attributes);
Value avg_pool2d(Tracer& t, const Value& x, const Shape& size, const Attributes& attributes);
Value adaptive_avg_pool2d(Tracer& t, const Value& x, const Shape& output);
Value upsample(Tracer& t, std::string_view name, const Value& x, const Shape& size, const Attributes& attributes);
Value embedding(Tracer& t, const Value& weight, const Value& indices, const Attributes& attributes);
Value embedding_bag(Tracer& t, const Value& weight, const Value& indices, const Value& offsets);

// --- attention and recurrence (aten_attention.cpp, aten_rnn.cpp)
struct AttentionCall {
  Value query, key, value;
  Value mask;  // may be null
  Attributes attributes;
};
// The same call as models of transformers make it while they are traced: what is causal has a mask that says so, and with a mask key and
// value heads are repeated before the call (use_gqa_in_sdpa of sdpa_attention.py).
AttentionCall traced_attention(Tracer& t, AttentionCall call);
Value attention(Tracer& t, AttentionBackend backend, const Value& query, const Value& key, const Value& value,
                const Value& mask, const Attributes& attributes);

struct RnnCall {
  RnnKind kind = RnnKind::lstm;
  int64_t hidden = 0;
  int64_t layers = 1;
  int64_t directions = 1;
  bool bias = true;
  bool batch_first = true;
  double dropout = 0;
  int64_t projected = 0;      // width of the hidden state where it is projected (LSTM); 0: it is not
  bool cast_to_half = false;  // under autocast: weights copied into a flat float16 buffer
};
// The layer as modules call it: zero states, weights in one buffer, casts.
Value rnn(Tracer& t, const Value& x, const Values& weights, const RnnCall& call);
struct RnnOperands {
  Value x, hidden, cell;  // cell: LSTM only
  Values weights;
  Value flat;  // the buffer that holds all weights; null where they lie apart
};
struct RnnResults {
  Value y, hidden, cell;
};
// cuDNN's reserve space for the backward pass.
int64_t rnn_reserve_bytes(const RnnCall& call, int64_t batch, int64_t length, DType dtype);
// cuDNN's op alone.
RnnResults cudnn_rnn(Tracer& t, const RnnOperands& operands, const RnnCall& call);

// --- what some models alone do (aten_functions.cpp)
Value rotate_complex(Tracer& t, const Value& pairs, const Value& table);  // pairs of numbers times complex ones
Value bloom_gelu(Tracer& t, const Value& x);

// --- tensor, expert and context groups (aten_group.cpp)
Value enter_group(Tracer& t, const Value& x);  // as it is; its gradient is summed over the group
Value leave_group(Tracer& t, const Value& x);  // summed over the group; its gradient is as it is
Value swap_rows(Tracer& t, const Value& x);    // rows for others' experts against theirs for ours
Value gather_sequence(Tracer& t, const Value& x, const Shape& whole);  // of all GPUs that share it

// --- anything else: carried by name, with one op for its gradient
Values opaque(Tracer& t, std::string_view name, const Values& inputs,
              const std::vector<std::pair<Shape, DType>>& results, const Attributes& attributes);

}  // namespace forerun::derive::aten
