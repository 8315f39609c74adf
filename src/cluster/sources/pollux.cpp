// Pollux' workloads: jobs that name an application, a batch and the GPUs their users asked for.
//
//   name,time,application,num_replicas,batch_size
//   cifar10-0,131,cifar10,8,2048
//
// How long they take comes from step times measured on T4 GPUs by placement and batch (step_times.tar.gz beside the
// workloads, or --throughputs): steps = epochs x samples / batch. Epochs and samples of the six applications are those of
// their usual training recipes, from memory, not from the trace. Jobs are elastic, from 1 GPU to twice what was asked for;
// a step keeps its total batch. Left out: how Pollux adapts batch and learning rate.
//
// FILE is one workload, or the archive of all of them with --member workload-1.csv.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/csv_rows.h"
#include "cluster/sources/cell_values.h"
#include "cluster/sources/sources.h"
#include "cluster/sources/step_tables.h"
#include "cluster/sources/tar_members.h"

namespace forerun::cluster {
namespace {

constexpr const char* kPolluxType = "t4";
constexpr const char* kPolluxRemedy = "correct the row, or pass --lenient to leave such rows out";

struct Application {
  const char* name;
  double samples;
  double epochs;
};
constexpr Application kApplications[] = {{"bert", 88641, 2},        {"cifar10", 50000, 100}, {"deepspeech2", 948, 80},
                                         {"imagenet", 1281167, 90}, {"ncf", 4970845, 10},    {"yolov3", 16551, 50}};

const Application* find_application(const std::string& name) {
  for (const Application& application : kApplications) {
    if (name == application.name) return &application;
  }
  return nullptr;
}

Status add_pollux_row(const CsvRows& rows, const StepTables& tables, JobCollector& jobs,
                      std::map<std::string, double>& batches) {
  const std::string& kind = rows.cell(2);
  const auto time = parse_seconds(rows.cell(1));
  const auto gpus = parse_integer(rows.cell(3));
  const auto batch = parse_number(rows.cell(4));
  const bool sound =
      rows.complete() && time && gpus && *gpus >= 1 && *gpus <= 100'000 && batch && *batch >= 1 && *batch <= 1e9;
  if (!sound)
    return jobs.reject(Fault::malformed, rows.line(), "time, replicas or batch are no numbers", kPolluxRemedy);
  const Application* application = find_application(kind);
  const SpeedTable* table = tables.find(kind, kPolluxType);
  const auto replicas = static_cast<int32_t>(*gpus);
  const int32_t nodes = (replicas + kMeasuredGpusPerNode - 1) / kMeasuredGpusPerNode;
  const auto step = application == nullptr || table == nullptr ? std::nullopt : table->step(replicas, nodes, *batch);
  if (!step) {
    return jobs.reject(Fault::no_duration, rows.line(), fmt::format("no step times are known for '{}'", kind),
                       kPolluxRemedy);
  }
  JobRow row;
  row.id = rows.cell(0);
  row.kind = kind;
  row.job.arrival = *time;
  row.job.gpus = replicas;
  row.job.least_gpus = 1;
  row.job.most_gpus = 2 * replicas;
  row.durations = {time_from_seconds(application->epochs * application->samples / *batch * *step)};
  batches[row.id] = *batch;
  return jobs.add(std::move(row), rows.line());
}

std::string find_step_times(const std::string& workload) {
  const std::filesystem::path folder = std::filesystem::absolute(workload).parent_path();
  for (const auto& place : {folder, folder.parent_path()}) {
    std::error_code ignored;
    if (std::filesystem::exists(place / "step_times.tar.gz", ignored)) return (place / "step_times.tar.gz").string();
  }
  return "";
}

}  // namespace

Result<LoadedJobs> load_pollux_with(LineReader reader, const std::vector<TarMember>& step_times,
                                    const std::string& name, const LoadOptions& options) {
  const auto tables = StepTables::read(step_times, name);
  if (!tables) return tables.error();
  CsvRows rows(std::move(reader), ',');
  if (Status status = rows.begin(); !status) return status.error();
  const std::vector<std::string> wanted = {"name", "time", "application", "num_replicas", "batch_size"};
  if (rows.heading() != wanted) {
    return Error{"the heading is not that of a Pollux workload", rows.name() + ":1",
                 fmt::format("it should be {}", fmt::join(wanted, ","))};
  }
  JobCollector jobs(rows.name(), options, {});
  std::map<std::string, double> batches;
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) break;
    if (Status status = add_pollux_row(rows, *tables, jobs, batches); !status) return status.error();
  }
  auto loaded = jobs.finish(TieOrder::source);
  if (!loaded) return loaded;
  std::vector<double> batch;
  for (const std::string& id : loaded->workload.ids) batch.push_back(batches[id]);
  loaded->workload.speeds =
      std::make_shared<SpeedModel>(tables->speeds(loaded->workload.kinds, {kPolluxType}, std::move(batch)));
  loaded->real = {"submission", "application", "GPUs asked for", "batch", "step times by placement"};
  loaded->made = {"epochs and samples: usual recipes, from memory", "elastic from 1 GPU to twice those asked for"};
  return loaded;
}

Result<LoadedJobs> load_pollux(LineReader reader, const LoadOptions& options) {
  const std::string file = options.companion.empty() ? find_step_times(reader.name()) : options.companion;
  if (file.empty()) {
    return Error{"the step times are not beside the workload", reader.name(),
                 "name Pollux' step_times.tar.gz by --throughputs"};
  }
  const auto step_times = read_tar(file);
  if (!step_times) return step_times.error();
  if (reader.name().find(".tar") == std::string::npos) {
    return load_pollux_with(std::move(reader), *step_times, file, options);
  }
  const auto members = read_tar(reader.name());
  if (!members) return members.error();
  std::vector<std::string> names;
  for (const TarMember& member : *members) {
    names.push_back(std::filesystem::path(member.name).filename().string());
    if (!options.member.empty() && (names.back() == options.member || member.name == options.member)) {
      return load_pollux_with(LineReader::from_text(member.text, member.name), *step_times, file, options);
    }
  }
  return Error{options.member.empty() ? "the archive holds several workloads"
                                      : fmt::format("no '{}' is in the archive", options.member),
               reader.name(), fmt::format("name one by --member: {}", fmt::join(names, ", "))};
}

}  // namespace forerun::cluster
