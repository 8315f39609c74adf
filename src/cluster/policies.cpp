#include "cluster/policies.h"

#include <fmt/format.h>

#include "base/nearest.h"
#include "cluster/external/external_policy.h"
#include "cluster/linear_program.h"
#include "cluster/policies/factories.h"

namespace forerun::cluster {
namespace {

OptionGrammar policy_grammar(const std::string& text) {
  return {"--policy " + text, "write NAME or NAME:OPTION=NUMBER,OPTION=NUMBER"};
}

// What files of users are to those who ask about an entry: they are handed priorities, and may go by them.
constexpr PolicyEntry kExternal{"FILE.py, FILE.so", "your own, in Python or as a shared library", nullptr, true};

std::unique_ptr<Policy> make_any(const PolicyEntry& entry, const std::string& file, OptionReader& options) {
  return file.empty() ? entry.make(options) : make_external_policy(file, options);
}

}  // namespace

const std::vector<PolicyEntry>& policies() {
  static const std::vector<PolicyEntry> list = {
      {"fifo", "in order of arrival; the first that does not fit holds up all behind it", make_fifo, true},
      {"fifo-skip", "in order of arrival; whatever fits starts", make_fifo_skip, true},
      {"fifo-pack", "as fifo-skip, and two single-GPU jobs share a GPU where both together gain (gain=1.2)",
       make_fifo_pack, true},
      {"sjf", "shortest predicted duration first; the first that does not fit holds up all behind it", make_sjf, true},
      {"sjf-skip", "shortest predicted duration first; whatever fits starts", make_sjf_skip, true},
      {"srsf", "least predicted GPU time first; the first that does not fit holds up all behind it", make_srsf, true},
      {"srsf-skip", "least predicted GPU time first; whatever fits starts", make_srsf_skip, true},
      {"srtf", "least predicted time left first, stopping longer jobs to make room", make_srtf},
      {"srtf-skip", "least predicted time left first among running and waiting; whatever fits runs", make_srtf_skip},
      {"srsf-preempt", "least predicted GPU time left first among running and waiting; whatever fits runs",
       make_srsf_preempt},
      {"2d-las", "Tiresias: least attained GPU time first, in queues with thresholds q1 and q2 (GPU seconds)",
       make_las},
      {"gittins", "Tiresias: most likely to end soon, by the GPU time of jobs that have ended", make_gittins},
      {"easy", "in order of arrival, and later jobs fill gaps if they do not delay the first in line", make_easy, true},
      {"conservative", "every job gets a reservation on arrival, which no later job moves back", make_conservative,
       true},
      {"optimus", "elastic jobs: every further GPU to the job it brings forward most (interval: seconds)",
       make_optimus},
      {"pollux", "elastic jobs: every further GPU to the job slowest against its stated GPUs (interval: seconds)",
       make_goodput},
      {"edf", "earliest deadline first; the first that does not fit holds up all behind it", make_edf, true},
      {"edf-skip", "earliest deadline first; whatever fits starts", make_edf_skip, true},
      {"allox", "least mean completion time on unlike GPUs, by matching; alpha=0..1: fair to users", make_allox},
      {"hydra", "least tardiness, then least mean completion time, on unlike GPUs", make_hydra},
      {"gavel",
       "max-min fairness on unlike GPUs, by a linear program and rounds (round: seconds; pack=1: two jobs a GPU)",
       make_gavel, false, true},
      {"gavel-makespan", "the same for the earliest last end", make_gavel_makespan, false, true},
      {"gavel-ftf", "the same for the best worst finish-time fairness", make_gavel_ftf, false, true},
      {"themis", "finish-time fairness by auction, in leases (lease: seconds; filter: share of the jobs that bids)",
       make_themis},
      {"sia", "an integer program picks type and number of GPUs for each job, in rounds (round: seconds)", make_sia,
       false, true},
  };
  return list;
}

Result<PolicySpec> parse_policy(const std::string& text) {
  auto named = parse_named_options(text, {"--policy", policy_grammar(text).remedy});
  if (!named) return named.error();
  const auto checked = [&](const PolicyEntry& entry, const std::string& file) -> Result<PolicySpec> {
    OptionReader reader(named->options, policy_grammar(text));
    make_any(entry, file, reader);
    if (const Status status = reader.status(); !status) return status.error();
    if (entry.needs_solver && !has_solver()) {
      return Error{
          fmt::format("the policy '{}' solves linear programs, and this machine has no libClp.so.1", entry.name),
          "--policy", "install COIN-OR's Clp (Debian: coinor-libclp1), or take another policy"};
    }
    return PolicySpec{&entry, file, std::move(named->options), text, {}};
  };
  if (is_external_policy(named->name)) {
    if (const Status status = check_external_policy(named->name); !status) return status.error();
    return checked(kExternal, named->name);
  }
  std::vector<std::string> names;
  for (const PolicyEntry& entry : policies()) {
    names.emplace_back(entry.name);
    if (named->name == entry.name) return checked(entry, "");
  }
  return Error{fmt::format("no policy is called '{}'", named->name), "--policy",
               did_you_mean(named->name, names) + " `forerun schedule --list` lists them all"};
}

PolicySpec own_policy(const std::string& name, PolicyMaker make) { return {&kExternal, "", {}, name, std::move(make)}; }

std::unique_ptr<Policy> make_policy(const PolicySpec& spec) {
  if (spec.own) return spec.own();
  OptionReader reader(spec.options, policy_grammar(spec.text));
  std::unique_ptr<Policy> policy = make_any(*spec.entry, spec.file, reader);
  CHECK(reader.status().ok(), "a policy whose options were not checked");
  return policy;
}

Result<std::unique_ptr<Policy>> make_policy(const std::string& text) {
  const auto spec = parse_policy(text);
  if (!spec) return spec.error();
  return make_policy(*spec);
}

}  // namespace forerun::cluster
