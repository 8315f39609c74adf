#include "lab/eval/other_gpus_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "base/data_dir.h"
#include "base/datasets.h"
#include "base/provenance.h"
#include "lab/calibrate/calibrate_devices.h"
#include "lab/calibrate/device_ops.h"
#include "lab/eval/other_gpus_judging.h"
#include "lab/eval/traced_work.h"
#include "lab/training_data/measured_ops.h"
#include "lab/training_data/other_gpu_tables.h"
#include "predict/carried_models.h"

namespace forerun {
namespace {

using learn::OtherGpuPredictor;
using learn::TimedWorkTable;

constexpr uint64_t kPartsOfOps = 5;        // one of them is kept from Habitat's MLPs where pairs are judged
constexpr double kShortestTracedUs = 100;  // of ops within whole models
constexpr int64_t kFewestOps = 10;         // in a row of a table

std::optional<double> mre_of(const PairsByKind& pairs, const std::string& kind) {
  const auto found = pairs.find(kind);
  if (found == pairs.end() || found->second.empty()) return std::nullopt;
  return learn::summarize(found->second).mre;
}

// Habitat and NeuSight, trained without a GPU when they are first asked for.
class Peers {
 public:
  Peers(const TimedWorkTable& table, const learn::TrainOptions& options) : table_(&table), options_(options) {}

  // Of a GPU that the tables do not have, those trained on all.
  Result<OtherGpuPredictor*> without(const std::string& name, const std::string& gpu) {
    const bool known = std::any_of(table_->devices.begin(), table_->devices.end(),
                                   [&](const Device& device) { return device.name == gpu; });
    const std::string key = known ? gpu : "";
    auto& peer = trained_[{name, key}];
    if (peer) return peer.get();
    auto made = learn::make_other_gpu_predictor(name);
    if (!made) return made.error();
    std::vector<std::string> left_out;
    if (known) left_out.push_back(gpu);
    if (const auto log = (*made)->train(*table_, left_out, options_); !log) return log.error();
    peer = std::move(*made);
    return peer.get();
  }

 private:
  const TimedWorkTable* table_;
  learn::TrainOptions options_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<OtherGpuPredictor>> trained_;
};

std::vector<size_t> all_gpus(const TimedWorkTable& table) {
  std::vector<size_t> gpus(table.devices.size());
  for (size_t i = 0; i < gpus.size(); ++i) gpus[i] = i;
  return gpus;
}

// The ops that the suite gpus judges Forerun by, on one GPU.
std::vector<JudgedOp> judged_on(const std::string& gpu, const std::vector<DeviceOp>& ops) {
  std::vector<JudgedOp> judged;
  for (const DeviceOp& op : ops) {
    if (op.gpu != gpu) continue;
    const Graph graph = graph_of(op.sample);
    const auto work = learn::gpu_work(graph, graph.ops()[0], Precision::fp32);
    if (work.size() == 1) judged.push_back({op.kind, op.sample.op, work.front(), op.sample.us});
  }
  return judged;
}

Status judge_tables(const TimedWorkTable& table, const std::vector<DeviceOp>& ops, const SharedOps& shared,
                    Peers& peers, Work& work, OtherGpusAccuracy& accuracy) {
  for (const Device& device : table.devices) {
    if (Status status = work.advance(); !status.ok()) return status;
    const std::vector<JudgedOp> judged = judged_on(device.name, ops);
    const auto habitat = peers.without("habitat", device.name);
    if (!habitat) return habitat.error();
    const auto neusight = peers.without("neusight", device.name);
    if (!neusight) return neusight.error();
    const PairsByKind carried = judge_ops(**habitat, judged, device, table, shared, all_gpus(table));
    const PairsByKind forecast = judge_ops(**neusight, judged, device, table, shared, {});
    for (const auto& [kind, pairs] : forecast) {
      const auto cases = carried.find(kind);
      accuracy.ops.push_back({.gpu = device.name,
                              .kind = kind,
                              .ops = static_cast<int64_t>(pairs.size()),
                              .forerun = std::nullopt,
                              .habitat = mre_of(carried, kind),
                              .habitat_cases = cases == carried.end() ? 0 : static_cast<int64_t>(cases->second.size()),
                              .neusight = mre_of(forecast, kind)});
    }
  }
  return {};
}

// Whether an op is kept from Habitat's MLPs, the same on every GPU.
bool is_kept_apart(const learn::GpuWork& work) {
  const GemmShape& product = work.product;
  const auto mixed = static_cast<uint64_t>(product.batch * 7919 + product.m * 104729 + product.n * 1299709 +
                                           product.k * 15485863 + work.rows * 31 + work.width);
  return (mixed ^ (mixed >> 7)) % kPartsOfOps == 0;
}

Status judge_pairs(const TimedWorkTable& table, const SharedOps& shared, const learn::TrainOptions& options,
                   OtherGpusAccuracy& accuracy) {
  TimedWorkTable learned{.devices = table.devices, .rows = {}, .source = table.source};
  std::copy_if(table.rows.begin(), table.rows.end(), std::back_inserter(learned.rows),
               [](const learn::TimedWork& row) { return !is_kept_apart(row.work); });
  auto habitat = learn::make_other_gpu_predictor("habitat");
  if (!habitat) return habitat.error();
  if (const auto log = (*habitat)->train(learned, {}, options); !log) return log.error();
  for (size_t origin = 0; origin < table.devices.size(); ++origin) {
    for (size_t destination = 0; destination < table.devices.size(); ++destination) {
      if (origin == destination) continue;
      std::vector<JudgedOp> ops;
      for (const learn::TimedWork& row : table.rows) {
        if (row.gpu != destination || row.us < kShortestJudgedUs || !is_kept_apart(row.work)) continue;
        const learn::TimedWork* there = shared.on(origin, row.op, row.work);
        if (there != nullptr && there->us >= kShortestJudgedUs)
          ops.push_back({std::string(name_of(row.work.kind)), row.op, row.work, row.us});
      }
      const auto pairs = judge_ops(**habitat, ops, table.devices[destination], table, shared, {origin});
      HabitatPair pair{.origin = table.devices[origin].name, .destination = table.devices[destination].name};
      std::vector<learn::PredictedPair> all;
      for (const auto& [kind, list] : pairs) {
        if (static_cast<int64_t>(list.size()) >= kFewestOps) pair.by_kind[kind] = learn::summarize(list);
        all.insert(all.end(), list.begin(), list.end());
      }
      pair.all = learn::summarize(all);
      if (pair.all.count >= kFewestOps) accuracy.pairs.push_back(std::move(pair));
    }
  }
  return {};
}

double total_ms(const RunWork& work, const std::vector<double>& us) {
  double sum = 0;
  for (size_t i = 0; i < us.size(); ++i) sum += work.times[i] * us[i];
  return sum / 1e3;
}

// A run with its GPU of the catalogue.
struct DeviceRun {
  const TracedRun* run;
  Device device;
  RunWork work;
};

// Ops of the run's layers, by kind, as both see them on the GPU that it ran on.
void add_traced(const DeviceRun& there, const std::vector<double>& us, PairsByKind& pairs) {
  for (size_t i = 0; i < us.size(); ++i) {
    const learn::OriginWork& piece = there.work.pieces[i];
    if (piece.us >= kShortestTracedUs) pairs[std::string(name_of(piece.work.kind))].push_back({piece.us, us[i]});
  }
}

Status judge_models(const std::vector<DeviceRun>& runs, Peers& peers, Work& work, OtherGpusAccuracy& accuracy) {
  std::map<std::string, std::pair<PairsByKind, PairsByKind>> traced;  // by GPU: Habitat's, NeuSight's
  for (const DeviceRun& there : runs) {
    if (Status status = work.advance(); !status.ok()) return status;
    const auto habitat = peers.without("habitat", there.device.name);
    if (!habitat) return habitat.error();
    const auto neusight = peers.without("neusight", there.device.name);
    if (!neusight) return neusight.error();
    OtherGpuModel model{.gpu = there.device.name,
                        .model = there.run->model,
                        .what = there.run->what(),
                        .batch = there.run->batch,
                        .length = there.run->length,
                        .measured_ms = there.run->measured_ms,
                        .forerun_ms = {},
                        .neusight_ms = {},
                        .habitat_ms = {}};
    const std::vector<double> us = (*neusight)->predict(there.work.pieces, there.device, there.device);
    model.neusight_ms = total_ms(there.work, us);
    add_traced(there, us, traced[there.device.name].second);
    for (const DeviceRun& here : runs) {
      if (here.device.name == there.device.name || !here.run->same_question(*there.run)) continue;
      const std::vector<double> carried = (*habitat)->predict(here.work.pieces, here.device, there.device);
      model.habitat_ms[here.device.name] = total_ms(here.work, carried);
      if (carried.size() == there.work.pieces.size()) add_traced(there, carried, traced[there.device.name].first);
    }
    accuracy.models.push_back(std::move(model));
  }
  for (const auto& [gpu, pairs] : traced) {
    for (const auto& [kind, list] : pairs.second) {
      const auto cases = pairs.first.find(kind);
      accuracy.traced_ops.push_back(
          {.gpu = gpu,
           .kind = kind,
           .ops = static_cast<int64_t>(list.size()),
           .forerun = std::nullopt,
           .habitat = mre_of(pairs.first, kind),
           .habitat_cases = cases == pairs.first.end() ? 0 : static_cast<int64_t>(cases->second.size()),
           .neusight = mre_of(pairs.second, kind)});
    }
  }
  return {};
}

Result<std::vector<DeviceRun>> device_runs(const std::vector<TracedRun>& runs, const DeviceCatalogue& devices,
                                           OtherGpusAccuracy& accuracy) {
  std::vector<DeviceRun> list;
  for (const TracedRun& run : runs) {
    const std::string name =
        fmt::format("{} {}, batch {}, length {}, on {}", run.model, run.what(), run.batch, run.length, run.gpu);
    const auto device = devices.find(run.gpu);
    if (!device) {
      accuracy.not_judged.push_back(name + ": " + device.error().message());
    } else if (run.ops.empty()) {
      accuracy.not_judged.push_back(name + ": no table of its ops was published");
    } else {
      list.push_back({&run, learn::without_tf32(*device), work_of_run(run)});
    }
  }
  return list;
}

// Forerun's errors, where it was judged on just the same ops and runs.
void add_forerun(const DeviceAccuracy& forerun, OtherGpusAccuracy& accuracy) {
  for (OtherGpuOps& row : accuracy.ops) {
    for (const hybrid::CarriedError& own : forerun.fitted) {
      if (own.gpu != row.gpu || own.kind != row.kind) continue;
      if (own.ops == row.ops) {
        row.forerun = own.mre;
      } else {
        accuracy.not_judged.push_back(fmt::format("forerun on {}, {}: it is judged on other ops besides ({} of {})",
                                                  row.gpu, row.kind, row.ops, own.ops));
      }
    }
  }
  for (OtherGpuModel& model : accuracy.models) {
    for (const OtherGpuRun& run : forerun.runs) {
      const bool same = run.gpu == model.gpu && run.model == model.model && run.what == model.what &&
                        run.batch == model.batch && run.length == model.length;
      if (same) model.forerun_ms = run.predicted_ms;
    }
  }
  for (const std::string& problem : forerun.problems) accuracy.not_judged.push_back("forerun: " + problem);
}

Result<std::string> labels_folder(const OtherGpusRequest& request) {
  if (!request.neusight.empty()) return request.neusight;
  const auto folder = dataset("neusight");
  if (!folder) return folder.error();
  return folder->string();
}

// What was judged and with what, by fingerprints. Networks that are trained on the way are like those kept in data/weights as long as
// nobody asks for another seed or number of epochs.
Status add_provenance(const OtherGpusRequest& request, const std::string& tables, const std::string& folder,
                      OtherGpusAccuracy& accuracy) {
  const auto labels = fingerprint({std::filesystem::path(folder) / "label"});
  if (!labels) return labels.error();
  accuracy.data = fmt::format("{}; labels of whole models, fingerprint {}", tables, *labels);
  accuracy.date = today_utc();
  accuracy.machine = this_machine();
  const auto data = data_dir();
  if (!data) return data.error();
  const bool as_kept = !request.options.epochs && request.options.seed == learn::TrainOptions{}.seed;
  for (const char* name : {"habitat", "neusight"}) {
    const std::filesystem::path kept = *data / "weights" / "other-gpus" / name;
    if (!as_kept || !std::filesystem::exists(kept)) continue;
    const auto weights = fingerprint({kept});
    if (!weights) return weights.error();
    accuracy.weights[name] = *weights;
  }
  if (!request.forerun) return {};
  const auto models = carried_models_fingerprint();
  if (!models) return models.error();
  accuracy.weights["forerun"] = *models;
  return {};
}

}  // namespace

Result<OtherGpusAccuracy> evaluate_other_gpus(const OtherGpusRequest& request, const WorkControl& control) {
  if (const auto made = learn::make_other_gpu_predictor("neusight"); !made) return made.error();
  const auto folder = labels_folder(request);
  if (!folder) return folder.error();
  const std::string tables = request.ops.empty() ? *folder : request.ops;
  const auto cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  const auto table = load_other_gpu_tables(tables, cost_models->devices, control);
  if (!table) return table.error();
  const auto ops = load_neusight_ops(tables, cost_models->devices);
  if (!ops) return ops.error();
  const auto traced = read_traced_runs(*folder);
  if (!traced) return traced.error();

  OtherGpusAccuracy accuracy;
  if (const Status status = add_published(accuracy); !status.ok()) return status.error();
  if (const Status status = add_provenance(request, table->source, *folder, accuracy); !status.ok())
    return status.error();
  const auto runs = device_runs(*traced, cost_models->devices, accuracy);
  if (!runs) return runs.error();
  Work work(control, "GPUs and models judged", static_cast<int64_t>(table->devices.size() + runs->size()));
  Peers peers(*table, request.options);
  const SharedOps shared(*table);
  if (const Status status = judge_tables(*table, *ops, shared, peers, work, accuracy); !status.ok())
    return status.error();
  if (const Status status = judge_pairs(*table, shared, request.options, accuracy); !status.ok()) return status.error();
  if (const Status status = judge_models(*runs, peers, work, accuracy); !status.ok()) return status.error();
  if (!request.forerun) return accuracy;
  const WorkControl silent{.progress = {}, .stop = control.stop, .budget = control.budget};
  const auto forerun = evaluate_devices({.ops = tables, .neusight = *folder, .ets = {}, .lambda = {}}, silent);
  if (!forerun) return forerun.error();
  add_forerun(*forerun, accuracy);
  return accuracy;
}

}  // namespace forerun
