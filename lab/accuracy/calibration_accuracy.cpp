#include "lab/accuracy/calibration_accuracy.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

std::string table_of(const std::vector<CalibrationRow>& rows) {
  Table table({"calibration", "readings", "minutes", "runs", "mean", "median", "in range", "worst family"});
  for (const CalibrationRow& row : rows) {
    std::string worst;
    double most = -1;
    for (const auto& [family, error] : row.families) {
      if (error <= most) continue;
      most = error;
      worst = fmt::format("{} {:.1f} %", family, 100 * error);
    }
    table.add({row.what, row.readings > 0 ? grouped(row.readings) : "",
               row.minutes > 0 ? fmt::format("{:.1f}", row.minutes) : "", grouped(row.runs),
               fmt::format("{:.1f} %", 100 * row.mean), fmt::format("{:.1f} %", 100 * row.median),
               row.within < 0 ? "" : fmt::format("{:.0f} %", 100 * row.within), worst});
  }
  return table.text();
}

void write_rows(JsonWriter& json, std::string_view name, const std::vector<CalibrationRow>& rows) {
  json.key(name).begin_array();
  for (const CalibrationRow& row : rows) {
    json.begin_object().field("what", row.what).field("readings", row.readings).field("minutes", row.minutes);
    json.field("runs", row.runs).field("mre", row.mean).field("median", row.median);
    if (row.within >= 0) json.field("within", row.within);
    json.key("families").begin_object();
    for (const auto& [family, error] : row.families) json.field(family, error);
    json.end_object().end_object();
  }
  json.end_array();
}

}  // namespace

std::string to_text(const CalibrationAccuracy& accuracy) {
  std::string text =
      fmt::format("GPU busy time on the {} taken for an unknown GPU, families that nothing was fitted to\n{}",
                  accuracy.gpu, table_of(accuracy.busy));
  if (!accuracy.host.empty()) {
    text += fmt::format("\nIteration time where the host bounds it\n{}", table_of(accuracy.host));
  }
  if (!accuracy.kept.empty()) text += fmt::format("\nranges written to {}\n", accuracy.kept);
  return text;
}

std::string to_json(const CalibrationAccuracy& accuracy) {
  JsonWriter json;
  json.begin_object().field("eval_schema", eval_schema("calibration")).field("gpu", accuracy.gpu);
  write_rows(json, "gpu_busy", accuracy.busy);
  write_rows(json, "host_bound", accuracy.host);
  return json.end_object().take();
}

}  // namespace forerun
