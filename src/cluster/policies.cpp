#include "cluster/policies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/nearest.h"
#include "cluster/policies/factories.h"

namespace forerun::cluster {
namespace {

Error bad_option(const std::string& text, const std::string& what) {
  return {fmt::format("{} in the policy '{}'", what, text), "--policy",
          "write NAME or NAME:OPTION=NUMBER,OPTION=NUMBER"};
}

Result<PolicyOptions> parse_options(const std::string& text, size_t begin) {
  PolicyOptions options;
  for (bool more = begin <= text.size(); more;) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) return bad_option(text, fmt::format("'{}' is no option", part));
    PolicyOption option{part.substr(0, equals), 0};
    const char* last = part.data() + part.size();
    const auto [stop, fault] = std::from_chars(part.data() + equals + 1, last, option.value);
    if (fault != std::errc() || stop != last || !std::isfinite(option.value)) {
      return bad_option(text, fmt::format("'{}' is no number", part.substr(equals + 1)));
    }
    for (const PolicyOption& other : options) {
      if (other.name == option.name) return bad_option(text, fmt::format("'{}' stands twice", option.name));
    }
    options.push_back(std::move(option));
    more = end < text.size();
    begin = end + 1;
  }
  return options;
}

}  // namespace

double OptionReader::number(std::string_view name, double otherwise, double least, double most) {
  known_.emplace_back(name);
  for (size_t i = 0; i < options_.size(); ++i) {
    if (options_[i].name != name) continue;
    used_[i] = true;
    const double value = options_[i].value;
    if (value >= least && value <= most) return value;
    refuse(fmt::format("{}={} is out of range: {} to {}", name, value, least, most));
  }
  return otherwise;
}

int64_t OptionReader::whole(std::string_view name, int64_t otherwise, double least, double most) {
  const double value = number(name, static_cast<double>(otherwise), least, most);
  if (value != std::floor(value)) refuse(fmt::format("{}={} is no whole number", name, value));
  return static_cast<int64_t>(value);
}

std::vector<std::string> OptionReader::unused() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < options_.size(); ++i) {
    if (!used_[i]) names.push_back(options_[i].name);
  }
  return names;
}

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
       make_gavel},
      {"gavel-makespan", "the same for the earliest last end", make_gavel_makespan},
      {"gavel-ftf", "the same for the best worst finish-time fairness", make_gavel_ftf},
      {"themis", "finish-time fairness by auction, in leases (lease: seconds; filter: share of the jobs that bids)",
       make_themis},
      {"sia", "an integer program picks type and number of GPUs for each job, in rounds (round: seconds)", make_sia},
  };
  return list;
}

Result<std::unique_ptr<Policy>> make_policy(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const auto options = parse_options(text, colon == std::string::npos ? text.size() + 1 : colon + 1);
  if (!options) return options.error();
  std::vector<std::string> names;
  for (const PolicyEntry& entry : policies()) {
    names.emplace_back(entry.name);
    if (name != entry.name) continue;
    OptionReader reader(*options);
    std::unique_ptr<Policy> policy = entry.make(reader);
    if (const auto unused = reader.unused(); !unused.empty()) {
      const std::string known = fmt::format("{}", fmt::join(reader.known(), ", "));
      return bad_option(
          text, fmt::format("no option is called '{}' (options: {})", unused.front(), known.empty() ? "none" : known));
    }
    if (!reader.faults().empty()) return bad_option(text, reader.faults().front());
    return policy;
  }
  return Error{fmt::format("no policy is called '{}'", name), "--policy",
               did_you_mean(name, names) + " `forerun schedule --list` lists them all"};
}

bool goes_by_priority(const std::string& text) {
  const std::string name = text.substr(0, text.find(':'));
  return std::any_of(policies().begin(), policies().end(),
                     [&](const PolicyEntry& entry) { return entry.name == name && entry.by_priority; });
}

}  // namespace forerun::cluster
