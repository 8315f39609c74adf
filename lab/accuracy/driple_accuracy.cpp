#include "lab/accuracy/driple_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "base/statistics.h"
#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr const char* kDripleResources[] = {"gpu", "memory", "send", "receive"};
constexpr size_t kDripleMetrics = 12;
constexpr const char* kDripleFigures[] = {"idle", "burst", "amount"};

std::string driple_list(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::string judged_percent(double error) { return std::isnan(error) ? "-" : percent(error); }

double mean_judged(std::span<const double> errors) {
  std::vector<double> judged;
  std::copy_if(errors.begin(), errors.end(), std::back_inserter(judged), [](double e) { return !std::isnan(e); });
  return judged.empty() ? std::numeric_limits<double>::quiet_NaN() : mean(judged);
}

std::string transfer_text(const std::vector<DripleTransferRow>& rows, const std::optional<DriplePublished>& published) {
  if (rows.empty()) return "";
  Table table({"setting", "workloads", "epochs", "error", "seconds", "tuned on", "epochs", "error", "seconds",
               "error ratio", "time ratio"});
  double error_ratios = 0;
  double time_ratios = 0;
  for (const DripleTransferRow& row : rows) {
    const double error_ratio = row.tuned_error / row.full_error;
    const double time_ratio = row.full_seconds / row.tuned_seconds;
    error_ratios += error_ratio / static_cast<double>(rows.size());
    time_ratios += time_ratio / static_cast<double>(rows.size());
    table.add({row.setting, grouped(row.full_workloads), grouped(row.full_epochs), percent(row.full_error),
               fmt::format("{:.1f}", row.full_seconds), grouped(row.tuned_workloads), grouped(row.tuned_epochs),
               percent(row.tuned_error), fmt::format("{:.1f}", row.tuned_seconds), fmt::format("{:.2f}", error_ratio),
               fmt::format("{:.1f}x", time_ratio)});
  }
  table.add({"mean", "", "", "", "", "", "", "", "", fmt::format("{:.2f}", error_ratios),
             fmt::format("{:.1f}x", time_ratios)});
  const std::string paper = published ? fmt::format(" (the paper: {}x less time, {}x less data)", published->time_ratio,
                                                    published->data_ratio)
                                      : "";
  return fmt::format(
      "Transfer to other settings (kept results): trained from the beginning, and tuned from the base setting on two "
      "fifths of\nthe workloads, each until the error on families set aside fell no more; (simulated): nobody measured "
      "it, labels are\nthe simulation's\n{}Bars: error ratio below 1.10, time ratio above 5{}\n",
      table.text(), paper);
}

Table driple_table() {
  Table table({"predictor", "GPU util.", "GPU memory", "send", "receive", "NRMSE", ""});
  table.align_left(6);
  return table;
}

void add_driple_row(Table& table, const DripleRow& row) {
  table.add({row.predictor, judged_percent(row.resource_error(0)), judged_percent(row.resource_error(1)),
             judged_percent(row.resource_error(2)), judged_percent(row.resource_error(3)),
             fmt::format("{:.3f}", row.nrmse), row.note});
}

std::string divided_text(const DripleAccuracy& accuracy) {
  if (accuracy.divided.empty()) return "";
  Table table({"how links were shared", "trained on", "judged on", "predictor", "GPU util.", "GPU memory", "send",
               "receive", "NRMSE"});
  table.align_left(3);
  for (const DripleDivided& part : accuracy.divided) {
    for (const DripleRow& row : part.rows) {
      table.add({part.setting, grouped(part.training), grouped(part.test), row.predictor,
                 judged_percent(row.resource_error(0)), judged_percent(row.resource_error(1)),
                 judged_percent(row.resource_error(2)), judged_percent(row.resource_error(3)),
                 fmt::format("{:.3f}", row.nrmse)});
    }
  }
  return "\nThe same windows divided by how links came to be shared, which nobody knows before a run\n" + table.text();
}

std::string others_text(const DripleAccuracy& accuracy) {
  if (accuracy.others.empty()) return "";
  Table means({"setting", "trained on", "judged on", "predictor", "GPU util.", "GPU memory", "send", "receive", "all",
               "figures", "NRMSE", ""});
  means.align_left(3);
  means.align_left(11);
  std::vector<std::string> heading = {"setting", "predictor"};
  for (const char* resource : kDripleResources) {
    for (const char* figure : kDripleFigures) heading.push_back(fmt::format("{} {}", resource, figure));
  }
  Table metrics(heading);
  metrics.align_left(1);
  for (const DripleOtherSetting& other : accuracy.others) {
    for (const DripleRow& row : other.rows) {
      means.add({other.setting, grouped(other.training), grouped(other.test), row.predictor,
                 judged_percent(row.resource_error(0)), judged_percent(row.resource_error(1)),
                 judged_percent(row.resource_error(2)), judged_percent(row.resource_error(3)),
                 judged_percent(row.mean_error()), grouped(row.judged()),
                 row.judged() > 0 ? fmt::format("{:.3f}", row.nrmse) : "-", row.note});
      if (row.judged() == 0) continue;
      std::vector<std::string> cells = {other.setting, row.predictor};
      for (const double error : row.errors) cells.push_back(judged_percent(error));
      metrics.add(cells);
    }
  }
  return fmt::format(
      "\nOther settings that were measured, on workloads of the same families; `figures`: how many of the twelve their "
      "records tell\n{}\n{}",
      means.text(), metrics.text());
}

std::string judged_text(const DripleAccuracy& accuracy) {
  if (accuracy.unjudged.empty()) return "All twelve figures are judged.\n";
  return fmt::format(
      "{} of the twelve figures are judged: these records have the GPU's times from the workers' clocks and do not "
      "tell "
      "{}.\n",
      kDripleMetrics - accuracy.unjudged.size(), driple_list(accuracy.unjudged));
}

std::string studies_text(const std::vector<DripleStudyLine>& lines, const char* study, const char* heading) {
  Table table({"", "trained on", "GPU util.", "GPU memory", "send", "receive", "all", "NRMSE", "epochs", "seconds"});
  bool any = false;
  for (const DripleStudyLine& line : lines) {
    if (line.study != study) continue;
    any = true;
    table.add({line.name, grouped(line.training), judged_percent(line.row.resource_error(0)),
               judged_percent(line.row.resource_error(1)), judged_percent(line.row.resource_error(2)),
               judged_percent(line.row.resource_error(3)), judged_percent(line.row.mean_error()),
               fmt::format("{:.3f}", line.row.nrmse), grouped(line.epochs), fmt::format("{:.0f}", line.seconds)});
  }
  return any ? fmt::format("\n{} (kept results)\n{}", heading, table.text()) : "";
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

std::string parts_heading(const std::vector<DripleStudyLine>& lines) {
  const auto part = std::find_if(lines.begin(), lines.end(), [](const auto& line) { return line.study == "parts"; });
  return part == lines.end() ? "" : "Which parts are tuned in a transfer to " + part->setting;
}

}  // namespace

double DripleRow::resource_error(size_t resource) const {
  return mean_judged(std::span(errors).subspan(3 * resource, 3));
}

double DripleRow::mean_error() const { return mean_judged(errors); }

int64_t DripleRow::judged() const {
  return std::count_if(errors.begin(), errors.end(), [](double error) { return !std::isnan(error); });
}

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
    for (const double error : row.errors) cells.push_back(judged_percent(error));
    metrics.add(cells);
  }
  std::string text = fmt::format(
      "{}: mean percentage errors on {} workloads of families that nothing was trained on\n({}); {} workloads trained "
      "on, of {}\n{}{}{}\n{}{}{}",
      accuracy.setting, accuracy.test, driple_list(accuracy.test_families), accuracy.training, accuracy.source,
      judged_text(accuracy),
      accuracy.divided.empty() ? ""
                               : "No predictor knows how links will be shared: a workload has all its windows, and "
                                 "simulations are averaged.\n",
      means.text(), metrics.text(), divided_text(accuracy), others_text(accuracy));
  if (!accuracy.model_rows.empty()) {
    Table models = driple_table();
    for (const DripleRow& row : accuracy.model_rows) add_driple_row(models, row);
    text += fmt::format("\nUnseen models of seen families: all {} workloads, models left out in {} parts\n{}",
                        accuracy.models, accuracy.model_folds, models.text());
  }
  text += studies_text(accuracy.studies, "samples", "Fewer measured workloads: from the beginning, and pre-trained");
  if (!accuracy.transfers.empty()) text += "\n" + transfer_text(accuracy.transfers, accuracy.published);
  text += studies_text(accuracy.studies, "parts", parts_heading(accuracy.studies).c_str());
  text += studies_text(accuracy.studies, "ablations", "Ablations of Driple's network, each trained alone");
  if (accuracy.sensitivity) text += "\n" + to_text(*accuracy.sensitivity);
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
                                 {"unjudged", accuracy.unjudged},
                                 {"predictors", nlohmann::ordered_json::array()},
                                 {"divided", nlohmann::ordered_json::object()},
                                 {"other_settings", nlohmann::ordered_json::object()},
                                 {"unseen_models", nlohmann::ordered_json::array()},
                                 {"studies", nlohmann::ordered_json::object()},
                                 {"transfers", nlohmann::ordered_json::array()},
                                 {"missing", accuracy.missing}};
  for (const DripleRow& row : accuracy.rows) json["predictors"].push_back(row_json(row));
  for (const DripleDivided& part : accuracy.divided) {
    nlohmann::ordered_json& entry = json["divided"][part.setting];
    entry = {{"training", part.training}, {"test", part.test}, {"predictors", nlohmann::ordered_json::array()}};
    for (const DripleRow& row : part.rows) entry["predictors"].push_back(row_json(row));
  }
  for (const DripleOtherSetting& other : accuracy.others) {
    nlohmann::ordered_json& entry = json["other_settings"][other.setting];
    entry = {{"training", other.training}, {"test", other.test}, {"predictors", nlohmann::ordered_json::array()}};
    for (const DripleRow& row : other.rows) entry["predictors"].push_back(row_json(row));
  }
  if (accuracy.sensitivity) json["sensitivity"] = nlohmann::ordered_json::parse(to_json(*accuracy.sensitivity));
  for (const DripleRow& row : accuracy.model_rows) json["unseen_models"].push_back(row_json(row));
  for (const DripleStudyLine& line : accuracy.studies) {
    nlohmann::ordered_json entry = row_json(line.row);
    entry.erase("predictor");
    entry.erase("note");
    entry["name"] = line.name;
    entry["training"] = line.training;
    entry["epochs"] = line.epochs;
    entry["validation_error"] = line.validation_error;
    entry["seconds"] = line.seconds;
    json["studies"][line.study].push_back(entry);
  }
  for (const DripleTransferRow& row : accuracy.transfers) {
    json["transfers"].push_back({{"setting", row.setting},
                                 {"full_workloads", row.full_workloads},
                                 {"tuned_workloads", row.tuned_workloads},
                                 {"test_workloads", row.test_workloads},
                                 {"full_epochs", row.full_epochs},
                                 {"tuned_epochs", row.tuned_epochs},
                                 {"full_error", row.full_error},
                                 {"tuned_error", row.tuned_error},
                                 {"full_seconds", row.full_seconds},
                                 {"tuned_seconds", row.tuned_seconds}});
  }
  return json.dump();
}

}  // namespace forerun
