#include "report/monitor.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/table.h"

namespace forerun {
namespace {

constexpr double kNetworkUnit = 1000;  // bytes a second: what a record counts network series in
constexpr double kGpuUnit = 0.1;       // percent

struct MonitoredResource {
  const char* key;
  const char* label;
  const monitor::Series* series;
  double floor;
  double scale;  // of values in the text and in the metrics
  const char* unit;
};

std::array<MonitoredResource, 4> resources_of(const monitor::Recording& recording) {
  return {{{"gpu", "GPU", &recording.gpu, monitor::kGpuFloor, 1, "%"},
           {"memory", "GPU memory", &recording.memory, monitor::kMemoryFloor, 1, "%"},
           {"send", "send", &recording.send, monitor::kNetworkFloor, 1e-6, "MB/s"},
           {"receive", "receive", &recording.receive, monitor::kNetworkFloor, 1e-6, "MB/s"}}};
}

std::string source_text(const monitor::Recording& recording) {
  switch (recording.source) {
    case monitor::GpuSource::kNone: return "no GPU series: " + recording.gpu_missing;
    case monitor::GpuSource::kRates:
      return "GPU figures are the driver's, each over a window of 1/6 s to 1 s: shorter bursts do not show";
    case monitor::GpuSource::kSamples:
      return "GPU figures are the driver's samples, each over 1/6 s or more: shorter bursts do not show";
    case monitor::GpuSource::kGpm:
      return "GPU figures are hardware counters over 100 ms each; memory is the share of its peak bandwidth";
  }
  return "";
}

std::string command_text(const monitor::Recording& recording) {
  std::string text;
  for (const std::string& word : recording.command) text += (text.empty() ? "" : " ") + word;
  return text;
}

nlohmann::ordered_json whole_units(const monitor::Series& series, double unit) {
  auto numbers = nlohmann::ordered_json::array();
  for (const double value : series.values) numbers.push_back(std::llround(std::max(0.0, value) / unit));
  return numbers;
}

}  // namespace

std::string to_text(const monitor::Recording& recording) {
  std::string text = fmt::format("{:.2f} s", recording.seconds);
  if (!recording.command.empty())
    text += fmt::format(" of `{}`, exit code {}", command_text(recording), recording.exit_code);
  text += fmt::format("; {}; {}\n", recording.interface.empty() ? "all interfaces" : recording.interface,
                      recording.gpu_model.empty() ? "no GPU" : recording.gpu_model);
  Table table({"resource", "pattern", "idle ms", "burst ms", "burst amount", "mean", "bursts"});
  for (const MonitoredResource& resource : resources_of(recording)) {
    if (resource.series->values.empty()) continue;
    const monitor::BurstMetrics metrics = monitor::burst_metrics(*resource.series, resource.floor);
    table.add({resource.label, monitor::name(metrics.pattern), fmt::format("{:.1f}", metrics.idle_ms),
               fmt::format("{:.1f}", metrics.burst_ms),
               fmt::format("{:.2f} {}", metrics.amount * resource.scale, resource.unit),
               fmt::format("{:.2f} {}", metrics.mean * resource.scale, resource.unit),
               fmt::format("{}", metrics.bursts)});
  }
  text += table.text();
  text += fmt::format("{}\nmonitoring took {:.2f} % of a core\n", source_text(recording), 100 * recording.cpu_share);
  return text;
}

std::string to_json(const monitor::Recording& recording) {
  using Json = nlohmann::ordered_json;
  Json series = {{"network_step_ms", static_cast<double>(recording.send.period_ns) * 1e-6},
                 {"network_unit", kNetworkUnit}};
  if (recording.gpu.period_ns > 0) {
    series["gpu_step_ms"] = static_cast<double>(recording.gpu.period_ns) * 1e-6;
    series["gpu_unit"] = kGpuUnit;
  }
  Json metrics = Json::object();
  for (const MonitoredResource& resource : resources_of(recording)) {
    if (resource.series->period_ns == 0) continue;
    const bool network = resource.scale != 1;
    series[resource.key] = whole_units(*resource.series, network ? kNetworkUnit : kGpuUnit);
    const monitor::BurstMetrics found = monitor::burst_metrics(*resource.series, resource.floor);
    metrics[resource.key] = {{"pattern", monitor::name(found.pattern)},
                             {"idle_ms", found.idle_ms},
                             {"burst_ms", found.burst_ms},
                             {"amount", found.amount * resource.scale},
                             {"mean", found.mean * resource.scale},
                             {"threshold", found.threshold * resource.scale},
                             {"bursts", found.bursts},
                             {"idles", found.idles}};
  }
  Json record = {{"schema", "resources/1"},
                 {"status", "ok"},
                 {"source", "monitor"},
                 {"command", recording.command},
                 {"exit_code", recording.exit_code},
                 {"window_ms", recording.seconds * 1000},
                 {"interface", recording.interface},
                 {"gpu_source", monitor::name(recording.source)},
                 {"env", {{"gpu", recording.gpu_model}, {"driver", recording.driver}}},
                 {"series", series},
                 {"metrics", metrics},
                 {"monitor_cpu", recording.cpu_share}};
  if (!recording.gpu_missing.empty()) record["gpu_missing"] = recording.gpu_missing;
  return record.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_svg(const monitor::Recording& recording) {
  std::vector<SeriesPanel> panels;
  for (const MonitoredResource& resource : resources_of(recording)) {
    if (resource.series->values.empty()) continue;
    const monitor::BurstMetrics found = monitor::burst_metrics(*resource.series, resource.floor);
    panels.push_back(
        {fmt::format("{} ({}), {}: burst {:.1f} ms, idle {:.1f} ms, amount {:.2f}", resource.label, resource.unit,
                     monitor::name(found.pattern), found.burst_ms, found.idle_ms, found.amount * resource.scale),
         resource.series, resource.scale, found.threshold * resource.scale});
  }
  return panels_svg(panels, recording.seconds);
}

std::string panels_svg(const std::vector<SeriesPanel>& panels, double seconds) {
  constexpr double kMonitorWidth = 900, kMonitorLeft = 70, kMonitorPanel = 110, kMonitorGap = 42;
  const double plot = kMonitorWidth - kMonitorLeft - 20;
  std::string body;
  double top = 40;
  for (const SeriesPanel& panel : panels) {
    const std::vector<double>& values = panel.series->values;
    if (values.empty()) continue;
    double most = panel.threshold;
    for (const double value : values) most = std::max(most, value * panel.scale);
    if (most <= 0) most = 1;
    body += fmt::format(
        "<text x=\"{}\" y=\"{}\">{}</text>\n"
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999\"/>\n"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.3g}</text>\n",
        kMonitorLeft, top - 6, panel.title, kMonitorLeft, top, plot, kMonitorPanel, kMonitorLeft - 6, top + 10, most);
    const double level = top + kMonitorPanel * (1 - panel.threshold / most);
    body += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#d62728\" stroke-dasharray=\"4\"/>\n",
        kMonitorLeft, kMonitorLeft + plot, level, level);
    body += "<polyline fill=\"none\" stroke=\"#1f77b4\" points=\"";
    const double step = plot / static_cast<double>(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = kMonitorLeft + step * static_cast<double>(i);
      const double y = top + kMonitorPanel * (1 - values[i] * panel.scale / most);
      body += fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", x, y, x + step, y);
    }
    body += "\"/>\n";
    top += kMonitorPanel + kMonitorGap;
  }
  body += fmt::format("<text x=\"{}\" y=\"{}\">0 to {:.2f} s; dashed: what separates burst from idle</text>\n",
                      kMonitorLeft, top - 14, seconds);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
      kMonitorWidth, top, body);
}

}  // namespace forerun
