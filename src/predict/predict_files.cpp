// The part of predict.h that takes files: ONNX models, config.json files and run records. predict.cpp answers for names of the zoo without it.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "derive/dispatch.h"
#include "derive/iteration.h"
#include "derive/precision_support.h"
#include "ingest/capture/run_record.h"
#include "ingest/onnx/onnx_reader.h"
#include "predict/compiled.h"
#include "predict/model_file.h"
#include "predict/predict.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

Result<ForwardModel> onnx_forward(const ModelRequest& request) {
  constexpr int64_t kMostExtent = int64_t{1} << 30;
  if (request.batch && (*request.batch < 1 || *request.batch > kMostExtent)) {
    return Error{fmt::format("the batch cannot be {}", *request.batch), request.model,
                 fmt::format("give a whole number from 1 to {}", kMostExtent)};
  }
  OnnxOptions options{.batch = request.batch.value_or(0), .dims = {}};
  for (const auto& [name, value] : request.settings) {
    char* end = nullptr;
    const int64_t extent = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || extent < 1 || extent > kMostExtent) {
      return Error{fmt::format("dimension {} cannot be '{}'", name, value), request.model,
                   "give a whole number from 1"};
    }
    options.dims.emplace_back(name, extent);
  }
  Result<OnnxModel> model = read_onnx(request.model, options);
  if (!model) return model.error();
  if (Status trainable = check_trainable(*model); !trainable) return trainable.error().within(request.model);
  return ForwardModel{request.model, model->input, std::move(model->forward)};
}

Result<ForwardModel> config_forward(const ModelRequest& request) {
  Result<zoo::Model> model = zoo::build_config(request.model, zoo_settings(request));
  if (!model) return model.error();
  return ForwardModel{model->shown_family(), model->input, std::move(model->forward), std::move(model->notes)};
}

}  // namespace

namespace {

// What the model is where it is a file; nothing for a name of the zoo.
Result<std::optional<FileKind>> file_of(const ModelRequest& request) {
  return request.file ? Result<std::optional<FileKind>>(request.file) : model_file(request.model, "fit");
}

}  // namespace

Result<ForwardModel> forward_model(const ModelRequest& request) {
  constexpr std::string_view kVerb = "whatif";  // of those that take a model's forward pass and nothing else
  const auto file = file_of(request);
  if (!file) return file.error();
  if (*file == FileKind::onnx_model) return onnx_forward(request);
  if (*file == FileKind::model_config) return config_forward(request);
  if (file->has_value()) return refused_file(**file, request.model, kVerb);
  return zoo_model(request);
}

namespace {

// What a capture can be asked with: another batch, and `length` for sequences.
Result<RecordSizes> sizes_of(const ModelRequest& request) {
  std::vector<std::pair<std::string, std::string>> settings = request.settings;
  if (request.batch) settings.emplace_back("batch", fmt::format("{}", *request.batch));
  return record_sizes(settings);
}

// The only run of the file, moved to the sizes that are asked for. How it is trained stands in the record.
Result<RunRecord> captured_record(const ModelRequest& request) {
  const Result<RecordSizes> sizes = sizes_of(request);
  if (!sizes) return sizes.error().within(request.model);
  Result<RunRecordReader> reader = RunRecordReader::open(request.model, Fields::inputs, *sizes);
  if (!reader) return reader.error();
  Result<std::optional<RunRecord>> record = reader->next();
  if (!record) return record.error();
  if (!record->has_value()) return Error{"holds no run record", request.model, "capture one: forerun.capture"};
  if (const auto second = reader->next(); second && second->has_value()) {
    return Error{"holds several runs", request.model, "`forerun predict` takes them all; keep one in a file here"};
  }
  const TrainingSetup& recorded = (*record)->run.setup;
  TrainingSetup asked = request.setup;
  asked.compile = recorded.compile;  // which any iteration can be
  const bool as_recorded = request.default_optimizer && asked == TrainingSetup{};
  if (!as_recorded && asked != recorded) {
    return Error{"a capture is taken as it was recorded, with its precision, optimizer, layout and loop", request.model,
                 "capture the model again with those"};
  }
  return std::move(**record);
}

}  // namespace

Result<RecordSizes> record_sizes(const std::vector<std::pair<std::string, std::string>>& settings) {
  RecordSizes sizes;
  for (const auto& [name, value] : settings) {
    const bool length = name == "length" || name == "seq";
    if (!length && name != "batch") {
      return Error{fmt::format("a capture has no setting {}", name), "", "known: batch, length"};
    }
    char* end = nullptr;
    const int64_t size = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || size < 1) {
      return Error{fmt::format("{} cannot be '{}'", name, value), "", "give a whole number from 1"};
    }
    (length ? sizes.length : sizes.batch) = size;
  }
  return sizes;
}

Result<ModelSource> ModelSource::read(const ModelRequest& request) {
  ModelSource source;
  source.request_ = request;
  const auto file = file_of(request);
  if (!file) return file.error();
  source.request_.file = *file;
  if (*file == FileKind::records) {
    Result<RunRecord> record = captured_record(request);
    if (!record) return record.error();
    source.record_ = std::make_shared<const RunRecord>(std::move(*record));
    return source;
  }
  Result<ForwardModel> model = forward_model(source.request_);
  if (!model) return model.error();
  source.forward_ = std::move(*model);
  return source;
}

Result<TrainingRun> ModelSource::on(const Device& device) const {
  if (forward_) return run_of(*forward_, request_, device);
  Result<TrainingRun> run = recorded_run(*record_, device, request_.setup.compile);
  return run ? std::move(run) : run.error().within(request_.model);
}

Precision ModelSource::precision() const { return record_ ? record_->run.setup.precision : request_.setup.precision; }

Result<TrainingRun> build_run(const ModelRequest& request, const Device& device) {
  const Result<ModelSource> source = ModelSource::read(request);
  return source ? source->on(device) : Result<TrainingRun>(source.error());
}

namespace {

// A run that is only described: what it would dispatch follows from the zoo.
Result<TrainingRun> from_zoo(TrainingRun run, const Device& device) {
  if (const Status status = derive::check_precision(run.setup.precision, device); !status.ok()) return status.error();
  Result<zoo::Model> model = zoo::build_recorded(run.family, run.arguments, run.input);
  if (!model) {
    return Error{fmt::format("the record has no ops, and the zoo cannot build it: {}", model.error().what), "",
                 "capture the run (python -m forerun.capture), or name a family of `forerun zoo`"};
  }
  Result<Graph> graph =
      derive::derive_iteration(model->forward, run.input, run.setup, derive::target_of(device, run.setup, run.input));
  if (!graph) return graph.error();
  run.graph = std::move(*graph);
  return run;
}

Result<Prediction> predict_record(RunRecord read, const std::optional<Device>& gpu, const CostModels& cost_models,
                                  const MemoryQuestion& question) {
  TrainingRun run = std::move(read.run);
  const std::string record = fmt::format("record {}", run.id);
  const Result<Device> device = gpu ? Result<Device>(*gpu) : asked_gpu(run.environment.gpu, cost_models);
  if (!device) return device.error().within(record);
  const Result<TrainingRun> mapped =
      read.has_graph ? for_device(std::move(run), *device) : from_zoo(std::move(run), *device);
  if (!mapped) return mapped.error().within(record);
  return predict(*mapped, *device, cost_models, question);
}

}  // namespace

Result<TrainingRun> recorded_run(const RunRecord& record, const Device& device, CompileMode compile) {
  TrainingRun recorded = record.run;
  recorded.setup.compile = compile;
  Result<TrainingRun> run =
      record.has_graph ? for_device(std::move(recorded), device) : from_zoo(std::move(recorded), device);
  return run ? compiled_run(std::move(*run), device) : std::move(run);
}

Status predict_records(const std::string& path, const std::optional<Device>& gpu, const CostModels& cost_models,
                       const RecordHandlers& handlers, const MemoryQuestion& question, const WorkControl& control,
                       const RecordSizes& sizes) {
  Work work(control, "runs");
  Result<RunRecordReader> reader = RunRecordReader::open(path, Fields::inputs, sizes);
  if (!reader) return reader.error();
  while (true) {
    Result<std::optional<RunRecord>> next = reader->next();
    if (!next) {
      if (reader->file_broken()) return next.error();
      handlers.bad_record(next.error());
      continue;
    }
    if (!next->has_value()) return {};
    const Result<Prediction> prediction = predict_record(std::move(**next), gpu, cost_models, question);
    if (prediction) {
      handlers.prediction(*prediction);
    } else {
      handlers.bad_record(prediction.error().within(path));
    }
    if (Status status = work.advance(); !status.ok()) return status;
  }
}

Result<std::vector<ErrorSample>> measure_errors(const std::string& path, const std::vector<Prediction>& predictions) {
  Result<RunRecordReader> reader = RunRecordReader::open(path, Fields::inputs_and_measurements);
  if (!reader) return reader.error();
  std::unordered_map<std::string, const Prediction*> by_id;
  for (const Prediction& p : predictions) by_id.emplace(p.id, &p);
  const auto error = [](double predicted, double measured) { return std::abs(predicted - measured) / measured; };
  std::vector<ErrorSample> samples;
  while (true) {
    const Result<std::optional<RunRecord>> next = reader->next();
    if (!next) {
      if (reader->file_broken()) return next.error();
      continue;
    }
    if (!next->has_value()) return samples;
    const RunRecord& record = **next;
    const auto found = by_id.find(record.run.id);
    if (found == by_id.end() || !record.measured || record.measured->pipelined_median_ms <= 0) continue;
    const Prediction& p = *found->second;
    const Measurement& m = *record.measured;
    if (m.gpu_busy_us <= 0 || m.peak_allocated.value <= 0 || m.peak_reserved.value <= 0) continue;
    samples.push_back({.family = record.run.family,
                       .iteration = error(milliseconds(p.times.iteration), m.pipelined_median_ms),
                       .gpu = error(microseconds(p.times.gpu_busy), m.gpu_busy_us),
                       .allocated = error(static_cast<double>(p.memory.peak_allocated.value),
                                          static_cast<double>(m.peak_allocated.value)),
                       .reserved = error(static_cast<double>(p.memory.peak_reserved.value),
                                         static_cast<double>(m.peak_reserved.value)),
                       .gpu_bound = m.gpu_busy_us / 1e3 >= kGpuBoundShare * m.pipelined_median_ms});
  }
}

}  // namespace forerun
