#include "lab/dataset/features.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "lab/dataset/log_scale.h"

namespace forerun::learn {
namespace {

using Json = nlohmann::json;

constexpr size_t kPhases = 3;
constexpr size_t kTypes = 3;
constexpr size_t kSetupColumns = 3 + 6 + 3 + 1;
// Scaled values beyond this many standard deviations say no more than that they are far out.
constexpr float kFarthest = 8;

size_t type_column(DType dtype) {
  if (dtype == DType::float32) return 0;
  return size_of(dtype) == 2 ? 1 : 2;
}

Error broken(const std::string& what) { return {what, "", "train the predictor again"}; }

// Reads a JSON value that a file of ours must hold; other libraries' exceptions stop here.
template <class Read>
auto guarded(const char* part, Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const Json::exception&) {
    return broken(std::string("the ") + part + " of these weights cannot be read");
  }
}

}  // namespace

OpVocabulary OpVocabulary::of(const DataSet& data, const Selection& examples) {
  OpVocabulary vocabulary;
  std::vector<bool> seen(data.rows().size());
  for (const uint32_t i : examples) {
    for (const uint32_t row : data.examples()[i].ops) {
      if (!seen[row]) vocabulary.add(data.name_of_row(data.rows()[row]));
      seen[row] = true;
    }
  }
  return vocabulary;
}

void OpVocabulary::add(std::string_view name) { names_.intern(name); }

int64_t OpVocabulary::index_of(std::string_view name) const {
  const NameId id = names_.find(name);
  return id.valid() ? int64_t{id.value} + 1 : 0;
}

Json OpVocabulary::to_json() const {
  Json names = Json::array();
  for (size_t i = 0; i < names_.size(); ++i) names.push_back(names_[NameId(i)]);
  return names;
}

Result<OpVocabulary> OpVocabulary::from_json(const Json& json) {
  return guarded("op names", [&]() -> Result<OpVocabulary> {
    OpVocabulary vocabulary;
    for (const auto& name : json.get<std::vector<std::string>>()) vocabulary.add(name);
    return vocabulary;
  });
}

void Scaler::see(std::span<const float> row, double weight) {
  CHECK(row.size() == width_, "a row as wide as the scaler");
  if (low_.empty()) {
    low_.assign(row.begin(), row.end());
    high_ = low_;
    mean_.assign(width_, 0);
    square_.assign(width_, 0);
  }
  weight_ += weight;
  for (size_t i = 0; i < width_; ++i) {
    const double x = row[i];
    low_[i] = std::min(low_[i], x);
    high_[i] = std::max(high_[i], x);
    const double off = x - mean_[i];
    mean_[i] += off * weight / weight_;
    square_[i] += weight * off * (x - mean_[i]);
  }
}

void Scaler::finish() {
  offset_.assign(width_, 0);
  factor_.assign(width_, kind_ == Kind::none ? 1.0F : 0.0F);
  if (kind_ == Kind::none || low_.empty()) return;
  for (size_t i = 0; i < width_; ++i) {
    const bool varied = high_[i] > low_[i];
    const double range = kind_ == Kind::min_max ? high_[i] - low_[i] : std::sqrt(square_[i] / weight_);
    offset_[i] = static_cast<float>(kind_ == Kind::min_max ? low_[i] : mean_[i]);
    if (varied && range > 1e-12) factor_[i] = static_cast<float>(1 / range);
  }
}

void Scaler::apply(std::span<float> row) const {
  CHECK(row.size() == width_ && factor_.size() == width_, "a scaler that is finished, and a row as wide");
  for (size_t i = 0; i < width_; ++i) {
    row[i] = (row[i] - offset_[i]) * factor_[i];
    if (kind_ != Kind::none) row[i] = std::clamp(row[i], -kFarthest, kFarthest);
  }
}

double Scaler::restore(double scaled, size_t column) const {
  return factor_[column] == 0 ? offset_[column] : scaled / factor_[column] + offset_[column];
}

Json Scaler::to_json() const { return {{"kind", static_cast<int>(kind_)}, {"offset", offset_}, {"factor", factor_}}; }

Result<Scaler> Scaler::from_json(const Json& json) {
  return guarded("scale", [&]() -> Result<Scaler> {
    Scaler scaler;
    const int kind = json.at("kind").get<int>();
    if (kind < 0 || kind > 2) return broken("the scale of these weights is of an unknown kind");
    scaler.kind_ = static_cast<Kind>(kind);
    scaler.offset_ = json.at("offset").get<std::vector<float>>();
    scaler.factor_ = json.at("factor").get<std::vector<float>>();
    scaler.width_ = scaler.offset_.size();
    if (scaler.factor_.size() != scaler.width_) return broken("the scale of these weights does not fit itself");
    return scaler;
  });
}

FeatureEncoder::FeatureEncoder(FeatureChoice choice, OpVocabulary vocabulary)
    : choice_(std::move(choice)), vocabulary_(std::move(vocabulary)) {
  CHECK(choice_.hyper <= kHyperParameterCount, "there are 30 hyper-parameters at most");
  if (choice_.name) width_ += static_cast<size_t>(vocabulary_.size());
  if (choice_.phase) width_ += kPhases;
  if (choice_.dtype) width_ += kTypes;
  if (choice_.cls) width_ += kOpClassCount;
  width_ += choice_.amounts.size() + choice_.hyper + (choice_.batch ? 1 : 0) + (choice_.size ? 1 : 0);
  if (choice_.setup) width_ += kSetupColumns;
  scaler_ = Scaler(Scaler::Kind::none, width_);
  scaler_.finish();
}

void FeatureEncoder::encode(const DataSet& data, const Example& example, const OpRow& row, std::span<float> out) const {
  CHECK(out.size() == width_, "a place for each feature");
  std::fill(out.begin(), out.end(), 0.0F);
  size_t at = 0;
  const auto one_hot = [&](size_t index, size_t count) {
    out[at + index] = 1;
    at += count;
  };
  if (choice_.name) {
    one_hot(static_cast<size_t>(vocabulary_.index_of(data.name_of_row(row))), static_cast<size_t>(vocabulary_.size()));
  }
  if (choice_.phase) one_hot(static_cast<size_t>(row.phase), kPhases);
  if (choice_.dtype) one_hot(type_column(row.dtype), kTypes);
  if (choice_.cls) one_hot(static_cast<size_t>(row.cls), kOpClassCount);
  for (const Amount amount : choice_.amounts) out[at++] = log1p_of(row.amount(amount));
  for (size_t i = 0; i < choice_.hyper; ++i) out[at++] = log1p_of(row.hyper[i]);
  if (choice_.batch) out[at++] = log2_of(example.batch);
  if (choice_.size) out[at++] = log2_of(example.size);
  if (choice_.setup) {
    one_hot(static_cast<size_t>(example.precision), 3);
    one_hot(static_cast<size_t>(example.optimizer.kind), 6);
    one_hot(static_cast<size_t>(example.optimizer.impl), 3);
    out[at++] = example.channels_last ? 1.0F : 0.0F;
  }
  CHECK(at == width_, "every column filled");
}

std::vector<float> FeatureEncoder::encode(const DataSet& data, const Example& example) const {
  return encode(data, example, example.ops);
}

std::vector<float> FeatureEncoder::encode(const DataSet& data, const Example& example,
                                          std::span<const uint32_t> ops) const {
  std::vector<float> features(ops.size() * width_);
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::span<float> row(features.data() + i * width_, width_);
    encode(data, example, data.rows()[ops[i]], row);
    scaler_.apply(row);
  }
  return features;
}

void FeatureEncoder::fit_scaler(Scaler::Kind kind, const DataSet& data, const Selection& examples) {
  Scaler scaler(kind, width_);
  std::vector<float> row(width_);
  for (const uint32_t i : examples) {
    const Example& example = data.examples()[i];
    for (const uint32_t op : example.ops) {
      encode(data, example, data.rows()[op], row);
      scaler.see(row);
    }
  }
  scaler.finish();
  scaler_ = std::move(scaler);
}

Json FeatureEncoder::to_json() const {
  std::vector<int> amounts;
  for (const Amount amount : choice_.amounts) amounts.push_back(static_cast<int>(amount));
  return {{"name", choice_.name},       {"phase", choice_.phase},
          {"dtype", choice_.dtype},     {"cls", choice_.cls},
          {"amounts", amounts},         {"hyper", choice_.hyper},
          {"batch", choice_.batch},     {"size", choice_.size},
          {"setup", choice_.setup},     {"vocabulary", vocabulary_.to_json()},
          {"scaler", scaler_.to_json()}};
}

Result<FeatureEncoder> FeatureEncoder::from_json(const Json& json) {
  return guarded("features", [&]() -> Result<FeatureEncoder> {
    FeatureChoice choice;
    choice.name = json.at("name").get<bool>();
    choice.phase = json.at("phase").get<bool>();
    choice.dtype = json.at("dtype").get<bool>();
    choice.cls = json.at("cls").get<bool>();
    choice.amounts.clear();
    for (const int amount : json.at("amounts").get<std::vector<int>>()) {
      if (amount < 0 || amount >= static_cast<int>(kAmountCount))
        return broken("an amount of these weights is unknown");
      choice.amounts.push_back(static_cast<Amount>(amount));
    }
    choice.hyper = json.at("hyper").get<size_t>();
    if (choice.hyper > kHyperParameterCount) return broken("these weights want more hyper-parameters than there are");
    choice.batch = json.at("batch").get<bool>();
    choice.size = json.at("size").get<bool>();
    choice.setup = json.at("setup").get<bool>();
    auto vocabulary = OpVocabulary::from_json(json.at("vocabulary"));
    if (!vocabulary) return vocabulary.error();
    auto scaler = Scaler::from_json(json.at("scaler"));
    if (!scaler) return scaler.error();
    FeatureEncoder encoder(std::move(choice), std::move(*vocabulary));
    if (scaler->width() != encoder.width_) return broken("the scale of these weights is not as wide as their features");
    encoder.scaler_ = std::move(*scaler);
    return encoder;
  });
}

}  // namespace forerun::learn
