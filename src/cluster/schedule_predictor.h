// The predictors of `forerun schedule` that were measured, and the step times of jobs that name a model.
//
// data/evaluations/SUITE.json is what `forerun eval --suite SUITE --json` printed: of every predictor how its errors on
// unseen model families are spread. `error-like:ets` draws errors from there. `hybrid` is `forerun predict` itself: jobs that
// name a configuration are really predicted by it. A plain name, `ets`, means that predictor itself, which is asked about every
// job; who has such predictors (lab/) gives an IterationOracle.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/work_control.h"
#include "cluster/communication.h"
#include "cluster/predictions.h"
#include "cluster/sources/loaded_jobs.h"
#include "predict/cost_models.h"

namespace forerun {

// Of "ets", "hybrid", or "ets@ets-t4": on the suite of that name instead of h200. An unknown one is answered with those known.
Result<cluster::MeasuredErrors> find_measured_errors(const std::string& predictor);

// What --predictor says: one of the built-in ones, or one that was measured, with its errors.
Result<cluster::Predictor> parse_predictor(const std::string& text);

inline constexpr int64_t kGradientBytes = 4;  // of a parameter, where the graph does not list them

// What the GPUs of a gang give each other in a step: the gradients of what is trained, in the type of the weights.
Bytes exchanged_gradients(const Graph& graph);

// A step of one GPU alone.
struct GangWork {
  double seconds = 0;
  Bytes gradients;
  int64_t micro_batches = 1;  // whose gradients are added up before they are exchanged
};
// The same in a gang on as few nodes as possible, in seconds.
double gang_step(const cluster::CommunicationModel& links, uint32_t pool, int32_t gpus, const GangWork& work);

struct NetworkOptions {
  std::string link = "100gbe";  // between nodes, as `forerun devices --links` lists them
  double oversubscription = 1;  // across racks
};

// What the GPUs of a cluster talk over: within nodes the link of the device, by its data sheet; PCIe 4.0 where the type is
// not known. Nodes have 8 GPUs where the cluster does not say.
Result<cluster::CommunicationModel> communication_of(const cluster::Cluster& cluster, const NetworkOptions& options,
                                                     const DeviceCatalogue& devices);

// How long an iteration of a run takes, as another predictor than Forerun tells it.
using IterationOracle = std::function<Result<Nanoseconds>(const TrainingRun& run, const CostModels& cost_models)>;

// What a step takes, by predicting it, each configuration once. Copies share what they know. With an oracle iterations take
// what that says; whether they fit, and what gangs say to each other, is Forerun's all the same. `cost_models`: with the machine that
// answers are for; null: those without one, read when first needed.
class StepPredictor {
 public:
  StepPredictor(const cluster::Cluster& cluster, std::shared_ptr<const cluster::CommunicationModel> communication,
                std::shared_ptr<const CostModels> cost_models = nullptr, IterationOracle oracle = {})
      : cluster_(&cluster),
        communication_(std::move(communication)),
        oracle_(std::move(oracle)),
        state_(std::make_shared<State>()) {
    state_->cost_models = std::move(cost_models);
  }

  [[nodiscard]] bool has_oracle() const { return oracle_ != nullptr; }
  // What its answers up to now owe to a machine's readings, in words; empty: nothing.
  [[nodiscard]] const std::set<std::string>& calibrations() const { return state_->calibrations; }

  Result<cluster::StepAnswer> operator()(const cluster::StepQuestion& question);
  // Predicts the measured runs of these ids, so that they can be asked for.
  Status add_records(const std::vector<std::string>& files, const std::vector<cluster::Configuration>& wanted,
                     const WorkControl& control);

 private:
  struct State {
    std::shared_ptr<const CostModels> cost_models;
    std::map<cluster::StepQuestion, cluster::StepAnswer> answers;
    std::map<std::string, cluster::StepAnswer> records;  // by id
    std::set<std::string> calibrations;
  };
  Status load();
  Result<cluster::StepAnswer> predict_step(const cluster::StepQuestion& question);
  Result<cluster::StepAnswer> predict_run(const TrainingRun& run, const Device& device);
  [[nodiscard]] cluster::StepAnswer in_gang(cluster::StepAnswer one, const cluster::StepQuestion& question) const;

  const cluster::Cluster* cluster_;
  std::shared_ptr<const cluster::CommunicationModel> communication_;
  IterationOracle oracle_;
  std::shared_ptr<State> state_;
};

// What a predictor that is_asked() predicts itself of a workload, as predict_durations takes it, and in words where all that it
// says comes from.
struct PredictorAnswer {
  std::vector<cluster::Time> own;
  std::string source;
};
Result<PredictorAnswer> own_predictions(const cluster::Predictor& predictor, const cluster::Workload& workload,
                                        const cluster::Cluster& cluster, StepPredictor& steps,
                                        const WorkControl& control = {});

}  // namespace forerun
