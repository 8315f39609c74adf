#include "lab/accuracy/claims_accuracy.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "lab/accuracy/eval_schema.h"
#include "report/table.h"

namespace forerun {
namespace {

bool is_judged(const ClaimRow& row) { return row.claim.cannot.empty(); }

std::string model_text(const PublishedClaim& claim) {
  return claim.model.empty() ? "-" : fmt::format("{}, batch {}", claim.model, claim.batch);
}

}  // namespace

std::string to_text(const ClaimsAccuracy& accuracy) {
  const DaydreamError& errors = accuracy.errors;
  std::string text = fmt::format(
      "Error of predicted iteration times, mean and largest: Daydream's own {} and {} (AMP, FusedAdam and "
      "restructured\n"
      "batch norm on five models); here {} and {}, where the GPU decides {} and {} (forerun eval --suite whatif)\n\n",
      percent(errors.mean, 0), percent(errors.largest, 0), percent(errors.here), percent(errors.here_largest),
      percent(errors.gpu_bound_here), percent(errors.gpu_bound_largest));
  const AmpRuleError& amp = accuracy.amp;
  const auto points = [](double share) { return fmt::format("{:.1f}", 100 * share); };
  text += fmt::format(
      "Mixed precision of {} measured steps, error of the gain in points, mean and largest: by Daydream's rule (a "
      "third for\n"
      "products, half for the rest) {} and {}, of GPU busy time {}; as predicted here {} and {}, of GPU busy time "
      "{}\n\n",
      amp.cases, points(amp.rule_mean), points(amp.rule_largest), points(amp.rule_gpu_mean), points(amp.mean),
      points(amp.largest), points(amp.gpu_mean));
  Table table({"optimization", "model", "throughput as published", "here", "at Gb/s", "judged on"});
  for (const size_t column : {1U, 5U}) table.align_left(column);
  for (const ClaimRow& row : accuracy.rows) {
    const bool judged = is_judged(row);
    table.add({row.claim.optimization, model_text(row.claim), judged ? signed_percent(row.claim.throughput - 1) : "-",
               judged ? signed_percent(row.throughput - 1) : "-", row.at_gbps.empty() ? "-" : row.at_gbps,
               row.claim.source + ": " + row.claim.claim});
  }
  text += table.text();
  for (const ClaimRow& row : accuracy.rows) {
    const std::string what = row.claim.optimization + (row.claim.model.empty() ? "" : " of " + row.claim.model);
    text += is_judged(row) ? fmt::format("{}: not as there: {}\n", what, row.claim.differs)
                           : fmt::format("{}: cannot be judged: {}\n", what, row.claim.cannot);
  }
  return text;
}

std::string to_json(const ClaimsAccuracy& accuracy) {
  const DaydreamError& errors = accuracy.errors;
  JsonWriter json;
  json.begin_object()
      .field("schema", eval_schema("daydream"))
      .field("suite", "daydream")
      .field("published_mean_error", errors.mean)
      .field("published_largest_error", errors.largest)
      .field("mean_error", errors.here)
      .field("largest_error", errors.here_largest)
      .field("gpu_bound_mean_error", errors.gpu_bound_here)
      .field("gpu_bound_largest_error", errors.gpu_bound_largest)
      .key("amp")
      .begin_object()
      .field("cases", accuracy.amp.cases)
      .field("rule_mean_gain_error", accuracy.amp.rule_mean)
      .field("rule_largest_gain_error", accuracy.amp.rule_largest)
      .field("rule_mean_gpu_gain_error", accuracy.amp.rule_gpu_mean)
      .field("mean_gain_error", accuracy.amp.mean)
      .field("largest_gain_error", accuracy.amp.largest)
      .field("mean_gpu_gain_error", accuracy.amp.gpu_mean)
      .end_object()
      .key("claims")
      .begin_array();
  for (const ClaimRow& row : accuracy.rows) {
    json.begin_object()
        .field("optimization", row.claim.optimization)
        .field("source", row.claim.source)
        .field("claim", row.claim.claim)
        .field("judged", is_judged(row));
    if (is_judged(row)) {
      json.field("model", row.claim.model)
          .field("batch", row.claim.batch)
          .field("gpu", row.claim.gpu)
          .field("published_throughput", row.claim.throughput)
          .field("throughput", row.throughput)
          .field("at_gbps", row.at_gbps)
          .field("differs", row.claim.differs);
    } else {
      json.field("cannot", row.claim.cannot);
    }
    json.end_object();
  }
  return json.end_array().end_object().take();
}

}  // namespace forerun
