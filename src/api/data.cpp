#include "api/data.h"

namespace forerun {
namespace {

// machine.json files among the paths, and what else there is.
struct SortedPaths {
  std::vector<std::string> machines;
  std::vector<std::string> others;
};

SortedPaths sorted(const std::vector<std::string>& paths) {
  SortedPaths result;
  for (const std::string& path : paths) (is_machine_file(path) ? result.machines : result.others).push_back(path);
  return result;
}

DataCheck sum_of(const DataCheck& a, const DataCheck& b) {
  return {.files = a.files + b.files,
          .unreadable = a.unreadable + b.unreadable,
          .empty = a.empty + b.empty,
          .runs = a.runs + b.runs,
          .samples = a.samples + b.samples,
          .broken = a.broken + b.broken,
          .torn = a.torn + b.torn,
          .warnings = a.warnings + b.warnings};
}

}  // namespace

Result<DataSummary> data_summary(const DataRequest& request, const WorkControl& control) {
  const auto files = record_files(request.paths);
  if (!files) return files.error();
  auto summary = summarize_data(*files, request.problem, control);
  if (summary && summary->families.empty() && summary->samples == 0) {
    return nothing_in(*files, "records that can be used");
  }
  return summary;
}

Result<DataNoise> data_noise(const DataRequest& request, const WorkControl& control) {
  const auto files = record_files(request.paths);
  if (!files) return files.error();
  const auto ignore = [](const DataProblem&) {};
  auto noise = noise_of_data(*files, request.problem ? request.problem : ignore, control);
  if (noise && noise->configurations == 0) return nothing_in(*files, "measured iteration records");
  return noise;
}

Status data_list(const DataRequest& request, const std::function<void(const RunRecord&)>& record,
                 const WorkControl& control) {
  const auto files = record_files(request.paths);
  if (!files) return files.error();
  bool any = false;
  const DataHandlers handlers{.run =
                                  [&](const RunRecord& read, const DataPlace& /*place*/) {
                                    any = true;
                                    record(read);
                                  },
                              .sample = {},
                              .problem =
                                  [&](const DataProblem& problem) {
                                    if (request.problem) request.problem(problem);
                                  }};
  if (Status status = scan_files(*files, Fields::description, handlers, control); !status.ok()) return status;
  if (!any) return nothing_in(*files, "iteration records");
  return {};
}

Result<DataCheck> data_check(const DataRequest& request, const std::function<void(const Error&)>& unreadable,
                             const WorkControl& control) {
  const auto ignore = [](const DataProblem&) {};
  const auto pass_over = [](const Error&) {};
  const std::function<void(const DataProblem&)> problem = request.problem ? request.problem : ignore;
  const std::function<void(const Error&)> unread = unreadable ? unreadable : pass_over;
  const SortedPaths paths = sorted(request.paths);
  DataCheck machines;
  if (!paths.machines.empty()) {
    const auto checked = check_machines(paths.machines, problem, unread);
    if (!checked) return checked.error();
    machines = *checked;
    if (paths.others.empty()) return machines;
  }
  const auto files = record_files(paths.others);
  if (!files) return files.error();
  const auto records = check_data(*files, problem, unread, control);
  if (!records) return records.error();
  return sum_of(machines, *records);
}

Result<MergeResult> data_merge(const DataMergeRequest& request, const WorkControl& control) {
  const SortedPaths paths = sorted(request.paths);
  if (!paths.machines.empty() && !paths.others.empty()) {
    return Error{"machine.json files and others do not go into one file at once", paths.others.front(),
                 "merge the machine.json files first, and their records with the others then"};
  }
  if (!paths.machines.empty()) return merge_machines(request.out, paths.machines, request.options);
  const auto files = record_files(request.paths);
  if (!files) return files.error();
  return merge_data(request.out, *files, request.options, control);
}

}  // namespace forerun
