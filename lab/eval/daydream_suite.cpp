#include "lab/eval/daydream_suite.h"

#include <algorithm>

#include "api/whatif.h"
#include "lab/eval/whatif_suite.h"

namespace forerun {
namespace {

// "p3:workers=4" at 10 Gb/s: "p3:workers=4,bandwidth_gbps=10".
std::vector<std::string> at_rate(std::vector<std::string> applications, const std::string& gbps) {
  if (gbps.empty()) return applications;
  for (std::string& text : applications) {
    text += (text.find(':') == std::string::npos ? ":" : ",") + std::string("bandwidth_gbps=") + gbps;
  }
  return applications;
}

Result<double> iteration_ms(const PublishedClaim& claim, const std::vector<std::string>& applied,
                            const CostModels& cost_models) {
  const auto applications = whatif::parse_applications(applied);
  if (!applications) return applications.error();
  WhatIfQuestion question;
  question.applications = *applications;
  question.gpu = claim.gpu;
  ModelRequest model;
  model.model = claim.model;
  model.batch = claim.batch;
  const auto answer = what_if(model, question, cost_models);
  if (!answer) return answer.error().within(claim.optimization + " of " + claim.model);
  return answer->predicted_ms;
}

Result<ClaimRow> judged(const PublishedClaim& claim, const CostModels& cost_models) {
  ClaimRow row{.claim = claim};
  if (!claim.cannot.empty()) return row;
  const std::vector<std::string> rates = claim.gbps.empty() ? std::vector<std::string>{""} : claim.gbps;
  for (const std::string& gbps : rates) {
    const auto before = iteration_ms(claim, at_rate(claim.before, gbps), cost_models);
    if (!before) return before.error();
    const auto after = iteration_ms(claim, at_rate(claim.after, gbps), cost_models);
    if (!after) return after.error();
    const double throughput = *before / *after;
    if (throughput <= row.throughput) continue;
    row.throughput = throughput;
    row.at_gbps = gbps;
  }
  return row;
}

const WhatIfSummary& named(const std::vector<WhatIfSummary>& summaries, const std::string& of) {
  const auto found = std::find_if(summaries.begin(), summaries.end(), [&](const auto& sum) { return sum.of == of; });
  CHECK(found != summaries.end(), "there is no such summary");
  return *found;
}

// The same variants twice: by Daydream's rule, and as they were predicted.
Result<AmpRuleError> amp_errors(const WhatIfAccuracy& predicted, const WorkControl& control) {
  const auto by_rule = evaluate_whatif({.amp_by_daydream = true}, control);
  if (!by_rule) return by_rule.error();
  std::vector<WhatIfCase> rule, here;
  for (const WhatIfCase& c : by_rule->cases) {
    if (c.kind != WhatIfKind::variant) continue;
    rule.push_back(c);
    const auto same = std::find_if(predicted.cases.begin(), predicted.cases.end(), [&](const WhatIfCase& own) {
      return own.model == c.model && own.measured.ms == c.measured.ms;
    });
    CHECK(same != predicted.cases.end(), "a variant was judged by the rule alone");
    here.push_back(*same);
  }
  const WhatIfSummary of_rule = summary_of(rule), own = summary_of(here);
  return AmpRuleError{
      of_rule.cases,       of_rule.mean_gain_error, of_rule.largest_gain_error, of_rule.mean_gpu_gain_error,
      own.mean_gain_error, own.largest_gain_error,  own.mean_gpu_gain_error};
}

}  // namespace

Result<ClaimsAccuracy> evaluate_daydream(const WorkControl& control) {
  const auto published = published_claims();
  if (!published) return published.error();
  const auto cost_models = load_cost_models();
  if (!cost_models) return cost_models.error();
  const auto measured = evaluate_whatif({}, control);
  if (!measured) return measured.error();
  const std::vector<WhatIfSummary> summaries = summaries_of(*measured);
  const WhatIfSummary& all = named(summaries, "optimizations");
  const WhatIfSummary& gpu_bound = named(summaries, "optimizations, GPU-bound");
  ClaimsAccuracy accuracy;
  accuracy.errors = {published->daydream_mean, published->daydream_largest, all.mean_error,
                     all.largest_error,        gpu_bound.mean_error,        gpu_bound.largest_error};
  const auto amp = amp_errors(*measured, control);
  if (!amp) return amp.error();
  accuracy.amp = *amp;
  Work work(control, "claims", static_cast<int64_t>(published->claims.size()));
  for (const PublishedClaim& claim : published->claims) {
    auto row = judged(claim, *cost_models);
    if (!row) return row.error();
    accuracy.rows.push_back(std::move(*row));
    if (const Status status = work.advance(); !status.ok()) return status.error();
  }
  return accuracy;
}

}  // namespace forerun
