#include "learn/predictors.h"

#include <ctime>
#include <filesystem>

#include "base/nearest.h"
#include "learn/ets/ets_predictor.h"
#include "learn/torch.h"
#include "learn/weights_json.h"

namespace forerun::learn {
namespace {

template <class T>
std::unique_ptr<Predictor> make() {
  return std::make_unique<T>();
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

}  // namespace

const std::vector<PredictorEntry>& predictors() {
  static const std::vector<PredictorEntry> list = {
      {"ets", "sliding windows over the trace, bidirectional LSTM: GPU time and gap of each op", make<EtsPredictor>},
  };
  return list;
}

Result<std::unique_ptr<Predictor>> make_predictor(std::string_view name) {
  std::vector<std::string> names;
  for (const PredictorEntry& entry : predictors()) {
    if (entry.name == name) return entry.make();
    names.emplace_back(entry.name);
  }
  return Error{"there is no predictor '" + std::string(name) + "'", "", did_you_mean(name, names)};
}

Status save_weights(const std::string& folder, std::string_view name, const Predictor& predictor, const DataSet& data,
                    const TrainOptions& options, const TrainingLog& log) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Error{"cannot be made: " + failed.message(), folder, "check the path"};
  const Fold fold = split_for_validation(data, options.validation, options.seed);
  const nlohmann::json card = {{"predictor", name},
                               {"settings", predictor.settings()},
                               {"trained_on", data.source},
                               {"examples", {{"training", fold.train.size()}, {"validation", fold.validation.size()}}},
                               {"seed", options.seed},
                               {"epochs", log.epochs.size()},
                               {"best_epoch", log.best_epoch},
                               {"validation_error", log.best_validation_error},
                               {"training_seconds", log.seconds},
                               {"device", log.device},
                               {"libtorch", TORCH_VERSION},
                               {"date", today()}};
  if (Status status = predictor.save(folder); !status.ok()) return status;
  return write_json(folder, "card.json", card);
}

Result<LoadedPredictor> load_weights(const std::string& folder) {
  auto card = read_json(folder, "card.json", {"predictor", "trained_on"});
  if (!card) return card.error();
  const nlohmann::json& name = card->at("predictor");
  const nlohmann::json& source = card->at("trained_on");
  if (!name.is_string() || !source.is_string()) {
    return Error{"the card does not say what these weights are", folder, "name a folder that `forerun train` wrote"};
  }
  auto predictor = make_predictor(name.get<std::string>());
  if (!predictor) return predictor.error().within(folder);
  if (const Status status = (*predictor)->load(folder); !status.ok()) return status.error();
  return LoadedPredictor{name.get<std::string>(), source.get<std::string>(), std::move(*predictor)};
}

}  // namespace forerun::learn
