#include "lab/training_data/driple_data.h"

#include <algorithm>
#include <set>

#include "api/scale_resources.h"
#include "base/data_dir.h"
#include "base/nearest.h"
#include "ingest/resources/link_state.h"
#include "lab/training_data/driple_builder.h"
#include "lab/training_data/driple_simulated.h"
#include "records/data_files.h"
#include "records/data_split.h"
#include "testbed/resource_setting.h"

namespace forerun {
namespace {

constexpr const char* kTestbedGpu = "h200";

}  // namespace

Result<learn::ResourceData> load_driple_data(const DripleDataOptions& options, const CostModels& cost_models) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  std::vector<std::string> paths = options.records;
  if (paths.empty()) paths.push_back((*folder / kResourceRecords).string());
  const auto files = record_files(paths);
  if (!files) return files.error();
  const auto device = cost_models.devices.find(kTestbedGpu);
  if (!device) return device.error();
  auto split = DataSplit::beside({(*folder / "h200" / DataSplit::kFile).string()});
  if (!split) return split.error();
  const auto rates = testbed_rates();
  if (!rates) return rates.error();
  DripleWorkloadBuilder builder(cost_models, *device, *rates, std::move(*split));
  ResourceReader reader;
  const auto tell = [&](const Error& error) {
    if (options.problem) options.problem(error);
  };
  std::vector<ResourceRecord> records;
  for (const std::string& file : *files) {
    const Status status = reader.read(
        file, [&](ResourceRecord&& record) { records.push_back(std::move(record)); }, tell);
    if (!status.ok()) return status.error();
  }
  mark_links(records, [&](const std::string& family) { return builder.trains_on(family); });
  for (const ResourceRecord& record : records) {
    if (const Status status = builder.add_measured(record); !status.ok()) tell(status.error().within(record.id));
  }
  const size_t measured = builder.data().workloads.size();
  if (measured == 0) {
    return Error{"there is no resources/1 record to learn from", paths[0], "name files of forerun.testbed with --data"};
  }
  if (options.simulated > 0) add_simulated_workloads(records, options.simulated, options.seed, builder);
  learn::ResourceData data = std::move(builder).finish();
  data.source = std::to_string(measured) + " workloads measured by forerun.testbed in " +
                std::to_string(records.size()) + " windows";
  return data;
}

std::vector<std::string> measured_settings(const learn::ResourceData& data) {
  std::set<std::string> settings;
  for (const learn::ResourceWorkload& workload : data.workloads) {
    if (workload.setting.rfind(learn::kSimulatedPrefix, 0) != 0) settings.insert(workload.setting);
  }
  return {settings.begin(), settings.end()};
}

Status check_setting_name(const std::string& setting) {
  const size_t link = setting.find('-');
  const size_t suffix = link == std::string::npos ? link : setting.find('-', link + 1);  // "-even": its own table
  const auto known = scale::resource_setting(std::string_view(setting).substr(0, suffix));
  if (known) return {};
  return Error{known.error().what, "--setting", known.error().remedy};
}

Status check_measured(const learn::ResourceData& data, const std::string& setting) {
  const std::vector<std::string> settings = measured_settings(data);
  if (std::find(settings.begin(), settings.end(), setting) != settings.end()) return {};
  return Error{"no record is of the setting '" + setting + "'", "--setting", did_you_mean(setting, settings)};
}

}  // namespace forerun
