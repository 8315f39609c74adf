#include "cluster/drawn_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/nearest.h"
#include "base/options_text.h"

namespace forerun::cluster {
namespace {

constexpr const char* kDrawRemedy = "write v100=1.4..2,deadlines=30,slack=1.2..3,seed=1";
constexpr double kMostFactor = 1000;

class EvenDraws {
 public:
  explicit EvenDraws(uint64_t seed) : random_(seed) {}
  double in(const DrawnRange& range) { return range.least + (range.most - range.least) * share(); }
  double share() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  size_t below(size_t end) { return static_cast<size_t>(random_() % end); }

 private:
  std::mt19937_64 random_;
};

bool is_sound(const DrawnRange& range) {
  return range.least > 0 && range.most >= range.least && range.most <= kMostFactor;
}

// "1.4..2", or one number for both ends.
std::optional<DrawnRange> range_in(const std::string& text) {
  const size_t dots = text.find("..");
  const auto least = number_in(std::string_view(text).substr(0, dots));
  const auto most = dots == std::string::npos ? least : number_in(std::string_view(text).substr(dots + 2));
  if (!least || !most || !is_sound({*least, *most})) return std::nullopt;
  return DrawnRange{*least, *most};
}

Time times(Time time, double factor) {
  return Time(std::max<int64_t>(std::llround(static_cast<double>(time.value) * factor), 1));
}

// Durations by type of the cluster, from one that stands for all.
Durations draw_durations(const Workload& workload, const std::vector<DrawnRange>& factors, EvenDraws& draws) {
  Durations drawn(factors.size());
  drawn.reserve(workload.jobs.size());
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    for (const DrawnRange& factor : factors) drawn.add(times(workload.truth.of(job, 0), draws.in(factor)));
  }
  return drawn;
}

void draw_deadline(Job& job, JobIndex index, const Durations& truth, const DrawOptions& options, EvenDraws& draws) {
  const bool due = draws.share() < options.deadlines;  // every job takes as many draws, whether it gets one or not
  const double slack = draws.in(options.slack);
  std::vector<Time> durations;
  for (TypeIndex type = 0; type < truth.types(); ++type) {
    if (truth.of(index, type) != kNever) durations.push_back(truth.of(index, type));
  }
  const Time duration = durations[draws.below(durations.size())];
  if (due) job.deadline = job.arrival + times(duration, slack);
}

}  // namespace

Result<DrawOptions> parse_draw(const std::string& text) {
  const OptionGrammar grammar{"--draw", kDrawRemedy};
  const auto values = parse_key_values(text, grammar);
  if (!values) return values.error();
  DrawOptions options;
  for (const auto& [key, value] : *values) {
    const Error fault{fmt::format("'{}' is no value of {}", value, key), grammar.where, grammar.remedy};
    const auto number = number_in(value);
    if (key == "deadlines") {
      if (!number || *number < 0 || *number > 100) return fault;
      options.deadlines = *number / 100;
    } else if (key == "seed") {
      if (!number || *number < 0 || *number > 0x1p53 || *number != std::floor(*number)) return fault;
      options.seed = static_cast<uint64_t>(*number);
    } else {
      const auto range = range_in(value);
      if (!range) return fault;
      if (key == "slack") {
        options.slack = *range;
      } else {
        options.types.push_back({canonical_type(key), *range});
      }
    }
  }
  return options;
}

Result<std::vector<std::string>> draw(Workload& workload, const Cluster& cluster, const DrawOptions& options) {
  const bool types_sound = std::all_of(options.types.begin(), options.types.end(),
                                       [](const DrawOptions::Slower& slower) { return is_sound(slower.factor); });
  if (!types_sound || !is_sound(options.slack) || !(options.deadlines >= 0 && options.deadlines <= 1)) {
    return Error{"a range or share to draw from is none", "--draw", kDrawRemedy};
  }
  std::vector<std::string> made;
  EvenDraws draws(options.seed);
  if (!options.types.empty()) {
    if (!workload.gpu_types.empty() || workload.truth.types() > 1) {
      return Error{"the jobs state their durations by GPU type already", "--draw", "leave GPU types out of it"};
    }
    std::vector<DrawnRange> factors(cluster.pools.size());
    for (const DrawOptions::Slower& slower : options.types) {
      const auto type = cluster.find(slower.type);
      if (!type) {
        std::vector<std::string> known = {"deadlines", "slack", "seed"};
        for (const GpuPool& pool : cluster.pools) known.push_back(pool.type);
        return Error{fmt::format("the cluster has no '{}'", slower.type), "--draw", did_you_mean(slower.type, known)};
      }
      factors[*type] = slower.factor;
      made.push_back(fmt::format("durations on {}: drawn, {:g} to {:g} times those stated", slower.type,
                                 slower.factor.least, slower.factor.most));
    }
    workload.truth = draw_durations(workload, factors, draws);
    for (const GpuPool& pool : cluster.pools) workload.gpu_types.push_back(pool.type);
  }
  if (options.deadlines > 0) {
    if (std::any_of(workload.jobs.begin(), workload.jobs.end(),
                    [](const Job& job) { return job.deadline != kNever; })) {
      return Error{"some jobs state deadlines already", "--draw", "leave deadlines out of it"};
    }
    for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
      draw_deadline(workload.jobs[job], job, workload.truth, options, draws);
    }
    made.push_back(
        fmt::format("deadlines: drawn for {:g} % of the jobs, {:g} to {:g} times a duration after submission",
                    100 * options.deadlines, options.slack.least, options.slack.most));
  }
  return made;
}

}  // namespace forerun::cluster
