#include "lab/calibrate/device_regression.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/statistics.h"

namespace forerun::hybrid {
namespace {

constexpr int kReweightings = 12;
constexpr double kSmallestError = 0.05;  // in logarithms: below, all errors weigh the same
constexpr double kAtTheBound = 1.15;     // of the least time by bandwidth: an op below it tells that bound alone
constexpr double kLongCallUs = 500;      // the launch is no longer to be seen in a call's time
constexpr double kModelWeight = 4;       // of ops as models have them; of extents drawn at random: 1
constexpr double kPull = 1;              // of the weight to 1, as so many of a GPU's mean ops

struct Point {
  double x = 0;  // log correction
  double y = 0;  // log (measured / analytic)
  double weight = 1;
};

// y = offset + weight x, by least squares weighted anew until they are least absolute errors.
Carry fit_line(const std::vector<Point>& points) {
  double mean_weight = 0;
  for (const Point& point : points) mean_weight += point.weight / static_cast<double>(points.size());
  Carry carry;
  for (int round = 0; round < kReweightings; ++round) {
    double w = 0;
    double wx = 0;
    double wy = 0;
    double wxx = kPull * mean_weight;
    double wxy = kPull * mean_weight;
    for (const Point& p : points) {
      const double error = std::abs(p.y - carry.offset - carry.weight * p.x);
      const double weight = p.weight / std::max(error, kSmallestError);
      w += weight;
      wx += weight * p.x;
      wy += weight * p.y;
      wxx += weight * p.x * p.x;
      wxy += weight * p.x * p.y;
    }
    const double determinant = w * wxx - wx * wx;
    if (determinant <= 1e-12) break;
    carry.weight = std::clamp((w * wxy - wx * wy) / determinant, 0.0, 1.5);
    carry.offset = (wy - carry.weight * wx) / w;
  }
  return carry;
}

}  // namespace

double calibrate_reach(std::span<const CarriedOp> ops, const std::string& kind, const std::string& without) {
  std::map<std::string, std::vector<double>> by_gpu;
  for (const CarriedOp& op : ops) {
    if (op.kind != kind || op.chip == without || op.us < kLongCallUs || op.row.memory_us <= 0) continue;
    by_gpu[op.gpu].push_back(op.row.memory_us / op.us);
  }
  double sum = 0;
  for (auto& [gpu, shares] : by_gpu) sum += upper_median(shares);
  return by_gpu.empty() ? 0 : sum / static_cast<double>(by_gpu.size());
}

std::array<Carry, kCarriedCount> calibrate_carry(std::span<const CarriedOp> ops, const DeviceScale& scale,
                                                 const std::string& without) {
  std::array<Carry, kCarriedCount> carry = scale.carry;
  for (size_t kind = 0; kind < kCarriedCount; ++kind) {
    std::map<std::pair<std::string, std::string>, std::vector<Point>> groups;
    for (const CarriedOp& op : ops) {
      if (op.chip == without || op.row.kind != static_cast<Carried>(kind) || op.us <= 0) continue;
      const bool hidden = scale.bandwidth_reach > 0 && op.us < kAtTheBound * op.row.memory_us / scale.bandwidth_reach;
      if (hidden) continue;
      groups[{op.gpu, op.kind}].push_back({std::log(op.row.correction), std::log(op.us / op.row.analytic_us)});
    }
    std::vector<Point> points;
    for (auto& [group, list] : groups) {
      for (Point& point : list) {
        point.weight = (group.second.ends_with(kInModels) ? kModelWeight : 1) / static_cast<double>(list.size());
        points.push_back(point);
      }
    }
    if (!points.empty()) carry[kind] = fit_line(points);
  }
  return carry;
}

std::vector<CarriedError> carried_errors(std::span<const CarriedOp> ops, const DeviceScale& scale) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> ratios;
  for (const CarriedOp& op : ops) ratios[{op.gpu, op.kind}].push_back(op.us / carried_us(op.row, scale));
  std::vector<CarriedError> rows;
  for (auto& [key, list] : ratios) {
    CarriedError row{.gpu = key.first, .kind = key.second, .ops = static_cast<int64_t>(list.size())};
    for (const double ratio : list) row.mre += std::abs(1 / ratio - 1) / static_cast<double>(list.size());
    row.ratio = upper_median(list);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace forerun::hybrid
