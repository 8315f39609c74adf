#include "report/data_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/csv_cells.h"
#include "base/json_writer.h"
#include "report/table.h"
#include "timeline/host_gpu_timeline.h"

namespace forerun {
namespace {

std::string when(bool known, double value, std::string_view otherwise) {
  return known ? fmt::format("{:.4f}", value) : std::string(otherwise);
}

std::string layout(const RunRecord& record) { return record.run.setup.channels_last ? "channels_last" : "contiguous"; }

// "float32[2,3] int64[7]"
std::string tensors_text(const Graph& graph, std::span<const TensorId> tensors) {
  std::string text;
  for (const TensorId id : tensors) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}[{}]", name_of(graph.tensor(id).dtype), fmt::join(graph.shape(id), ","));
  }
  return text;
}

// The same, with strides where they are not contiguous: "float32[2,3](1,2)"; "-" for one that was not given.
std::string tensors_text(const std::vector<std::optional<SampleTensor>>& tensors) {
  std::string text;
  for (const auto& tensor : tensors) {
    if (!text.empty()) text += ' ';
    text += tensor ? fmt::format("{}[{}]", name_of(tensor->dtype), fmt::join(tensor->shape, ",")) : "-";
    if (tensor && tensor->strides) text += fmt::format("({})", fmt::join(*tensor->strides, ","));
  }
  return text;
}

}  // namespace

std::string list_heading() {
  return fmt::format("{:<30} {:<14} {:>6} {:<8} {:<8} {:>12} {:>12} {:>9}", "id", "family", "batch", "prec.", "status",
                     "iteration ms", "GPU busy ms", "peak GiB");
}

std::string list_line(const RunRecord& record) {
  const bool timed = is_timed(record);
  const Measurement* m = timed ? &*record.measured : nullptr;
  return fmt::format("{:<30} {:<14} {:>6} {:<8} {:<8} {:>12} {:>12} {:>9}", record.run.id, record.run.family,
                     record.run.input.batch, name_of(record.run.setup.precision), status_text(record),
                     timed ? fmt::format("{:.3f}", m->pipelined_median_ms) : "-",
                     timed ? fmt::format("{:.3f}", m->gpu_busy_us / 1e3) : "-",
                     timed ? fmt::format("{:.2f}", gibibytes(m->peak_allocated)) : "-");
}

std::string list_json(const RunRecord& record) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.data.list/1")
      .field("id", record.run.id)
      .field("family", record.run.family)
      .field("batch", record.run.input.batch)
      .field("precision", name_of(record.run.setup.precision))
      .field("status", status_text(record));
  if (is_timed(record)) {
    json.field("iter_ms", record.measured->pipelined_median_ms)
        .field("gpu_ms", record.measured->gpu_busy_us / 1e3)
        .field("bound", name_of(measured_bound(record)))
        .field("peak_allocated", record.measured->peak_allocated.value);
  }
  return json.end_object().take();
}

std::string list_csv_heading() { return "id,family,batch,precision,status,iter_ms,gpu_ms,peak_allocated"; }

std::string list_csv(const RunRecord& record) {
  const bool timed = is_timed(record);
  return fmt::format("{},{},{},{},{},{},{},{}", csv_cell(record.run.id), csv_cell(record.run.family),
                     record.run.input.batch, name_of(record.run.setup.precision), status_text(record),
                     when(timed, timed ? record.measured->pipelined_median_ms : 0, ""),
                     when(timed, timed ? record.measured->gpu_busy_us / 1e3 : 0, ""),
                     timed ? fmt::format("{}", record.measured->peak_allocated.value) : "");
}

std::string runs_csv_heading() {
  return "id,family,args,input,batch,channels,size,classes,backend,precision,optimizer,impl,layout,accumulate,gpu,"
         "status,"
         "params,iter_ms,gpu_ms,bound,kernels,unmatched_ms,aligned,peak_allocated,peak_reserved,peak_requested,"
         "device_used,device_total";
}

std::string runs_csv(const RunRecord& record) {
  const TrainingRun& run = record.run;
  const Measurement none;
  const bool timed = is_timed(record);
  const Measurement& m = timed ? *record.measured : none;
  const std::string channels = run.input.kind == InputKind::tokens ? "" : fmt::format("{}", run.input.channels);
  const auto bytes = [&](Bytes b) { return timed ? fmt::format("{}", b.value) : ""; };
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                     csv_cell(run.id), csv_cell(run.family), csv_cell(run.arguments), name_of(run.input.kind),
                     run.input.batch, channels, run.input.size, run.input.classes, name_of(run.backend),
                     name_of(run.setup.precision), name_of(run.setup.optimizer.kind), name_of(run.setup.optimizer.impl),
                     layout(record), run.setup.accumulate, csv_cell(run.environment.gpu), status_text(record),
                     run.graph.parameter_count(), when(timed, m.pipelined_median_ms, ""),
                     when(timed, m.gpu_busy_us / 1e3, ""), name_of(measured_bound(record)),
                     timed ? fmt::format("{}", m.kernel_count) : "", when(timed, m.unmatched_us / 1e3, ""),
                     timed ? (m.aligned ? "true" : "false") : "", bytes(m.peak_allocated), bytes(m.peak_reserved),
                     bytes(m.peak_requested), bytes(m.device_used), bytes(m.device_total));
}

std::string ops_csv_heading() { return "run,op,name,phase,module,inputs,outputs,attributes,gpu_us,kernels"; }

std::string ops_csv(const RunRecord& record, OpId id) {
  const Graph& graph = record.run.graph;
  const Op& op = graph.op(id);
  const bool timed = record.measured && id.value < record.measured->op_gpu_us.size() && is_timed(record);
  return fmt::format("{},{},{},{},{},{},{},{},{},{}", csv_cell(record.run.id), id.value, csv_cell(graph.name(op)),
                     name_of(op.phase), csv_cell(graph.module(op)), csv_cell(tensors_text(graph, graph.inputs(op))),
                     csv_cell(tensors_text(graph, graph.outputs(op))), csv_cell(graph.attributes(op).to_json()),
                     timed ? fmt::format("{:.3f}", record.measured->op_gpu_us[id.value]) : "",
                     timed ? fmt::format("{}", record.measured->op_kernels[id.value]) : "");
}

std::string samples_csv_heading() {
  return "id,grid,op,precision,inputs,outputs,attributes,status,us,spread,kernels,kernel_names,workspace";
}

std::string samples_csv(const OpSample& s) {
  const bool ok = s.status == RunStatus::ok;
  std::string names;
  for (const SampleKernel& kernel : s.kernels) names += (names.empty() ? "" : ";") + kernel.name;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_cell(s.id), csv_cell(s.grid), csv_cell(s.op),
                     name_of(s.precision), csv_cell(tensors_text(s.inputs)), csv_cell(tensors_text(s.outputs)),
                     csv_cell(s.attributes.to_json()), name_of(s.status), when(ok, s.us, ""), when(ok, s.spread, ""),
                     s.kernel_count(), csv_cell(names), ok ? fmt::format("{}", s.workspace.value) : "");
}

}  // namespace forerun
