#include "api/data.h"

namespace forerun {

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
  const auto files = record_files(request.paths);
  if (!files) return files.error();
  const auto ignore = [](const DataProblem&) {};
  const auto pass_over = [](const Error&) {};
  return check_data(*files, request.problem ? request.problem : ignore, unreadable ? unreadable : pass_over, control);
}

Result<MergeResult> data_merge(const DataMergeRequest& request, const WorkControl& control) {
  const auto files = record_files(request.paths);
  if (!files) return files.error();
  return merge_data(request.out, *files, request.options, control);
}

}  // namespace forerun
