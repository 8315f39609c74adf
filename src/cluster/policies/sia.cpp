// Sia: in each round an integer program picks at most one configuration, so many GPUs of one type, for each job, so that
// the sum of the jobs' gains is largest within the GPUs there are.
//
// A gain is the job's speed in that configuration over its speed in its slowest one, to the power `power` (0.5), less for
// a change the more recently the job started, plus `run` (1.1) for running at all: a job that waits gains nothing. Elastic
// jobs may have 1, 2, 4, ... GPUs of a type, and as many as they state, within their bounds; others have their gang. Left
// out: Sia's choice of batch sizes, for which statistical efficiency would have to be known. With more than kMostExact
// configurations the program is solved without asking for whole numbers: of such a program at most one job a type comes out
// in parts, and those take what room the others leave. While no job comes or goes a choice stands for ten rounds.
#include <algorithm>
#include <cmath>

#include "cluster/linear_program.h"
#include "cluster/policies/factories.h"
#include "cluster/policies/rounds.h"

namespace forerun::cluster {
namespace {

class Sia final : public RoundPolicy {
 public:
  Sia(Time round, double power, double run) : RoundPolicy(round), power_(power), run_(run) {}

 protected:
  std::vector<RoundChoice> choices(const ClusterView& view, const std::vector<JobIndex>& active) override {
    if (!changed() && ++rounds_ < kMostRounds) return chosen_;
    rounds_ = 0;
    chosen_ = choose(view, active);
    return chosen_;
  }

 private:
  static constexpr size_t kMostExact = 64;
  static constexpr int kMostRounds = 10;  // that a choice stands while no job comes or goes

  std::vector<RoundChoice> choose(const ClusterView& view, const std::vector<JobIndex>& active) const {
    std::vector<std::vector<RoundChoice>> by_job;
    size_t count = 0;
    for (const JobIndex job : active) {
      by_job.push_back(configurations(view, job));
      count += by_job.back().size();
    }
    const bool whole = count <= kMostExact;
    LinearProgram program;
    std::vector<RoundChoice> options;
    std::vector<LinearProgram::Terms> gpus(view.types());
    for (const std::vector<RoundChoice>& own : by_job) {
      double slowest = 0;
      for (const RoundChoice& option : own) slowest = std::max(slowest, time_in(view, option));
      LinearProgram::Terms one;
      for (const RoundChoice& option : own) {
        const double value = gain(view, option, slowest) * (1 - 1e-9 * static_cast<double>(options.size()));  // ties
        const int variable = program.add_variable(value, 0, 1, whole);
        options.push_back(option);
        one.emplace_back(variable, 1);
        gpus[option.type].emplace_back(variable, option.gpus);
      }
      program.add_row(0, 1, one);
    }
    for (TypeIndex type = 0; type < view.types(); ++type) program.add_row(0, view.working(type), gpus[type]);
    const auto found = program.maximize();
    return found ? most_wanted_first(options, *found) : std::vector<RoundChoice>();
  }

  static std::vector<RoundChoice> most_wanted_first(const std::vector<RoundChoice>& options,
                                                    const std::vector<double>& parts) {
    std::vector<size_t> order;
    for (size_t i = 0; i < options.size(); ++i) {
      if (parts[i] > 1e-6) order.push_back(i);
    }
    // Whole ones are all 1 but for rounding, which must not decide.
    const auto part = [&](size_t i) { return parts[i] > 1 - 1e-6 ? 1.0 : parts[i]; };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return part(a) > part(b); });
    std::vector<RoundChoice> chosen;
    for (const size_t i : order) chosen.push_back(options[i]);
    return chosen;
  }

  static std::vector<RoundChoice> configurations(const ClusterView& view, JobIndex job) {
    const Job& stated = view.job(job);
    std::vector<RoundChoice> options;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      if (!view.usable(job, type)) continue;
      std::vector<int32_t> counts = {stated.gpus};
      const int32_t most = std::min(stated.most_gpus, view.working(type));
      for (int64_t count = 1; stated.elastic() && count <= most; count *= 2) {
        if (count >= stated.least_gpus) counts.push_back(static_cast<int32_t>(count));
      }
      std::sort(counts.begin(), counts.end());
      counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
      for (const int32_t count : counts) options.push_back({job, type, count});
    }
    return options;
  }

  static double time_in(const ClusterView& view, const RoundChoice& option) {
    const double speed = std::max(view.predicted_speed(option.job, option.type, option.gpus), 1e-9);
    return std::max(seconds(view.predicted(option.job, option.type)), 1e-9) / speed;
  }

  double gain(const ClusterView& view, const RoundChoice& option, double slowest) const {
    double value = std::pow(slowest / time_in(view, option), power_);
    if (view.is_running(option.job)) {
      const Running& now = view.running(option.job);
      // Moving throws a restart away: the more of a round the job has had since it started, the less that weighs.
      const double age = seconds(view.now() - now.since);
      if (now.type != option.type || now.gpus != option.gpus) value *= age / (age + seconds(round()));
    }
    return run_ + value;
  }

  double power_, run_;
  int rounds_ = 0;  // since it was chosen
  std::vector<RoundChoice> chosen_;
};

}  // namespace

std::unique_ptr<Policy> make_sia(OptionReader& options) {
  const Time round = time_from_seconds(std::max(options.number("round", 360), 1.0));
  const double power = std::clamp(options.number("power", 0.5), 0.0, 10.0);
  return std::make_unique<Sia>(round, power, std::clamp(options.number("run", 1.1), 0.0, 1000.0));
}

}  // namespace forerun::cluster
