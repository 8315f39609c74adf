#include "lab/eval/memory_suite.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "base/data_dir.h"
#include "lab/learn/predictors.h"
#include "lab/training_data/learning_data.h"
#include "memory/live_storages.h"
#include "predict/predict.h"
#include "predict/predicted_memory.h"
#include "records/data_configuration.h"
#include "records/data_files.h"

namespace forerun {
namespace {

constexpr double kNearTheLimit = 0.85;
constexpr const char* kDnnPerf = "dnnperf-memory";

int64_t states_of(const OptimizerSpec& optimizer) {
  switch (optimizer.kind) {
    case OptimizerKind::sgd: return optimizer.momentum != 0 ? 1 : 0;
    case OptimizerKind::adam:
    case OptimizerKind::adamw: return 2;
    case OptimizerKind::rmsprop: return optimizer.momentum != 0 ? 2 : 1;
    case OptimizerKind::adagrad:
    case OptimizerKind::lion:
    case OptimizerKind::muon:
    case OptimizerKind::other: return 1;
    case OptimizerKind::adafactor:
    case OptimizerKind::adamw_8bit: return 0;
  }
  return 0;
}

// The table of workspaces without what was seen in models of a family, by family.
class TablesByFamily {
 public:
  explicit TablesByFamily(const WorkspaceTable& all) : all_(all) {}
  const WorkspaceTable& without(const std::string& family) {
    const auto [place, is_new] = by_family_.try_emplace(family, all_);
    if (is_new) place->second.leave_out(family);
    return place->second;
  }

 private:
  const WorkspaceTable& all_;
  std::map<std::string, WorkspaceTable> by_family_;
};

struct PeakRatios {
  std::vector<double> requested, allocated, reserved, driver;

  void add(const PredictedMemory& memory, const Measurement& measured) {
    const auto ratio = [](Bytes really, Bytes predicted, std::vector<double>& list) {
      if (really.value > 0 && predicted.value > 0) {
        list.push_back(static_cast<double>(really.value) / static_cast<double>(predicted.value));
      }
    };
    ratio(measured.peak_requested, memory.answer.requested.expected, requested);
    ratio(measured.peak_allocated, memory.estimate.peak_allocated, allocated);
    ratio(measured.peak_reserved, memory.estimate.peak_reserved, reserved);
    ratio(measured.device_used, memory.estimate.peak_reserved + memory.context, driver);
  }
  [[nodiscard]] MemoryIntervals intervals() const {
    return {.requested = ratio_range(requested),
            .allocated = ratio_range(allocated),
            .reserved = ratio_range(reserved),
            .driver = ratio_range(driver),
            .runs = static_cast<int64_t>(allocated.size())};
  }
};

class MemorySuite {
 public:
  explicit MemorySuite(const CostModels& cost_models) : cost_models_(cost_models), tables_(cost_models.workspaces) {}

  void take(const RunRecord& record) {
    if (!record.measured || record.measured->status == RunStatus::failed) return;
    const Measurement& measured = *record.measured;
    if (!measured.out_of_memory && measured.peak_allocated.value == 0) return;
    const std::string configuration = configuration_of(record.run);
    if (!configuration.empty() && !seen_.insert(configuration).second) return;
    const auto device = cost_models_.devices.find(record.run.environment.gpu);
    if (!device) return;
    const Result<TrainingRun> run = recorded_run(record, *device);
    if (!run) {
      ++not_built;
      return;
    }
    evaluate(*run, *device, measured);
    ++runs_;
  }

  MemoryAccuracy finish() {
    MemoryAccuracy accuracy;
    accuracy.predictors = {std::move(ours_), std::move(parameters_), std::move(storages_)};
    accuracy.intervals = ratios_.intervals();
    return accuracy;
  }
  [[nodiscard]] int64_t runs() const { return runs_; }
  int64_t not_built = 0;

 private:
  void evaluate(const TrainingRun& run, const Device& device, const Measurement& measured) {
    MemoryCase judged{.id = run.id, .family = run.family};
    judged.did_fit = !measured.out_of_memory;
    const Bytes room = device.memory - context_of(device);
    if (judged.did_fit) {
      judged.measured_allocated = static_cast<double>(measured.peak_allocated.value);
      judged.measured_reserved = static_cast<double>(measured.peak_reserved.value);
    }
    judged.at_the_limit =
        measured.out_of_memory || judged.measured_reserved > kNearTheLimit * static_cast<double>(room.value);

    const PredictedMemory memory = predicted_memory(run, device, tables_.without(run.family));
    if (judged.did_fit) ratios_.add(memory, measured);
    add(ours_, judged, memory.estimate.peak_allocated, memory.estimate.peak_reserved, memory.fits);
    const MemoryEstimate live = live_storages(run.graph);
    add(storages_, judged, live.peak_allocated, live.peak_reserved, live.peak_reserved <= room);
    const Bytes rule(run.graph.parameter_count() * 4 * (2 + states_of(run.setup.optimizer)));
    add(parameters_, judged, rule, rule, rule <= room);
  }

  static void add(MemoryPredictor& predictor, MemoryCase judged, Bytes allocated, Bytes reserved, bool fits) {
    judged.allocated = static_cast<double>(allocated.value);
    judged.reserved = static_cast<double>(reserved.value);
    judged.said_to_fit = fits;
    predictor.cases.push_back(std::move(judged));
  }

  const CostModels& cost_models_;
  TablesByFamily tables_;
  std::set<std::string> seen_;
  int64_t runs_ = 0;
  PeakRatios ratios_;
  MemoryPredictor ours_{.name = "forerun"};
  MemoryPredictor parameters_{.name = "parameters x 4 x (2 + states)"};
  MemoryPredictor storages_{.name = "live storages"};
};

// DNNPerf on the runs that it was not trained on.
MemoryPredictor dnnperf(const std::vector<std::string>& records, const std::filesystem::path& data,
                        const std::vector<MemoryCase>& cases) {
  MemoryPredictor predictor{.name = "DNNPerf"};
  const auto loaded = learn::load_weights((data / "weights" / "h200" / kDnnPerf).string());
  if (!loaded) {
    predictor.note = loaded.error().what;
    return predictor;
  }
  const FamilySplit split{.split = (data / "h200" / "split.json").string(), .unnamed = learn::Split::test};
  const auto examples = load_record_data(records, split, [](const DataProblem&) {});
  if (!examples) {
    predictor.note = examples.error().what;
    return predictor;
  }
  std::unordered_map<std::string, const MemoryCase*> by_id;
  for (const MemoryCase& judged : cases) by_id.emplace(judged.id, &judged);
  const learn::Selection test = learn::select(*examples, learn::Split::test);
  const std::vector<learn::Prediction> answers = loaded->predictor->predict(*examples, test);
  for (size_t i = 0; i < test.size(); ++i) {
    const auto found = by_id.find(examples->examples()[test[i]].id);
    if (found == by_id.end() || !answers[i].peak_bytes) continue;
    MemoryCase judged = *found->second;
    judged.allocated = *answers[i].peak_bytes;
    judged.reserved = 0;
    judged.at_the_limit = false;
    predictor.cases.push_back(judged);
  }
  predictor.note = "trained by `forerun train`, judged on the families it was not trained on";
  return predictor;
}

}  // namespace

Result<MemoryAccuracy> evaluate_memory(const MemorySuiteOptions& options, const WorkControl& control) {
  const Result<std::filesystem::path> data = data_dir();
  if (!data) return data.error();
  const auto records = options.records.empty() ? std::vector<std::string>{(*data / "h200").string()} : options.records;
  const auto files = record_files(records);
  if (!files) return files.error();
  const Result<CostModels> cost_models = load_cost_models({}, Trees::without);
  if (!cost_models) return cost_models.error();
  MemorySuite suite(*cost_models);
  const auto problem = [&](const DataProblem& what) {
    if (options.problem) options.problem(what);
  };
  const Status status = scan_files(
      *files, Fields::inputs_and_measurements,
      {.run = [&](const RunRecord& record, const DataPlace&) { suite.take(record); }, .sample = {}, .problem = problem},
      control);
  if (!status.ok()) return status.error();
  if (suite.runs() == 0)
    return Error{"there is no measured run to judge on", records.front(), "name records with --data"};
  MemoryAccuracy accuracy = suite.finish();
  accuracy.predictors.push_back(dnnperf(records, *data, accuracy.predictors.front().cases));
  accuracy.data = fmt::format("{} measured runs, each configuration once", suite.runs());
  if (suite.not_built > 0) accuracy.data += fmt::format("; {} could not be built", suite.not_built);
  accuracy.tables = "each family predicted without the convolutions that were seen in its models";
  return accuracy;
}

}  // namespace forerun
