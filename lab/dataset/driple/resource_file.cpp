#include "lab/dataset/driple/resource_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lab/dataset/weights_files.h"

namespace forerun::learn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kResourceFileRemedy = "write it again with `forerun train driple --write-cache FILE`";

nlohmann::json workload_json(const ResourceWorkload& workload) {
  return {{"id", workload.id},
          {"family", workload.family},
          {"model", workload.model},
          {"setting", workload.setting},
          {"mode", workload.mode},
          {"labels", kLabelNames[static_cast<size_t>(workload.labels)]},
          {"judged", workload.judged},
          {"split", name_of(workload.split)},
          {"example", workload.example},
          {"globals", workload.globals},
          {"columns", workload.columns},
          {"simulated", workload.simulated},
          {"formulas", workload.formulas},
          {"windows", workload.windows}};
}

bool all_finite(const std::vector<float>& values) {
  for (const float value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// Throws what nlohmann-json throws where a field is missing or of another kind.
std::string read_workload(const nlohmann::json& json, size_t examples, ResourceWorkload& workload) {
  json.at("id").get_to(workload.id);
  json.at("family").get_to(workload.family);
  json.at("model").get_to(workload.model);
  json.at("setting").get_to(workload.setting);
  json.at("mode").get_to(workload.mode);
  const auto labels = std::find(kLabelNames.begin(), kLabelNames.end(), json.at("labels").get<std::string>());
  if (labels == kLabelNames.end()) return "the source of labels is unknown";
  workload.labels = static_cast<Labels>(labels - kLabelNames.begin());
  json.at("judged").get_to(workload.judged);
  const auto split = split_named(json.at("split").get<std::string>());
  if (!split) return "a split is unknown";
  workload.split = *split;
  json.at("example").get_to(workload.example);
  if (workload.example >= examples) return "a workload names an iteration that is not there";
  json.at("globals").get_to(workload.globals);
  json.at("columns").get_to(workload.columns);
  if (!all_finite(workload.globals) || !all_finite(workload.columns)) return "a number is not finite";
  json.at("simulated").get_to(workload.simulated);
  json.at("formulas").get_to(workload.formulas);
  for (const nlohmann::json& window : json.at("windows")) add_window(workload, window.get<ResourceMetrics>());
  return "";
}

}  // namespace

Status save_resource_data(const ResourceData& data, const std::string& path) {
  if (Status status = data.iterations.save(path); !status.ok()) return status;
  nlohmann::json json = {
      {"source", data.source}, {"columns", data.column_names}, {"workloads", nlohmann::json::array()}};
  for (const ResourceWorkload& workload : data.workloads) json["workloads"].push_back(workload_json(workload));
  const fs::path beside = path + ".json";
  return write_json(beside.has_parent_path() ? beside.parent_path().string() : ".", beside.filename().string(), json);
}

Result<ResourceData> load_resource_data(const std::string& path) {
  auto iterations = DataSet::load(path);
  if (!iterations) return iterations.error();
  const fs::path beside = path + ".json";
  const auto json = read_json(beside.has_parent_path() ? beside.parent_path().string() : ".",
                              beside.filename().string(), {"source", "columns", "workloads"});
  if (!json) return json.error();
  ResourceData data;
  data.iterations = std::move(*iterations);
  try {
    json->at("source").get_to(data.source);
    json->at("columns").get_to(data.column_names);
    for (const nlohmann::json& entry : json->at("workloads")) {
      ResourceWorkload workload;
      const std::string fault = read_workload(entry, data.iterations.examples().size(), workload);
      const bool alike = data.workloads.empty() || (workload.globals.size() == data.workloads[0].globals.size() &&
                                                    workload.columns.size() == data.workloads[0].columns.size());
      if (!fault.empty() || !alike) {
        return Error{fault.empty() ? "workloads differ in their columns" : fault, beside.string(), kResourceFileRemedy};
      }
      data.workloads.push_back(std::move(workload));
    }
  } catch (const nlohmann::json::exception& error) {
    return Error{std::string("it is not what was written: ") + error.what(), beside.string(), kResourceFileRemedy};
  }
  return data;
}

}  // namespace forerun::learn
