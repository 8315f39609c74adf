#include "lab/dataset/record_example.h"

#include <algorithm>

#include "derive/work.h"

namespace forerun::learn {
namespace {

// Places of a run record's hyper-parameters in OpRow::hyper.
enum Place : size_t {
  kFirstInput = 0,    // its extents, 5 at most
  kSecondInput = 5,   // 5 at most
  kFirstOutput = 10,  // 4 at most
  kGemm = 14,         // m, n, k, batch, repeats of the first product
  kWindow = 19,       // height and width of a filter or pooling window
  kStride = 21,
  kPadding = 22,
  kDilation = 23,
  kGroups = 24,
  kTransposed = 25,
  kSteps = 26,  // of a recurrent layer
  kStepWidth = 27,
  kGemms = 28,  // number of products
  kInputs = 29  // number of inputs
};

void set_extents(OpRow& row, size_t place, size_t most, std::span<const int64_t> shape) {
  for (size_t i = 0; i < std::min(most, shape.size()); ++i) row.hyper[place + i] = static_cast<float>(shape[i]);
}

float first_of(const Attributes& attributes, std::string_view key) {
  const Shape values = attributes.get_ints(key);
  return values.empty() ? 0.0F : static_cast<float>(values.front());
}

void set_hyper_parameters(const Graph& graph, const Op& op, const OpWork& work, OpRow& row) {
  const auto inputs = graph.inputs(op);
  const auto outputs = graph.outputs(op);
  if (!inputs.empty()) set_extents(row, kFirstInput, 5, graph.shape(inputs[0]));
  if (inputs.size() > 1) set_extents(row, kSecondInput, 5, graph.shape(inputs[1]));
  if (!outputs.empty()) set_extents(row, kFirstOutput, 4, graph.shape(outputs[0]));
  if (!work.gemms().empty()) {
    const GemmShape& gemm = work.gemms().front();
    const int64_t figures[] = {gemm.m, gemm.n, gemm.k, gemm.batch, gemm.repeats};
    for (size_t i = 0; i < 5; ++i) row.hyper[kGemm + i] = static_cast<float>(figures[i]);
  }
  const Attributes& attributes = graph.attributes(op);
  Shape window = attributes.get_ints("kernel_size");
  if (work.cls == OpClass::convolution) {
    const size_t weight = row.phase == Phase::backward ? 2 : 1;
    const auto shape = inputs.size() > weight ? graph.shape(inputs[weight]) : std::span<const int64_t>();
    if (shape.size() > 2) window.assign(shape.begin() + 2, shape.end());
  }
  set_extents(row, kWindow, 2, window);
  row.hyper[kStride] = first_of(attributes, "stride");
  row.hyper[kPadding] = first_of(attributes, "padding");
  row.hyper[kDilation] = first_of(attributes, "dilation");
  row.hyper[kGroups] = static_cast<float>(attributes.get_int("groups", 0));
  row.hyper[kTransposed] = attributes.get_bool("transposed", false) ? 1.0F : 0.0F;
  row.hyper[kSteps] = static_cast<float>(work.steps);
  row.hyper[kStepWidth] = static_cast<float>(work.step_width);
  row.hyper[kGemms] = static_cast<float>(work.gemms().size());
  row.hyper[kInputs] = static_cast<float>(inputs.size());
}

// Bytes of weights among the inputs; of a backward op's results, those of the extents of a weight it read.
void set_sizes(const Graph& graph, const Op& op, OpRow& row) {
  double elements_in = 0;
  double elements_out = 0;
  double weights = 0;
  double in = 0;
  double out = 0;
  std::vector<ShapeId> weight_shapes;
  for (const TensorId input : graph.inputs(op)) {
    const auto bytes = static_cast<double>(graph.bytes_of(input).value);
    elements_in += static_cast<double>(graph.element_count(input));
    const bool weight = graph.storage(graph.tensor(input).storage).root == Root::parameter;
    (weight ? weights : in) += bytes;
    if (weight) weight_shapes.push_back(graph.tensor(input).shape);
  }
  for (const TensorId output : graph.outputs(op)) {
    elements_out += static_cast<double>(graph.element_count(output));
    const ShapeId shape = graph.tensor(output).shape;
    const bool gradient = op.phase == Phase::backward &&
                          std::find(weight_shapes.begin(), weight_shapes.end(), shape) != weight_shapes.end();
    (gradient ? weights : out) += static_cast<double>(graph.bytes_of(output).value);
  }
  row.set(Amount::input_elements, elements_in);
  row.set(Amount::output_elements, elements_out);
  row.set(Amount::weight_bytes, weights);
  row.set(Amount::input_bytes, in);
  row.set(Amount::output_bytes, out);
}

OpRow row_of(const Graph& graph, const Op& op, DataSet& data) {
  const OpWork work = work_of(graph, op);
  OpRow row;
  row.name = data.intern_name(graph.name(op));
  row.phase = op.phase;
  row.dtype = work.compute_dtype;
  row.cls = work.cls;
  row.on_gpu = work.on_gpu && work.cls != OpClass::view;
  row.set(Amount::flops, work.flops.value);
  row.set(Amount::bytes_read, static_cast<double>(work.read.value));
  row.set(Amount::bytes_written, static_cast<double>(work.written.value));
  row.set(Amount::tensors, static_cast<double>(work.tensors));
  set_sizes(graph, op, row);
  set_hyper_parameters(graph, op, work, row);
  return row;
}

// From the op that last wrote a storage to each op that reads it: views and in-place ops are followed, roots are not.
std::vector<DataEdge> edges_of(const Graph& graph) {
  std::vector<OpId> writer(graph.storages().size());
  std::vector<DataEdge> edges;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.op(OpId(i));
    const auto first = static_cast<std::ptrdiff_t>(edges.size());
    for (const TensorId input : graph.inputs(op)) {
      const OpId source = writer[graph.tensor(input).storage.value];
      if (!source.valid() || source == OpId(i)) continue;
      const auto bytes = static_cast<float>(graph.bytes_of(input).value);
      const auto same = std::find_if(edges.begin() + first, edges.end(),
                                     [&](const DataEdge& edge) { return edge.source == source.value; });
      if (same != edges.end()) {
        same->bytes += bytes;
      } else {
        edges.push_back({source.value, static_cast<uint32_t>(i), bytes});
      }
    }
    std::sort(edges.begin() + first, edges.end(),
              [](const DataEdge& a, const DataEdge& b) { return a.source < b.source; });
    for (const TensorId output : graph.outputs(op)) writer[graph.tensor(output).storage.value] = OpId(i);
  }
  return edges;
}

}  // namespace

Example example_of(const TrainingRun& run, DataSet& data) {
  Example example;
  example.id = run.id;
  example.group = run.family;
  example.batch = static_cast<double>(run.input.batch);
  example.size = static_cast<double>(run.input.size);
  example.precision = run.setup.precision;
  example.optimizer = run.setup.optimizer;
  example.channels_last = run.setup.channels_last;
  example.device = run.environment.gpu;
  example.parameters = static_cast<double>(run.graph.parameter_count());
  example.parameter_tensors = static_cast<double>(run.graph.parameter_tensors());
  example.ops.reserve(run.graph.op_count());
  for (const Op& op : run.graph.ops()) example.ops.push_back(data.intern(row_of(run.graph, op, data)));
  example.edges = edges_of(run.graph);
  return example;
}

}  // namespace forerun::learn
