#include "guard/judgement.h"

#include <algorithm>

namespace forerun::guard {
namespace {

constexpr const char* kFits = "fits";

bool fits_not_at_all(const Figures& figures) { return figures.verdict == "does_not_fit"; }

// What a rule looks at, and whether that is known of these figures.
struct Figure {
  Unit unit;
  double Figures::*value;
};
constexpr Figure kTime{Unit::milliseconds, &Figures::iteration_ms};
constexpr Figure kMemory{Unit::gibibytes, &Figures::reserved_gib};

bool is_known(const Figure& figure, const Figures& figures) {
  return figure.unit != Unit::gibibytes || !fits_not_at_all(figures);
}

// Judges the rules of one guard, one after the other.
class Judge {
 public:
  Judge(GuardOutcome& outcome, bool stale, bool updated) : outcome_(outcome), stale_(stale), updated_(updated) {}

  void fits() {
    if (!outcome_.guarded.rules.fits) return;
    add({.rule = kFits, .verdict = now().verdict == kFits ? Verdict::holds : Verdict::fails});
  }

  void at_most(const char* rule, const Figure& figure, const std::optional<double>& limit) {
    if (!limit) return;
    const bool holds = is_known(figure, now()) && now().*figure.value <= *limit;
    add({.rule = rule,
         .unit = figure.unit,
         .now = now().*figure.value,
         .limit = limit,
         .verdict = holds ? Verdict::holds : Verdict::fails});
  }

  void above_baseline(const char* rule, const Figure& figure, const std::optional<double>& limit) {
    if (!limit) return;
    RuleOutcome judged{
        .rule = rule, .unit = figure.unit, .now = now().*figure.value, .limit = limit, .of_baseline = true};
    if (outcome_.baseline) judged.before = outcome_.baseline->figures.*figure.value;
    judged.verdict = against_baseline(judged, figure);
    add(std::move(judged));
  }

 private:
  [[nodiscard]] const Figures& now() const { return outcome_.guarded.figures; }
  void add(RuleOutcome judged) { outcome_.rules.push_back(std::move(judged)); }

  [[nodiscard]] Verdict against_baseline(const RuleOutcome& judged, const Figure& figure) const {
    if (updated_) return Verdict::holds;
    if (!outcome_.baseline) return Verdict::no_baseline;
    const bool known = is_known(figure, now()), was_known = is_known(figure, outcome_.baseline->figures);
    if (stale_ && (!known || !was_known || *judged.now != *judged.before)) return Verdict::not_judged;
    if (!known) return Verdict::fails;
    if (!was_known) return Verdict::holds;  // it did not fit, and does now
    return *judged.now <= *judged.before * (1 + *judged.limit) ? Verdict::holds : Verdict::fails;
  }

  GuardOutcome& outcome_;
  bool stale_, updated_;
};

void add_notes(GuardOutcome& outcome, const std::string& predicted_by, bool updated) {
  const auto any = [&](Verdict verdict) {
    const auto& rules = outcome.rules;
    return std::any_of(rules.begin(), rules.end(), [&](const RuleOutcome& rule) { return rule.verdict == verdict; });
  };
  const Figures& now = outcome.guarded.figures;
  const bool about_memory =
      outcome.guarded.rules.memory_above_baseline || outcome.guarded.rules.reserved_gib_at_most.has_value();
  if (about_memory && fits_not_at_all(now)) {
    outcome.notes.emplace_back("it does not fit in the GPU's memory, so that what it would reserve is not known");
  }
  if (any(Verdict::no_baseline)) {
    outcome.notes.emplace_back(
        "there is no baseline yet: update the lock (`forerun check --update`, `pytest --forerun-update`) and commit "
        "it");
  }
  if (!outcome.baseline || updated) return;
  if (any(Verdict::not_judged)) {
    outcome.notes.push_back("the baseline is of other models of Forerun (" + outcome.baseline->predicted_by + ", now " +
                            predicted_by +
                            "), so that a change may be theirs: update the lock on a model that you trust");
  }
  if (outcome.baseline->asked != outcome.guarded.asked) {
    outcome.notes.push_back("the baseline is of another question: " + outcome.baseline->asked + ", now " +
                            outcome.guarded.asked);
  }
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds: return "holds";
    case Verdict::fails: return "fails";
    case Verdict::no_baseline: return "no_baseline";
    case Verdict::not_judged: return "not_judged";
  }
  return "";
}

std::optional<double> RuleOutcome::change() const {
  if (!before || !now || *before <= 0) return std::nullopt;
  return *now / *before - 1;
}

bool GuardOutcome::passes() const {
  return std::all_of(rules.begin(), rules.end(), [](const RuleOutcome& rule) { return guard::passes(rule.verdict); });
}

bool CheckAnswer::passes() const {
  return std::all_of(guards.begin(), guards.end(), [](const GuardOutcome& guard) { return guard.passes(); });
}

GuardOutcome judge(Guarded guarded, std::optional<Baseline> baseline, const std::string& predicted_by, bool updated) {
  GuardOutcome outcome{.guarded = std::move(guarded), .baseline = std::move(baseline)};
  const bool stale = outcome.baseline && outcome.baseline->predicted_by != predicted_by;
  const Rules& rules = outcome.guarded.rules;
  Judge judge(outcome, stale, updated);
  judge.fits();
  judge.above_baseline("slower_than_baseline", kTime, rules.slower_than_baseline);
  judge.above_baseline("memory_above_baseline", kMemory, rules.memory_above_baseline);
  judge.at_most("iteration_ms_at_most", kTime, rules.iteration_ms_at_most);
  judge.at_most("reserved_gib_at_most", kMemory, rules.reserved_gib_at_most);
  add_notes(outcome, predicted_by, updated);
  return outcome;
}

}  // namespace forerun::guard
