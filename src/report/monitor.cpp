#include "report/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json_writer.h"
#include "report/svg.h"
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

// A series as whole numbers of its unit.
void write_whole_units(JsonWriter& json, const monitor::Series& series, double unit) {
  json.begin_array();
  for (const double value : series.values) json.value(std::llround(std::max(0.0, value) / unit));
  json.end_array();
}

void write_series(JsonWriter& json, const monitor::Recording& recording) {
  json.begin_object()
      .field("network_step_ms", static_cast<double>(recording.send.period_ns) * 1e-6)
      .field("network_unit", kNetworkUnit);
  if (recording.gpu.period_ns > 0) {
    json.field("gpu_step_ms", static_cast<double>(recording.gpu.period_ns) * 1e-6).field("gpu_unit", kGpuUnit);
  }
  for (const MonitoredResource& resource : resources_of(recording)) {
    if (resource.series->period_ns == 0) continue;
    const bool network = resource.scale != 1;
    write_whole_units(json.key(resource.key), *resource.series, network ? kNetworkUnit : kGpuUnit);
  }
  json.end_object();
}

void write_metrics(JsonWriter& json, const monitor::Recording& recording) {
  json.begin_object();
  for (const MonitoredResource& resource : resources_of(recording)) {
    if (resource.series->period_ns == 0) continue;
    const monitor::BurstMetrics found = monitor::burst_metrics(*resource.series, resource.floor);
    json.key(resource.key)
        .begin_object()
        .field("pattern", monitor::name(found.pattern))
        .field("idle_ms", found.idle_ms)
        .field("burst_ms", found.burst_ms)
        .field("amount", found.amount * resource.scale)
        .field("mean", found.mean * resource.scale)
        .field("threshold", found.threshold * resource.scale)
        .field("bursts", found.bursts)
        .field("idles", found.idles)
        .end_object();
  }
  json.end_object();
}

// A series as steps, with the level above which it counts as a burst.
void draw_series(svg::Picture& picture, const svg::Plot& plot, const SeriesPanel& panel, double seconds) {
  const std::vector<double>& values = panel.series->values;
  double most = panel.threshold;
  for (const double value : values) most = std::max(most, value * panel.scale);
  if (most <= 0) most = 1;
  for (const double tick : svg::round_ticks(most, 2)) picture.tick_left(plot, tick / most, fmt::format("{:g}", tick));
  for (const double tick : svg::round_ticks(seconds)) {
    picture.tick_below(plot, seconds > 0 ? tick / seconds : 0, fmt::format("{:g}", tick));
  }
  picture.frame(plot, panel.title);
  const double level = plot.y(panel.threshold / most);
  picture.line({plot.left, level}, {plot.right(), level}, {.colour = svg::kVermilion, .dash = "4 4"});
  std::vector<svg::Point> points;
  const auto count = static_cast<double>(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double y = plot.y(values[i] * panel.scale / most);
    points.emplace_back(plot.x(static_cast<double>(i) / count), y);
    points.emplace_back(plot.x(static_cast<double>(i + 1) / count), y);
  }
  picture.curve(points, {.colour = svg::kBlue});
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
  JsonWriter json;
  json.begin_object()
      .field("schema", "resources/1")
      .field("status", "ok")
      .field("source", "monitor")
      .field("command", recording.command)
      .field("exit_code", recording.exit_code)
      .field("window_ms", recording.seconds * 1000)
      .field("interface", recording.interface)
      .field("gpu_source", monitor::name(recording.source))
      .key("env")
      .begin_object()
      .field("gpu", recording.gpu_model)
      .field("driver", recording.driver)
      .end_object();
  write_series(json.key("series"), recording);
  write_metrics(json.key("metrics"), recording);
  json.field("monitor_cpu", recording.cpu_share);
  if (!recording.gpu_missing.empty()) json.field("gpu_missing", recording.gpu_missing);
  return json.end_object().take();
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
  constexpr double kMonitorWidth = 900, kMonitorPanel = 110, kMonitorGap = 54;
  const auto drawn = static_cast<double>(std::count_if(
      panels.begin(), panels.end(), [](const SeriesPanel& panel) { return !panel.series->values.empty(); }));
  svg::Picture picture(kMonitorWidth, 52 + drawn * (kMonitorPanel + kMonitorGap));
  svg::Plot plot{.left = 70, .top = 40, .width = kMonitorWidth - 70 - 20, .height = kMonitorPanel};
  for (const SeriesPanel& panel : panels) {
    if (panel.series->values.empty()) continue;
    draw_series(picture, plot, panel, seconds);
    plot.top += kMonitorPanel + kMonitorGap;
  }
  picture.text(plot.left, plot.top - 4, "time in seconds; dashed: what separates burst from idle");
  return picture.document();
}

}  // namespace forerun
