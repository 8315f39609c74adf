// Fuzzes the readers of job files: the first byte picks the format, the rest is the file. What is read must be sorted,
// runnable on the cluster it was read for, and errors must say what and where.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cluster/sources/sources.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun;
  using namespace forerun::cluster;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto cluster = parse_cluster(data[0] & 0x80 ? "v100=8,a100=4,2080ti=2" : "16");
  LoadOptions options;
  options.cluster = &*cluster;
  options.lenient = (data[0] & 0x40) != 0;
  LineReader reader = LineReader::from_text(text, "fuzz");
  const size_t format = (data[0] & 0x3f) % 8;
  constexpr const char* kRates =
      R"json({"v100": {"('A3C', 1)": {"null": 2.5}}, "a100": {"('A3C', 1)": {"null": 0.0}}, "2080ti": {}})json";
  const auto loaded = [&]() -> Result<LoadedJobs> {
    switch (format) {
      case 0: return load_csv(std::move(reader), options);
      case 1: return load_philly(std::move(reader), options);
      case 2: return load_hydra(std::move(reader), options);
      case 3: return load_gavel_with(std::move(reader), kRates, "rates", options);
      case 4: return load_alibaba(std::move(reader), options);
      case 5: return load_sacct(std::move(reader), options);
      case 6: return load_jobcomp(std::move(reader), options);
      default: return load_pai(std::move(reader), options);
    }
  }();
  if (!loaded.ok()) {
    CHECK(!loaded.error().what.empty() && !loaded.error().where.empty(), "an error without what or where");
    return 0;
  }
  const Workload& workload = loaded->workload;
  CHECK(!workload.jobs.empty() && workload.jobs.front().arrival == Time(0), "the first job does not arrive at 0");
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    CHECK(job == 0 || workload.jobs[job - 1].arrival <= workload.jobs[job].arrival, "jobs are not in order");
    CHECK(can_ever_run(workload.jobs[job], workload.truth, job, *cluster), "a job that can never run");
    for (const JobIndex before : workload.after.empty() ? std::vector<JobIndex>() : workload.after[job]) {
      CHECK(before < job, "a job that runs after a later one");
    }
  }
  return 0;
}
