#include "cost/calibrated/gpu_correction.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "derive/layout.h"
#include "derive/work.h"

namespace forerun {
namespace {

constexpr double kPull = 3;        // readings' worth, of a kind towards all kinds and of an op towards its kind
constexpr double kMostLog = 4;     // a reading that is further off than e^4 says no more than this
constexpr double kSpreadPull = 4;  // a reading whose repetitions differ by a quarter counts half

struct ReadRow {
  const hybrid::FeatureRow* row = nullptr;
  const std::string* op = nullptr;
  double log_ratio = 0;
  double weight = 0;
  bool within = false;
};

// What the trees left of the readings of one row.
struct Remained {
  double sum = 0;
  double count = 0;
  bool within = false;

  void add(double left, bool of_iteration) {
    if (within && !of_iteration) return;
    if (of_iteration && !within) *this = {.within = true};
    sum += left;
    count += 1;
  }
};

std::string key_of(const hybrid::FeatureRow& row, std::string_view op) {
  std::string key(reinterpret_cast<const char*>(row.columns.data() + 1), sizeof(float) * (hybrid::kColumns - 1));
  key += op;
  return key;
}

// The weighted mean, held to `towards`.
class HeldMean {
 public:
  void add(double value, double weight) {
    sum_ += weight * value;
    weight_ += weight;
  }
  [[nodiscard]] double towards(double other) const { return (sum_ + kPull * other) / (weight_ + kPull); }
  [[nodiscard]] bool empty() const { return weight_ <= 0; }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

// Long ops matter more, as do readings that repeat well.
double weight_of(const ReadOp& op) {
  return std::clamp(std::sqrt(op.us / 10), 0.5, 6.0) / (1 + kSpreadPull * std::max(op.spread, 0.0));
}

std::array<std::vector<ReadRow>, hybrid::kModelCount> rows_by_kind(const std::vector<ReadOp>& ops, size_t& readings) {
  std::array<std::vector<ReadRow>, hybrid::kModelCount> kinds;
  for (const ReadOp& op : ops) {
    double analytic = 0;
    for (const hybrid::FeatureRow& row : op.rows) analytic += row.analytic_us;
    if (analytic <= 0 || op.us <= 0 || op.default_us <= 0) continue;
    ++readings;
    const double log_ratio = std::clamp(std::log(op.us / op.default_us), -kMostLog, kMostLog);
    for (size_t i = 0; i < op.rows.size(); ++i) {
      const double share = op.rows[i].analytic_us / analytic;
      kinds[static_cast<size_t>(op.rows[i].model)].push_back(
          {&op.rows[i], &op.names[i], log_ratio, weight_of(op) * share, op.within});
    }
  }
  return kinds;
}

}  // namespace

GpuCorrection GpuCorrection::fitted(const std::vector<ReadOp>& ops, const BoostingOptions& options) {
  GpuCorrection result;
  const auto by_kind = rows_by_kind(ops, result.readings_);
  std::array<HeldMean, hybrid::kModelCount> means;
  HeldMean overall;
  for (size_t kind = 0; kind < by_kind.size(); ++kind) {
    for (const ReadRow& row : by_kind[kind]) means[kind].add(row.log_ratio, row.weight);
    if (!means[kind].empty()) overall.add(means[kind].towards(0), 1);
  }
  result.overall_ = overall.towards(0);
  parallel_for(by_kind.size(), 2, [&](size_t number) {
    Kind& kind = result.kinds_[number];
    kind = {};
    kind.mean = means[number].towards(result.overall_);
    if (by_kind[number].empty()) {
      kind.mean = result.overall_;
      return;
    }
    kind.read = true;
    std::unordered_map<std::string, HeldMean> of_ops;
    double weight = 0;
    for (const ReadRow& row : by_kind[number]) {
      of_ops[*row.op].add(row.log_ratio, row.weight);
      weight += row.weight;
    }
    for (const auto& [op, mean] : of_ops) kind.ops[op] = mean.towards(kind.mean);
    std::vector<float> rows;
    std::vector<double> targets;
    std::vector<double> weights;
    for (const ReadRow& row : by_kind[number]) {
      rows.push_back(static_cast<float>(kind.ops[*row.op]));
      rows.insert(rows.end(), row.row->columns.begin() + 1, row.row->columns.end());
      targets.push_back(row.log_ratio);
      weights.push_back(row.weight * static_cast<double>(by_kind[number].size()) / weight);
    }
    kind.forest = grow(rows, hybrid::kColumns, targets, weights, kind.mean, options);
    const std::vector<float> fitted = kind.forest.predict_all(rows, hybrid::kColumns);
    std::unordered_map<std::string, Remained> remained;
    for (size_t r = 0; r < fitted.size(); ++r) {
      const ReadRow& row = by_kind[number][r];
      remained[key_of(*row.row, *row.op)].add(targets[r] - static_cast<double>(fitted[r]), row.within);
    }
    for (const auto& [key, left] : remained) kind.remained[key] = left.sum / left.count;
  });
  return result;
}

std::vector<double> GpuCorrection::log_factors(const std::vector<const hybrid::FeatureRow*>& rows) const {
  std::vector<double> factors(rows.size(), overall_);
  std::array<std::vector<float>, hybrid::kModelCount> asked;
  std::array<std::vector<size_t>, hybrid::kModelCount> places;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Kind& kind = kind_of(*rows[i]);
    if (!kind.read) continue;
    const auto number = static_cast<size_t>(rows[i]->model);
    const auto op = kind.ops.find(std::string(rows[i]->op));
    asked[number].push_back(static_cast<float>(op != kind.ops.end() ? op->second : kind.mean));
    asked[number].insert(asked[number].end(), rows[i]->columns.begin() + 1, rows[i]->columns.end());
    places[number].push_back(i);
  }
  for (size_t number = 0; number < places.size(); ++number) {
    if (places[number].empty()) continue;
    const Kind& kind = kinds_[number];
    const std::vector<float> said = kind.forest.predict_all(asked[number], hybrid::kColumns);
    for (size_t r = 0; r < said.size(); ++r) {
      const hybrid::FeatureRow& row = *rows[places[number][r]];
      const auto remained = kind.remained.find(key_of(row, row.op));
      factors[places[number][r]] =
          static_cast<double>(said[r]) + (remained != kind.remained.end() ? remained->second : 0.0);
    }
  }
  return factors;
}

double GpuCorrection::log_factor(const hybrid::FeatureRow& row) const { return log_factors({&row})[0]; }

void GpuCorrection::apply(const Graph& graph, const Device& device, const TrainingSetup& setup,
                          const AnalyticConstants& constants, std::vector<OpCost>& costs) const {
  CHECK(costs.size() == graph.op_count(), "one cost per op is needed");
  if (readings_ == 0) return;
  LayoutTracker layouts(graph, setup.channels_last);
  std::vector<hybrid::FeatureRow> distinct;
  std::unordered_map<std::string, size_t> numbers;  // of equal rows
  std::vector<size_t> rows;                         // of the ops, one behind the other
  std::vector<size_t> behind;
  for (const Op& op : graph.ops()) {
    for (hybrid::FeatureRow& row :
         hybrid::featurize(graph, op, work_of(graph, op), layouts, device, setup, constants)) {
      std::string key = key_of(row, row.op);
      key.push_back(static_cast<char>(row.model));
      const auto [found, fresh] = numbers.try_emplace(std::move(key), distinct.size());
      if (fresh) distinct.push_back(row);
      rows.push_back(found->second);
    }
    behind.push_back(rows.size());
    layouts.pass(op);
  }
  std::vector<const hybrid::FeatureRow*> asked;
  for (const hybrid::FeatureRow& row : distinct) asked.push_back(&row);
  const std::vector<double> logs = log_factors(asked);
  size_t first = 0;
  for (size_t i = 0; i < costs.size(); first = behind[i], ++i) {
    double analytic = 0;
    double corrected = 0;
    bool read = first < behind[i];
    for (size_t r = first; r < behind[i]; ++r) {
      const hybrid::FeatureRow& row = distinct[rows[r]];
      analytic += row.analytic_us;
      corrected += row.analytic_us * std::exp(logs[rows[r]]);
      read = read && kind_of(row).ops.contains(std::string(row.op));
    }
    if (analytic <= 0) continue;
    const double factor = corrected / analytic;
    const auto scaled = [&](Nanoseconds time) {
      return Nanoseconds(std::llround(static_cast<double>(time.value) * factor));
    };
    costs[i].gpu = scaled(costs[i].gpu);
    costs[i].overlapped = std::min(costs[i].gpu, scaled(costs[i].overlapped));
    costs[i].measured = costs[i].measured || read;
  }
}

}  // namespace forerun
