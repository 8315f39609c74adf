// Sia: in each round an integer program picks at most one configuration, so many GPUs of one type, for each job, so that
// the sum of the jobs' gains is largest within the GPUs there are.
//
// A gain is the job's speed in that configuration over its speed in its slowest one, to the power `power` (0.5), less for
// a change the more recently the job started, plus `run` (1.1) for running at all: a job that waits gains nothing. Elastic
// jobs may have 1, 2, 4, ... GPUs of a type, and as many as they state, within their bounds; others have their gang. Left
// out: Sia's choice of batch sizes, for which statistical efficiency would have to be known. The program is solved exactly
// (cluster/choice_knapsack.h): gains that differ by less than a millionth are alike, and of like choices earlier jobs go
// first, to the configuration they are fastest in. Where that takes more than kMostSteps, as on large clusters of many
// types, it is solved without asking for whole numbers: of such a program at most one job a type comes out in parts, and
// those take what room the others leave. While no job comes or goes a choice stands for ten rounds.
#include <algorithm>
#include <cmath>

#include "cluster/choice_knapsack.h"
#include "cluster/linear_program.h"
#include "cluster/policies/factories.h"
#include "cluster/policies/rounds.h"

namespace forerun::cluster {
namespace {

class Sia final : public RoundPolicy {
 public:
  Sia(Time round, double power, double run, bool exact, uint64_t shuffle)
      : RoundPolicy(round), power_(power), run_(run), most_steps_(exact ? kMostSteps : 0), shuffle_(shuffle) {}

 protected:
  std::vector<RoundChoice> choices(const ClusterView& view, const std::vector<JobIndex>& active) override {
    if (!changed() && ++rounds_ < kMostRounds) return chosen_;
    rounds_ = 0;
    chosen_ = choose(view, active);
    return chosen_;
  }

 private:
  static constexpr size_t kMostSteps = 2'000'000;
  static constexpr int kMostRounds = 10;  // that a choice stands while no job comes or goes

  struct Valued {
    RoundChoice choice;
    int64_t gain = 0;  // as knapsack_value() has it
  };

  std::vector<RoundChoice> choose(const ClusterView& view, const std::vector<JobIndex>& active) const {
    std::vector<std::vector<Valued>> by_job;
    for (const JobIndex job : active) by_job.push_back(valued(view, configurations(view, job)));
    std::vector<int32_t> room;
    for (TypeIndex type = 0; type < view.types(); ++type) room.push_back(view.working(type));
    std::vector<KnapsackChooser> choosers(by_job.size());
    for (size_t i = 0; i < by_job.size(); ++i) {
      for (const auto& [choice, gain] : by_job[i]) choosers[i].push_back({choice.type, choice.gpus, gain});
    }
    const auto exact = ChoiceKnapsack::solve(std::move(choosers), room, most_steps_);
    if (!exact) return in_parts(by_job, room);
    std::vector<RoundChoice> chosen;
    for (size_t i = 0; i < by_job.size(); ++i) {
      const int pick = exact->picks()[i];
      if (pick >= 0) chosen.push_back(by_job[i][static_cast<size_t>(pick)].choice);
    }
    return chosen;
  }

  // The program without whole numbers, and of its answer the most wanted first.
  [[nodiscard]] std::vector<RoundChoice> in_parts(const std::vector<std::vector<Valued>>& by_job,
                                                  const std::vector<int32_t>& room) const {
    LinearProgram program;
    std::vector<RoundChoice> options;
    std::vector<double> ties;
    std::vector<LinearProgram::Terms> gpus(room.size());
    for (size_t job = 0; job < by_job.size(); ++job) {
      LinearProgram::Terms one;
      for (size_t place = 0; place < by_job[job].size(); ++place) {
        const auto& [option, gain] = by_job[job][place];
        const int variable = program.add_variable(from_knapsack_value(gain), 0, 1);
        options.push_back(option);
        ties.push_back(tie_weight(job, by_job.size()) * tie_weight(place, by_job[job].size()));
        one.emplace_back(variable, 1);
        gpus[option.type].emplace_back(variable, option.gpus);
      }
      program.add_row(0, 1, one);
    }
    for (size_t type = 0; type < room.size(); ++type) program.add_row(0, room[type], gpus[type]);
    program.then_maximize(ties);
    const auto found = program.maximize(shuffle_);
    if (!found) return {};
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < options.size(); ++i) {
      if (steady((*found)[i]) > 0) order.emplace_back(-steady((*found)[i]), i);
    }
    std::sort(order.begin(), order.end());
    std::vector<RoundChoice> chosen;
    for (const auto& [part, i] : order) chosen.push_back(options[i]);
    return chosen;
  }

  // With what the job gains by each, the fastest first.
  [[nodiscard]] std::vector<Valued> valued(const ClusterView& view, std::vector<RoundChoice> options) const {
    std::stable_sort(options.begin(), options.end(),
                     [&](const RoundChoice& a, const RoundChoice& b) { return time_in(view, a) < time_in(view, b); });
    std::vector<Valued> result;
    for (const RoundChoice& option : options) {
      const int64_t gained = knapsack_value(gain(view, option, time_in(view, options.back())));
      if (gained > 0) result.push_back({option, gained});
    }
    return result;
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
  size_t most_steps_;
  uint64_t shuffle_;
  int rounds_ = 0;  // since it was chosen
  std::vector<RoundChoice> chosen_;
};

}  // namespace

std::unique_ptr<Policy> make_sia(OptionReader& options) {
  const Time round = time_from_seconds(options.number("round", 360, 1, kLongestRound));
  const double power = options.number("power", 0.5, 0, 10);
  const double run = options.number("run", 1.1, 0, 1000);
  const bool exact = options.whole("exact", 1, 0, 1) == 1;
  const auto shuffle = static_cast<uint64_t>(options.whole("shuffle", 0, 0, 1e9));
  return std::make_unique<Sia>(round, power, run, exact, shuffle);
}

}  // namespace forerun::cluster
