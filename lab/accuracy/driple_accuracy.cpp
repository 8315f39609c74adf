#include "lab/accuracy/driple_accuracy.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/statistics.h"
#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr const char* kDripleResources[] = {"gpu", "memory", "send", "receive"};
constexpr const char* kDripleFigures[] = {"idle", "burst", "amount"};

std::string driple_list(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::string transfer_text(const std::vector<DripleTransferRow>& rows, const std::optional<DriplePublished>& published) {
  if (rows.empty()) return "";
  Table table(
      {"setting", "workloads", "error", "seconds", "tuned on", "error", "seconds", "error ratio", "time ratio"});
  for (const DripleTransferRow& row : rows) {
    table.add({row.setting, grouped(row.full_workloads), percent(row.full_error),
               fmt::format("{:.1f}", row.full_seconds), grouped(row.tuned_workloads), percent(row.tuned_error),
               fmt::format("{:.1f}", row.tuned_seconds), fmt::format("{:.2f}", row.tuned_error / row.full_error),
               fmt::format("{:.1f}x", row.full_seconds / row.tuned_seconds)});
  }
  const std::string paper = published ? fmt::format(" (the paper: {}x less time, {}x less data)", published->time_ratio,
                                                    published->data_ratio)
                                      : "";
  return fmt::format(
      "Transfer to other settings: trained from the beginning, and tuned from the base setting on a third\n{}"
      "Bars: error ratio below 1.10, time ratio above 5{}\n",
      table.text(), paper);
}

Table driple_table() {
  Table table({"predictor", "GPU util.", "GPU memory", "send", "receive", "NRMSE", ""});
  table.align_left(6);
  return table;
}

void add_driple_row(Table& table, const DripleRow& row) {
  table.add({row.predictor, percent(row.resource_error(0)), percent(row.resource_error(1)),
             percent(row.resource_error(2)), percent(row.resource_error(3)), fmt::format("{:.3f}", row.nrmse),
             row.note});
}

std::string studies_text(const std::vector<DripleStudyLine>& lines, const char* study, const char* heading) {
  Table table({"", "trained on", "GPU util.", "GPU memory", "send", "receive", "all", "NRMSE", "seconds"});
  bool any = false;
  for (const DripleStudyLine& line : lines) {
    if (line.study != study) continue;
    any = true;
    table.add({line.name, grouped(line.training), percent(line.row.resource_error(0)),
               percent(line.row.resource_error(1)), percent(line.row.resource_error(2)),
               percent(line.row.resource_error(3)), percent(line.row.mean_error()),
               fmt::format("{:.3f}", line.row.nrmse), fmt::format("{:.0f}", line.seconds)});
  }
  return any ? fmt::format("\n{}\n{}", heading, table.text()) : "";
}

nlohmann::ordered_json row_json(const DripleRow& row) {
  nlohmann::ordered_json entry = {{"predictor", row.predictor}, {"note", row.note}, {"nrmse", row.nrmse}};
  for (size_t r = 0; r < 4; ++r) {
    nlohmann::ordered_json& resource = entry[kDripleResources[r]];
    resource["mean"] = row.resource_error(r);
    for (size_t f = 0; f < 3; ++f) resource[kDripleFigures[f]] = row.errors[3 * r + f];
  }
  return entry;
}

}  // namespace

double DripleRow::resource_error(size_t resource) const {
  return (errors[3 * resource] + errors[3 * resource + 1] + errors[3 * resource + 2]) / 3;
}

double DripleRow::mean_error() const { return mean(errors); }

std::string to_text(const DripleAccuracy& accuracy) {
  Table means = driple_table();
  for (const DripleRow& row : accuracy.rows) add_driple_row(means, row);
  if (accuracy.published) {
    const auto& errors = accuracy.published->errors;
    means.add({"Driple, published", percent(errors[0]), percent(errors[1]), percent(errors[2]), percent(errors[3]), "",
               "other data, workloads and settings"});
  }
  std::vector<std::string> heading = {"predictor"};
  for (const char* resource : kDripleResources) {
    for (const char* figure : kDripleFigures) heading.push_back(fmt::format("{} {}", resource, figure));
  }
  Table metrics(heading);
  for (const DripleRow& row : accuracy.rows) {
    std::vector<std::string> cells = {row.predictor};
    for (const double error : row.errors) cells.push_back(percent(error));
    metrics.add(cells);
  }
  std::string text = fmt::format(
      "{}: mean percentage errors on {} workloads of families that nothing was trained on\n({}); {} workloads trained "
      "on, of {}\n{}\n{}",
      accuracy.setting, accuracy.test, driple_list(accuracy.test_families), accuracy.training, accuracy.source,
      means.text(), metrics.text());
  if (!accuracy.model_rows.empty()) {
    Table models = driple_table();
    for (const DripleRow& row : accuracy.model_rows) add_driple_row(models, row);
    text += fmt::format("\nUnseen models of seen families: all {} workloads, models left out in {} parts\n{}",
                        accuracy.models, accuracy.model_folds, models.text());
  }
  text += studies_text(accuracy.studies, "samples", "Fewer measured workloads: from the beginning, and pre-trained");
  if (!accuracy.transfers.empty()) text += "\n" + transfer_text(accuracy.transfers, accuracy.published);
  text += studies_text(accuracy.studies, "ablations", "Ablations of Driple's network, each trained alone");
  for (const std::string& what : accuracy.missing) text += what + "\n";
  return text;
}

std::string to_json(const DripleAccuracy& accuracy) {
  nlohmann::ordered_json json = {{"schema", eval_schema("driple")},
                                 {"suite", "driple"},
                                 {"setting", accuracy.setting},
                                 {"source", accuracy.source},
                                 {"training", accuracy.training},
                                 {"test", accuracy.test},
                                 {"test_families", accuracy.test_families},
                                 {"predictors", nlohmann::ordered_json::array()},
                                 {"unseen_models", nlohmann::ordered_json::array()},
                                 {"studies", nlohmann::ordered_json::object()},
                                 {"transfers", nlohmann::ordered_json::array()},
                                 {"missing", accuracy.missing}};
  for (const DripleRow& row : accuracy.rows) json["predictors"].push_back(row_json(row));
  for (const DripleRow& row : accuracy.model_rows) json["unseen_models"].push_back(row_json(row));
  for (const DripleStudyLine& line : accuracy.studies) {
    nlohmann::ordered_json entry = row_json(line.row);
    entry.erase("predictor");
    entry.erase("note");
    entry["name"] = line.name;
    entry["training"] = line.training;
    entry["validation_error"] = line.validation_error;
    entry["seconds"] = line.seconds;
    json["studies"][line.study].push_back(entry);
  }
  for (const DripleTransferRow& row : accuracy.transfers) {
    json["transfers"].push_back({{"setting", row.setting},
                                 {"full_workloads", row.full_workloads},
                                 {"tuned_workloads", row.tuned_workloads},
                                 {"test_workloads", row.test_workloads},
                                 {"full_error", row.full_error},
                                 {"tuned_error", row.tuned_error},
                                 {"full_seconds", row.full_seconds},
                                 {"tuned_seconds", row.tuned_seconds}});
  }
  return json.dump();
}

}  // namespace forerun
