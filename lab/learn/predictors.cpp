#include "lab/learn/predictors.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/nearest.h"
#include "base/provenance.h"
#include "lab/dataset/weights_files.h"
#include "lab/learn/baselines/graph_baselines.h"
#include "lab/learn/blend/blend_predictor.h"
#include "lab/learn/dnnperf/dnnperf.h"
#include "lab/learn/ets/ets_predictor.h"
#include "lab/learn/torch.h"
#include "lab/trees/gbdt.h"
#include "lab/trees/trees_predictor.h"

namespace forerun::learn {
namespace {

template <class T>
std::unique_ptr<Predictor> make() {
  return std::make_unique<T>();
}

template <GraphSystem (*system)(), Target quantity>
std::unique_ptr<Predictor> make_graph() {
  return std::make_unique<GraphPredictor>(system(), quantity);
}

std::unique_ptr<Predictor> make_op_mlp() { return std::make_unique<EtsPredictor>(op_mlp_options()); }

// How one training went, as a card tells it; zeros where it does not.
Training training_from(const nlohmann::json& card) {
  return {.epochs = card.value("epochs", int64_t{0}),
          .best_epoch = card.value("best_epoch", int64_t{0}),
          .seconds = card.value("training_seconds", 0.0),
          .validation_error = card.value("validation_error", 0.0)};
}

// The division that a card tells of; cards from before there were others were divided by family.
Result<Division> division_from(const nlohmann::json& card, const std::string& folder) {
  const auto found = card.find("split");
  if (found == card.end()) return Division{};
  const auto division = parse_division(found->is_string() ? found->get<std::string>() : found->dump());
  if (!division) return division.error().within(folder);
  return division;
}

// How many measured examples the weights of a card have seen, in training or to choose an epoch. Older cards tell only what their
// data was: 1 stands for some.
int64_t measured_from(const nlohmann::json& card) {
  const auto examples = card.find("examples");
  if (examples != card.end() && examples->is_object() && examples->contains("measured")) {
    const nlohmann::json& measured = examples->at("measured");
    return measured.is_number_integer() ? measured.get<int64_t>() : 1;
  }
  const auto source = card.find("trained_on");
  const bool simulated =
      source != card.end() && source->is_string() && source->get<std::string>().find("records") == std::string::npos;
  return simulated ? 0 : 1;
}

}  // namespace

const std::vector<PredictorEntry>& predictors() {
  static const std::vector<PredictorEntry> list = {
      {"ets", "sliding windows over the trace, bidirectional LSTM: GPU time and gap of each op", make<EtsPredictor>},
      {"trees", "boosted trees for GPU times of ops, two lanes and trees for gaps: Forerun's own on traces",
       make<TreesPredictor>, false},
      {"blend", "the mean of trees and ets, op by op", make<BlendPredictor>},
      {"op-mlp", "each op by itself through an MLP: GPU time and gap (baseline of ETS)", make_op_mlp},
      {"grouping-gcn", "the trace in 25 groups, graph convolutions: iteration time (baseline of ETS)",
       make_graph<grouping_gcn_system, Target::iteration_ms>},
      {"dnnperf-time", "attention over nodes and edges of the graph: iteration time",
       make_graph<dnnperf_system, Target::iteration_ms>},
      {"dnnperf-memory", "the same: peak memory", make_graph<dnnperf_system, Target::peak_bytes>},
      {"birnn-time", "nodes in order through a bidirectional RNN: iteration time",
       make_graph<birnn_system, Target::iteration_ms>},
      {"birnn-memory", "the same: peak memory", make_graph<birnn_system, Target::peak_bytes>},
      {"arnn-time", "the same with adjacency: iteration time", make_graph<arnn_system, Target::iteration_ms>},
      {"arnn-memory", "the same with adjacency: peak memory", make_graph<arnn_system, Target::peak_bytes>},
      {"mlp-time", "an MLP over nodes, summed: iteration time", make_graph<mlp_system, Target::iteration_ms>},
      {"mlp-memory", "the same: peak memory", make_graph<mlp_system, Target::peak_bytes>},
      {"gbdt", "boosted trees over what an iteration adds up to: time and peak memory", make<GbdtPredictor>, false},
      {"brp-nas-time", "graph convolutions over kinds of ops alone: iteration time",
       make_graph<brp_nas_system, Target::iteration_ms>},
      {"brp-nas-memory", "the same: peak memory", make_graph<brp_nas_system, Target::peak_bytes>},
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

Status check_start(const std::string& folder, const Division& division) {
  const auto card = read_json(folder, "card.json", {"predictor", "trained_on"});
  if (!card) return card.error();
  const auto before = division_from(*card, folder);
  if (!before) return before.error();
  if (*before == division || measured_from(*card) == 0) return {};
  return Error{fmt::format("these weights have seen measured iterations of the split {}, not of {}: what is judged now "
                           "may be among them",
                           to_text(*before), to_text(division)),
               folder,
               fmt::format("pre-train on simulated iterations alone, or with --split {} too", to_text(division))};
}

Status save_weights(const std::string& folder, std::string_view name, const Predictor& predictor, const DataSet& data,
                    const TrainOptions& options, const TrainingLog& log) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Error{"cannot be made: " + failed.message(), folder, "check the path"};
  const Fold fold = fold_for(data, options);
  int64_t measured = 0;
  for (const Selection* part : {&fold.train, &fold.validation}) {
    measured += std::count_if(part->begin(), part->end(),
                              [&](uint32_t i) { return !data.examples()[i].configuration.empty(); });
  }
  nlohmann::json card = {{"predictor", name},
                         {"settings", predictor.settings()},
                         {"trained_on", data.source},
                         {"split", to_text(data.division)},
                         {"examples", {{"training", fold.train.size()}, {"validation", fold.validation.size()}}},
                         {"seed", options.seed},
                         {"epochs", log.epochs.size()},
                         {"best_epoch", log.best_epoch},
                         {"validation_error", log.best_validation_error},
                         {"training_seconds", log.seconds},
                         {"device", log.device},
                         {"libtorch", TORCH_VERSION},
                         {"date", today_utc()}};
  std::set<std::string> gpus;
  for (const uint32_t i : fold.train) gpus.insert(data.examples()[i].device);
  if (options.meta) {
    card["meta"] = {{"tasks", options.meta->tasks},
                    {"support", options.meta->support},
                    {"inner_steps", options.meta->inner_steps},
                    {"inner_rate", options.meta->inner_rate}};
  }
  if (!options.start.empty()) {
    auto before = read_json(options.start, "card.json", {});
    if (!before) return before.error();
    if (before->contains("gpus")) {
      for (const auto& gpu : before->at("gpus")) gpus.insert(gpu.is_string() ? gpu.get<std::string>() : gpu.dump());
    }
    measured += measured_from(*before);
    nlohmann::json& start = card["started_from"];
    for (const char* key :
         {"trained_on", "split", "examples", "epochs", "best_epoch", "validation_error", "training_seconds", "date"}) {
      if (before->contains(key)) start[key] = before->at(key);
    }
  }
  card["examples"]["measured"] = measured;
  card["gpus"] = gpus;
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
  const auto division = division_from(*card, folder);
  if (!division) return division.error();
  LoadedPredictor loaded{name.get<std::string>(), source.get<std::string>(), std::move(*predictor)};
  loaded.division = *division;
  try {
    loaded.training = training_from(*card);
    if (card->contains("started_from")) {
      loaded.pretraining = training_from(card->at("started_from"));
      loaded.pretrained_on = card->at("started_from").value("trained_on", "");
    }
  } catch (const nlohmann::json::exception& failed) {
    return Error{fmt::format("the card cannot be read: {}", failed.what()), folder, "train it again"};
  }
  return loaded;
}

}  // namespace forerun::learn
