#include "lab/training_data/learning_data.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <unordered_set>

#include "base/provenance.h"
#include "lab/dataset/record_example.h"
#include "lab/simulation/simulated_iterations.h"
#include "records/data_configuration.h"
#include "records/data_files.h"
#include "records/data_split.h"

namespace forerun {
namespace {

using learn::Amount;
using learn::Example;
using learn::Split;

void set_targets(const Measurement& measured, learn::Targets& targets) {
  targets.iteration_ms = measured.pipelined_median_ms;
  targets.gpu_busy_ms = measured.gpu_busy_us / 1000;
  targets.peak_bytes = static_cast<double>(measured.peak_allocated.value);
  targets.reserved_bytes = static_cast<double>(measured.peak_reserved.value);
  double busy = 0;
  double gaps = 0;
  for (const double us : measured.op_gpu_us) busy += us;
  for (const double us : measured.op_gap_us) gaps += us;
  // Time of kernels that no op is known for counts as gap, so that all adds up.
  const double idle = std::max(measured.pipelined_median_ms * 1000 - busy, 0.0);
  const double scale = gaps > 0 ? idle / gaps : 0;
  targets.op_us.assign(measured.op_gpu_us.begin(), measured.op_gpu_us.end());
  for (const double us : measured.op_gap_us) targets.gap_us.push_back(static_cast<float>(us * scale));
}

void set_host(const TrainingRun& run, const CostModels& cost_models, Example& example) {
  const HostCalibration& calibration = run.environment.calibration;
  example.host_slowness = host_slowness(cost_models.host.scale, calibration).value_or(0);
  const auto device = cost_models.devices.find(run.environment.gpu);
  if (!device) return;
  const double speed = host_speed(cost_models.host, calibration);
  example.targets.host_us = simulation::predicted_op_times(run, *device, cost_models, speed).host_us;
}

// Reads one file of traces into the data set.
Status add_traces(const std::string& path, Split split, const std::string& gpu, int64_t most_a_model,
                  learn::DataSet& data) {
  auto reader = EtsTraceReader::open(path);
  if (!reader) return reader.error();
  std::map<std::string, int64_t> count;
  while (true) {
    const auto trace = reader->next();
    if (!trace) return trace.error();
    if (!*trace) return {};
    if (most_a_model > 0 && ++count[(*trace)->model] > most_a_model) continue;
    Example example = example_of(**trace, data);
    example.split = split;
    example.device = gpu;
    data.add(std::move(example));
  }
}

}  // namespace

Example example_of(const RunRecord& record, learn::DataSet& data) {
  Example example = learn::example_of(record.run, data);
  if (record.measured) set_targets(*record.measured, example.targets);
  return example;
}

Example example_of(const EtsTrace& trace, learn::DataSet& data) {
  Example example;
  example.id = trace.id;
  example.group = trace.model;
  example.batch = trace.batch;
  example.size = trace.height;
  double busy = 0;
  for (const EtsOp& op : trace.ops) {
    learn::OpRow row;
    row.name = data.intern_name(std::to_string(op.type));
    row.phase = op.phase;
    row.dtype = op.dtype;
    row.set(Amount::flops, op.flops);
    row.set(Amount::bytes_read, op.bytes);  // the authors do not tell reading from writing
    static_assert(EtsOp::kParameters == learn::kHyperParameterCount);
    row.hyper = op.parameters;
    example.ops.push_back(data.intern(row));
    example.targets.op_us.push_back(static_cast<float>(op.gpu_us));
    example.targets.gap_us.push_back(static_cast<float>(op.gap_us));
    busy += op.gpu_us;
  }
  example.targets.iteration_ms = trace.iteration_ms();
  example.targets.gpu_busy_ms = busy / 1000;
  return example;
}

Result<learn::DataSet> load_record_data(const std::vector<std::string>& paths, const FamilySplit& family_split,
                                        const std::function<void(const DataProblem&)>& problem,
                                        const CostModels* cost_models) {
  const auto files = record_files(paths);
  if (!files) return files.error();
  std::vector<std::string> places = *files;
  if (!family_split.split.empty()) places.push_back(family_split.split);
  const auto split = DataSplit::beside(places);
  if (!split) return split.error();
  learn::DataSet data;
  std::unordered_set<std::string> seen;
  const auto take = [&](const RunRecord& record, const DataPlace& /*place*/) {
    const bool measured = record.measured && record.measured->status == RunStatus::ok;
    if (!measured || !record.has_graph || !seen.insert(record.run.id).second) return;
    Example example = example_of(record, data);
    if (cost_models != nullptr) set_host(record.run, *cost_models, example);
    const std::string part = split->part_of(record.run);
    // Parts that have no name here (what-if pairs, near twins) are nothing to train on.
    const auto named = learn::split_named(part);
    example.split = part.empty() ? family_split.unnamed : named.value_or(Split::ood);
    example.kept_back = !part.empty() && !named;
    example.configuration = workload_of(record.run);
    data.add(std::move(example));
  };
  const Status status = scan_files(*files, Fields::everything, {.run = take, .sample = {}, .problem = problem});
  if (!status.ok()) return status.error();
  if (places.size() == files->size()) {
    for (const std::string& file : *files) {  // the split decides what is judged
      const auto beside = std::filesystem::path(file).parent_path() / DataSplit::kFile;
      if (std::filesystem::exists(beside)) places.push_back(beside.string());
    }
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  const auto data_print = fingerprint({places.begin(), places.end()});
  if (!data_print) return data_print.error();
  data.source =
      fmt::format("{} run records of {} files, fingerprint {}", data.examples().size(), files->size(), *data_print);
  return data;
}

Result<learn::DataSet> load_ets_data(const std::string& folder, const std::string& gpu, int64_t most_a_model) {
  learn::DataSet data;
  const std::pair<const char*, Split> parts[] = {{"train", Split::train}, {"eval", Split::test}};
  std::vector<std::filesystem::path> files;
  for (const auto& [name, split] : parts) {
    const auto file = std::filesystem::path(folder) / fmt::format("ets_{}_{}.csv.gz", gpu, name);
    if (!std::filesystem::exists(file)) continue;
    if (const Status status = add_traces(file.string(), split, gpu, most_a_model, data); !status.ok()) {
      return status.error();
    }
    files.push_back(file);
  }
  if (files.empty()) {
    return Error{fmt::format("holds neither ets_{0}_train.csv.gz nor ets_{0}_eval.csv.gz", gpu), folder,
                 "name the folder of the traces with --traces"};
  }
  const auto data_print = fingerprint(files);
  if (!data_print) return data_print.error();
  data.source = fmt::format("traces of the authors of ETS, {}{}, fingerprint {}", gpu,
                            most_a_model > 0 ? fmt::format(", {} of a model at most", most_a_model) : "", *data_print);
  return data;
}

}  // namespace forerun
