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

#include "cluster/sources/csv_rows.h"
#include "cluster/sources/sources.h"
#include "cluster/sources/tar_members.h"

namespace forerun::cluster {
namespace {

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

struct Placement {
  int32_t gpus = 0, nodes = 0;
};

// "31": three GPUs on one node and one on another.
std::optional<Placement> parse_placement(const std::string& text) {
  Placement placement;
  for (const char c : text) {
    if (c < '1' || c > '9') return std::nullopt;
    placement.gpus += c - '0';
    ++placement.nodes;
  }
  return placement.gpus == 0 ? std::nullopt : std::optional(placement);
}

Status add_times(const TarMember& member, SpeedTable& table) {
  CsvRows rows(LineReader::from_text(member.text, member.name), ',');
  if (Status status = rows.begin(); !status) return status;
  const auto placement = rows.column("placement");
  const auto batch = rows.need("local_bsz");
  const auto step = rows.need("step_time");
  const auto sync = rows.need("sync_time");
  for (const auto* column : {&batch, &step, &sync}) {
    if (!*column) return column->error();
  }
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) return {};
    std::optional<Placement> place;
    if (placement) {
      place = parse_placement(rows.cell(placement));
    } else {
      const auto nodes = parse_integer(rows.cell(rows.column("num_nodes")));
      const auto gpus = parse_integer(rows.cell(rows.column("num_replicas")));
      if (nodes && gpus && *nodes > 0 && *gpus >= *nodes && *gpus <= 100'000) {
        place = Placement{static_cast<int32_t>(*gpus), static_cast<int32_t>(*nodes)};
      }
    }
    const auto local = parse_number(rows.cell(*batch));
    const auto seconds = parse_number(rows.cell(*step));
    const auto communication = parse_number(rows.cell(*sync));
    if (!place || !local || !(*local >= 1) || !seconds || !(*seconds > 0 && *seconds < 1e6) || !communication) {
      return Error{"no step time: placement, batch or seconds cannot be read",
                   fmt::format("{}:{}", member.name, rows.line()), "name Pollux' step_times.tar.gz by --throughputs"};
    }
    table.add(place->gpus, place->nodes, *local, *seconds, *communication);
  }
}

using Tables = std::map<std::string, SpeedTable>;

// traces/APPLICATION/placements.csv and scalability.csv.
Result<Tables> read_tables(const std::vector<TarMember>& members, const std::string& name) {
  Tables tables;
  for (const TarMember& member : members) {
    const std::filesystem::path path(member.name);
    if (path.extension() != ".csv") continue;
    const std::string application = path.parent_path().filename().string();
    if (Status status = add_times(member, tables[application]); !status) return status.error().within(name);
  }
  for (auto& [application, table] : tables) table.finish();
  return tables;
}

Status add_pollux_row(const CsvRows& rows, const Tables& tables, JobCollector& jobs,
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
  const auto table = tables.find(kind);
  const auto replicas = static_cast<int32_t>(*gpus);
  const auto step = application == nullptr || table == tables.end()
                        ? std::nullopt
                        : table->second.step(replicas, (replicas + 3) / 4, *batch);
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
  const auto tables = read_tables(step_times, name);
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
  auto speeds = std::make_shared<SpeedModel>();
  for (const std::string& kind : loaded->workload.kinds) speeds->tables.push_back(tables->at(kind));
  for (const std::string& id : loaded->workload.ids) speeds->batch.push_back(batches[id]);
  loaded->workload.speeds = std::move(speeds);
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
