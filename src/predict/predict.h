// "How will this training run go?": iteration time and memory of a model or of recorded runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/work_control.h"
#include "cost/op_cost.h"
#include "graph/training_run.h"
#include "ingest/capture/size_forms.h"
#include "ingest/importers.h"
#include "predict/cost_models.h"
#include "predict/predicted_memory.h"
#include "predict/prediction.h"
#include "timeline/host_gpu_timeline.h"

namespace forerun {

struct RunRecord;

inline constexpr std::string_view kDefaultGpu = "h200";  // where neither the user nor the record names one

struct ModelRequest {
  std::string model;                            // zoo name, config.json, ONNX file or captured run
  std::optional<FileKind> file = std::nullopt;  // what the file is, where somebody looked already
  std::optional<int64_t> batch;
  std::vector<std::pair<std::string, std::string>>
      settings;  // parameters of the family; dynamic dimensions of an ONNX file
  TrainingSetup setup;
  bool default_optimizer = true;  // choose by the input's kind: SGD with momentum for images, AdamW for tokens
};

// The forward pass of the model alone, and how it is trained where the request leaves that open.
struct ForwardModel {
  std::string family;
  InputSpec input;
  Graph forward;
  std::vector<std::string> notes = {};  // what was assumed of it
};
Result<ForwardModel> forward_model(const ModelRequest& request);
TrainingSetup chosen_setup(const ModelRequest& request, InputKind kind);

// A model as it was read, before a device is chosen: its forward pass, or the run that was captured.
class ModelSource {
 public:
  static Result<ModelSource> read(const ModelRequest& request);

  // The whole iteration, as PyTorch would dispatch it on the device; of a captured run the one recorded, at the batch that is
  // asked for.
  [[nodiscard]] Result<TrainingRun> on(const Device& device) const;
  // That it is trained in, where the device has units for it.
  [[nodiscard]] Precision precision() const;

 private:
  ModelRequest request_;
  std::optional<ForwardModel> forward_;
  std::shared_ptr<const RunRecord> record_;  // null: `forward_` is it
};

Result<TrainingRun> build_run(const ModelRequest& request, const Device& device);

// The same where `model` is a name of the zoo: needs none of the code that reads files.
Result<ForwardModel> zoo_model(const ModelRequest& request);
// The settings of a request as the zoo takes them: "seq" is its "length", the batch is one of them.
std::vector<std::pair<std::string, std::string>> zoo_settings(const ModelRequest& request);
Result<TrainingRun> build_zoo_run(const ModelRequest& request, const Device& device);
// What makes an iteration of a request: build_zoo_run, or build_run, which takes files too.
using RunBuilder = Result<TrainingRun>(const ModelRequest& request, const Device& device);
Result<TrainingRun> run_of(const ForwardModel& model, const ModelRequest& request, const Device& device);

// What a capture may be moved to, from words such as batch=64 and length=2048.
Result<RecordSizes> record_sizes(const std::vector<std::pair<std::string, std::string>>& settings);

// A recorded run as the device would run it: one captured without a GPU (backend generic) gets its CUDA forms, one
// captured for a GPU on tensors without data what such tensors do not tell.
Result<TrainingRun> for_device(TrainingRun run, const Device& device);

// A record's run as the device would run it, in a mode of torch.compile where that is asked; one without ops is built from the zoo.
Result<TrainingRun> recorded_run(const RunRecord& record, const Device& device,
                                 CompileMode compile = CompileMode::none);

// GPU time of each op of a graph, in its order, as it is without a machine's calibration.
std::vector<OpCost> default_gpu_costs(const Graph& graph, const TrainingSetup& setup, const Device& device,
                                      const CostModels& cost_models);
// The same of costs as the machine's readings of that GPU correct them, where it was read.
void calibrate_costs(const Graph& graph, const TrainingSetup& setup, const Device& device,
                     const CostModels& cost_models, std::vector<OpCost>& costs);

// What calibration and compiling make of the default costs of a run.
void finish_costs(const TrainingRun& run, const Device& device, const CostModels& cost_models,
                  std::vector<OpCost>& costs);

// GPU time of each op of the run, in the graph's order.
std::vector<OpCost> gpu_costs(const TrainingRun& run, const Device& device, const CostModels& cost_models);

// The steady-state iteration of the run, simulated: what `predict` says of time, without memory or tables.
IterationTiming predicted_times(const TrainingRun& run, const Device& device, const CostModels& cost_models);

// The prediction of one run on one device. This is the main flow: work, cost, timeline, memory.
// `question`: what is asked of its memory beside the run; times are those of one GPU all the same. `threads`: with two,
// time and memory are predicted side by side; one is for callers that keep all cores busy themselves. `ops`: gets the costs of ops; may
// be null.
Prediction predict(const TrainingRun& run, const Device& device, const CostModels& cost_models,
                   const MemoryQuestion& question = {}, unsigned threads = 2, std::vector<OpCost>* ops = nullptr);

// Its parts, for those who predict a run on many devices (across_devices.h): everything but memory, tables and assumptions, from the
// ops' costs there; and what memory adds.
Prediction predicted_speed(const TrainingRun& run, const Device& device, const CostModels& cost_models,
                           const std::vector<OpCost>& costs);
void set_memory(PredictedMemory memory, const Device& device, Prediction& prediction);

// What a job of that length takes there; without a length nothing. `price`: of an hour of the GPU. An Error where it is told in
// tokens and the model reads none, and where memory was asked for one of several GPUs.
Status set_job(const JobLength& length, const Device& device, std::optional<double> price, Prediction& prediction);

// A file of recorded runs, one prediction each, from the predictor's input fields alone. `gpu` replaces the recorded one
// if given. A broken record goes to `bad_record` and the rest continues; a broken file is an Error.
struct RecordHandlers {
  std::function<void(const Prediction&)> prediction;
  std::function<void(const Error&)> bad_record;
};
// `sizes`: another batch or length than was recorded, of captures that say how they move.
Status predict_records(const std::string& path, const std::optional<Device>& gpu, const CostModels& cost_models,
                       const RecordHandlers& handlers, const MemoryQuestion& question = {},
                       const WorkControl& control = {}, const RecordSizes& sizes = {});

// How far predictions of the same file are from what it says was measured; runs without measurements are passed over.
// Reads the file again: predictions are made before anything measured is read.
Result<std::vector<ErrorSample>> measure_errors(const std::string& path, const std::vector<Prediction>& predictions);

}  // namespace forerun
