#include "lab/calibrate/device_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>
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
constexpr double kLaunchShare = 0.75;    // of the least latency, what a long call has of it beside its kernel
constexpr double kStep = 1.08;           // of factors of streaming kernels
constexpr double kLeastLanesFactor = 0.1;
constexpr double kLeastMemoryFactor = 0.7;
constexpr double kLargestFactor = 2.0;

double launch_of(const CarriedOp& op, const Launches& launches) {
  const auto found = launches.find(op.kind);
  return op.least_us > 0 && found != launches.end() ? found->second : 0;
}

double weight_of(const std::string& kind) { return kind.ends_with(kInModels) ? kModelWeight : 1; }

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

namespace {

// What latencies of a kind on a chip have in common.
struct LatencyTable {
  double ops = 0, least = 0;                       // sums
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;  // of y = intercept + slope x, by relative errors
  bool streams = false;

  void add(const CarriedOp& op) {
    const double weight = 1 / (op.us * op.us);
    ops += 1;
    least += op.least_us;
    w += weight;
    wx += weight * op.moved_us;
    wy += weight * op.us;
    wxx += weight * op.moved_us * op.moved_us;
    wxy += weight * op.moved_us * op.us;
    streams = op.row.streamed.has_value();
  }
  // Of ops that stream, where a line through time over bytes begins; of others, a share of the least latency.
  [[nodiscard]] double launch() const {
    const double mean = least / ops;
    const double determinant = w * wxx - wx * wx;
    if (!streams || determinant <= 0) return kLaunchShare * mean;
    return std::clamp((wy * wxx - wx * wxy) / determinant, 0.0, mean);
  }
};

}  // namespace

Launches calibrate_launches(std::span<const CarriedOp> ops, const std::string& without) {
  std::map<std::string, std::map<std::string, LatencyTable>> tables;  // by kind and chip
  for (const CarriedOp& op : ops) {
    if (op.chip != without && op.least_us > 0) tables[op.kind][op.chip].add(op);
  }
  Launches launches;
  for (const auto& [kind, chips] : tables) {
    for (const auto& [chip, table] : chips) launches[kind] += table.launch() / static_cast<double>(chips.size());
  }
  return launches;
}

double calibrate_reach(std::span<const CarriedOp> ops, const std::string& kind, const Launches& launches,
                       const std::string& without) {
  std::map<std::string, std::vector<double>> by_gpu;
  for (const CarriedOp& op : ops) {
    if (op.kind != kind || op.chip == without || op.us < kLongCallUs || !op.row.reach_bound) continue;
    by_gpu[op.gpu].push_back(op.moved_us / (op.us - launch_of(op, launches)));
  }
  double sum = 0;
  for (auto& [gpu, shares] : by_gpu) sum += upper_median(shares);
  return by_gpu.empty() ? 0 : sum / static_cast<double>(by_gpu.size());
}

std::array<Carry, kCarriedCount> calibrate_carry(std::span<const CarriedOp> ops, const DeviceScale& scale,
                                                 const Launches& launches, const std::string& without) {
  std::array<Carry, kCarriedCount> carry = scale.carry;
  for (size_t kind = 0; kind < kCarriedCount; ++kind) {
    std::map<std::pair<std::string, std::string>, std::vector<Point>> groups;
    for (const CarriedOp& op : ops) {
      if (op.chip == without || op.row.streamed || op.row.kind != static_cast<Carried>(kind) || op.us <= 0) continue;
      const double us = op.us - launch_of(op, launches);
      const bool hidden = scale.bandwidth_reach > 0 && us < kAtTheBound * op.row.memory_us / scale.bandwidth_reach;
      if (hidden || us <= 0) continue;
      groups[{op.gpu, op.kind}].push_back({std::log(op.row.correction), std::log(us / op.row.analytic_us)});
    }
    std::vector<Point> points;
    for (auto& [group, list] : groups) {
      for (Point& point : list) {
        point.weight = weight_of(group.second) / static_cast<double>(list.size());
        points.push_back(point);
      }
    }
    if (!points.empty()) carry[kind] = fit_line(points);
  }
  return carry;
}

std::array<StreamFactors, kStreamingCount> calibrate_streaming(std::span<const CarriedOp> ops, const DeviceScale& scale,
                                                               const Launches& launches, const std::string& without) {
  DeviceScale tried = scale;
  for (size_t kind = 1; kind < kStreamingCount; ++kind) {
    std::map<std::pair<std::string, std::string>, std::vector<const CarriedOp*>> groups;
    for (const CarriedOp& op : ops) {
      if (op.chip == without || !op.row.streamed || op.row.streamed->kind != static_cast<Streaming>(kind)) continue;
      groups[{op.gpu, op.kind}].push_back(&op);
    }
    if (groups.empty()) continue;
    const auto error_of = [&] {
      double error = 0;
      for (const auto& [group, list] : groups) {
        double sum = 0;
        for (const CarriedOp* op : list) {
          sum += std::abs(std::log((carried_us(op->row, tried) + launch_of(*op, launches)) / op->us));
        }
        error += sum / static_cast<double>(list.size());
      }
      return error;
    };
    StreamFactors best = scale.streaming[kind];
    double least = std::numeric_limits<double>::infinity();
    StreamFactors& factors = tried.streaming[kind];
    for (factors.lanes = kLeastLanesFactor; factors.lanes < kLargestFactor; factors.lanes *= kStep) {
      for (factors.memory = kLeastMemoryFactor; factors.memory < kLargestFactor; factors.memory *= kStep) {
        if (const double error = error_of(); error < least) {
          least = error;
          best = factors;
        }
      }
    }
    factors = best;
  }
  return tried.streaming;
}

std::vector<CarriedError> carried_errors(std::span<const CarriedOp> ops, const DeviceScale& scale,
                                         const Launches& launches) {
  struct Group {
    std::vector<double> ratios;
    double roofline = 0;  // sum of errors
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const CarriedOp& op : ops) {
    const double launch = launch_of(op, launches);
    Group& group = groups[{op.gpu, op.kind}];
    group.ratios.push_back(op.us / (carried_us(op.row, scale) + launch));
    group.roofline += std::abs((op.roofline_us + launch) / op.us - 1);
  }
  std::vector<CarriedError> rows;
  for (auto& [key, group] : groups) {
    const auto count = static_cast<double>(group.ratios.size());
    CarriedError row{.gpu = key.first, .kind = key.second, .ops = static_cast<int64_t>(group.ratios.size())};
    for (const double ratio : group.ratios) row.mre += std::abs(1 / ratio - 1) / count;
    row.roofline = group.roofline / count;
    row.ratio = upper_median(group.ratios);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace forerun::hybrid
