#include "derive/work.h"

#include <algorithm>
#include <vector>

#include "derive/multi_tensor.h"
#include "derive/product_work.h"

namespace forerun {
namespace {

using Tensors = std::span<const TensorId>;

// Bytes of these operands, those of one storage capped by its size. A storage of unknown size (0) does not cap.
Bytes operand_bytes(const Graph& graph, Tensors tensors) {
  struct Share {
    StorageId storage;
    int64_t bytes;
  };
  std::vector<Share> shares;
  shares.reserve(tensors.size());
  for (const TensorId id : tensors) {
    shares.push_back({graph.tensor(id).storage, graph.bytes_of(id).value});
  }
  if (shares.size() > 1) {
    std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.storage < b.storage; });
  }
  int64_t total = 0;
  for (size_t i = 0; i < shares.size();) {
    const StorageId storage = shares[i].storage;
    int64_t bytes = 0;
    for (; i < shares.size() && shares[i].storage == storage; ++i) bytes += shares[i].bytes;
    const int64_t held = graph.storage(storage).bytes.value;
    total += held > 0 ? std::min(bytes, held) : bytes;
  }
  return Bytes(total);
}

int64_t elements(const Graph& graph, Tensors tensors) {
  int64_t count = 0;
  for (const TensorId id : tensors) count += graph.element_count(id);
  return count;
}

DType compute_dtype(const Graph& graph, const Op& op) {
  for (const Tensors tensors : {graph.inputs(op), graph.outputs(op)}) {
    for (const TensorId id : tensors) {
      if (is_floating(graph.tensor(id).dtype)) return graph.tensor(id).dtype;
    }
  }
  return graph.inputs(op).empty() ? DType::float32 : graph.tensor(graph.inputs(op)[0]).dtype;
}

bool runs_on_gpu(const Graph& graph, const Op& op) {
  const Tensors results = graph.outputs(op).empty() ? graph.inputs(op) : graph.outputs(op);
  return !results.empty() && graph.storage(graph.tensor(results[0]).storage).on_gpu;
}

// In-place ops that overwrite their first input without looking at it.
bool overwrites(std::string_view base) {
  for (const std::string_view name : {"copy_", "fill_", "zero_", "normal_", "uniform_", "bernoulli_", "random_",
                                      "exponential_", "_foreach_zero_", "_foreach_copy_"}) {
    if (base == name) return true;
  }
  return false;
}

void set_bytes(const Graph& graph, const Op& op, OpWork& work) {
  work.read = operand_bytes(graph, graph.inputs(op));
  work.written = operand_bytes(graph, graph.outputs(op));
}

void elementwise_work(const Graph& graph, const Op& op, OpWork& work, double flops_per_element) {
  set_bytes(graph, op, work);
  Tensors inputs = graph.inputs(op);
  if (overwrites(base_name(graph.name(op))) && !inputs.empty()) work.read = operand_bytes(graph, inputs.subspan(1));
  const Tensors results =
      graph.outputs(op).empty() ? inputs.first(std::min<size_t>(inputs.size(), 1)) : graph.outputs(op);
  if (graph.outputs(op).empty()) work.written = operand_bytes(graph, results);
  const int64_t touched = std::max(elements(graph, results.first(std::min<size_t>(results.size(), 1))),
                                   inputs.empty() ? 0 : graph.element_count(inputs[0]));
  work.flops = Flops(flops_per_element * static_cast<double>(touched));
}

// Pooling and resampling: a forward result costs its window; gradients of averages do not read the input itself.
void pooling_work(const Graph& graph, const Op& op, OpWork& work) {
  elementwise_work(graph, op, work, 1);
  int64_t window = 1;
  for (const int64_t extent : graph.attributes(op).get_ints("kernel_size")) window *= extent;
  const Tensors inputs = graph.inputs(op);
  if (is_backward(graph.name(op)) && inputs.size() >= 2) {
    std::vector<TensorId> read(inputs.begin(), inputs.end());
    read.erase(read.begin() + 1);  // the forward input, given for its shape
    work.read = operand_bytes(graph, read);
    work.flops = Flops(static_cast<double>(window * graph.element_count(inputs[0])));
  } else if (window > 1 && !graph.outputs(op).empty()) {
    work.flops = Flops(static_cast<double>(window * graph.element_count(graph.outputs(op)[0])));
  }
}

// Embeddings: forward reads the rows it takes; the dense gradient zeroes the table, then adds each row into it.
void embedding_work(const Graph& graph, const Op& op, OpWork& work) {
  set_bytes(graph, op, work);
  const Tensors inputs = graph.inputs(op);
  const Tensors outputs = graph.outputs(op);
  if (inputs.size() < 2 || outputs.empty()) return;
  if (is_backward(graph.name(op))) {
    work.written = operand_bytes(graph, outputs.first(1)) + graph.bytes_of(inputs[0]);
    work.flops = Flops(static_cast<double>(graph.element_count(inputs[0])));
    return;
  }
  const auto table = graph.shape(inputs[0]);
  const int64_t row = table.empty() ? 1 : table.back();
  const int64_t rows = graph.element_count(inputs[1]);
  const int64_t gathered = rows * row * size_of(graph.tensor(inputs[0]).dtype);
  work.read = operand_bytes(graph, inputs.subspan(1)) + Bytes(gathered);
  if (base_name(graph.name(op)) != "embedding")
    work.flops = Flops(static_cast<double>(rows * row));  // summed into bags
}

void nll_loss_work(const Graph& graph, const Op& op, OpWork& work) {
  const Tensors inputs = graph.inputs(op);
  set_bytes(graph, op, work);
  if (is_backward(graph.name(op))) {
    if (inputs.size() >= 3) work.read = operand_bytes(graph, inputs.first(1)) + operand_bytes(graph, inputs.subspan(2));
    return;
  }
  if (inputs.size() < 2) return;
  const int64_t rows = graph.element_count(inputs[1]);
  work.read = operand_bytes(graph, inputs.subspan(1)) + Bytes(rows * size_of(graph.tensor(inputs[0]).dtype));
  work.flops = Flops(static_cast<double>(rows));
}

// Gathers read what they give; scatters copy their target (unless in place) and then write what is scattered.
void indexing_work(const Graph& graph, const Op& op, OpWork& work) {
  const std::string_view base = base_name(graph.name(op));
  if (base.starts_with("nll_loss")) return nll_loss_work(graph, op, work);
  set_bytes(graph, op, work);
  const Tensors inputs = graph.inputs(op);
  if (inputs.size() < 2 || graph.outputs(op).empty()) return;
  const bool gathers = base == "index" || base == "_unsafe_index" || base == "gather" || base == "index_select" ||
                       base == "take" || base == "take_along_dim";
  const bool scatters = base.find("put") != std::string_view::npos || base.starts_with("scatter") ||
                        base.starts_with("index_add") || base.starts_with("index_copy");
  if (gathers) work.read = operand_bytes(graph, inputs.subspan(1)) + graph.bytes_of(graph.outputs(op)[0]);
  if (!scatters) return;
  const Bytes scattered = graph.bytes_of(inputs.back());
  if (is_in_place(graph.name(op))) {
    work.read = operand_bytes(graph, inputs.subspan(1)) + scattered;
    work.written = scattered;
  } else {
    work.read += scattered;
    work.written += scattered;
  }
  work.flops = Flops(static_cast<double>(graph.element_count(inputs.back())));
}

// Copies; the gradient of a slice zeroes the whole tensor first, then fills its part.
void copy_work(const Graph& graph, const Op& op, OpWork& work) {
  elementwise_work(graph, op, work, 0);
  const std::string_view base = base_name(graph.name(op));
  const bool part = base == "select_backward" || base == "slice_backward" || base == "diagonal_backward";
  if (part && !graph.inputs(op).empty()) work.written += graph.bytes_of(graph.inputs(op)[0]);
}

void creation_work(const Graph& graph, const Op& op, OpWork& work) {
  const Tensors results = graph.outputs(op).empty() ? graph.inputs(op) : graph.outputs(op);
  work.written = operand_bytes(graph, results.first(std::min<size_t>(results.size(), 1)));
}

// A fused or foreach update over flattened lists, in place where it has no outputs.
void optimizer_work(const Graph& graph, const Op& op, OpWork& work) {
  const Tensors inputs = graph.inputs(op);
  const std::string_view name = graph.name(op);
  const std::string_view base = base_name(name);
  const int64_t count = static_cast<int64_t>(inputs.size());
  const int64_t lists = foreach_lists(name, count, graph.attributes(op).get_bool("amsgrad", false));
  const size_t entries = static_cast<size_t>(std::max<int64_t>(1, count / std::max<int64_t>(1, lists)));
  work.tensors = static_cast<int64_t>(entries);
  work.launches = multi_tensor_launches(graph, op);
  set_bytes(graph, op, work);
  if (inputs.empty()) return;
  const Tensors first = inputs.first(std::min(entries, inputs.size()));
  if (overwrites(base)) work.read = operand_bytes(graph, inputs.subspan(first.size()));
  if (graph.outputs(op).empty()) work.written = operand_bytes(graph, first);
  double per_element = 1;
  if (base.starts_with("_fused_adam")) {
    per_element = 12;
    // Parameters and both moments are written; gradients are the second list.
    if (inputs.size() >= 4 * entries) work.written += operand_bytes(graph, inputs.subspan(2 * entries, 2 * entries));
  } else if (base.starts_with("_fused_")) {
    per_element = 4;
    if (inputs.size() >= 3 * entries) work.written += operand_bytes(graph, inputs.subspan(2 * entries, entries));
  } else if (base.find("addc") != std::string_view::npos || base.find("lerp") != std::string_view::npos) {
    per_element = 3;
  }
  work.flops = Flops(per_element * static_cast<double>(elements(graph, first)));
}

}  // namespace

int64_t foreach_lists(std::string_view name, int64_t inputs, bool amsgrad) {
  const std::string_view base = base_name(name);
  const std::string_view overload = overload_name(name);
  // Fused forms: parameters, gradients, states and step counters.
  if (base.starts_with("_fused_adagrad")) return 4;
  if (base.starts_with("_fused_adam")) return amsgrad ? 6 : 5;
  if (base.starts_with("_fused_sgd")) return inputs % 3 == 0 ? 3 : 2;
  if (base.find("addcmul") != std::string_view::npos || base.find("addcdiv") != std::string_view::npos) return 3;
  if (base.find("lerp") != std::string_view::npos) return overload == "List" ? 3 : 2;
  if (base.starts_with("_foreach_copy")) return 2;
  if (overload == "List" || overload == "List_Scalar") return 2;
  return 1;
}

OpWork work_of(const Graph& graph, const Op& op) {
  OpWork work;
  const std::string& name = graph.name(op);
  work.cls = op_class(name);
  work.tensors = 1;
  work.on_gpu = runs_on_gpu(graph, op);
  if (work.cls == OpClass::view) return work;
  work.compute_dtype = compute_dtype(graph, op);
  switch (work.cls) {
    case OpClass::gemm:
      set_bytes(graph, op, work);
      add_gemm_work(graph, op, work);
      break;
    case OpClass::convolution:
      set_bytes(graph, op, work);
      add_convolution_work(graph, op, work);
      break;
    case OpClass::attention:
      set_bytes(graph, op, work);
      add_attention_work(graph, op, work);
      break;
    case OpClass::rnn:
      set_bytes(graph, op, work);
      add_rnn_work(graph, op, work);
      break;
    case OpClass::normalization: elementwise_work(graph, op, work, is_backward(name) ? 10 : 5); break;
    case OpClass::softmax: elementwise_work(graph, op, work, 5); break;
    case OpClass::reduction:
      if (base_name(name).starts_with("nll_loss"))
        nll_loss_work(graph, op, work);
      else
        elementwise_work(graph, op, work, 1);
      break;
    case OpClass::pooling: pooling_work(graph, op, work); break;
    case OpClass::embedding: embedding_work(graph, op, work); break;
    case OpClass::indexing: indexing_work(graph, op, work); break;
    case OpClass::copy: copy_work(graph, op, work); break;
    case OpClass::creation: creation_work(graph, op, work); break;
    case OpClass::optimizer: optimizer_work(graph, op, work); break;
    case OpClass::view: break;
    case OpClass::elementwise:
    case OpClass::random:
    case OpClass::communication:
    case OpClass::opaque: elementwise_work(graph, op, work, 1); break;
  }
  return work;
}

}  // namespace forerun
