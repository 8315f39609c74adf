#include "lab/dataset/few_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/output_file.h"
#include "lab/dataset/kept_rows.h"

namespace forerun::learn {
namespace {

double rounded(double value) { return std::stod(fmt::format("{:.6g}", value)); }

FewRow few_row(const nlohmann::json& json) {
  FewRow row;
  if (json.at("study") != kFewStudy) throw std::invalid_argument("it is of another study");
  json.at("predictor").get_to(row.predictor);
  json.at("start").get_to(row.start);
  json.at("gpu").get_to(row.gpu);
  json.at("learned_from").get_to(row.learned_from);
  json.at("few").get_to(row.few);
  json.at("draws").get_to(row.draws);
  json.at("test").get_to(row.test);
  for (const nlohmann::json& error : json.at("errors")) {
    row.errors.push_back({.epochs = error.at("epochs").get<int64_t>(),
                          .mre = error.at("mre").get<double>(),
                          .least = error.at("least").get<double>(),
                          .most = error.at("most").get<double>()});
  }
  json.at("seconds").get_to(row.seconds);
  json.at("settings").get_to(row.settings);
  json.at("rate").get_to(row.rate);
  json.at("batch").get_to(row.batch);
  json.at("seed").get_to(row.seed);
  json.at("device").get_to(row.device);
  json.at("date").get_to(row.date);
  json.at("data").get_to(row.data);
  return row;
}

// What a table shows together: a GPU, and the GPUs that starts have seen.
using FewTable = std::pair<std::string, std::vector<std::string>>;

std::string few_cell(const FewRow& row, int64_t epochs) {
  const auto found =
      std::find_if(row.errors.begin(), row.errors.end(), [&](const FewError& error) { return error.epochs == epochs; });
  if (found == row.errors.end()) return "-";
  std::string mean = fmt::format("{:.1f} %", 100 * found->mre);
  if (found->least == found->most) return mean;
  return fmt::format("{} ({:.1f} to {:.1f})", mean, 100 * found->least, 100 * found->most);
}

std::string few_table(const std::vector<const FewRow*>& rows) {
  std::set<int64_t> epochs;
  for (const FewRow* row : rows) {
    for (const FewError& error : row->errors) epochs.insert(error.epochs);
  }
  std::string text = fmt::format("  {:<8} {:>6}", "start", "traces");
  for (const int64_t count : epochs) text += fmt::format(" {:>24}", fmt::format("{} epochs", count));
  text += "\n";
  for (const FewRow* row : rows) {
    text += fmt::format("  {:<8} {:>6}", row->start, row->few);
    for (const int64_t count : epochs) text += fmt::format(" {:>24}", few_cell(*row, count));
    text += "\n";
  }
  return text;
}

}  // namespace

std::string to_json_line(const FewRow& row) {
  nlohmann::ordered_json errors = nlohmann::ordered_json::array();
  for (const FewError& error : row.errors) {
    errors.push_back({{"epochs", error.epochs},
                      {"mre", rounded(error.mre)},
                      {"least", rounded(error.least)},
                      {"most", rounded(error.most)}});
  }
  const nlohmann::ordered_json json = {{"study", kFewStudy},
                                       {"predictor", row.predictor},
                                       {"start", row.start},
                                       {"gpu", row.gpu},
                                       {"learned_from", row.learned_from},
                                       {"few", row.few},
                                       {"draws", row.draws},
                                       {"test", row.test},
                                       {"errors", errors},
                                       {"seconds", rounded(row.seconds)},
                                       {"settings", row.settings},
                                       {"rate", row.rate},
                                       {"batch", row.batch},
                                       {"seed", row.seed},
                                       {"device", row.device},
                                       {"date", row.date},
                                       {"data", row.data}};
  return json.dump();
}

Result<std::vector<FewRow>> read_few_rows(const std::string& path) {
  return read_kept_rows<FewRow>(path, [](const std::string& line) -> Result<FewRow> {
    try {
      return few_row(nlohmann::json::parse(line));
    } catch (const std::exception& error) {
      return Error{std::string("is no row of the study of few traces: ") + error.what(), "",
                   "remove the line, or run the study again"};
    }
  });
}

Status keep_few_rows(const std::string& path, const std::vector<FewRow>& rows) {
  auto kept = read_few_rows(path);
  if (!kept) return kept.error();
  const auto question = [](const FewRow& row) {
    return std::tie(row.predictor, row.start, row.gpu, row.learned_from, row.settings, row.few);
  };
  for (const FewRow& row : rows) {
    const auto same =
        std::find_if(kept->begin(), kept->end(), [&](const FewRow& each) { return question(each) == question(row); });
    if (same == kept->end()) {
      kept->push_back(row);
    } else {
      *same = row;
    }
  }
  std::string lines;
  for (const FewRow& row : *kept) lines += to_json_line(row) + "\n";
  return write_whole_file(path, lines);
}

std::string to_text(const std::vector<FewRow>& rows) {
  std::map<FewTable, std::vector<const FewRow*>> tables;
  for (const FewRow& row : rows) {
    if (row.start != kScratchStart) tables[{row.gpu, row.learned_from}].push_back(&row);
  }
  for (const FewRow& row : rows) {  // from nothing: beside all starts of its GPU
    if (row.start != kScratchStart) continue;
    bool any = false;
    for (auto& [key, table] : tables) {
      if (key.first != row.gpu || key.second.empty()) continue;
      table.push_back(&row);
      any = true;
    }
    if (!any) tables[{row.gpu, {}}].push_back(&row);
  }
  std::string text;
  for (auto& [key, table] : tables) {
    std::stable_sort(table.begin(), table.end(), [](const FewRow* a, const FewRow* b) { return a->few < b->few; });
    const FewRow& first = *table.front();
    text +=
        fmt::format("{}, {} test iterations: error of {} by epochs on a few of its traces ({} draws, least to most)\n",
                    first.gpu, first.test, first.predictor, first.draws);
    if (!key.second.empty()) text += fmt::format("  starts have seen {}\n", fmt::join(key.second, ", "));
    text += few_table(table);
  }
  return text;
}

}  // namespace forerun::learn
