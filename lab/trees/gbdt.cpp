#include "lab/trees/gbdt.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/line_writer.h"
#include "base/nearest.h"
#include "lab/dataset/weights_files.h"
#include "lab/trees/boosting.h"

namespace forerun::learn {
namespace {

constexpr const char* kForests = "forests.bin.zst";
constexpr size_t kPhases = 3;
constexpr Amount kAmounts[] = {Amount::flops, Amount::bytes_read, Amount::bytes_written};

Result<std::optional<Forest>> grow(const DataSet& data, const Selection& examples, Target quantity,
                                   const std::vector<std::vector<float>>& columns, const BoostingOptions& options) {
  BoostingTable table(columns.empty() ? 1 : columns.front().size());
  for (size_t i = 0; i < examples.size(); ++i) {
    const double value = measured(data.examples()[examples[i]].targets, quantity);
    if (value > 0) table.add(columns[i], std::log(value), 1);
  }
  if (table.size() == 0) return std::optional<Forest>();
  auto forest = table.grow(options);
  if (!forest) return forest.error();
  return std::optional<Forest>(std::move(*forest));
}

}  // namespace

Settings GbdtPredictor::settings() const {
  return {{"rounds", std::to_string(rounds_)}, {"depth", std::to_string(depth_)}};
}

Status GbdtPredictor::set_options(const Settings& settings) {
  for (const auto& [key, value] : settings) {
    if (key != "rounds" && key != "depth") {
      return Error{"there is no setting '" + key + "'", "settings of gbdt", did_you_mean(key, {"rounds", "depth"})};
    }
    char* end = nullptr;
    const int64_t number = std::strtoll(value.c_str(), &end, 10);
    if (end == value.c_str() || *end != '\0' || number < 1 || number > (key == "depth" ? 14 : 10000)) {
      return Error{"'" + value + "' is no value of '" + key + "'", "settings of gbdt", "use a number from 1"};
    }
    (key == "depth" ? depth_ : rounds_) = number;
  }
  return {};
}

std::vector<float> GbdtPredictor::columns_of(const DataSet& data, const Example& example) const {
  std::vector<double> counts(static_cast<size_t>(vocabulary_.size()));
  std::vector<double> by_phase(kPhases * std::size(kAmounts));
  std::vector<double> by_class(kOpClassCount * std::size(kAmounts));
  for (const uint32_t op : example.ops) {
    const OpRow& row = data.rows()[op];
    ++counts[static_cast<size_t>(vocabulary_.index_of(data.name_of_row(row)))];
    for (size_t a = 0; a < std::size(kAmounts); ++a) {
      by_phase[static_cast<size_t>(row.phase) * std::size(kAmounts) + a] += row.amount(kAmounts[a]);
      by_class[static_cast<size_t>(row.cls) * std::size(kAmounts) + a] += row.amount(kAmounts[a]);
    }
  }
  std::vector<float> columns;
  const auto add = [&](double amount) { columns.push_back(static_cast<float>(std::log1p(std::max(amount, 0.0)))); };
  for (const double amount : {example.batch, example.size, example.parameters, example.parameter_tensors,
                              static_cast<double>(example.ops.size())}) {
    add(amount);
  }
  for (const auto* amounts : {&by_phase, &by_class, &counts}) {
    for (const double amount : *amounts) add(amount);
  }
  const DType type = example.ops.empty() ? DType::float32 : data.rows()[example.ops.front()].dtype;
  columns.push_back(static_cast<float>(size_of(type)));
  columns.push_back(static_cast<float>(example.precision));
  columns.push_back(static_cast<float>(example.optimizer.kind));
  columns.push_back(static_cast<float>(example.optimizer.impl));
  columns.push_back(example.channels_last ? 1.0F : 0.0F);
  return columns;
}

Status GbdtPredictor::fit(const DataSet& data, const Selection& examples, uint64_t seed) {
  vocabulary_ = OpVocabulary::of(data, examples);
  std::vector<std::vector<float>> columns;
  for (const uint32_t e : examples) columns.push_back(columns_of(data, data.examples()[e]));
  const BoostingOptions options{.rounds = rounds_, .depth = depth_, .seed = seed};
  auto time = grow(data, examples, Target::iteration_ms, columns, options);
  if (!time) return time.error();
  auto memory = grow(data, examples, Target::peak_bytes, columns, options);
  if (!memory) return memory.error();
  time_ = std::move(*time);
  memory_ = std::move(*memory);
  if (!time_ && !memory_) return Error{"there is nothing to train on", data.source, "check the split of the data set"};
  return {};
}

Result<TrainingLog> GbdtPredictor::train(const DataSet& data, const TrainOptions& options) {
  if (const Status status = set_options(options.settings); !status.ok()) return status.error();
  const auto begun = std::chrono::steady_clock::now();
  EpochReport report{.epoch = 1, .epochs = 1, .best = true};
  const Fold fold = fold_for(data, options);
  if (!fold.validation.empty()) {
    if (const Status status = fit(data, fold.train, options.seed); !status.ok()) return status.error();
    report.validation_error =
        evaluate(data, fold.validation, predict(data, fold.validation), Target::iteration_ms).all.mre;
  }
  // What was set aside to validate on is training data too.
  if (const Status status = fit(data, select(data, Split::train), options.seed); !status.ok()) return status.error();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (options.progress) options.progress(report);
  return TrainingLog{{report}, 1, report.validation_error, report.seconds, "cpu"};
}

std::vector<Prediction> GbdtPredictor::predict(const DataSet& data, const Selection& examples) {
  std::vector<Prediction> predictions;
  for (const uint32_t e : examples) {
    const std::vector<float> columns = columns_of(data, data.examples()[e]);
    Prediction prediction;
    if (time_) prediction.iteration_ms = std::exp(double{time_->predict(columns)});
    if (memory_) prediction.peak_bytes = std::exp(double{memory_->predict(columns)});
    predictions.push_back(std::move(prediction));
  }
  return predictions;
}

Status GbdtPredictor::save(const std::string& folder) const {
  std::string bytes;
  for (const auto* forest : {&time_, &memory_}) {
    if (*forest) (*forest)->write(bytes);
  }
  const std::string path = (std::filesystem::path(folder) / kForests).string();
  auto file = LineWriter::create(path, {.overwrite = true});
  if (!file) return file.error();
  if (Status status = file->write(bytes); !status.ok()) return status;
  if (Status status = file->finish(); !status.ok()) return status;
  return write_json(folder, "predictor.json",
                    {{"settings", settings()},
                     {"vocabulary", vocabulary_.to_json()},
                     {"time", time_.has_value()},
                     {"memory", memory_.has_value()}});
}

Status GbdtPredictor::load(const std::string& folder) {
  const auto described = read_json(folder, "predictor.json", {"settings", "vocabulary", "time", "memory"});
  if (!described) return described.error();
  auto settings = settings_from(*described);
  if (!settings) return settings.error().within(folder);
  if (const Status status = set_options(*settings); !status.ok()) return status.error().within(folder);
  auto vocabulary = OpVocabulary::from_json(described->at("vocabulary"));
  if (!vocabulary) return vocabulary.error().within(folder);
  vocabulary_ = std::move(*vocabulary);
  const size_t width = columns_of(DataSet(), Example()).size();
  const std::string path = (std::filesystem::path(folder) / kForests).string();
  const auto bytes = bytes_of(path);
  if (!bytes) return bytes.error();
  std::string_view rest = *bytes;
  const auto take = [&](const char* field, std::optional<Forest>& into) -> Status {
    into.reset();
    if (described->at(field) != true) return {};
    auto forest = Forest::read(rest);
    if (!forest) return forest.error().within(path);
    if (forest->columns() > width) return Error{"a forest asks for columns there are not", path, "train it again"};
    into = std::move(*forest);
    return {};
  };
  if (Status status = take("time", time_); !status.ok()) return status;
  return take("memory", memory_);
}

}  // namespace forerun::learn
