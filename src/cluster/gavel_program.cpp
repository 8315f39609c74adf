#include "cluster/gavel_program.h"

#include <algorithm>

#include "cluster/linear_program.h"

namespace forerun::cluster {
namespace {

class ProgramBuilder {
 public:
  ProgramBuilder(const std::vector<GavelClass>& classes, const std::vector<int32_t>& gpus)
      : classes_(classes), time_(classes.size()), progress_(classes.size()), room_(gpus.size()), gpus_(gpus) {
    for (const GavelClass& one : classes) {
      fastest_.push_back(*std::max_element(one.rates.begin(), one.rates.end()));
      if (fastest_.back() > 0) unit_ = std::min(unit_, fastest_.back());
    }
  }

  void add_alone(size_t a, uint32_t type) {
    const double rate = share_of_fastest(a, type);
    if (!(rate > 0)) return;
    const int variable = add({a, a, type, true}, rate, order(a) * preference(a, type));
    time_[a].emplace_back(variable, 1);
    progress_[a].emplace_back(variable, rate);
    room_[type].emplace_back(variable, classes_[a].gpus);
  }

  void add_pair(size_t a, size_t b, uint32_t type, std::pair<double, double> speeds) {
    const double rate_a = share_of_fastest(a, type) * speeds.first;
    const double rate_b = share_of_fastest(b, type) * speeds.second;
    if (!(rate_a > 0 && rate_b > 0) || (a == b && classes_[a].jobs < 2)) return;
    const double partner = tie_weight(classes_.size() + b, 2 * classes_.size());
    const int variable = add({a, b, type, false}, rate_a + rate_b, order(a) * preference(a, type) * partner);
    time_[a].emplace_back(variable, a == b ? 2 : 1);
    progress_[a].emplace_back(variable, a == b ? rate_a + rate_b : rate_a);
    if (a != b) {
      time_[b].emplace_back(variable, 1);
      progress_[b].emplace_back(variable, rate_b);
    }
    room_[type].emplace_back(variable, 1);
  }

  std::optional<GavelAnswer> solve(const GavelQuestion& question) {
    if (shares_.empty()) return std::nullopt;
    double room = 0;
    for (const int32_t gpus : gpus_) room += gpus;
    const int worst = program_.add_variable(std::max(room, 1.0));  // so that a GPU's price is about 1
    for (size_t a = 0; a < classes_.size(); ++a) {
      if (time_[a].empty()) continue;
      program_.add_row(0, classes_[a].jobs, time_[a]);
      progress_[a].emplace_back(worst, -classes_[a].jobs * (unit_ / fastest_[a]));
      program_.add_row(0, LinearProgram::kUnbounded, progress_[a]);
    }
    for (size_t type = 0; type < room_.size(); ++type) program_.add_row(0, gpus_[type], room_[type]);
    if (question.shares) {
      program_.then_maximize(done_);
      program_.then_maximize(ties_);
    }
    const auto found = program_.maximize(question.shuffle);
    if (!found) return std::nullopt;
    // In single precision the solver's rounding is gone.
    GavelAnswer answer{static_cast<double>(static_cast<float>(found->back())) * unit_, {}};
    for (size_t i = 0; question.shares && i < shares_.size(); ++i) {
      shares_[i].time = steady((*found)[i]);
      if (shares_[i].time > 0) answer.shares.push_back(shares_[i]);
    }
    return answer;
  }

 private:
  int add(const GavelShare& share, double done, double tie) {
    shares_.push_back(share);
    done_.push_back(done);
    ties_.push_back(tie);
    return program_.add_variable(0);
  }

  [[nodiscard]] double share_of_fastest(size_t a, uint32_t type) const {
    return fastest_[a] > 0 ? classes_[a].rates[type] / fastest_[a] : 0;
  }
  // Earlier classes weigh more.
  [[nodiscard]] double order(size_t a) const { return tie_weight(a, classes_.size()); }
  // Types weigh more the faster the class is on them; of equals those that come first.
  [[nodiscard]] double preference(size_t a, uint32_t type) const {
    const std::vector<double>& rates = classes_[a].rates;
    size_t place = 0;
    for (uint32_t other = 0; other < rates.size(); ++other) {
      place += rates[other] > rates[type] || (rates[other] == rates[type] && other < type) ? 1 : 0;
    }
    return tie_weight(place, rates.size());
  }

  const std::vector<GavelClass>& classes_;
  LinearProgram program_;
  std::vector<GavelShare> shares_;   // by variable
  std::vector<double> done_, ties_;  // objectives by variable
  std::vector<LinearProgram::Terms> time_, progress_, room_;
  const std::vector<int32_t>& gpus_;
  std::vector<double> fastest_;              // by class: its rate on its best type; each row is scaled by it
  double unit_ = LinearProgram::kUnbounded;  // of what the worst-off gets: it cannot get more
};

}  // namespace

std::optional<GavelAnswer> solve_gavel(const std::vector<GavelClass>& classes, const std::vector<int32_t>& gpus,
                                       const PairSpeeds& pairs, const GavelQuestion& question) {
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
  return builder.solve(question);
}

}  // namespace forerun::cluster
