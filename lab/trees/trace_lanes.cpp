#include "lab/trees/trace_lanes.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/statistics.h"

namespace forerun::learn {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;  // whichever op follows
constexpr uint32_t kEnd = 0xFFFFFFFE;   // the trace ends
constexpr size_t kFarthestPair = 12;    // forward ops that may be skipped between two backward ops
constexpr double kShortOp = 50;         // us: an op of this length at most shows what the host takes
constexpr double kLongOp = 700;         // us: behind an op of this length at least the host is not what is late
constexpr double kLongUntraced = 400;   // us: work of this length at least shows what the GPU takes
constexpr double kMainShare = 0.8;      // of the skipped time that one kind must have
constexpr double kLeastWaiting = 20;    // us: a gap of this length behind long ops means that the host waits
constexpr size_t kFewest = 20;          // examples to take a typical value from
constexpr double kProductRatio = 2;     // of a linear layer's backward, where none was seen
constexpr double kSlopeApart = 50;      // ops that two traces must differ by to tell what one op adds

uint64_t key_of(uint32_t kind, uint32_t next) { return uint64_t{kind} << 32 | next; }
uint32_t next_kind(std::span<const LaneOp> ops, size_t i) { return i + 1 < ops.size() ? ops[i + 1].kind() : kEnd; }

// The one of these that the others are off by least in the mean, relative to themselves: a median by weights 1 / value.
double closest_to_all(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto weight = [](double value) { return 1 / std::max(value, 1.0); };
  double rest = 0;
  for (const double value : values) rest += weight(value) / 2;
  for (const double value : values) {
    rest -= weight(value);
    if (rest <= 0) return value;
  }
  return 0;
}

// Whether backward begins behind this op.
bool turns(std::span<const LaneOp> ops, size_t i) {
  return ops[i].forward && i + 1 < ops.size() && !ops[i + 1].forward;
}

// Whether the backward of an op that was skipped behind another is work that the trace does not show.
bool left_out(const LaneOp& skipped, const LaneOp& before) {
  return !skipped.bias && (skipped.layer == 0 || skipped.layer != before.layer);
}

// What ops of one kind took.
struct Seen {
  std::vector<double> of_short;  // GPU time and gap
  std::vector<double> of_all;
  std::vector<double> behind_long;  // gap
};

}  // namespace

uint64_t layer_of(const OpFigures& figures) {
  const auto whole = [](double extent) { return static_cast<uint64_t>(std::clamp(extent, 0.0, 1e15)); };
  return (whole(figures.m) * 1000003 + whole(figures.n)) * 1000003 + whole(figures.k) + 1;
}

std::vector<std::vector<uint32_t>> skipped_ops(std::span<const LaneOp> ops) {
  std::vector<std::vector<uint32_t>> skipped(ops.size());
  std::vector<uint32_t> forward;  // a stack: the last op is paired first
  for (uint32_t i = 0; i < ops.size(); ++i) {
    if (ops[i].forward) forward.push_back(i);
  }
  std::optional<size_t> before;  // the backward op paired last
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].forward) continue;
    size_t skip = 0;
    const auto matches = [&] { return ops[forward[forward.size() - 1 - skip]].name == ops[i].name; };
    while (skip < forward.size() && skip < kFarthestPair && !matches()) ++skip;
    if (skip >= forward.size() || skip >= kFarthestPair) continue;  // no partner
    for (size_t s = 0; s < skip && before; ++s) skipped[*before].push_back(forward[forward.size() - 1 - s]);
    forward.resize(forward.size() - skip - 1);
    before = i;
  }
  return skipped;
}

TraceLanes::Typical TraceLanes::typical(uint32_t kind, uint32_t next) const {
  for (const uint32_t follower : {next, kNone}) {
    if (const auto found = typical_.find(key_of(kind, follower)); found != typical_.end()) return found->second;
  }
  // A kind that was never seen takes what others of its phase do.
  std::vector<double> of_phase;
  for (const auto& [key, times] : typical_) {
    if ((key & kNone) == kNone && (key >> 32) % 2 == kind % 2) of_phase.push_back(times.host_us);
  }
  return {closest_to_all(std::move(of_phase)), 1};
}

double TraceLanes::untraced_ratio(const LaneOp& op) const {
  const auto found = untraced_.find(4 * op.name + op.type);
  if (found != untraced_.end()) return found->second;
  return op.product ? kProductRatio : 0;
}

void TraceLanes::fit_typical(std::span<const std::vector<LaneOp>> traces) {
  std::map<uint64_t, Seen> seen;
  for (const auto& ops : traces) {
    const auto skipped = skipped_ops(ops);
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!skipped[i].empty()) continue;
      for (const uint32_t next : {next_kind(ops, i), kNone}) {
        Seen& of_kind = seen[key_of(ops[i].kind(), next)];
        const double us = ops[i].gpu_us + ops[i].gap_us;
        of_kind.of_all.push_back(us);
        if (ops[i].gpu_us < kShortOp) of_kind.of_short.push_back(us);
        if (ops[i].gpu_us > kLongOp) of_kind.behind_long.push_back(ops[i].gap_us);
      }
    }
  }
  typical_.clear();
  // What holds for a kind whichever op follows stands behind its pairs. Where a pair was not seen behind long ops, the
  // host waits there only if it waits behind that kind whatever follows.
  double least_waiting = 0;
  uint64_t of_kind = 0;
  for (auto& [key, times] : seen) {
    if (key >> 32 != of_kind || key == seen.begin()->first) {
      of_kind = key >> 32;
      least_waiting = -1;
    }
    const bool whichever = (key & kNone) == kNone;
    const bool known = !whichever && times.behind_long.size() >= kFewest;
    const double waiting = known ? upper_median(times.behind_long) : -1;
    if (known) least_waiting = least_waiting < 0 ? waiting : std::min(least_waiting, waiting);
    const bool short_ones = times.of_short.size() >= kFewest;
    typical_[key] = {short_ones  ? upper_median(times.of_short)
                     : whichever ? upper_median(times.of_all)
                                 : -1,
                     whichever ? std::max(least_waiting, 1.0) : waiting};
  }
  for (auto& [key, times] : typical_) {
    const Typical& whichever = typical_.at(key | kNone);
    if (times.host_us < 0) times.host_us = whichever.host_us;
    if (times.waiting_us < 0) times.waiting_us = whichever.waiting_us;
  }
}

// The gap behind an op over the forward time of what was skipped there, by the name that makes most of it.
void TraceLanes::fit_untraced(std::span<const std::vector<LaneOp>> traces) {
  std::map<uint32_t, std::vector<double>> ratios;
  for (const auto& ops : traces) {
    const auto skipped = skipped_ops(ops);
    for (size_t i = 0; i < ops.size(); ++i) {
      double all = 0;
      std::map<uint32_t, double> by_name;
      for (const uint32_t op : skipped[i]) {
        if (!left_out(ops[op], ops[i])) continue;
        all += ops[op].gpu_us;
        by_name[4 * ops[op].name + ops[i].type] += ops[op].gpu_us;
      }
      for (const auto& [name, us] : by_name) {
        if (all > kLongUntraced && us > kMainShare * all) ratios[name].push_back(ops[i].gap_us / all);
      }
    }
  }
  untraced_.clear();
  for (auto& [name, values] : ratios) {
    if (values.size() >= kFewest) untraced_[name] = upper_median(values);
  }
}

// A line through gaps over numbers of ops that outliers do not move: the median of slopes between pairs (Theil-Sen).
void TraceLanes::fit_turn(std::span<const std::vector<LaneOp>> traces) {
  std::vector<std::pair<double, double>> seen;  // ops of the trace, gap
  for (const auto& ops : traces) {
    size_t i = 0;
    while (i < ops.size() && !turns(ops, i)) ++i;
    if (i < ops.size()) seen.emplace_back(static_cast<double>(ops.size()), ops[i].gap_us);
  }
  turn_us_ = turn_op_us_ = 0;
  if (seen.size() < kFewest) return;
  std::vector<double> slopes;
  for (size_t i = 0; i < seen.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double apart = seen[i].first - seen[j].first;
      if (std::abs(apart) >= kSlopeApart) slopes.push_back((seen[i].second - seen[j].second) / apart);
    }
  }
  if (!slopes.empty()) turn_op_us_ = std::max(upper_median(slopes), 0.0);
  std::vector<double> rests;
  for (const auto& [count, gap] : seen) rests.push_back(gap - turn_op_us_ * count);
  turn_us_ = std::max(upper_median(rests), 1.0);
}

void TraceLanes::fit(std::span<const std::vector<LaneOp>> traces) {
  fit_typical(traces);
  fit_untraced(traces);
  fit_turn(traces);
}

std::vector<LaneGuess> TraceLanes::guess(std::span<const LaneOp> ops) const {
  const auto skipped = skipped_ops(ops);
  std::vector<LaneGuess> guesses(ops.size());
  double host = 0;
  double gpu = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    LaneGuess& guess = guesses[i];
    double longest = 0;
    for (const uint32_t op : skipped[i]) {
      if (!left_out(ops[op], ops[i])) continue;
      guess.skipped_us += ops[op].gpu_us;
      guess.untraced_us += untraced_ratio(ops[op]) * ops[op].gpu_us;
      if (ops[op].gpu_us > longest) guess.longest = op;
      longest = std::max(longest, ops[op].gpu_us);
    }
    guess.skipped = static_cast<uint32_t>(skipped[i].size());
    Typical typical = this->typical(ops[i].kind(), next_kind(ops, i));
    if (turn_us_ > 0 && turns(ops, i)) {
      const double turn = turn_us_ + turn_op_us_ * static_cast<double>(ops.size());
      typical = {turn, turn};
    }
    guess.host_us = typical.host_us;
    guess.waiting_us = typical.waiting_us;
    const double end = std::max(gpu, host) + ops[i].gpu_us;
    host += typical.host_us;
    if (typical.waiting_us > kLeastWaiting) host = std::max(host, end + typical.waiting_us);
    gpu = end + guess.untraced_us;
    guess.gap_us = std::max({guess.untraced_us, host - end, typical.waiting_us});
    guess.lead_us = gpu - host;
  }
  return guesses;
}

nlohmann::json TraceLanes::to_json() const {
  nlohmann::json typical = nlohmann::json::array();
  for (const auto& [key, times] : typical_) {
    typical.push_back({key >> 32, key & 0xFFFFFFFF, times.host_us, times.waiting_us});
  }
  nlohmann::json untraced = nlohmann::json::array();
  for (const auto& [name, ratio] : untraced_) untraced.push_back({name, ratio});
  return {{"typical", typical}, {"untraced", untraced}, {"turn", {turn_us_, turn_op_us_}}};
}

Result<TraceLanes> TraceLanes::from_json(const nlohmann::json& json) {
  TraceLanes lanes;
  try {
    for (const auto& entry : json.at("typical")) {
      lanes.typical_[key_of(entry.at(0).get<uint32_t>(), entry.at(1).get<uint32_t>())] = {entry.at(2).get<double>(),
                                                                                          entry.at(3).get<double>()};
    }
    for (const auto& entry : json.at("untraced")) {
      lanes.untraced_[entry.at(0).get<uint32_t>()] = entry.at(1).get<double>();
    }
    if (json.contains("turn")) {  // not in weights of before it was learned
      lanes.turn_us_ = json.at("turn").at(0).get<double>();
      lanes.turn_op_us_ = json.at("turn").at(1).get<double>();
    }
  } catch (const nlohmann::json::exception&) {
    return Error{"the typical times of these weights cannot be read", "", "train the predictor again"};
  }
  return lanes;
}

}  // namespace forerun::learn
