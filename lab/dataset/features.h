// Features of ops as numbers for a network: what ETS, DNNPerf and the baselines share.
//
// A feature row is: one-hot of the op's name (the names seen in training; all others share the first place), one-hot of
// phase and of type, then amounts and hyper-parameters as ln(1 + x), since they span ten orders of magnitude, and what
// holds for the whole iteration (log2 of the batch, input size, precision, optimizer) as asked for. A Scaler, fitted on
// training data, brings columns to a common range. Both are saved with the weights and work without LibTorch.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/dataset/dataset.h"

namespace forerun::learn {

// The op names a predictor was trained with, in a fixed order. Index 0 stands for every other name.
class OpVocabulary {
 public:
  // The names of the ops of these examples, in order of first sight.
  static OpVocabulary of(const DataSet& data, const Selection& examples);

  void add(std::string_view name);
  [[nodiscard]] int64_t index_of(std::string_view name) const;
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(names_.size()) + 1; }

  [[nodiscard]] nlohmann::json to_json() const;
  static Result<OpVocabulary> from_json(const nlohmann::json& json);

 private:
  StringTable names_;
};

// Brings each column to a common range, by what training data showed. A column that never varied becomes 0 throughout.
class Scaler {
 public:
  enum class Kind : uint8_t { none, min_max, standard };

  Scaler() = default;
  explicit Scaler(Kind kind, size_t width) : kind_(kind), width_(width) {}

  // Sees rows of `width` values, `weight` times each; `finish` fixes the scale.
  void see(std::span<const float> row, double weight = 1);
  void finish();
  void apply(std::span<float> row) const;
  [[nodiscard]] double restore(double scaled, size_t column) const;  // what `apply` turned into `scaled`
  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] size_t width() const { return width_; }

  [[nodiscard]] nlohmann::json to_json() const;
  static Result<Scaler> from_json(const nlohmann::json& json);

 private:
  Kind kind_ = Kind::none;
  size_t width_ = 0;
  std::vector<double> low_, high_;     // seen so far
  std::vector<double> mean_, square_;  // running (Welford), by weight
  double weight_ = 0;
  std::vector<float> offset_, factor_;  // scaled = (x - offset) * factor
};

// Which columns a feature row has.
struct FeatureChoice {
  bool name = true;   // one-hot
  bool phase = true;  // one-hot of 3
  bool dtype = true;  // one-hot of 3: float32, a 16-bit type, any other
  bool cls = false;   // one-hot of OpClass
  std::vector<Amount> amounts = {Amount::flops, Amount::bytes_read, Amount::bytes_written};
  size_t hyper = kHyperParameterCount;  // the first so many
  bool batch = true;                    // log2
  bool size = true;                     // log2 of height or length
  bool setup = false;  // precision (3), optimizer's kind (6) and implementation (3), channels_last: one-hot
};

// Encodes ops of a data set as rows of `width()` features, unscaled or scaled.
class FeatureEncoder {
 public:
  FeatureEncoder() = default;
  FeatureEncoder(FeatureChoice choice, OpVocabulary vocabulary);

  [[nodiscard]] size_t width() const { return width_; }
  [[nodiscard]] const OpVocabulary& vocabulary() const { return vocabulary_; }
  [[nodiscard]] const FeatureChoice& choice() const { return choice_; }

  // Features of one op of an example, not scaled. `out` has width() places.
  void encode(const DataSet& data, const Example& example, const OpRow& row, std::span<float> out) const;
  // All ops of an example (or those listed), scaled: ops x width(), row by row.
  [[nodiscard]] std::vector<float> encode(const DataSet& data, const Example& example) const;
  [[nodiscard]] std::vector<float> encode(const DataSet& data, const Example& example,
                                          std::span<const uint32_t> ops) const;

  // Fits the scaler on these examples' ops.
  void fit_scaler(Scaler::Kind kind, const DataSet& data, const Selection& examples);
  [[nodiscard]] const Scaler& scaler() const { return scaler_; }

  [[nodiscard]] nlohmann::json to_json() const;
  static Result<FeatureEncoder> from_json(const nlohmann::json& json);

 private:
  FeatureChoice choice_;
  OpVocabulary vocabulary_;
  Scaler scaler_;
  size_t width_ = 0;
};

}  // namespace forerun::learn
