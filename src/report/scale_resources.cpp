#include "report/scale_resources.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_writer.h"
#include "report/monitor.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr const char* kResourceLabels[] = {"GPU utilisation", "GPU memory utilisation", "network send",
                                           "network receive"};

// The figures of a resource, as the table and the picture show them.
struct ResourceCells {
  std::string pattern, idle, burst, amount, mean;
};

ResourceCells resource_cells(const ResourceAnswer& answer, size_t resource) {
  const monitor::BurstMetrics& m = answer.use.metrics[resource];
  const char* unit = resource < 2 ? "%" : "MB/s";
  return {monitor::name(m.pattern), fmt::format("{:.1f}", m.idle_ms), fmt::format("{:.1f}", m.burst_ms),
          fmt::format("{:.1f} {}", m.amount, unit), fmt::format("{:.1f} {}", m.mean, unit)};
}

std::string learned_text(const LearnedResources& learned) {
  const bool judged = learned.judged.size() == 4;
  Table table({learned.predictor, "idle ms", "burst ms", "burst amount", judged ? "mean error" : ""});
  for (size_t i = 0; i < 4; ++i) {
    const double* figures = &learned.figures[3 * i];
    table.add({kResourceLabels[i], fmt::format("{:.1f}", figures[0]), fmt::format("{:.1f}", figures[1]),
               fmt::format("{:.1f} {}", figures[2], i < 2 ? "%" : "MB/s"), judged ? percent(learned.judged[i]) : ""});
  }
  std::string text = fmt::format("\nAsked beside it{}\n{}  trained on {}\n",
                                 judged ? " (mean errors on model families that were not trained on)" : "",
                                 table.text(), learned.trained_on);
  for (const std::string& note : learned.notes) text += "  " + note + "\n";
  return text;
}

void write_learned(JsonWriter& json, const LearnedResources& learned) {
  json.begin_object().field("predictor", learned.predictor).key("metrics").begin_object();
  for (size_t i = 0; i < 4; ++i) {
    json.key(scale::kResources[i])
        .begin_object()
        .field("idle_ms", learned.figures[3 * i])
        .field("burst_ms", learned.figures[3 * i + 1])
        .field("amount", learned.figures[3 * i + 2])
        .end_object();
  }
  json.end_object().field("judged_errors", learned.judged).field("trained_on", learned.trained_on);
  json.field("notes", learned.notes).end_object();
}

}  // namespace

std::string to_text(const ResourceAnswer& answer) {
  std::string text = fmt::format("{} on {}: {} ({}), batch {} a worker, {}\n  {} parameters, {:.1f} ms an iteration\n",
                                 answer.model, answer.gpu, answer.setting, answer.mode, answer.batch,
                                 answer.shared_gpu ? "workers share one GPU" : "a GPU for each worker",
                                 grouped(answer.parameters), milliseconds(answer.use.iteration));
  Table table({"", "pattern", "idle ms", "burst ms", "burst amount", "mean"});
  for (size_t i = 0; i < 4; ++i) {
    const ResourceCells cells = resource_cells(answer, i);
    table.add({kResourceLabels[i], cells.pattern, cells.idle, cells.burst, cells.amount, cells.mean});
  }
  text += table.text();
  if (!answer.calibration.empty()) text += "  " + answer.calibration + "\n";
  for (const LearnedResources& learned : answer.with) text += learned_text(learned);
  return text;
}

void write_metrics(JsonWriter& json, const ResourceAnswer& answer) {
  json.begin_object();
  for (size_t i = 0; i < 4; ++i) {
    const monitor::BurstMetrics& m = answer.use.metrics[i];
    json.key(scale::kResources[i])
        .begin_object()
        .field("pattern", monitor::name(m.pattern))
        .field("idle_ms", m.idle_ms)
        .field("burst_ms", m.burst_ms)
        .field("amount", m.amount)
        .field("mean", m.mean)
        .field("bursts", m.bursts)
        .field("idles", m.idles)
        .end_object();
  }
  json.end_object();
}

std::string to_json(const ResourceAnswer& answer) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.scale.testbed/1")
      .field("source", "simulation")
      .field("model", answer.model)
      .field("gpu", answer.gpu)
      .field("setting", answer.setting)
      .field("mode", answer.mode)
      .field("batch", answer.batch)
      .field("parameters", answer.parameters)
      .field("gpu_shared", answer.shared_gpu)
      .field("iteration_ms", milliseconds(answer.use.iteration));
  if (!answer.calibration.empty()) json.field("calibration", answer.calibration);
  write_metrics(json.key("metrics"), answer);
  json.key("series")
      .begin_object()
      .field("gpu_step_ms", static_cast<double>(answer.use.series[0].period_ns) * 1e-6)
      .field("step_ms", static_cast<double>(answer.use.series[2].period_ns) * 1e-6);
  for (size_t i = 0; i < 4; ++i) {
    json.key(scale::kResources[i]).begin_array();
    for (const double value : answer.use.series[i].values) {
      json.value(i < 2 ? std::round(value * 100) / 100 : std::round(value));
    }
    json.end_array();
  }
  json.end_object();
  if (!answer.with.empty()) {
    json.key("with").begin_array();
    for (const LearnedResources& learned : answer.with) write_learned(json, learned);
    json.end_array();
  }
  return json.end_object().take();
}

// The series are those of one window; the figures are those of the table, means over all windows.
std::string to_svg(const ResourceAnswer& answer) {
  const monitor::Series& first = answer.use.series[0];
  std::vector<SeriesPanel> panels;
  for (size_t i = 0; i < 4; ++i) {
    const ResourceCells cells = resource_cells(answer, i);
    panels.push_back({fmt::format("{}, {}: burst {} ms, idle {} ms, amount {}", kResourceLabels[i], cells.pattern,
                                  cells.burst, cells.idle, cells.amount),
                      &answer.use.series[i], i < 2 ? 1.0 : 1e-6, answer.use.metrics[i].threshold});
  }
  return panels_svg(panels, static_cast<double>(first.period_ns) * 1e-9 * static_cast<double>(first.values.size()));
}

}  // namespace forerun
