#include "cluster/speed_table.h"

#include <algorithm>
#include <cmath>

namespace forerun::cluster {

void SpeedTable::add(int32_t gpus, int32_t nodes, double local_batch, double step, double sync) {
  rows_[{gpus, nodes}].push_back({local_batch, step, sync});
}

void SpeedTable::finish() {
  for (auto& [place, points] : rows_) {
    std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.batch < b.batch; });
  }
}

void SpeedTable::drop_batches_above(double local_batch) {
  for (auto& [place, points] : rows_) {
    std::erase_if(points, [&](const Point& point) { return point.batch > local_batch; });
  }
  std::erase_if(rows_, [](const auto& row) { return row.second.empty(); });
}

int32_t SpeedTable::most_gpus() const { return rows_.empty() ? 0 : rows_.rbegin()->first.gpus; }

double SpeedTable::at(const Points& points, double local_batch) {
  const double passes = std::max(1.0, std::ceil(local_batch / points.back().batch));
  const double batch = std::max(local_batch / passes, points.front().batch);
  auto high =
      std::lower_bound(points.begin(), points.end(), batch, [](const Point& p, double b) { return p.batch < b; });
  if (high == points.end()) --high;
  const auto low = high == points.begin() ? high : high - 1;
  const double share = high->batch == low->batch ? 0 : (batch - low->batch) / (high->batch - low->batch);
  const double step = low->step + share * (high->step - low->step);
  const double sync = low->sync + share * (high->sync - low->sync);
  return step + (passes - 1) * std::max(step - sync, 0.0);
}

const SpeedTable::Points* SpeedTable::nearest(int32_t gpus, int32_t nodes) const {
  const Points* best = nullptr;
  int32_t distance = 0;
  for (auto row = rows_.lower_bound({gpus, 0}); row != rows_.end() && row->first.gpus == gpus; ++row) {
    const int32_t off = std::abs(row->first.nodes - nodes);
    if (best == nullptr || off < distance) {
      best = &row->second;
      distance = off;
    }
  }
  return best;
}

std::optional<double> SpeedTable::step(int32_t gpus, int32_t nodes, double batch) const {
  if (rows_.empty() || gpus < 1) return std::nullopt;
  if (const Points* exact = nearest(gpus, nodes)) return at(*exact, batch / gpus);
  const auto above = rows_.lower_bound({gpus, 0});
  if (above == rows_.begin()) return std::nullopt;
  const int32_t fewer = std::prev(above)->first.gpus;
  const double low = at(*nearest(fewer, nodes), batch / fewer);
  if (above == rows_.end()) return low;  // no faster than the largest measured
  const int32_t more = above->first.gpus;
  const double high = at(*nearest(more, nodes), batch / more);
  return low + (high - low) * (gpus - fewer) / static_cast<double>(more - fewer);
}

std::optional<double> SpeedModel::measured_speed(const Question& question) const {
  const auto fewest = [&](int32_t count) { return (count + gpus_per_node - 1) / gpus_per_node; };
  const auto kind = static_cast<size_t>(question.kind);
  if (question.kind < 0 || kind >= tables.size() || tables[kind].empty() || question.job >= batch.size()) return {};
  const SpeedTable& table = tables[kind][std::min<size_t>(question.type, tables[kind].size() - 1)];
  const double total = batch[question.job];
  const auto own = table.step(question.stated, fewest(question.stated), total);
  const auto now = table.step(question.gpus, question.nodes > 0 ? question.nodes : fewest(question.gpus), total);
  if (!own || !now || !(*own > 0) || !(*now > 0)) return {};
  return *own / *now;
}

double SpeedModel::speed(const Question& question) const {
  return measured_speed(question).value_or(static_cast<double>(question.gpus) / question.stated);
}

}  // namespace forerun::cluster
