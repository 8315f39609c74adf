#include "cluster/gavel_program.h"

#include <algorithm>

#include "cluster/linear_program.h"

namespace forerun::cluster {
namespace {

constexpr double kNegligibleTime = 1e-7;
// What everybody's rate counts for beside the worst-off one's: so that what the worst-off cannot use is not left idle.
constexpr double kLittle = 1e-4;

class ProgramBuilder {
 public:
  ProgramBuilder(const std::vector<GavelClass>& classes, const std::vector<int32_t>& gpus)
      : classes_(classes), time_(classes.size()), progress_(classes.size()), room_(gpus.size()), gpus_(gpus) {
    for (const GavelClass& one : classes) jobs_ += one.jobs;
  }

  void add_alone(size_t a, uint32_t type) {
    const double rate = classes_[a].rates[type];
    if (!(rate > 0)) return;
    const int variable = program_.add_variable(kLittle * std::min(rate, 1e3) / jobs_);
    shares_.push_back({a, a, type, true});
    time_[a].emplace_back(variable, 1);
    progress_[a].emplace_back(variable, rate);
    room_[type].emplace_back(variable, classes_[a].gpus);
  }

  void add_pair(size_t a, size_t b, uint32_t type, std::pair<double, double> speeds) {
    const double rate_a = classes_[a].rates[type] * speeds.first;
    const double rate_b = classes_[b].rates[type] * speeds.second;
    if (!(rate_a > 0 && rate_b > 0) || (a == b && classes_[a].jobs < 2)) return;
    const int variable = program_.add_variable(kLittle * std::min(rate_a + rate_b, 1e3) / jobs_);
    shares_.push_back({a, b, type, false});
    time_[a].emplace_back(variable, a == b ? 2 : 1);
    progress_[a].emplace_back(variable, a == b ? rate_a + rate_b : rate_a);
    if (a != b) {
      time_[b].emplace_back(variable, 1);
      progress_[b].emplace_back(variable, rate_b);
    }
    room_[type].emplace_back(variable, 1);
  }

  std::optional<GavelAnswer> solve() {
    const int worst = program_.add_variable(1);
    for (size_t a = 0; a < classes_.size(); ++a) {
      if (time_[a].empty()) continue;
      program_.add_row(0, classes_[a].jobs, time_[a]);
      progress_[a].emplace_back(worst, -classes_[a].jobs);
      program_.add_row(0, LinearProgram::kUnbounded, progress_[a]);
    }
    for (size_t type = 0; type < room_.size(); ++type) program_.add_row(0, gpus_[type], room_[type]);
    const auto found = program_.maximize();
    if (shares_.empty() || !found) return std::nullopt;
    GavelAnswer answer{found->back(), {}};
    for (size_t i = 0; i < shares_.size(); ++i) {
      if ((*found)[i] < kNegligibleTime) continue;
      shares_[i].time = (*found)[i];
      answer.shares.push_back(shares_[i]);
    }
    return answer;
  }

 private:
  const std::vector<GavelClass>& classes_;
  LinearProgram program_;
  std::vector<GavelShare> shares_;  // by variable
  std::vector<LinearProgram::Terms> time_, progress_, room_;
  const std::vector<int32_t>& gpus_;
  double jobs_ = 0;
};

}  // namespace

std::optional<GavelAnswer> solve_gavel(const std::vector<GavelClass>& classes, const std::vector<int32_t>& gpus,
                                       const PairSpeeds& pairs) {
  ProgramBuilder builder(classes, gpus);
  for (size_t a = 0; a < classes.size(); ++a) {
    for (uint32_t type = 0; type < gpus.size(); ++type) builder.add_alone(a, type);
  }
  for (size_t a = 0; pairs && a < classes.size(); ++a) {
    for (size_t b = a; b < classes.size(); ++b) {
      for (uint32_t type = 0; type < gpus.size(); ++type) {
        if (const auto speeds = pairs(a, b, type)) builder.add_pair(a, b, type, *speeds);
      }
    }
  }
  return builder.solve();
}

}  // namespace forerun::cluster
