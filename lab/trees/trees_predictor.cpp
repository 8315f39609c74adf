#include "lab/trees/trees_predictor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/line_writer.h"
#include "base/nearest.h"
#include "lab/dataset/metrics.h"
#include "lab/dataset/weights_files.h"
#include "lab/trees/linear_layers.h"
#include "lab/trees/tree_columns.h"

namespace forerun::learn {
namespace {

constexpr const char* kTreeForests = "forests.bin.zst";
constexpr double kLeastLearned = 0.02;  // of the power of a ratio
constexpr double kRate = 0.12;
constexpr double kOtherRate = 0.15;
constexpr double kShortestUs = 0.5;
constexpr double kLeastWithoutBias = 0.2;  // share of a convolution's time that is not its bias
constexpr double kGapScale = 20;           // us: gaps well below are alike
constexpr double kMostGapRatio = 6;
constexpr double kLeastGapWeight = 5;  // in a leaf
constexpr double kGapWeightPower = 1.5;

// The forests that an op's time is the mean of: of its kind, or of convolutions that are grouped (or not), of all and of
// its type and phase.
std::vector<uint32_t> parts_of(const LaneOp& op, const OpFigures& figures) {
  constexpr uint32_t kOfAll = 6;
  if (figures.images <= 0) return {16 + op.name};
  const uint32_t grouped = figures.groups > 1 ? 8 : 0;
  return {grouped + kOfAll, grouped + 2 * op.type + (op.forward ? 0 : 1)};
}

double total_us(const Example& example) { return std::max(example.targets.iteration_ms * 1000, 1e-3); }

bool timed(const Example& example) {
  return !example.ops.empty() && !example.targets.op_us.empty() && !example.targets.gap_us.empty() &&
         example.targets.iteration_ms > 0;
}

Selection timed_ones(const DataSet& data, Selection examples) {
  std::erase_if(examples, [&](uint32_t i) { return !timed(data.examples()[i]); });
  return examples;
}

}  // namespace

Settings TreesPredictor::settings() const {
  return {{"rounds", std::to_string(options_.rounds)},         {"other_rounds", std::to_string(options_.other_rounds)},
          {"gap_rounds", std::to_string(options_.gap_rounds)}, {"depth", std::to_string(options_.depth)},
          {"power", std::to_string(options_.power)},           {"layers", options_.layers ? "1" : "0"}};
}

Status TreesPredictor::set_options(const Settings& settings) {
  options_ = Options();
  const std::map<std::string, int64_t*> numbers = {{"rounds", &options_.rounds},
                                                   {"other_rounds", &options_.other_rounds},
                                                   {"gap_rounds", &options_.gap_rounds},
                                                   {"depth", &options_.depth}};
  for (const auto& [key, value] : settings) {
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    const bool good = end != value.c_str() && *end == '\0' && number > 0;
    const Error bad{"'" + value + "' is no value of '" + key + "'", "settings of trees", "use a number"};
    if (key == "layers") {
      if (value != "0" && value != "1") return bad;
      options_.layers = value == "1";
    } else if (key == "power") {
      if (!good || number > 1) return bad;
      options_.power = number;
    } else if (const auto found = numbers.find(key); found != numbers.end()) {
      if (!good || number < 1 || number > (key == "depth" ? 14 : 10000) || number != std::floor(number)) return bad;
      *found->second = static_cast<int64_t>(number);
    } else {
      std::vector<std::string> known;
      for (const auto& [name, unused] : this->settings()) known.push_back(name);
      return Error{"there is no setting '" + key + "'", "settings of trees", did_you_mean(key, known)};
    }
  }
  return {};
}

TreesPredictor::Ops TreesPredictor::ops_of(const DataSet& data, const Example& example, bool measured) const {
  Ops ops;
  std::vector<std::string_view> names;
  std::vector<Phase> phases;
  std::vector<const OpRow*> rows;
  const double multiprocessors = multiprocessors_of(example.device);
  for (size_t i = 0; i < example.ops.size(); ++i) {
    const OpRow& row = data.rows()[example.ops[i]];
    const std::string_view name = data.name_of_row(row);
    LaneOp op{.name = static_cast<uint32_t>(vocabulary_.index_of(name)),
              .forward = row.phase != Phase::backward,
              .type = static_cast<uint8_t>(row.dtype == DType::float32 ? 0
                                           : size_of(row.dtype) == 2   ? 1
                                                                       : 2),
              .product = name == kLinear};
    if (measured) {
      op.gpu_us = example.targets.op_us[i];
      op.gap_us = example.targets.gap_us[i];
    }
    ops.lane.push_back(op);
    ops.figures.push_back(figures_of(row, name, multiprocessors));
    rows.push_back(&row);
    ops.rows.push_back(example.ops[i]);
    names.push_back(name);
    phases.push_back(row.phase);
  }
  set_biases(names, phases, ops.figures);
  if (!options_.layers) return ops;
  set_linear_layers(rows, names, multiprocessors, ops.figures);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (names[i] != kLinear) continue;
    ops.lane[i].layer = layer_of(ops.figures[i]);
    ops.lane[i].bias = ops.figures[i].bias;
  }
  return ops;
}

// Columns for an op's time.
void TreesPredictor::add_columns(const DataSet& data, const Ops& ops, size_t at, std::vector<float>& out) {
  add_op_columns(data.rows()[ops.rows[at]], ops.figures[at], ops.lane[at], out);
  if (ops.figures[at].images <= 0) add_neighbour_columns(ops.lane, ops.figures, ops.rows, at, out);
}

void TreesPredictor::set_times(const DataSet& data, Ops& ops) const {
  std::vector<float> columns;
  for (size_t i = 0; i < ops.lane.size(); ++i) {
    columns.clear();
    add_columns(data, ops, i, columns);
    double sum = 0;
    int count = 0;
    for (const uint32_t part : parts_of(ops.lane[i], ops.figures[i])) {
      const auto found = times_.find(part);
      if (found == times_.end() || found->second.columns() > columns.size()) continue;
      sum += std::pow(std::max(double{found->second.predict(columns)}, kLeastLearned), 1 / options_.power);
      ++count;
    }
    ops.lane[i].gpu_us = (count > 0 ? sum / count : 1) * ops.figures[i].roofline_us + ops.figures[i].bias_us;
  }
}

Status TreesPredictor::fit_times(const DataSet& data, const Selection& examples, uint64_t seed) {
  std::map<uint32_t, BoostingTable> tables;
  std::vector<float> columns;
  for (const uint32_t e : examples) {
    const Example& example = data.examples()[e];
    const Ops ops = ops_of(data, example, true);
    for (size_t i = 0; i < ops.lane.size(); ++i) {
      const double us = std::max(ops.lane[i].gpu_us, kShortestUs);
      const double without_bias = std::max(us - ops.figures[i].bias_us, kLeastWithoutBias * us);
      const double label = std::pow(without_bias / ops.figures[i].roofline_us, options_.power);
      const double weight = 100 * std::sqrt(us / total_us(example)) + 0.01;
      columns.clear();
      add_columns(data, ops, i, columns);
      for (const uint32_t part : parts_of(ops.lane[i], ops.figures[i])) {
        tables.try_emplace(part, columns.size()).first->second.merge(columns, label, weight);
      }
    }
  }
  times_.clear();
  for (const auto& [part, table] : tables) {
    const bool convolution = table.width() == kOpColumns;
    auto forest = table.grow({.rounds = convolution ? options_.rounds : options_.other_rounds,
                              .depth = options_.depth,
                              .rate = convolution ? kRate : kOtherRate,
                              .leaf_step = kLeafStep,
                              .seed = seed});
    if (!forest) return forest.error();
    times_[part] = std::move(*forest);
  }
  return {};
}

Status TreesPredictor::fit_gaps(const DataSet& data, const Selection& examples, uint64_t seed) {
  std::vector<std::vector<LaneOp>> traces;
  for (const uint32_t e : examples) traces.push_back(ops_of(data, data.examples()[e], true).lane);
  lanes_.fit(traces);
  BoostingTable table(kOpColumns + kContextColumns);
  std::vector<float> columns;
  for (const uint32_t e : examples) {
    const Example& example = data.examples()[e];
    Ops ops = ops_of(data, example, false);
    set_times(data, ops);
    const std::vector<LaneGuess> guesses = lanes_.guess(ops.lane);
    const Context context(ops.lane, ops.figures, guesses);
    const double mean = total_us(example) / static_cast<double>(example.ops.size());
    for (size_t i = 0; i < guesses.size(); ++i) {
      columns.clear();
      add_op_columns(data.rows()[ops.rows[i]], ops.figures[i], ops.lane[i], columns);
      context.add_columns(i, columns);
      const double guess = guesses[i].gap_us + kGapScale;
      const double ratio = std::min((example.targets.gap_us[i] + kGapScale) / guess, kMostGapRatio);
      table.add(columns, ratio, std::pow(guess / mean, kGapWeightPower));
    }
  }
  auto grown = table.grow({.rounds = options_.gap_rounds,
                           .depth = options_.depth,
                           .least_weight = kLeastGapWeight,
                           .leaf_step = kLeafStep,
                           .seed = seed});
  if (!grown) return grown.error();
  gaps_ = std::move(*grown);
  return {};
}

Status TreesPredictor::fit(const DataSet& data, const Selection& examples, uint64_t seed) {
  vocabulary_ = OpVocabulary::of(data, examples);
  if (Status status = fit_times(data, examples, seed); !status.ok()) return status;
  return fit_gaps(data, examples, seed);
}

Result<TrainingLog> TreesPredictor::train(const DataSet& data, const TrainOptions& options) {
  if (const Status status = set_options(options.settings); !status.ok()) return status.error();
  const auto begun = std::chrono::steady_clock::now();
  const auto report = [&](int64_t epoch, double error) {
    EpochReport done{.epoch = epoch, .epochs = 2, .validation_error = error, .best = true};
    done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (options.progress) options.progress(done);
    return done;
  };
  TrainingLog log{.device = "cpu"};
  double error = 0;
  const Fold fold = fold_for(data, options);
  if (!fold.validation.empty()) {
    if (const Status status = fit(data, timed_ones(data, fold.train), options.seed); !status.ok()) {
      return status.error();
    }
    error = evaluate(data, fold.validation, predict(data, fold.validation), Target::iteration_ms).all.mre;
    log.epochs.push_back(report(1, error));
  }
  // What was set aside to validate on is training data too.
  if (const Status status = fit(data, timed_ones(data, select(data, Split::train)), options.seed); !status.ok()) {
    return status.error();
  }
  log.epochs.push_back(report(2, error));
  log.best_epoch = static_cast<int64_t>(log.epochs.size());
  log.best_validation_error = error;
  log.seconds = log.epochs.back().seconds;
  return log;
}

std::vector<Prediction> TreesPredictor::predict(const DataSet& data, const Selection& examples) {
  std::vector<Prediction> predictions;
  std::vector<float> columns;
  for (const uint32_t e : examples) {
    Ops ops = ops_of(data, data.examples()[e], false);
    set_times(data, ops);
    const std::vector<LaneGuess> guesses = lanes_.guess(ops.lane);
    const Context context(ops.lane, ops.figures, guesses);
    Prediction prediction;
    double busy = 0;
    double idle = 0;
    for (size_t i = 0; i < guesses.size(); ++i) {
      columns.clear();
      add_op_columns(data.rows()[ops.rows[i]], ops.figures[i], ops.lane[i], columns);
      context.add_columns(i, columns);
      const double gap = std::max(gaps_.predict(columns) * (guesses[i].gap_us + kGapScale) - kGapScale, 0.0);
      prediction.op_us.push_back(static_cast<float>(ops.lane[i].gpu_us));
      prediction.gap_us.push_back(static_cast<float>(gap));
      busy += ops.lane[i].gpu_us;
      idle += gap;
    }
    prediction.gpu_busy_ms = busy / 1000;
    prediction.iteration_ms = (busy + idle) / 1000;
    predictions.push_back(std::move(prediction));
  }
  return predictions;
}

Status TreesPredictor::save(const std::string& folder) const {
  std::string bytes;
  gaps_.write(bytes);
  std::vector<uint32_t> parts;
  for (const auto& [part, forest] : times_) {
    parts.push_back(part);
    forest.write(bytes);
  }
  const std::string path = (std::filesystem::path(folder) / kTreeForests).string();
  auto file = LineWriter::create(path, {.overwrite = true});
  if (!file) return file.error();
  if (Status status = file->write(bytes); !status.ok()) return status;
  if (Status status = file->finish(); !status.ok()) return status;
  return write_json(
      folder, "predictor.json",
      {{"settings", settings()}, {"vocabulary", vocabulary_.to_json()}, {"lanes", lanes_.to_json()}, {"parts", parts}});
}

Status TreesPredictor::load(const std::string& folder) {
  const auto described = read_json(folder, "predictor.json", {"settings", "vocabulary", "lanes", "parts"});
  if (!described) return described.error();
  auto settings = settings_from(*described);
  if (!settings) return settings.error().within(folder);
  settings->try_emplace("layers", "0");  // weights that do not say so were grown without
  if (const Status status = set_options(*settings); !status.ok()) return status.error().within(folder);
  auto vocabulary = OpVocabulary::from_json(described->at("vocabulary"));
  if (!vocabulary) return vocabulary.error().within(folder);
  auto lanes = TraceLanes::from_json(described->at("lanes"));
  if (!lanes) return lanes.error().within(folder);
  vocabulary_ = std::move(*vocabulary);
  lanes_ = std::move(*lanes);

  const std::string path = (std::filesystem::path(folder) / kTreeForests).string();
  const auto bytes = bytes_of(path);
  if (!bytes) return bytes.error();
  std::string_view rest = *bytes;
  const auto take = [&](Forest& into, size_t columns) -> Status {
    auto forest = Forest::read(rest);
    if (!forest) return forest.error().within(path);
    if (forest->columns() > columns) return Error{"a forest asks for columns there are not", path, "train it again"};
    into = std::move(*forest);
    return {};
  };
  if (Status status = take(gaps_, kOpColumns + kContextColumns); !status.ok()) return status;
  times_.clear();
  const auto& parts = described->at("parts");
  for (const auto& part : parts.is_array() ? parts : nlohmann::json::array()) {
    if (!part.is_number_unsigned()) return Error{"the parts of these weights cannot be read", folder, "train it again"};
    if (Status status = take(times_[part.get<uint32_t>()], kOpColumns + kNeighbourColumns); !status.ok()) return status;
  }
  return {};
}

}  // namespace forerun::learn
