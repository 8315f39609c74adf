// Sia-style: in each round an integer program picks at most one type of GPU for each job, so that the sum of the jobs'
// gains is largest within the GPUs there are.
//
// A gain is the job's rate on the type against its rate on its slowest type, to the power `power` (0.5), less for a
// change of type the more recently the job started, plus 1 for running at all: a job that waits gains nothing. Jobs run
// with their stated gang: Sia's choice of batch sizes and of the number of GPUs is left out.
#include <algorithm>
#include <cmath>

#include "cluster/linear_program.h"
#include "cluster/policies/factories.h"
#include "cluster/policies/rounds.h"

namespace forerun::cluster {
namespace {

class Sia final : public RoundPolicy {
 public:
  Sia(Time round, double power) : RoundPolicy(round), power_(power) {}

 protected:
  std::vector<RoundChoice> choices(const ClusterView& view, const std::vector<JobIndex>& active) override {
    LinearProgram program;
    std::vector<RoundChoice> options;
    std::vector<LinearProgram::Terms> gpus(view.types());
    for (const JobIndex job : active) {
      LinearProgram::Terms one;
      for (TypeIndex type = 0; type < view.types(); ++type) {
        if (!view.usable(job, type)) continue;
        // Between equal gains the earlier job goes first.
        const double earlier =
            1e-4 * (1 - static_cast<double>(options.size()) / static_cast<double>(1 + active.size() * view.types()));
        const int variable = program.add_variable(gain(view, job, type) + earlier, 0, 1, true);
        options.push_back({job, type});
        one.emplace_back(variable, 1);
        gpus[type].emplace_back(variable, view.job(job).gpus);
      }
      program.add_row(0, 1, one);
    }
    for (TypeIndex type = 0; type < view.types(); ++type) program.add_row(0, view.working(type), gpus[type]);
    std::vector<RoundChoice> chosen;
    if (const auto found = program.maximize()) {
      for (size_t i = 0; i < options.size(); ++i) {
        if ((*found)[i] > 0.5) chosen.push_back(options[i]);
      }
    }
    return chosen;
  }

 private:
  double gain(const ClusterView& view, JobIndex job, TypeIndex type) const {
    double slowest = 0;
    for (TypeIndex other = 0; other < view.types(); ++other) {
      if (view.usable(job, other)) slowest = std::max(slowest, seconds(view.predicted(job, other)));
    }
    const double own = std::max(seconds(view.predicted(job, type)), 1e-9);
    double value = std::pow(std::max(slowest, 1e-9) / own, power_);
    if (view.is_running(job) && view.running(job).type != type) {
      // Moving throws a restart away: the more of a round the job has had since it started, the less that weighs.
      const double age = seconds(view.now() - view.running(job).since);
      value *= age / (age + seconds(round()));
    }
    return (1 + value) * view.job(job).gpus;
  }

  double power_;
};

}  // namespace

std::unique_ptr<Policy> make_sia(OptionReader& options) {
  const Time round = time_from_seconds(std::max(options.number("round", 360), 1.0));
  return std::make_unique<Sia>(round, std::clamp(options.number("power", 0.5), 0.0, 10.0));
}

}  // namespace forerun::cluster
