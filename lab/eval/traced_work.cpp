#include "lab/eval/traced_work.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace forerun {
namespace {

using learn::GpuWork;
using learn::OriginWork;
using learn::WorkKind;

constexpr int64_t kLeastElements = 2048;  // of results that count: numbers and masks of a row are launches alone

enum class TracedKind : uint8_t {
  none,
  linear,
  batched,
  softmax,
  norm,
  activation,
  sum,
  scaled,
  product,
  dropout,
  copy
};

int64_t elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view end) { return text.ends_with(end); });
}

TracedKind kind_of_module(std::string_view name) {
  if (ends_with_any(name, {"LayerNorm", "layer_norm", "ln_1", "ln_2", "ln_f"})) return TracedKind::norm;
  if (ends_with_any(name, {"dropout", "drop"})) return TracedKind::dropout;
  if (ends_with_any(name, {"embeddings", "wte", "wpe", "embed_tokens"})) return TracedKind::copy;
  return ends_with_any(name, {"activation", "activation_fn"}) ? TracedKind::activation : TracedKind::linear;
}

TracedKind kind_of_call(const TracedOp& op) {
  if (op.call == "call_module") return kind_of_module(op.target);
  const std::string_view name = op.target;
  const bool two = op.inputs.size() > 1 && elements(op.inputs[1]) > 1;
  if (name == "addmm") return TracedKind::linear;
  if (name == "matmul" || name == "bmm") return TracedKind::batched;
  if (name == "softmax") return TracedKind::softmax;
  if (name == "dropout") return TracedKind::dropout;
  if (name == "gelu" || name == "tanh" || name == "pow") return TracedKind::activation;
  if (name == "add" || name == "sub") return TracedKind::sum;
  if (name == "mul" || name == "truediv") return two ? TracedKind::product : TracedKind::scaled;
  if (name == "where" || name == "max" || name.starts_with("masked_fill") || name == "embedding")
    return TracedKind::copy;
  if (name == "contiguous" || name == "reshape") return op.contiguous_input ? TracedKind::none : TracedKind::copy;
  return TracedKind::none;
}

GemmShape linear_shape(const TracedOp& op) {
  const Shape& input = op.target == "addmm" && op.inputs.size() > 1 ? op.inputs[1] : op.inputs[0];
  const int64_t k = input.back();
  const int64_t n = op.output.back();
  return {.m = elements(op.output) / std::max<int64_t>(1, n), .n = n, .k = k};
}

GemmShape batched_shape(const TracedOp& op) {
  const int64_t m = op.output[op.output.size() - 2];
  const int64_t n = op.output.back();
  return {.batch = std::max<int64_t>(1, elements(op.output) / std::max<int64_t>(1, m * n)),
          .m = m,
          .n = n,
          .k = op.inputs[0].back()};
}

// Tensors that an element-wise op reads and writes.
int64_t tensors_of(const TracedOp& op) {
  int64_t tensors = 1;
  for (const Shape& input : op.inputs) tensors += elements(input) == elements(op.output) ? 1 : 0;
  return std::max<int64_t>(2, tensors);
}

bool is_matrix(const TracedOp& op) {
  return !op.inputs.empty() && !op.inputs.front().empty() && op.output.size() > 1 &&
         elements(op.output) >= kLeastElements;
}

// Pieces share the time of the op by their FLOPs.
std::vector<OriginWork> timed(const std::vector<GpuWork>& pieces, double us) {
  double all = 0;
  for (const GpuWork& piece : pieces) all += piece.flops;
  std::vector<OriginWork> list;
  for (const GpuWork& piece : pieces) {
    list.push_back({.work = piece, .us = all > 0 ? us * piece.flops / all : 0, .launch = {}});
  }
  return list;
}

GpuWork as_batched(const GemmShape& product) {
  GpuWork work = learn::product_work(product);
  work.kind = WorkKind::batched_product;
  return work;
}

}  // namespace

std::vector<OriginWork> forward_work(const TracedOp& op, bool training) {
  const TracedKind kind = kind_of_call(op);
  if (kind == TracedKind::none || !is_matrix(op)) return {};
  const int64_t all = elements(op.output);
  const int64_t width = op.output.back();
  switch (kind) {
    case TracedKind::linear: return timed({learn::product_work(linear_shape(op))}, op.forward_us);
    case TracedKind::batched: return timed({as_batched(batched_shape(op))}, op.forward_us);
    case TracedKind::softmax: return timed({learn::row_work(WorkKind::softmax, all / width, width)}, op.forward_us);
    case TracedKind::norm: return timed({learn::row_work(WorkKind::layer_norm, all / width, width)}, op.forward_us);
    case TracedKind::dropout:
      if (!training) return {};
      break;
    default: break;
  }
  return timed({learn::elementwise_work(all, tensors_of(op))}, op.forward_us);
}

std::vector<OriginWork> backward_work(const TracedOp& op) {
  const TracedKind kind = kind_of_call(op);
  if (kind == TracedKind::none || !is_matrix(op)) return {};
  const int64_t all = elements(op.output);
  const int64_t width = op.output.back();
  switch (kind) {
    case TracedKind::linear: {
      const GemmShape y = linear_shape(op);
      return timed(
          {learn::product_work({.m = y.m, .n = y.k, .k = y.n}), learn::product_work({.m = y.k, .n = y.n, .k = y.m})},
          op.backward_us);
    }
    case TracedKind::batched: {
      const GemmShape y = batched_shape(op);
      return timed({as_batched({.batch = y.batch, .m = y.m, .n = y.k, .k = y.n}),
                    as_batched({.batch = y.batch, .m = y.k, .n = y.n, .k = y.m})},
                   op.backward_us);
    }
    case TracedKind::softmax: return timed({learn::row_work(WorkKind::softmax, all / width, width, 3)}, op.backward_us);
    case TracedKind::norm: return timed({learn::row_work(WorkKind::layer_norm, all / width, width, 3)}, op.backward_us);
    case TracedKind::sum: return {};  // the gradient passes as it is
    case TracedKind::product: return timed({learn::elementwise_work(all, 5)}, op.backward_us);
    case TracedKind::activation:
    case TracedKind::dropout: return timed({learn::elementwise_work(all, 3)}, op.backward_us);
    default: return timed({learn::elementwise_work(all, 2)}, op.backward_us);
  }
}

RunWork work_of_run(const TracedRun& run) {
  RunWork all;
  const auto add = [&](const std::vector<OriginWork>& pieces, bool in_layer) {
    for (const OriginWork& piece : pieces) {
      all.pieces.push_back(piece);
      all.times.push_back(in_layer ? static_cast<double>(run.layers) : 1);
    }
  };
  for (const TracedOp& op : run.ops) {
    add(forward_work(op, run.training), op.in_layer);
    if (run.training) add(backward_work(op), op.in_layer);
  }
  return all;
}

}  // namespace forerun
