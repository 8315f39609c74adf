#include "lab/ask/ask.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "lab/dataset/record_example.h"
#include "lab/dataset/weights_files.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainedGpu = "NVIDIA H200";
constexpr const char* kSuite = "h200";
constexpr const char* kOtherGpusSplit = "other-gpus";

// Folders below data/weights/SUITE that answer to a name; SUITE is also where it was judged.
struct Askable {
  const char* name;
  std::vector<const char*> folders;
  const char* suite = kSuite;
};

const std::vector<Askable>& askable() {
  static const std::vector<Askable> list = {{"ets", {"ets"}},
                                            {"dnnperf", {"dnnperf-time", "dnnperf-memory"}},
                                            {"birnn", {"birnn-time", "birnn-memory"}},
                                            {"arnn", {"arnn-time", "arnn-memory"}},
                                            {"mlp", {"mlp-time", "mlp-memory"}},
                                            {"gbdt", {"gbdt"}},
                                            {"brp-nas", {"brp-nas-time"}},
                                            {"habitat", {"habitat"}, kOtherGpusSplit},
                                            {"neusight", {"neusight"}, kOtherGpusSplit}};
  return list;
}

Result<const Askable*> find_askable(const std::string& name) {
  for (const Askable& entry : askable()) {
    if (name == entry.name) return &entry;
  }
  return Error{"there is no learned predictor '" + name + "' to ask", "",
               fmt::format("there are {}", fmt::join(askable_predictors(), ", "))};
}

Result<std::vector<std::string>> folders_of(const Askable& entry) {
  const auto data = data_dir();
  if (!data) return data.error();
  std::vector<std::string> folders;
  for (const char* folder : entry.folders) folders.push_back((*data / "weights" / entry.suite / folder).string());
  return folders;
}

// Errors of these weights on what they were kept from, by quantity.
void add_judged(const std::string& suite, const std::string& label, std::map<learn::Target, double>& judged) {
  const auto data = data_dir();
  if (!data) return;
  std::ifstream file(*data / "evaluations" / (suite + ".json"));
  const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  try {
    for (const auto& row : json.at("predictors")) {
      if (row.at("label") != label) continue;
      for (const auto& evaluation : row.at("evaluations")) {
        for (const learn::Target target :
             {learn::Target::iteration_ms, learn::Target::gpu_busy_ms, learn::Target::peak_bytes}) {
          if (evaluation.at("quantity") == learn::name_of(target)) {
            judged[target] = evaluation.at("all").at("mre").get<double>();
          }
        }
      }
    }
  } catch (const nlohmann::json::exception&) {  // no such table: nobody judged them
  }
}

Error weights_of_another(const std::string& theirs, const std::string& name, const std::string& folder) {
  return {"these are weights of '" + theirs + "', not of '" + name + "'", folder,
          "ask for the predictor that they are of"};
}

std::string source_of(const std::string& folder) {
  const auto card = learn::read_json(folder, "card.json", {"trained_on"});
  if (!card) return "";
  std::string text = card->value("trained_on", "");
  if (card->contains("started_from")) text += ", started from " + card->at("started_from").value("trained_on", "");
  return text;
}

// Weights of the predictor of that name, from a folder.
Result<std::unique_ptr<learn::OtherGpuPredictor>> other_gpu_predictor(const std::string& name,
                                                                      const std::string& folder) {
  auto predictor = learn::make_other_gpu_predictor(name);
  if (!predictor) return predictor.error();
  const auto card = learn::read_json(folder, "card.json", {"predictor", "trained_on"});
  if (!card) return card.error();
  if (card->at("predictor") != name) return weights_of_another(card->value("predictor", ""), name, folder);
  if (const Status status = (*predictor)->load(folder); !status.ok()) return status.error();
  return predictor;
}

void take(const learn::Prediction& from, learn::Prediction& into) {
  if (from.iteration_ms) into.iteration_ms = from.iteration_ms;
  if (from.gpu_busy_ms) into.gpu_busy_ms = from.gpu_busy_ms;
  if (from.peak_bytes) into.peak_bytes = from.peak_bytes;
  if (!from.op_us.empty()) into.op_us = from.op_us;
  if (!from.gap_us.empty()) into.gap_us = from.gap_us;
}

}  // namespace

const std::vector<std::string>& askable_predictors() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Askable& entry : askable()) list.emplace_back(entry.name);
    return list;
  }();
  return names;
}

Result<LearnedPredictor> LearnedPredictor::load(const std::string& name, const std::string& weights) {
  const auto entry = find_askable(name);
  if (!entry) return entry.error();
  auto folders = folders_of(**entry);
  if (!folders) return folders.error();
  if (!weights.empty()) folders = std::vector<std::string>{weights};
  LearnedPredictor loaded;
  loaded.name_ = name;
  if ((*entry)->suite == kOtherGpusSplit) {
    auto predictor = other_gpu_predictor(name, folders->front());
    if (!predictor) return predictor.error();
    loaded.other_gpu_ = std::move(*predictor);
    loaded.trained_on_.push_back(source_of(folders->front()));
    if (weights.empty()) add_judged(kOtherGpusSplit, name, loaded.judged_);
    return loaded;
  }
  for (const std::string& folder : *folders) {
    auto part = learn::load_weights(folder);
    if (!part) return part.error();
    if (part->name.rfind(name, 0) != 0) {
      return weights_of_another(part->name, name, folder);
    }
    loaded.parts_.push_back(std::move(*part));
    const std::string source = source_of(folder);
    if (loaded.trained_on_.empty() || loaded.trained_on_.back() != source) loaded.trained_on_.push_back(source);
    if (weights.empty()) add_judged(kSuite, fs::path(folder).filename().string(), loaded.judged_);
  }
  return loaded;
}

Result<LearnedAnswer> LearnedPredictor::ask(const TrainingRun& run, const CostModels& cost_models,
                                            const OriginTimes* origin) {
  if (other_gpu_) {
    auto answer = ask_other_gpu(*other_gpu_, run, cost_models, origin);
    if (!answer) return answer.error();
    return LearnedAnswer{name_, std::move(answer->prediction), std::move(answer->based_on), std::move(answer->notes)};
  }
  const auto device = cost_models.devices.find(run.environment.gpu);
  if (!device || device->name != kTrainedGpu) {
    return Error{"'" + name_ + "' was trained on an " + kTrainedGpu + " and cannot tell how a run goes on '" +
                     run.environment.gpu + "'",
                 "", "ask about an h200, or train it on records of that GPU and give --weights"};
  }
  learn::DataSet data;
  learn::Example example = learn::example_of(run, data);
  example.host_slowness = host_slowness(cost_models.host.scale, run.environment.calibration).value_or(0);
  data.add(std::move(example));
  LearnedAnswer answer{.predictor = name_};
  for (learn::LoadedPredictor& part : parts_) take(part.predictor->predict(data, {0})[0], answer.prediction);
  if (!answer.prediction.iteration_ms) answer.notes.emplace_back("it does not tell time");
  if (!answer.prediction.peak_bytes) answer.notes.emplace_back("it does not tell memory");
  return answer;
}

}  // namespace forerun
