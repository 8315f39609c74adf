#include "cluster/quota.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "base/options_text.h"

namespace forerun::cluster {
namespace {

constexpr const char* kQuotaRemedy = "write user=8, user:NAME=16, group=64 or group:NAME=32";

const char* quota_word(Quota::Of of) { return of == Quota::Of::user ? "user" : "group"; }

const std::vector<std::string>& names_of(Quota::Of of, const Workload& workload) {
  return of == Quota::Of::user ? workload.users : workload.virtual_clusters;
}

Result<Quota> parse_quota(const std::string& text) {
  const Error fault{fmt::format("'{}' is no quota", text), "--quota", kQuotaRemedy};
  const size_t equals = text.rfind('=');  // names may hold any character
  if (equals == std::string::npos) return fault;
  const std::string whose = text.substr(0, equals);
  const std::string of = whose.substr(0, whose.find(':'));
  const auto gpus = number_in(text.substr(equals + 1));
  const bool named = of.size() < whose.size();
  const bool whole = gpus && *gpus >= 0 && *gpus <= 1e9 && *gpus == static_cast<double>(static_cast<int32_t>(*gpus));
  if (!whole || (of != "user" && of != "group") || (named && of.size() + 1 == whose.size())) return fault;
  return Quota{of == "user" ? Quota::Of::user : Quota::Of::group, named ? whose.substr(of.size() + 1) : "",
               static_cast<int32_t>(*gpus)};
}

}  // namespace

Result<std::vector<Quota>> parse_quotas(const std::vector<std::string>& texts) {
  std::vector<Quota> quotas;
  for (const std::string& text : texts) {
    auto quota = parse_quota(text);
    if (!quota) return quota.error();
    const auto same = [&](const Quota& other) { return other.of == quota->of && other.name == quota->name; };
    if (std::any_of(quotas.begin(), quotas.end(), same)) {
      return Error{fmt::format("the quota '{}' stands twice", text.substr(0, text.rfind('='))), "--quota",
                   "give each once"};
    }
    quotas.push_back(*std::move(quota));
  }
  return quotas;
}

int32_t quota_gpus(const Job& job) { return std::max(job.gpus, job.most_gpus); }

std::optional<int32_t> quota_of(const std::vector<Quota>& quotas, Quota::Of of, const Workload& workload,
                                const Job& job) {
  const int32_t index = of == Quota::Of::user ? job.user : job.virtual_cluster;
  if (index < 0) return std::nullopt;
  const std::string& name = names_of(of, workload)[static_cast<size_t>(index)];
  std::optional<int32_t> found;
  for (const Quota& quota : quotas) {
    if (quota.of == of && (quota.name == name || (quota.name.empty() && !found))) found = quota.gpus;
    if (quota.of == of && quota.name == name) break;
  }
  return found;
}

Status check_quotas(const std::vector<Quota>& quotas, const Workload& workload) {
  for (const Quota& quota : quotas) {
    const std::vector<std::string>& names = names_of(quota.of, workload);
    if (names.empty()) {
      return Error{fmt::format("the jobs state no {}s, which a quota is for", quota_word(quota.of)), "--quota",
                   "take the quota out; docs/jobs.md says which files have them"};
    }
    if (quota.name.empty() || std::find(names.begin(), names.end(), quota.name) != names.end()) continue;
    return Error{fmt::format("no job has the {} '{}'", quota_word(quota.of), quota.name), "--quota",
                 did_you_mean(quota.name, names)};
  }
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    for (const Quota::Of of : {Quota::Of::user, Quota::Of::group}) {
      const auto most = quota_of(quotas, of, workload, workload.jobs[job]);
      if (!most || quota_gpus(workload.jobs[job]) <= *most) continue;
      return Error{fmt::format("job '{}' takes up to {} GPUs, and the quota of its {} is {}", workload.name_of(job),
                               quota_gpus(workload.jobs[job]), quota_word(of), *most),
                   "--quota", "raise the quota, or leave such jobs out with --max-gpus"};
    }
  }
  return {};
}

}  // namespace forerun::cluster
