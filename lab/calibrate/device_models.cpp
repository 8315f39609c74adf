#include "lab/calibrate/device_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/csv_cells.h"
#include "base/json_file.h"
#include "base/line_reader.h"
#include "cost/analytic/analytic.h"
#include "memory/iteration_replay.h"
#include "predict/predict.h"
#include "timeline/host_gpu_timeline.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kForward = "forward";
constexpr const char* kForwardBackward = "forward, backward";

// "bert_large-train-512-8.json": model, what, length, batch.
std::optional<OtherGpuRun> run_named(const std::string& stem) {
  std::string commas = stem;
  std::replace(commas.begin(), commas.end(), '-', ',');
  const std::vector<std::string> parts = csv_cells(commas);
  if (parts.size() != 4 || (parts[1] != "train" && parts[1] != "inf")) return std::nullopt;
  OtherGpuRun run{.model = parts[0], .what = parts[1] == "train" ? kForwardBackward : kForward};
  if (!parse_cell(parts[2], run.length) || !parse_cell(parts[3], run.batch)) return std::nullopt;
  return run;
}

// The model of the zoo that a configuration of NeuSight is, an Error where there is none.
Result<ModelRequest> request_of(const fs::path& configuration, const OtherGpuRun& run) {
  Result<JsonObject> file = JsonObject::read(configuration);
  if (!file) return file.error();
  const std::string type = file->text("model_type");
  const auto setting = [&](const std::string& field) { return fmt::format("{}", file->integer(field)); };
  ModelRequest request;
  request.model = type;
  request.batch = run.batch;
  request.setup.precision = Precision::fp32;
  if (type == "bert") {
    request.settings = {{"hidden", setting("hidden_size")},
                        {"layers", setting("num_hidden_layers")},
                        {"heads", setting("num_attention_heads")},
                        {"intermediate", setting("intermediate_size")},
                        {"positions", setting("max_position_embeddings")},
                        {"vocab", setting("vocab_size")},
                        {"head", run.what == kForward ? "classifier" : "mlm"}};
  } else if (type == "gpt2") {
    request.settings = {{"width", setting("n_embd")},
                        {"layers", setting("n_layer")},
                        {"heads", setting("n_head")},
                        {"positions", setting("n_positions")},
                        {"vocab", setting("vocab_size")}};
  } else {
    return Error{fmt::format("the zoo has no {}", type), configuration.string(), ""};
  }
  if (!file->status().ok()) return file->status().error();
  request.settings.emplace_back("length", fmt::format("{}", run.length));
  request.settings.emplace_back("attention", "eager");
  if (run.what == kForward) request.settings.emplace_back("dropout", "0");
  return request;
}

// What a call of cudaMalloc keeps the host, from passes on an H200 with and without an emptied cache.
constexpr Nanoseconds kDriverAllocation(130'000);

// Segments that the allocator asks the driver for, by op, when an iteration starts with none to spare.
std::vector<int> driver_allocations(const TrainingRun& run, const Device& device, const CostModels& cost_models) {
  std::vector<int> allocations(run.graph.op_count());
  int64_t reserved = 0;
  IterationReplayOptions options;
  options.iterations = 1;
  options.cublas_workspace = device.blas_workspace;
  options.temporaries.workspaces = &cost_models.workspaces;
  options.observe = [&](const ReplayEvent& event) {
    if (event.reserved > reserved && event.op.valid()) ++allocations[event.op.value];
    reserved = event.reserved;
  };
  replay_iterations(run.graph, options);
  return allocations;
}

// Adding a gradient to the one of the pass before reads both and writes one.
LaneOp accumulation(Bytes parameter, const Device& device, const CostModels& cost_models) {
  constexpr double kReach = 0.85;  // of the bandwidth, by plain element-wise ops
  const double seconds = 3 * static_cast<double>(parameter.value) / (kReach * device.memory_bandwidth);
  const Nanoseconds gpu = Nanoseconds(std::llround(seconds * 1e9)) + cost_models.analytic.kernel_floor;
  return {.host = cost_models.host.of(Phase::backward, OpClass::elementwise),
          .gpu = gpu,
          .kernels = 1,
          .phase = Phase::backward,
          .bound = Bound::memory};
}

// The passes as NeuSight timed them: each on its own, without the loss between them; the allocator's cache emptied before, so
// that a forward pass that keeps its activations asks the driver for their memory; gradients added up over iterations.
double passes_ms(const TrainingRun& run, const Device& device, const CostModels& cost_models, bool trains) {
  const std::vector<OpCost> costs = gpu_costs(run, device, cost_models);
  const HostCosts host = host_costs(run.graph, costs, cost_models.host);
  const std::vector<LaneOp> lanes = lane_ops(run.graph, costs, host);
  const std::vector<int> allocations =
      trains ? driver_allocations(run, device, cost_models) : std::vector<int>(lanes.size());
  std::vector<LaneOp> forward;
  std::vector<LaneOp> backward;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const Op& op = run.graph.ops()[i];
    if (op.phase == Phase::update || (op.phase == Phase::forward && is_loss(run.graph, op))) continue;
    (op.phase == Phase::forward ? forward : backward).push_back(lanes[i]);
    if (op.phase == Phase::forward) forward.back().host += kDriverAllocation * allocations[i];
  }
  for (const TensorId parameter : run.graph.parameters()) {
    backward.push_back(accumulation(run.graph.bytes_of(parameter), device, cost_models));
  }
  const LaneSetup setup{.gap = device.launch_gap, .per_iteration = Nanoseconds()};
  double ms = milliseconds(host_gpu_timeline(forward, setup).iteration);
  if (trains) ms += milliseconds(host_gpu_timeline(backward, setup).iteration);
  return ms;
}

Result<OtherGpuRun> predicted_run(const fs::path& label, const fs::path& configurations, const Device& device,
                                  const CostModels& cost_models) {
  auto run = run_named(label.stem().string());
  if (!run) return Error{"the name tells no model, length and batch", label.string(), ""};
  Result<JsonObject> file = JsonObject::read(label);
  if (!file) return file.error();
  run->gpu = device.name;
  run->source = kNeuSight;
  run->measured_ms = file->number("fw_latency") + file->number("bwall_latency", Sign::not_negative);
  if (!file->status().ok()) return file->status().error();
  const auto request = request_of(configurations / (run->model + ".json"), *run);
  if (!request) return request.error();
  const auto built = build_run(*request, device);
  if (!built) return built.error();
  const bool trains = run->what != kForward;
  run->predicted_ms = passes_ms(*built, device, cost_models, trains);
  run->roofline_ms = roofline_ms(*built, device, [&](const Graph& graph, const Op& op) {
    if (op.phase == Phase::update) return false;
    return op.phase == Phase::forward ? !is_loss(graph, op) : trains;
  });
  return *run;
}

// -- Lambda

// Their names of GPUs that the catalogue has; of boards that stand there several times, one.
constexpr std::pair<const char*, const char*> kLambdaGpus[] = {{"LambdaCloud V100 16GB", "v100"},
                                                               {"RTX 3090", "3090"},
                                                               {"LambdaCloud A10", "a10"},
                                                               {"LambdaCloud A100 40GB PCIe", "a100-pcie-40gb"},
                                                               {"A100 80GB PCIe", "a100-pcie"},
                                                               {"A100 80GB SXM4", "a100"},
                                                               {"RTX 4090", "4090"},
                                                               {"RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation"},
                                                               {"H100 80GB PCIe Gen5", "h100-pcie"},
                                                               {"H100 80GB SXM5", "h100-sxm"}};
constexpr const char* kYardstick = "_1xH200_";             // in the name of a machine with the GPU that was measured
constexpr const char* kYardstickBatch = "H100 80GB SXM5";  // whose batches it ran
constexpr double kLargestYardstick = 1.5;
constexpr int64_t kSquadLength = 384;

// The cells of a table by the name of the GPU and of the column, of machines with one GPU.
using Cells = std::map<std::pair<std::string, std::string>, double>;

Result<Cells> read_table(const fs::path& path) {
  auto lines = LineReader::open(path.string());
  if (!lines) return lines.error();
  Cells cells;
  std::vector<std::string> heading;
  while (true) {
    const auto line = lines->next();
    if (!line) return line.error();
    if (!*line) return cells;
    const auto row = csv_cells(**line);
    if (heading.empty()) heading = row;
    double gpus = 0;
    if (row.size() < 2 || !parse_cell(row[1], gpus) || gpus != 1) continue;
    for (size_t i = 2; i < std::min(row.size(), heading.size()); ++i) {
      double value = 0;
      if (parse_cell(row[i], value)) cells[{row[0], heading[i]}] = value;
    }
  }
}

// Throughputs by column of the first machine with the measured GPU: ",ssd,bert_base_squad,..." and a row a machine.
Result<std::map<std::string, double>> read_yardsticks(const fs::path& path) {
  auto lines = LineReader::open(path.string());
  if (!lines) return lines.error();
  std::vector<std::string> heading;
  std::map<std::string, double> rates;
  while (rates.empty()) {
    const auto line = lines->next();
    if (!line) return line.error();
    if (!*line) break;
    const auto row = csv_cells(**line);
    if (heading.empty()) heading = row;
    if (row.empty() || row[0].find(kYardstick) == std::string::npos) continue;
    for (size_t i = 1; i < std::min(row.size(), heading.size()); ++i) {
      double value = 0;
      if (parse_cell(row[i], value) && value > 0) rates[heading[i]] = value;
    }
  }
  return rates;
}

std::optional<ModelRequest> lambda_request(const std::string& column, bool half, int64_t batch) {
  ModelRequest request;
  request.batch = batch;
  request.setup.precision = half ? Precision::amp_fp16 : Precision::tf32;
  if (column == "resnet50") {
    request.model = "resnet50";
    request.setup.channels_last = half;
    return request;
  }
  if (column != "bert_base_squad" && column != "bert_large_squad") return std::nullopt;
  request.model = column == "bert_base_squad" ? "bert_base" : "bert_large";
  request.settings = {{"length", fmt::format("{}", kSquadLength)}, {"head", "classifier"}, {"attention", "eager"}};
  return request;
}

}  // namespace

Result<IterationTimes> iteration_times(const ModelRequest& request, const Device& device,
                                       const CostModels& cost_models) {
  const auto built = build_run(request, device);
  if (!built) return built.error();
  return IterationTimes{milliseconds(predicted_times(*built, device, cost_models).iteration),
                        roofline_ms(*built, device, [](const Graph&, const Op&) { return true; })};
}

bool is_loss(const Graph& graph, const Op& op) {
  const std::string_view name = graph.name(op);
  return name.find("log_softmax") != name.npos || name.find("nll_loss") != name.npos;
}

double roofline_ms(const TrainingRun& run, const Device& device, const CountsOp& counts) {
  double seconds = 0;
  for (const Op& op : run.graph.ops()) {
    if (!counts(run.graph, op)) continue;
    const OpWork work = work_of(run.graph, op);
    if (!work.on_gpu) continue;
    const double computing = work.flops.value / device.rate(arithmetic_unit(work, run.setup.precision));
    const double moving = static_cast<double>(work.bytes().value) / device.memory_bandwidth;
    seconds += std::max(computing, moving);
  }
  return 1e3 * seconds;
}

OtherGpuRuns runs_of_neusight(const std::string& folder, const DeviceCatalogue& devices,
                              const KnowledgeFor& cost_models) {
  OtherGpuRuns found;
  std::vector<fs::path> labels;
  const fs::path neusight = folder;
  std::error_code code;
  for (const auto& entry : fs::recursive_directory_iterator(neusight / "label", code)) {
    if (entry.path().extension() == ".json" && run_named(entry.path().stem().string())) labels.push_back(entry.path());
  }
  if (code || labels.empty()) {
    found.problems.push_back(fmt::format("no labels of NeuSight in {}", (neusight / "label").string()));
    return found;
  }
  std::sort(labels.begin(), labels.end());
  std::set<std::string> problems;
  const CostModels* known = nullptr;
  std::string gpu;
  for (const fs::path& label : labels) {
    const auto device = devices.find(label.parent_path().filename().string());
    if (!device) {
      problems.insert(device.error().message());
      continue;
    }
    if (device->name != gpu) known = &cost_models(*device);
    gpu = device->name;
    const auto run = predicted_run(label, neusight / "DLmodel_configs", *device, *known);
    if (run) {
      found.runs.push_back(*run);
    } else {
      problems.insert(run.error().message());
    }
  }
  found.problems.assign(problems.begin(), problems.end());
  return found;
}

namespace {

// What Lambda published in one precision.
struct LambdaTables {
  bool half = false;
  Cells batches, rates;
  std::map<std::string, double> yardsticks;  // by column: measured over predicted time on the measured GPU
};

Result<LambdaTables> read_lambda(const fs::path& folder, bool half, const std::optional<Device>& measured,
                                 const KnowledgeFor& cost_models) {
  const char* precision = half ? "fp16" : "fp32";
  LambdaTables tables{.half = half};
  auto batches = read_table(folder / fmt::format("pytorch-train-bs-{}.csv", precision));
  if (!batches) return batches.error();
  auto rates = read_table(folder / fmt::format("pytorch-train-throughput-{}.csv", precision));
  if (!rates) return rates.error();
  tables.batches = std::move(*batches);
  tables.rates = std::move(*rates);
  const auto yardsticks = read_yardsticks(folder / fmt::format("pytorch-train-throughput-v2-{}.csv", precision));
  if (!yardsticks || !measured) return tables;  // without them, times are judged as they are
  for (const auto& [column, rate] : *yardsticks) {
    const auto batch = tables.batches.find({kYardstickBatch, column});
    if (batch == tables.batches.end()) continue;
    const auto request = lambda_request(column, half, static_cast<int64_t>(batch->second));
    if (!request) continue;
    const auto predicted = iteration_times(*request, *measured, cost_models(*measured));
    if (!predicted) return predicted.error();
    tables.yardsticks[column] = 1e3 * static_cast<double>(*request->batch) / rate / predicted->predicted_ms;
  }
  return tables;
}

}  // namespace

OtherGpuRuns runs_of_lambda(const std::string& folder, const DeviceCatalogue& devices,
                            const KnowledgeFor& cost_models) {
  OtherGpuRuns found;
  std::optional<Device> measured;
  for (const Device& device : devices.devices()) {
    if (name_of(device.measured) == "here") measured = device;
  }
  for (const bool half : {false, true}) {
    const auto tables = read_lambda(folder, half, measured, cost_models);
    if (!tables) {
      found.problems.push_back(tables.error().message());
      return found;
    }
    std::set<std::string> other_software;
    for (const auto& [name, alias] : kLambdaGpus) {
      const auto device = devices.find(alias);
      if (!device) continue;
      for (const auto& [key, rate] : tables->rates) {
        const auto batch = tables->batches.find(key);
        if (key.first != name || batch == tables->batches.end() || rate <= 0) continue;
        const auto request = lambda_request(key.second, half, static_cast<int64_t>(batch->second));
        if (!request) continue;
        const auto yardstick = tables->yardsticks.find(key.second);
        const double software = yardstick == tables->yardsticks.end() ? 1 : yardstick->second;
        if (software > kLargestYardstick || software < 1 / kLargestYardstick) {
          other_software.insert(
              fmt::format("Lambda's {} in {}: on the GPU that was measured it takes {:.1f} times as long as predicted",
                          key.second, half ? "fp16" : "fp32", software));
          continue;
        }
        const auto predicted = iteration_times(*request, *device, cost_models(*device));
        if (!predicted) {
          found.problems.push_back(predicted.error().message());
          continue;
        }
        found.runs.push_back({.gpu = device->name,
                              .model = request->model,
                              .what = half ? "training, half precision" : "training",
                              .batch = *request->batch,
                              .length = key.second == "resnet50" ? 224 : kSquadLength,
                              .measured_ms = 1e3 * batch->second / rate,
                              .predicted_ms = predicted->predicted_ms,
                              .source = kLambda,
                              .yardstick = software,
                              .precision = request->setup.precision,
                              .roofline_ms = predicted->roofline_ms});
      }
    }
    found.problems.insert(found.problems.end(), other_software.begin(), other_software.end());
  }
  return found;
}

}  // namespace forerun
