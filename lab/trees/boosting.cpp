#include "lab/trees/boosting.h"

#include <cmath>
#include <numeric>

#include "base/check.h"

#if FORERUN_HAS_XGBOOST
#include <xgboost/c_api.h>

#include <nlohmann/json.hpp>
#endif

namespace forerun {

void BoostingTable::add(std::span<const float> row, double label, double weight) {
  CHECK(row.size() == width_, "a row as wide as the table");
  values_.insert(values_.end(), row.begin(), row.end());
  labels_.push_back(label * weight);
  weights_.push_back(weight);
}

void BoostingTable::merge(std::span<const float> row, double label, double weight) {
  std::string key(reinterpret_cast<const char*>(row.data()), row.size_bytes());
  const auto [found, fresh] = places_.emplace(std::move(key), size());
  if (fresh) return add(row, label, weight);
  labels_[found->second] += label * weight;
  weights_[found->second] += weight;
}

#if !FORERUN_HAS_XGBOOST

bool can_boost() { return false; }

Result<Forest> BoostingTable::grow(const BoostingOptions& /*options*/) const {
  return Error{"this program was built without XGBoost", "", "install libxgboost-dev and build again"};
}

#else

bool can_boost() { return true; }

namespace {

using Json = nlohmann::json;

// The nodes of a dumped tree in order of breadth, so that children stand beside each other.
std::vector<Forest::Node> nodes_of(const Json& root, double leaf_step) {
  std::vector<Forest::Node> nodes(1);
  std::vector<const Json*> dumped = {&root};
  for (size_t i = 0; i < dumped.size(); ++i) {
    const Json& node = *dumped[i];
    if (node.contains("leaf")) {
      const auto leaf = node["leaf"].get<float>();
      const double stepped = leaf_step > 0 ? std::round(leaf / leaf_step) * leaf_step : leaf;
      nodes[i] = {static_cast<float>(stepped), Forest::kLeaf, 0};
      continue;
    }
    const Json& children = node["children"];
    const size_t yes = children[0]["nodeid"] == node["yes"] ? 0 : 1;
    const int column = std::stoi(node["split"].get<std::string>().substr(1));  // "f12"
    nodes[i] = {node["split_condition"].get<float>(), static_cast<uint16_t>(column),
                static_cast<uint16_t>(nodes.size())};
    for (const size_t child : {yes, 1 - yes}) {
      nodes.emplace_back();
      dumped.push_back(&children[child]);
    }
  }
  return nodes;
}

// XGBoost's handles, given back in any case.
struct Handles {
  DMatrixHandle rows = nullptr;
  BoosterHandle booster = nullptr;
  Handles() = default;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() {
    if (booster != nullptr) XGBoosterFree(booster);
    if (rows != nullptr) XGDMatrixFree(rows);
  }
};

bool set_parameters(BoosterHandle booster, const BoostingOptions& options) {
  const bool logarithm = options.target == BoostingTarget::logarithm;
  const std::pair<const char*, std::string> parameters[] = {{"objective", logarithm ? "reg:gamma" : "reg:squarederror"},
                                                            {"base_score", logarithm ? "1" : "0"},
                                                            {"tree_method", "hist"},
                                                            {"max_depth", std::to_string(options.depth)},
                                                            {"eta", std::to_string(options.rate)},
                                                            {"subsample", std::to_string(options.rows)},
                                                            {"colsample_bytree", std::to_string(options.columns)},
                                                            {"min_child_weight", std::to_string(options.least_weight)},
                                                            {"seed", std::to_string(options.seed)},
                                                            {"nthread", "1"},
                                                            {"verbosity", "0"}};
  for (const auto& [name, value] : parameters) {
    if (XGBoosterSetParam(booster, name, value.c_str()) != 0) return false;
  }
  return true;
}

}  // namespace

Result<Forest> BoostingTable::grow(const BoostingOptions& options) const {
  if (size() == 0) return Error{"there are no rows to grow trees on", "", "check the split of the data set"};
  const double mean = std::accumulate(weights_.begin(), weights_.end(), 0.0) / static_cast<double>(size());
  CHECK(mean > 0, "rows that weigh something");
  const bool logarithm = options.target == BoostingTarget::logarithm;
  std::vector<float> labels(size());
  std::vector<float> weights(size());
  double base = 0;
  for (size_t i = 0; i < size(); ++i) base += labels_[i] / mean / static_cast<double>(size());
  for (size_t i = 0; i < size(); ++i) {
    const double label = weights_[i] > 0 ? labels_[i] / weights_[i] : base;
    CHECK(!logarithm || label > 0, "the logarithm of a label that has one");
    labels[i] = static_cast<float>(logarithm ? label / base : label - base);
    weights[i] = static_cast<float>(weights_[i] / mean);
  }
  Handles held;
  bool fine = XGDMatrixCreateFromMat(values_.data(), size(), width_, std::nanf(""), &held.rows) == 0;
  fine = fine && XGDMatrixSetFloatInfo(held.rows, "label", labels.data(), labels.size()) == 0;
  fine = fine && XGDMatrixSetFloatInfo(held.rows, "weight", weights.data(), weights.size()) == 0;
  fine = fine && XGBoosterCreate(&held.rows, 1, &held.booster) == 0 && set_parameters(held.booster, options);
  for (int round = 0; fine && round < static_cast<int>(options.rounds); ++round) {
    fine = XGBoosterUpdateOneIter(held.booster, round, held.rows) == 0;
  }
  bst_ulong count = 0;
  const char** dumps = nullptr;
  fine = fine && XGBoosterDumpModelEx(held.booster, "", 0, "json", &count, &dumps) == 0;
  if (!fine) return Error{std::string("trees cannot be grown: ") + XGBGetLastError(), "XGBoost", "check the data"};
  Forest forest(static_cast<float>(logarithm ? std::log(base) : base));
  for (bst_ulong i = 0; i < count; ++i) {
    const Status added = forest.add_tree(nodes_of(Json::parse(dumps[i]), options.leaf_step));
    CHECK(added.ok(), "trees that XGBoost grew");
  }
  return forest;
}

#endif

}  // namespace forerun
