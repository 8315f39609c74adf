#include "lab/dataset/driple/driple_rows.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/output_file.h"
#include "lab/dataset/kept_rows.h"

namespace forerun::learn {
namespace {

namespace fs = std::filesystem;

ResourceStudyRow study_row(const nlohmann::json& json) {
  ResourceStudyRow row;
  json.at("study").get_to(row.study);
  json.at("name").get_to(row.name);
  json.at("setting").get_to(row.setting);
  json.at("training").get_to(row.training);
  json.at("test").get_to(row.test);
  json.at("epochs").get_to(row.epochs);
  const nlohmann::json& errors = json.at("errors");
  for (size_t m = 0; m < row.errors.size(); ++m) {
    const nlohmann::json& error = errors.at(m);
    row.errors[m] = error.is_null() ? std::numeric_limits<double>::quiet_NaN() : error.get<double>();  // not judged
  }
  json.at("nrmse").get_to(row.nrmse);
  json.at("validation_error").get_to(row.validation_error);
  json.at("seconds").get_to(row.seconds);
  json.at("pretraining_seconds").get_to(row.pretraining_seconds);
  return row;
}

}  // namespace

std::string to_json_line(const ResourceStudyRow& row) {
  const nlohmann::ordered_json json = {{"study", row.study},
                                       {"name", row.name},
                                       {"setting", row.setting},
                                       {"training", row.training},
                                       {"test", row.test},
                                       {"epochs", row.epochs},
                                       {"errors", row.errors},
                                       {"nrmse", row.nrmse},
                                       {"validation_error", row.validation_error},
                                       {"seconds", row.seconds},
                                       {"pretraining_seconds", row.pretraining_seconds}};
  return json.dump();
}

Result<std::vector<ResourceStudyRow>> read_study_rows(const std::string& folder) {
  const std::string path = (fs::path(folder) / kStudiesFile).string();
  return read_kept_rows<ResourceStudyRow>(path, [](const std::string& line) -> Result<ResourceStudyRow> {
    try {
      return study_row(nlohmann::json::parse(line));
    } catch (const nlohmann::json::exception& error) {
      return Error{std::string("is no row of a study: ") + error.what(), "", "remove the line, or run the study again"};
    }
  });
}

Status write_study_rows(const std::string& folder, const std::vector<ResourceStudyRow>& rows) {
  auto kept = read_study_rows(folder);
  if (!kept) return kept.error();
  const auto key = [](const ResourceStudyRow& row) { return std::tie(row.study, row.setting, row.name); };
  for (const ResourceStudyRow& row : rows) {
    const auto same = std::find_if(kept->begin(), kept->end(), [&](const auto& each) { return key(each) == key(row); });
    if (same == kept->end()) {
      kept->push_back(row);
    } else {
      *same = row;
    }
  }
  std::string lines;
  for (const ResourceStudyRow& row : *kept) lines += to_json_line(row) + "\n";
  return write_whole_file((fs::path(folder) / kStudiesFile).string(), lines);
}

}  // namespace forerun::learn
