// Pollux' workloads: jobs that name an application, a batch and the GPUs their users asked for.
//
//   name,time,application,num_replicas,batch_size
//   cifar10-0,131,cifar10,8,2048
//
// How long they take comes from step times measured on T4 GPUs by placement and batch (step_times.tar.gz beside the
// workloads, or --throughputs), and from how many steps they need to the accuracy wanted, which large batches need more of
// than epochs x samples / batch. These are the steps of Pollux' own simulator: completion times under Tiresias that its
// authors published with it (petuum/adaptdl, branch osdi21-artifact, simulator/results-jobload/tiresias-1.0/summary.json),
// of jobs that nobody disturbed, less the round and the 30 s of starting, over the step. Jobs of imagenet are always
// disturbed; theirs are chosen so that the three of workload 6 end when they did. A batch that is not listed trains as many
// samples as the one nearest to it. Jobs are elastic, from 1 GPU to twice what was asked for; a step keeps its total batch.
// Left out: how Pollux adapts batch and learning rate.
//
// FILE is one workload, or the archive of all of them with --member workload-1.csv.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
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

struct StepsToGo {
  double batch;
  double steps;
};
struct Application {
  const char* name;
  double most_at_once;  // samples that a GPU passes; 0: as many as were measured
  std::array<StepsToGo, 2> steps;
};
constexpr Application kApplications[] = {
    {"bert", 0, {{{384, 479}, {384, 479}}}},          {"cifar10", 0, {{{2048, 3357}, {4096, 2173}}}},
    {"deepspeech2", 0, {{{320, 2270}, {640, 1370}}}}, {"imagenet", 0, {{{3200, 42600}, {6400, 25000}}}},
    {"ncf", 16384, {{{32768, 1588}, {32768, 1588}}}}, {"yolov3", 8, {{{64, 15973}, {64, 15973}}}}};

double steps_with(const Application& application, double batch) {
  const auto& [small, large] = application.steps;
  const bool nearer_large = std::abs(std::log(batch / large.batch)) <= std::abs(std::log(batch / small.batch));
  const StepsToGo& known = nearer_large ? large : small;
  return known.steps * known.batch / batch;
}

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
  row.durations = {time_from_seconds(steps_with(*application, *batch) * *step)};
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
  auto tables = StepTables::read(step_times, name);
  if (!tables) return tables.error();
  for (const Application& application : kApplications) {
    if (application.most_at_once > 0) tables->limit_batch(application.name, application.most_at_once);
  }
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
  loaded->made = {"steps: those of Pollux' own simulator, by its published completion times",
                  "elastic from 1 GPU to twice those asked for"};
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
