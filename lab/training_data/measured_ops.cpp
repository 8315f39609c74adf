#include "lab/training_data/measured_ops.h"

#include <algorithm>

#include "derive/op_class.h"
#include "derive/value.h"
#include "graph/graph_builder.h"
#include "predict/predict.h"

namespace forerun {
namespace {

using hybrid::MeasuredOp;

TensorId add_tensor(GraphBuilder& builder, const SampleTensor& tensor) {
  Shape strides = tensor.strides ? *tensor.strides : derive::contiguous_strides(tensor.shape);
  int64_t extent = 1;  // elements from the first to the last in memory
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    extent = tensor.shape[d] == 0 ? 0 : extent + (tensor.shape[d] - 1) * strides[d];
    if (extent == 0) break;
  }
  const StorageId storage = builder.add_storage(Bytes(extent * static_cast<int64_t>(size_of(tensor.dtype))));
  return builder.add_tensor(storage, tensor.dtype, tensor.shape, strides);
}

// Where ops of iterations were measured at all shapes and layouts beside those timed alone, so that trees can tell what being
// alone changes. Elsewhere samples stand for what no iteration had, and their being alone would be taken for the reason.
bool differs_alone(const hybrid::FeatureRow& row) {
  using hybrid::Model;
  return row.model == Model::convolution || row.model == Model::data_gradient || row.model == Model::weight_gradient ||
         row.op.find("batch_norm") != std::string_view::npos;
}

MeasuredOp measured(std::vector<hybrid::FeatureRow> feature_rows, double us, double span_us, int64_t kernels) {
  MeasuredOp op;
  for (const hybrid::FeatureRow& feature_row : feature_rows) op.names.emplace_back(feature_row.op);
  op.feature_rows = std::move(feature_rows);
  op.us = us;
  op.span_us = span_us;
  op.kernels = static_cast<int>(kernels);
  return op;
}

}  // namespace

Graph graph_of(const OpSample& sample) {
  GraphBuilder builder;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  for (const auto& tensor : sample.inputs) {
    if (tensor) inputs.push_back(add_tensor(builder, *tensor));
  }
  for (const auto& tensor : sample.outputs) {
    if (tensor) outputs.push_back(add_tensor(builder, *tensor));
  }
  builder.add_op({.name = sample.op, .inputs = inputs, .outputs = outputs, .attributes = &sample.attributes});
  return builder.finish();
}

std::vector<MeasuredOp> measured_ops(const OpSample& sample, const Device& device, const AnalyticConstants& constants) {
  if (sample.status != RunStatus::ok || sample.us <= 0) return {};
  const Graph graph = graph_of(sample);
  TrainingSetup setup;
  setup.precision = sample.precision;
  const Op& op = graph.ops()[0];
  auto feature_rows =
      hybrid::featurize(graph, op, work_of(graph, op), LayoutTracker(graph, false), device, setup, constants);
  if (feature_rows.empty()) return {};
  const bool alone = sample.family.empty();
  for (hybrid::FeatureRow& row : feature_rows) {
    if (!alone || !differs_alone(row)) continue;
    const double moved = row.memory_us * 1e-6 * device.memory_bandwidth;
    const double held = static_cast<double>(device.l2.value) / std::max(moved, 1.0);
    row.columns[hybrid::kAlone] = static_cast<float>(std::min(1.0, held));
  }
  double kernels_us = 0;
  for (const SampleKernel& kernel : sample.kernels) kernels_us += kernel.us;
  MeasuredOp result = measured(std::move(feature_rows), kernels_us > 0 ? kernels_us : sample.us, sample.us,
                               std::max<int64_t>(sample.kernel_count(), 1));
  result.alone = alone;
  result.family = sample.family;
  std::vector<MeasuredOp> list;
  list.push_back(std::move(result));
  return list;
}

std::vector<MeasuredOp> measured_ops(const RunRecord& record, const Device& device,
                                     const AnalyticConstants& constants) {
  if (!record.has_graph || !record.measured || record.measured->status != RunStatus::ok) return {};
  const Graph& graph = record.run.graph;
  const Measurement& m = *record.measured;
  LayoutTracker layouts(graph, record.run.setup.channels_last);
  std::vector<MeasuredOp> list;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    // Kernels matched by name may have gone to another of several equal recurrent layers.
    const bool certain = m.aligned || op_class(graph.name(op)) != OpClass::rnn;
    if (m.op_kernels[i] > 0 && m.op_gpu_us[i] > 0 && certain) {
      auto feature_rows =
          hybrid::featurize(graph, op, work_of(graph, op), layouts, device, record.run.setup, constants);
      if (!feature_rows.empty())
        list.push_back(measured(std::move(feature_rows), m.op_gpu_us[i], m.op_span_us[i], m.op_kernels[i]));
    }
    layouts.pass(op);
  }
  for (MeasuredOp& op : list) op.family = record.run.family;
  return list;
}

Result<std::vector<MeasuredOp>> load_measured_ops(const std::vector<std::string>& files, const TrainingPart& part,
                                                  const CostModels& cost_models,
                                                  const std::function<void(const DataProblem&)>& problem) {
  std::vector<MeasuredOp> ops;
  const auto append = [&](std::vector<MeasuredOp> found) {
    ops.insert(ops.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  };
  const Result<Device> sample_device = cost_models.devices.find(kDefaultGpu);
  if (!sample_device) return sample_device.error();
  const auto take_run = [&](const RunRecord& record, const DataPlace& /*place*/) {
    if (!part.contains(record.run)) return;
    const Result<Device> device = cost_models.devices.find(record.run.environment.gpu);
    if (device) append(measured_ops(record, *device, cost_models.analytic));
  };
  const auto take_sample = [&](const OpSample& sample, const DataPlace& /*place*/) {
    if (!part.contains_ops_of(sample.family)) return;
    append(measured_ops(sample, *sample_device, cost_models.analytic));
  };
  const Status status =
      scan_files(files, Fields::everything, {.run = take_run, .sample = take_sample, .problem = problem});
  if (!status.ok()) return status.error();
  return ops;
}

}  // namespace forerun
