// Gavel: how much of its time each job should spend on each type of GPU, as a linear program over X[job][type], and
// rounds that keep to it.
//
// gavel            the worst-off job's rate, against an equal share of the cluster, is made largest (max-min fairness)
// gavel-makespan   the last end comes soonest: rate / what is left is made largest for the worst-off
// gavel-ftf        the worst finish-time fairness (time in the system / time on a 1/n share) is made smallest, by halving
// X is computed when the set of jobs changes. In a round a job's claim on a type is X over the share of rounds that it
// has had there. Left out: packing two jobs on one GPU.
#include <algorithm>
#include <cmath>
#include <map>

#include "cluster/linear_program.h"
#include "cluster/policies/factories.h"
#include "cluster/policies/rounds.h"

namespace forerun::cluster {
namespace {

enum class GavelGoal : uint8_t { fairness, makespan, finish_time };

constexpr double kNegligible = 1e-6;
constexpr double kCloseEnough = 0.02;

class Gavel final : public RoundPolicy {
 public:
  Gavel(GavelGoal goal, Time round) : RoundPolicy(round), goal_(goal) {}

  void finished(const ClusterView& view, JobIndex job) override {
    had_.erase(job);
    RoundPolicy::finished(view, job);
  }

 protected:
  std::vector<RoundChoice> choices(const ClusterView& view, const std::vector<JobIndex>& active) override {
    if (changed()) allocate(view, active);
    struct Claim {
      double size;
      RoundChoice choice;
    };
    std::vector<Claim> claims;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      for (TypeIndex type = 0; type < view.types(); ++type) {
        const double share = shares_[i * view.types() + type];
        if (share < kNegligible) continue;
        const auto had = had_.find(jobs_[i]);
        const double rounds = had == had_.end() ? 0 : had->second[type];
        // Without a round yet the claim is as large as the share makes it: the largest shares go first.
        claims.push_back({rounds == 0 ? 1e9 * (1 + share) : share / rounds, {jobs_[i], type}});
      }
    }
    std::stable_sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) { return a.size > b.size; });
    std::vector<RoundChoice> order;
    for (const Claim& claim : claims) order.push_back(claim.choice);
    return order;
  }

  void granted(const ClusterView& view, const std::vector<RoundChoice>& taken) override {
    for (const RoundChoice& choice : taken) {
      auto& rounds = had_[choice.job];
      rounds.resize(view.types());
      rounds[choice.type] += 1;
    }
  }

 private:
  // What a job gets done in a second on a type, as a share of the whole job.
  static double rate(const ClusterView& view, JobIndex job, TypeIndex type) {
    if (!view.usable(job, type)) return 0;
    return 1 / std::max(seconds(view.predicted(job, type)), 1e-9);
  }

  // The rate on an equal share of every type.
  static double equal_rate(const ClusterView& view, JobIndex job, double demand) {
    double gpus = 0;
    double sum = 0;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      gpus += view.working(type);
      sum += view.working(type) * rate(view, job, type);
    }
    return gpus == 0 ? 0 : sum / gpus * std::min(1.0, gpus / demand);
  }

  static double left(const ClusterView& view, JobIndex job) {
    const double whole = seconds(view.predicted_fastest(job));
    double least = whole;
    for (TypeIndex type = 0; type < view.types(); ++type) {
      if (view.predicted(job, type) != view.predicted_fastest(job)) continue;
      least = seconds(view.predicted_remaining(job, type));
    }
    return std::max(least / std::max(whole, 1e-9), 1e-6);
  }

  // Shares such that each job's rate is at least `floor[i]` x z, z as large as can be; z fixed where given.
  bool solve(const ClusterView& view, const std::vector<double>& floor, std::optional<double> fixed) {
    const size_t types = view.types();
    LinearProgram program;
    double total_floor = 0;
    for (const double value : floor) total_floor += value;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      for (TypeIndex type = 0; type < types; ++type) {
        const double speed = rate(view, jobs_[i], type);
        // A little for everybody's rate, so that what the worst-off cannot use is not left idle.
        const double extra = floor[i] > 0 ? 1e-4 * speed / floor[i] / static_cast<double>(jobs_.size()) : 0;
        program.add_variable(std::min(extra, 1.0), 0, speed > 0 ? 1 : 0);
      }
    }
    const int worst = program.add_variable(1, fixed.value_or(0), fixed.value_or(1e9));
    for (size_t i = 0; i < jobs_.size(); ++i) {
      LinearProgram::Terms time, progress;
      for (TypeIndex type = 0; type < types; ++type) {
        const int variable = static_cast<int>(i * types + type);
        time.emplace_back(variable, 1);
        if (floor[i] > 0) progress.emplace_back(variable, rate(view, jobs_[i], type) / floor[i]);
      }
      program.add_row(0, 1, time);
      if (floor[i] <= 0) continue;
      progress.emplace_back(worst, -1);
      program.add_row(0, LinearProgram::kUnbounded, progress);
    }
    for (TypeIndex type = 0; type < types; ++type) {
      LinearProgram::Terms gpus;
      for (size_t i = 0; i < jobs_.size(); ++i) {
        gpus.emplace_back(static_cast<int>(i * types + type), view.job(jobs_[i]).gpus);
      }
      program.add_row(0, view.working(type), gpus);
    }
    const auto found = program.maximize();
    if (!found) return false;
    shares_.assign(found->begin(), found->end() - 1);
    return true;
  }

  void allocate(const ClusterView& view, const std::vector<JobIndex>& active) {
    jobs_ = active;
    had_.clear();
    shares_.assign(jobs_.size() * view.types(), 0);
    double demand = 1e-9;
    for (const JobIndex job : jobs_) demand += view.job(job).gpus;
    std::vector<double> floor(jobs_.size());
    if (goal_ == GavelGoal::finish_time) {
      allocate_finish_times(view, demand);
      return;
    }
    for (size_t i = 0; i < jobs_.size(); ++i) {
      floor[i] = goal_ == GavelGoal::makespan ? left(view, jobs_[i]) : equal_rate(view, jobs_[i], demand);
    }
    solve(view, floor, std::nullopt);
  }

  // The smallest worst finish-time fairness that can be had: halving, with a program each.
  void allocate_finish_times(const ClusterView& view, double demand) {
    double low = 0;
    double high = fairness_;  // close to what it was before the last change
    const auto possible = [&](double fairness) {
      std::vector<double> floor(jobs_.size());
      for (size_t i = 0; i < jobs_.size(); ++i) {
        const double alone = 1 / std::max(equal_rate(view, jobs_[i], demand), 1e-12);
        const double time = fairness * alone - seconds(view.now() - view.job(jobs_[i]).arrival);
        if (time <= 0) return false;
        floor[i] = left(view, jobs_[i]) / time;
      }
      return solve(view, floor, 1.0);
    };
    for (int i = 0; i < 40 && !possible(high); ++i) {
      low = high;
      high *= 2;
    }
    std::vector<double> best = shares_;
    while (high - low > kCloseEnough * high) {
      const double middle = (low + high) / 2;
      if (possible(middle)) {
        high = middle;
        best = shares_;
      } else {
        low = middle;
      }
    }
    shares_ = best;
    fairness_ = std::clamp(high, 1.0, 1000.0);
  }

  GavelGoal goal_;
  double fairness_ = 1;                          // the best worst finish-time fairness, when last looked for
  std::vector<JobIndex> jobs_;                   // of the last allocation
  std::vector<double> shares_;                   // X, type after type for each of them
  std::map<JobIndex, std::vector<double>> had_;  // rounds since then, by type
};

std::unique_ptr<Policy> make(GavelGoal goal, OptionReader& options) {
  return std::make_unique<Gavel>(goal, time_from_seconds(std::max(options.number("round", 360), 1.0)));
}

}  // namespace

std::unique_ptr<Policy> make_gavel(OptionReader& options) { return make(GavelGoal::fairness, options); }
std::unique_ptr<Policy> make_gavel_makespan(OptionReader& options) { return make(GavelGoal::makespan, options); }
std::unique_ptr<Policy> make_gavel_ftf(OptionReader& options) { return make(GavelGoal::finish_time, options); }

}  // namespace forerun::cluster
