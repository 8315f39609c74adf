#include "lab/calibrate/judged_runs.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/csv_cells.h"
#include "base/csv_rows.h"
#include "base/line_reader.h"
#include "lab/papers/ddl_benchmark/throughput_table.h"
#include "lab/papers/published_runs.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

OtherGpuRuns problem(const Error& error) { return {.runs = {}, .problems = {error.message()}}; }

// GPU time of the ops that count, and their roofline.
IterationTimes times_of_passes(const TrainingRun& run, const Device& device, const CostModels& cost_models,
                               const CountsOp& counts) {
  const std::vector<OpCost> costs = gpu_costs(run, device, cost_models);
  Nanoseconds busy;
  for (size_t i = 0; i < costs.size(); ++i) {
    if (counts(run.graph, run.graph.ops()[i])) busy += costs[i].gpu;
  }
  return {milliseconds(busy), roofline_ms(run, device, counts)};
}

// -- PipeDream

constexpr const char* kPipeDreamGpu = "v100";

// A network's layers together.
struct LayerSums {
  double backward_ms = 0;
  double first_bytes = 0;  // of what its first convolution of images gives; 0: none was seen
};

Result<std::map<std::string, LayerSums>> read_layers(const std::string& path) {
  auto reader = LineReader::open(path);
  if (!reader) return reader.error();
  CsvRows rows(std::move(*reader), ',');
  if (const Status status = rows.begin(); !status) return status.error();
  const auto model = rows.need("model");
  const auto layer = rows.need("layer");
  const auto backward = rows.need("bwd_ms");
  const auto bytes = rows.need("activation_bytes");
  for (const auto* column : {&model, &layer, &backward, &bytes}) {
    if (!*column) return column->error();
  }
  std::map<std::string, LayerSums> sums;
  while (true) {
    const auto more = rows.next();
    if (!more) return more.error();
    if (!*more) return sums;
    double ms = 0;
    if (!parse_cell(rows.cell(*backward), ms) || !(ms >= 0)) {
      return Error{"a layer has no backward time", fmt::format("{}:{}", path, rows.line()), "give bwd_ms from 0 on"};
    }
    LayerSums& own = sums[rows.cell(*model)];
    own.backward_ms += ms;
    if (own.first_bytes == 0 && rows.cell(*layer).starts_with("Conv2d(3,")) {
      (void)parse_cell(rows.cell(*bytes), own.first_bytes);
    }
  }
}

// Bytes that the first convolution of a model's iteration gives.
double first_convolution_bytes(const Graph& graph) {
  for (const Op& op : graph.ops()) {
    if (graph.name(op).starts_with("aten.convolution.") && !graph.outputs(op).empty()) {
      return static_cast<double>(graph.bytes_of(graph.outputs(op)[0]).value);
    }
  }
  return 0;
}

// The model of the zoo by its name there; its batch by what its first convolution gave.
Result<OtherGpuRun> backward_run(const std::string& name, const LayerSums& sums, const Device& device,
                                 const CostModels& cost_models) {
  ModelRequest request;
  request.model = name.starts_with("resnext") ? "resnext50_32x4d" : name;
  if (name == "resnext101") request.settings = {{"layers", "3,4,23,3"}};
  request.setup.precision = Precision::fp32;
  request.batch = 1;
  const auto one = build_run(request, device);
  if (!one) return one.error();
  const double of_one = first_convolution_bytes(one->graph);
  const double batch = of_one > 0 ? sums.first_bytes / of_one : 0;
  if (batch < 1 || std::abs(batch - std::round(batch)) > 1e-6) {
    return Error{"its first convolution gives no whole number of the zoo's samples", name, ""};
  }
  request.batch = std::llround(batch);
  const auto run = build_run(request, device);
  if (!run) return run.error();
  const auto times = times_of_passes(*run, device, cost_models, [](const Graph& graph, const Op& op) {
    return op.phase == Phase::backward && !is_loss(graph, op);
  });
  return OtherGpuRun{.gpu = device.name,
                     .model = name,
                     .what = "backward",
                     .batch = *request.batch,
                     .length = run->input.size,
                     .measured_ms = sums.backward_ms,
                     .predicted_ms = times.predicted_ms,
                     .source = kPipeDream,
                     .roofline_ms = times.roofline_ms,
                     .judged_alone = true};
}

// -- HKBU

constexpr const char* kHkbuGpu = "rtx 2080 ti";

std::optional<ModelRequest> hkbu_request(const ThroughputRow& row) {
  ModelRequest request;
  request.batch = row.batch;
  request.setup.precision = Precision::fp32;
  if (row.model == "ResNet-50") {
    request.model = "resnet50";
    return request;
  }
  if (row.model != "BERT-Base" && row.model != "BERT-Large") return std::nullopt;
  request.model = row.model == "BERT-Base" ? "bert_base" : "bert_large";
  request.settings = {{"length", "64"}, {"attention", "eager"}};
  return request;
}

// -- LLM Foundry

constexpr int64_t kFoundryMachine = 8;
constexpr int64_t kFoundryLongest = 8192;  // tokens: beyond, attention is nearly all, and another kernel than PyTorch's

Result<OtherGpuRun> foundry_run(const scale::FoundryRun& row, const scale::MptModels::Shape& shape, int64_t vocab,
                                const Device& device, const CostModels& cost_models) {
  ModelRequest request;
  request.model = "gpt2";
  request.batch = row.micro_batch;
  request.setup.precision = Precision::bf16;
  const auto number = [](int64_t value) { return fmt::format("{}", value); };
  request.settings = {{"width", number(shape.hidden)},
                      {"layers", number(shape.layers)},
                      {"heads", number(shape.heads)},
                      {"vocab", number(vocab)},
                      {"positions", number(row.sequence)},
                      {"length", number(row.sequence)},
                      {"dropout", "0"}};
  const auto run = build_run(request, device);
  if (!run) return run.error();
  const auto times =
      times_of_passes(*run, device, cost_models, [](const Graph&, const Op& op) { return op.phase != Phase::update; });
  const double rate = row.tokens_per_second / static_cast<double>(row.gpus);
  return OtherGpuRun{.gpu = device.name,
                     .model = "mpt_" + row.model,
                     .what = "forward, backward",
                     .batch = row.micro_batch,
                     .length = row.sequence,
                     .measured_ms = 1e3 * static_cast<double>(row.micro_batch * row.sequence) / rate,
                     .predicted_ms = times.predicted_ms,
                     .source = kLlmFoundry,
                     .precision = Precision::bf16,
                     .roofline_ms = times.roofline_ms,
                     .judged_alone = true};
}

}  // namespace

OtherGpuRuns runs_of_pipedream(const std::string& folder, const DeviceCatalogue& devices,
                               const KnowledgeFor& cost_models) {
  const auto device = devices.find(kPipeDreamGpu);
  if (!device) return problem(device.error());
  const auto layers = read_layers((fs::path(folder) / "layer_profiles.csv").string());
  if (!layers) return problem(layers.error());
  OtherGpuRuns found;
  const CostModels& known = cost_models(*device);
  for (const auto& [model, sums] : *layers) {
    const auto run = backward_run(model, sums, *device, known);
    if (run) {
      found.runs.push_back(*run);
    } else {
      found.problems.push_back(fmt::format("PipeDream's {}: {}", model, run.error().message()));
    }
  }
  return found;
}

OtherGpuRuns runs_of_hkbu(const std::string& folder, const DeviceCatalogue& devices, const KnowledgeFor& cost_models) {
  const auto device = devices.find(kHkbuGpu);
  if (!device) return problem(device.error());
  const auto rows = read_throughputs((fs::path(folder) / "throughput.csv").string());
  if (!rows) return problem(rows.error());
  OtherGpuRuns found;
  const CostModels& known = cost_models(*device);
  std::set<std::tuple<std::string, int64_t, double>> seen;  // one GPU exchanges nothing: the same for every network
  for (const ThroughputRow& row : *rows) {
    const auto request = hkbu_request(row);
    if (row.gpus != 1 || !request || row.samples_per_second <= 0) continue;
    if (!seen.insert({row.model, row.batch, row.samples_per_second}).second) continue;
    const auto times = iteration_times(*request, *device, known);
    if (!times) {
      found.problems.push_back(times.error().message());
      continue;
    }
    found.runs.push_back({.gpu = device->name,
                          .model = request->model,
                          .what = "training",
                          .batch = row.batch,
                          .length = request->model == "resnet50" ? 224 : 64,
                          .measured_ms = 1e3 * static_cast<double>(row.batch) / row.samples_per_second,
                          .predicted_ms = times->predicted_ms,
                          .source = kHkbu,
                          .roofline_ms = times->roofline_ms,
                          .judged_alone = true});
  }
  return found;
}

OtherGpuRuns runs_of_foundry(const std::string& folder, const DeviceCatalogue& devices,
                             const KnowledgeFor& cost_models) {
  const auto models = scale::mpt_models();
  if (!models) return problem(models.error());
  const auto table = scale::read_foundry_runs((fs::path(folder) / "benchmark.csv").string(), *models);
  if (!table) return problem(table.error());
  OtherGpuRuns found;
  std::map<std::string, std::vector<const scale::FoundryRun*>> by_gpu;
  for (const scale::FoundryRun& row : table->runs) {
    if (row.gpus == kFoundryMachine && !row.checkpoint && row.sequence <= kFoundryLongest) {
      by_gpu[row.gpu].push_back(&row);
    }
  }
  for (const auto& [gpu, rows] : by_gpu) {
    const auto device = devices.find(gpu);
    if (!device) {
      found.problems.push_back(device.error().message());
      continue;
    }
    const CostModels& known = cost_models(*device);
    for (const scale::FoundryRun* row : rows) {
      const auto* shape = models->find(row->model);
      if (shape == nullptr) continue;  // read_foundry_runs has passed it over
      const auto run = foundry_run(*row, *shape, models->vocab, *device, known);
      if (run) {
        found.runs.push_back(*run);
      } else {
        found.problems.push_back(fmt::format("LLM Foundry's {}: {}", row->model, run.error().message()));
      }
    }
  }
  return found;
}

}  // namespace forerun
