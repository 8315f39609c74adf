#include "lab/eval/ddl_benchmark_suite.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "base/datasets.h"
#include "lab/papers/ddl_benchmark/throughput_table.h"
#include "predict/predict.h"
#include "timeline/exchange_costs.h"
#include "timeline/model_tasks.h"

namespace forerun {
namespace {

constexpr int64_t kGpusPerMachine = 4;
constexpr const char* kBenchmarkGpu = "rtx 2080 ti";
constexpr const char* kBenchmarkBus = "pcie3";
constexpr int64_t kPartsInFlight = 4;

struct BenchmarkModel {
  const char* name;
  const char* zoo;
  std::vector<std::pair<std::string, std::string>> settings;
  OptimizerKind optimizer;
};

const std::vector<BenchmarkModel>& benchmark_models() {
  static const std::vector<BenchmarkModel> kModels = {
      {"ResNet-50", "resnet50", {}, OptimizerKind::sgd},
      {"BERT-Large", "bert_large", {{"length", "64"}}, OptimizerKind::adamw},
      {"BERT-Base", "bert_base", {{"length", "64"}}, OptimizerKind::adamw}};
  return kModels;
}

enum class BenchmarkSchedule : uint8_t { bulk, wait_free, merged, prioritised };
struct BenchmarkMethod {
  BenchmarkSchedule schedule = BenchmarkSchedule::bulk;
  bool servers = false;
};

Result<BenchmarkMethod> method_named(const std::string& name) {
  BenchmarkMethod method;
  method.servers = name.ends_with("-PS");
  if (name.starts_with("BSP")) return method;
  method.schedule = BenchmarkSchedule::wait_free;
  if (name.starts_with("WFBP")) return method;
  method.schedule = BenchmarkSchedule::merged;
  if (name.starts_with("MG-WFBP")) return method;
  method.schedule = BenchmarkSchedule::prioritised;
  if (name.starts_with("ByteScheduler")) return method;
  return Error{"there is no schedule '" + name + "'", "", "known are BSP, WFBP, MG-WFBP, ByteScheduler, -A2A or -PS"};
}

// "100GbE with TCP/IP": the link by its first word, or by the number in it; the latency by the protocol.
Result<Link> connection_named(const std::string& name, const DeviceCatalogue& devices) {
  const std::string kind = name.substr(0, name.find(' '));
  Result<Link> link = devices.find_link(kind);
  const auto tcp = devices.find_link("100gbe"), rdma = devices.find_link("edr");
  if (!tcp || !rdma) return link;
  if (!link) {
    const double gigabits = std::strtod(kind.c_str(), nullptr);
    if (!(gigabits > 0) || gigabits > 1e6) return link.error();
    Link made = name.find("RDMA") != std::string::npos || kind.find("IB") != std::string::npos ? *rdma : *tcp;
    made.name = kind;
    made.bandwidth = gigabits / 8 * 1e9;
    return made;
  }
  if (name.find("TCP") != std::string::npos) link->latency = std::max(link->latency, tcp->latency);
  if (name.find("RDMA") != std::string::npos) link->latency = std::min(link->latency, rdma->latency);
  return link;
}

GradientExchange exchange_of(const BenchmarkMethod& method, const Topology& topology) {
  GradientExchange exchange;
  const bool cut = method.servers || method.schedule == BenchmarkSchedule::prioritised;
  if (method.servers) {
    exchange = by_servers({.topology = topology});
  } else {
    exchange = by_all_reduce({.algorithm = AllReduce::ring,
                              .topology = topology,
                              .per_message = negotiation(topology),
                              .in_flight = cut ? kPartsInFlight : 1});
  }
  switch (method.schedule) {
    case BenchmarkSchedule::bulk: exchange.grouping = Grouping::whole; break;
    case BenchmarkSchedule::merged: exchange.grouping = Grouping::merged; break;
    case BenchmarkSchedule::wait_free:
    case BenchmarkSchedule::prioritised: exchange.grouping = Grouping::each; break;
  }
  if (cut) exchange.slice = kServerPart;
  exchange.prioritised = method.schedule == BenchmarkSchedule::prioritised;
  return exchange;
}

// A model on one GPU, as fast as it was measured.
struct BenchmarkRun {
  ModelTasks tasks;
  BackwardPass pass;
};

Result<Nanoseconds> iteration_of(const BenchmarkRun& run, const GradientExchange& exchange) {
  const auto sent = exchanged_tasks(run.tasks.tasks, {run.pass}, exchange);
  if (!sent) return sent.error();
  return steady_iteration(sent->tasks, sent->now[run.tasks.beginning.value], sent->carried);
}

class ThroughputEvaluator {
 public:
  ThroughputEvaluator(CostModels cost_models, std::vector<ThroughputRow> rows, bool by_model)
      : cost_models_(std::move(cost_models)), rows_(std::move(rows)), by_model_(by_model) {}

  void share_bandwidths(bool share) { by_model_ = !share; }

  Status prepare(const WorkControl& control) {
    Work work(control, "rows");
    for (const ThroughputRow& row : rows_) {
      if (row.gpus == 1) {
        Status status = add_run(row);
        if (!status.ok()) return status;
      }
      if (row.gpus > kGpusPerMachine && row.gpus % kGpusPerMachine != 0) {
        return Error{std::to_string(row.gpus) + " GPUs do not fill machines of four", row.model, "leave the row out"};
      }
    }
    for (const ThroughputRow& row : rows_) {
      if (row.gpus == 1) continue;
      const auto method = method_named(row.method);
      if (!method) return method.error();
      const auto link = connection_named(row.connection, cost_models_.devices);
      if (!link) return link.error();
      links_.emplace(row.connection, *link);
      if (!runs_.contains(row.model)) {
        return Error{"the throughput of one GPU is missing", row.model, "add its row with gpus = 1"};
      }
      if (method->schedule != BenchmarkSchedule::bulk) continue;
      Status status = fit(row, *method);
      if (!status.ok()) return status;
      if (Status going = work.advance(); !going.ok()) return going;
    }
    return {};
  }

  Result<std::vector<ThroughputCase>> cases() const {
    std::vector<ThroughputCase> list;
    for (const ThroughputRow& row : rows_) {
      if (row.gpus == 1) continue;
      const auto method = method_named(row.method);
      const std::optional<double> within = bandwidth(row, method->servers, true);
      const std::optional<double> between = bandwidth(row, method->servers, false);
      if (!within || (!between && row.gpus > kGpusPerMachine)) {
        return Error{"no bulk-synchronous row to fit the network's bandwidth to", row.model + ", " + row.connection,
                     "add the rows of BSP for the same network and exchange, on one machine and on several"};
      }
      const auto time = iteration_of(runs_.at(row.model), exchange_of(*method, topology(row, *within, between)));
      if (!time) return time.error();
      ThroughputCase made{row.connection, row.model, row.method, row.gpus, row.samples_per_second};
      made.predicted = static_cast<double>(row.gpus * row.batch) / (static_cast<double>(time->value) * 1e-9);
      made.fitted = method->schedule == BenchmarkSchedule::bulk;
      list.push_back(std::move(made));
    }
    return list;
  }

  [[nodiscard]] std::vector<FittedLink> fitted() const {
    std::vector<FittedLink> list;
    std::map<std::string, bool> seen;
    for (const ThroughputRow& row : rows_) {
      if (row.gpus == 1) continue;
      const bool servers = method_named(row.method)->servers;
      const bool within = row.gpus <= kGpusPerMachine;
      if (!seen.emplace(key(row, servers, within), true).second) continue;
      const Link line = within ? bus() : links_.at(row.connection);
      const auto found = bandwidth(row, servers, within);
      if (!found) continue;
      list.push_back({within ? "within a machine" : row.connection, by_model_ ? row.model : "",
                      servers ? "servers" : "all-reduce", *found / 1e9, line.bandwidth / 1e9});
    }
    return list;
  }

 private:
  [[nodiscard]] Link bus() const {
    const auto link = cost_models_.devices.find_link(kBenchmarkBus);
    return link ? *link : Link{"bus", {}, Nanoseconds(5000), 15.75e9};
  }

  Status add_run(const ThroughputRow& row) {
    if (runs_.contains(row.model)) return {};
    const auto& models = benchmark_models();
    const auto model = std::find_if(models.begin(), models.end(),
                                    [&](const BenchmarkModel& known) { return known.name == row.model; });
    if (model == models.end()) {
      return Error{"there is no model '" + row.model + "' in this suite", "",
                   "known are ResNet-50, BERT-Large, BERT-Base"};
    }
    const auto device = cost_models_.devices.find(kBenchmarkGpu);
    if (!device) return device.error();
    ModelRequest request;
    request.model = model->zoo;
    request.batch = row.batch;
    request.settings = model->settings;
    request.default_optimizer = false;
    request.setup.optimizer = {.kind = model->optimizer, .impl = OptimizerImpl::forloop};
    const auto run = build_run(request, *device);
    if (!run) return run.error();
    std::vector<OpCost> costs = gpu_costs(*run, *device, cost_models_);
    const double single = static_cast<double>(row.batch) / row.samples_per_second * 1e9;
    double busy = 0;
    for (const OpCost& cost : costs) busy += static_cast<double>((cost.gpu - cost.overlapped).value);
    for (OpCost& cost : costs) {
      const auto scaled = [&](Nanoseconds time) {
        return Nanoseconds(std::llround(static_cast<double>(time.value) * single / busy));
      };
      cost.gpu = scaled(cost.gpu);
      cost.overlapped = scaled(cost.overlapped);
    }
    auto tasks = model_tasks(run->graph, costs, {});
    if (!tasks) return tasks.error();
    BenchmarkRun made{std::move(*tasks), {}};
    made.pass.gradients = made.tasks.gradients;
    made.pass.updates = select(made.tasks.tasks, in_phase(StepPhase::update));
    runs_.emplace(row.model, std::move(made));
    return {};
  }

  // What the exchange of a bulk-synchronous row must have been carried by: its time falls as the bandwidth grows.
  Status fit(const ThroughputRow& row, const BenchmarkMethod& method) {
    const bool within = row.gpus <= kGpusPerMachine;
    const double target = static_cast<double>(row.gpus * row.batch) / row.samples_per_second * 1e9;
    const Link line = within ? bus() : links_.at(row.connection);
    const std::optional<double> known = bandwidth(row, method.servers, true);
    double low = line.bandwidth / 256, high = line.bandwidth;
    for (int i = 0; i < 16; ++i) {
      const double middle = std::sqrt(low * high);
      const Topology links = topology(row, within ? middle : known.value_or(bus().bandwidth), middle);
      const auto time = iteration_of(runs_.at(row.model), exchange_of(method, links));
      if (!time) return time.error();
      (static_cast<double>(time->value) > target ? low : high) = middle;
    }
    fits_.push_back({row, method.servers, within, std::log(high)});
    return {};
  }

  [[nodiscard]] std::string key(const ThroughputRow& row, bool servers, bool within) const {
    return (servers ? "servers" : "all-reduce") + std::string("\n") + (within ? "" : row.connection) + "\n" +
           (by_model_ ? row.model : "");
  }

  // The geometric mean of what the rows of one kind gave.
  [[nodiscard]] std::optional<double> bandwidth(const ThroughputRow& row, bool servers, bool within) const {
    double sum = 0;
    int64_t count = 0;
    for (const RowFit& fit : fits_) {
      if (fit.servers != servers || fit.within != within) continue;
      if (key(fit.row, servers, within) != key(row, servers, within)) continue;
      sum += fit.log_bandwidth;
      ++count;
    }
    if (count == 0) return std::nullopt;
    return std::exp(sum / static_cast<double>(count));
  }

  [[nodiscard]] Topology topology(const ThroughputRow& row, double within, std::optional<double> between) const {
    Topology made;
    made.ranks_per_node = std::min(row.gpus, kGpusPerMachine);
    made.nodes = row.gpus / made.ranks_per_node;
    made.within = bus();
    made.within.bandwidth = within;
    made.between = links_.at(row.connection);
    if (between) made.between.bandwidth = *between;
    return made;
  }

  struct RowFit {
    ThroughputRow row;
    bool servers = false, within = false;
    double log_bandwidth = 0;
  };

  CostModels cost_models_;
  std::vector<ThroughputRow> rows_;
  bool by_model_;
  std::map<std::string, Link> links_;         // by connection
  std::map<std::string, BenchmarkRun> runs_;  // by model
  std::vector<RowFit> fits_;
};

}  // namespace

Result<ThroughputAccuracy> evaluate_ddl_benchmark(const std::string& path, const WorkControl& control) {
  std::string file = path;
  if (file.empty()) {
    const auto table = dataset("hkbu/throughput.csv");
    if (!table) return table.error().within("the benchmark's table (or --data)");
    file = table->string();
  }
  auto rows = read_throughputs(file);
  if (!rows) return rows.error();
  // One machine first: what its links carry is known when several are fitted.
  std::stable_sort(rows->begin(), rows->end(), [](const ThroughputRow& a, const ThroughputRow& b) {
    return std::min(a.gpus, kGpusPerMachine + 1) < std::min(b.gpus, kGpusPerMachine + 1);
  });
  auto cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  ThroughputEvaluator evaluator(std::move(*cost_models), std::move(*rows), true);
  const Status status = evaluator.prepare(control);
  if (!status.ok()) return status.error().within(file);
  auto cases = evaluator.cases();
  if (!cases) return cases.error().within(file);
  ThroughputAccuracy accuracy{.data = file, .cases = std::move(*cases), .links = evaluator.fitted()};
  evaluator.share_bandwidths(true);
  auto shared = evaluator.cases();
  if (!shared) return shared.error().within(file);
  accuracy.one_bandwidth_error = ThroughputAccuracy{.cases = std::move(*shared)}.mean_error(false);
  return accuracy;
}

}  // namespace forerun
