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
constexpr const char* kBaseSetting = "P1w2-10G";

// The base setting's workloads as they would be in others.
Status add_unmeasured_settings(const std::vector<std::string>& names, const std::vector<ResourceRecord>& records,
                               DripleWorkloadBuilder& builder) {
  for (const std::string& name : names) {
    if (std::any_of(records.begin(), records.end(), [&](const auto& record) { return record.setting == name; }))
      continue;
    const auto setting = scale::resource_setting(name);
    if (!setting) return setting.error();
    const bool ring = setting->servers == 0;
    const size_t each = ring ? 1 : 3;  // one in so many: about as many workloads as others were measured with
    std::set<std::string> taken;
    for (const ResourceRecord& base : records) {
      if (base.setting != kBaseSetting || base.tcp == "default" || (ring && base.mode != "sync")) continue;
      if (!taken.insert(base.id).second || taken.size() % each != 1 % each) continue;
      ResourceRecord record = base;
      record.setting = name;
      record.mode = ring ? "allreduce" : base.mode;
      record.servers = setting->servers;
      record.workers = setting->workers;
      record.bits_per_second = setting->bits_per_second;
      record.links = LinksSeen::one;
      if (Status status = builder.add_unmeasured(record); !status.ok()) return status;
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> thirteen_settings() {
  return {"P1w2-10G", "P1w2-1G",  "P1w2-40G",  "P2w2-10G", "P2w2-40G", "P1w4-10G", "P2w4-10G",
          "P4w4-10G", "P2w4-40G", "P5w10-40G", "AR2-10G",  "AR4-10G",  "AR8-40G"};
}

Result<std::vector<ResourceRecord>> driple_records(const DripleDataOptions& options) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  std::vector<std::string> paths = options.records;
  if (paths.empty()) paths.push_back((*folder / kResourceRecords).string());
  const auto files = record_files(paths);
  if (!files) return files.error();
  ResourceReader reader;
  std::vector<ResourceRecord> records;
  for (const std::string& file : *files) {
    const Status status = reader.read(
        file, [&](ResourceRecord&& record) { records.push_back(std::move(record)); },
        [&](const Error& error) {
          if (options.problem) options.problem(error);
        });
    if (!status.ok()) return status.error();
  }
  if (records.empty()) {
    return Error{"there is no resources/1 record to learn from", paths[0], "name files of forerun.testbed with --data"};
  }
  return records;
}

Result<learn::ResourceData> load_driple_data(const DripleDataOptions& options, const CostModels& cost_models) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  auto read = driple_records(options);
  if (!read) return read.error();
  std::vector<ResourceRecord>& records = *read;
  const auto device = cost_models.devices.find(kTestbedGpu);
  if (!device) return device.error();
  auto split = DataSplit::beside({(*folder / "h200" / DataSplit::kFile).string()});
  if (!split) return split.error();
  const auto rates = testbed_rates();
  if (!rates) return rates.error();
  DripleWorkloadBuilder builder(cost_models, *device, *rates, std::move(*split), options.gpu_times);
  mark_links(records, [&](const std::string& family) { return builder.trains_on(family); });
  builder.learn_link_states(records);
  for (const ResourceRecord& record : records) {
    if (options.gpu_times == GpuTimes::kernels && record.measured.gpu_times != GpuTimes::kernels) continue;
    Status status = builder.add_measured(record);
    if (status.ok()) status = builder.add_divided(record);
    if (!status.ok() && options.problem) options.problem(status.error().within(record.id));
  }
  const std::vector<learn::ResourceWorkload>& made = builder.data().workloads;
  const auto measured = std::count_if(made.begin(), made.end(), [](const learn::ResourceWorkload& workload) {
    return workload.labels == learn::Labels::measured;
  });
  if (measured == 0) return Error{"no record could be built", "", "see what was told of each"};
  if (const Status status = add_unmeasured_settings(options.unmeasured, records, builder); !status.ok()) {
    return status.error();
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
    if (workload.labels == learn::Labels::measured) settings.insert(workload.setting);
  }
  return {settings.begin(), settings.end()};
}

std::vector<std::string> judged_settings(const learn::ResourceData& data) {
  std::set<std::string> settings;
  for (const learn::ResourceWorkload& workload : data.workloads) {
    if (workload.labels == learn::Labels::divided) continue;
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
  std::set<std::string> settings;
  for (const learn::ResourceWorkload& workload : data.workloads) {
    if (workload.labels != learn::Labels::simulated) settings.insert(workload.setting);
  }
  if (settings.contains(setting)) return {};
  return Error{"no record is of the setting '" + setting + "'", "--setting",
               did_you_mean(setting, {settings.begin(), settings.end()})};
}

}  // namespace forerun
