// Guards: what must hold of a prediction, and whether it does. A prediction is the same every time, so a guard that fails was
// made to fail by a change: of the model, of how it is trained, or of Forerun's own models, which is told apart.
//
// Rules are of two kinds. Some hold a prediction to a limit (fits, iteration_ms_at_most), others to the figures that a
// baseline has (slower_than_baseline). The baseline comes from forerun.lock (guard/lock_file.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forerun::guard {

// What is looked at of a prediction.
struct Figures {
  double iteration_ms = 0;
  double reserved_gib = 0;  // at the peak; a lower bound where the run does not fit
  std::string verdict;      // "fits", "may_not_fit", "does_not_fit"
};

// What must hold; what is not given need not.
struct Rules {
  bool fits = false;                           // surely
  std::optional<double> slower_than_baseline;  // shares: 0.1 lets an iteration take 10 % longer
  std::optional<double> memory_above_baseline;
  std::optional<double> iteration_ms_at_most;
  std::optional<double> reserved_gib_at_most;

  // Their names, as users write them.
  static constexpr std::array<std::string_view, 5> kNames = {"fits", "slower_than_baseline", "memory_above_baseline",
                                                             "iteration_ms_at_most", "reserved_gib_at_most"};
  [[nodiscard]] bool any() const {
    return fits || slower_than_baseline || memory_above_baseline || iteration_ms_at_most || reserved_gib_at_most;
  }
};

struct Baseline {
  Figures figures;
  std::string asked;         // the words that were predicted then, as JSON
  std::string predicted_by;  // models_version() of that time
};

// A guard with its prediction of now.
struct Guarded {
  std::string name;
  std::string asked;
  std::string gpu;  // the GPU's full name
  Rules rules;
  Figures figures;
};

enum class Verdict : uint8_t {
  holds,
  fails,
  no_baseline,  // fails: there is nothing to hold it to
  not_judged,   // holds for now: other models than today's predicted the baseline, and the figures differ
};
std::string_view name_of(Verdict verdict);  // "not_judged"
inline bool passes(Verdict verdict) { return verdict == Verdict::holds || verdict == Verdict::not_judged; }

enum class Unit : uint8_t { verdict, milliseconds, gibibytes };

// One rule of one guard.
struct RuleOutcome {
  std::string rule;  // "slower_than_baseline"
  Unit unit = Unit::verdict;
  std::optional<double> before, now;  // of the figure; none of `fits`
  std::optional<double> limit;        // a share where the rule is about a baseline, else the figure's most
  bool of_baseline = false;
  Verdict verdict = Verdict::holds;

  [[nodiscard]] std::optional<double> change() const;  // a share of `before`
};

struct GuardOutcome {
  Guarded guarded;
  std::optional<Baseline> baseline;
  std::vector<RuleOutcome> rules;
  std::vector<std::string> notes;  // sentences

  [[nodiscard]] bool passes() const;
};

struct CheckAnswer {
  std::string lock;          // the file with the baselines
  std::string predicted_by;  // models_version() of now
  bool updated = false;      // the figures of now have become the baseline
  std::vector<GuardOutcome> guards;

  [[nodiscard]] bool passes() const;
};

// `updated`: the figures of now are the baseline from now on, so that rules about it hold; what they were before is still told.
GuardOutcome judge(Guarded guarded, std::optional<Baseline> baseline, const std::string& predicted_by, bool updated);

}  // namespace forerun::guard
