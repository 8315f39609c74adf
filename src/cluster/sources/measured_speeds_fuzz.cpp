// Fuzzes what jobs take their speeds from: the first byte picks Pollux' archive of step times (tar) or Gavel's
// throughputs (JSON), the rest is the file. Sound jobs that are read with it must be able to run.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cluster/sources/sources.h"
#include "cluster/sources/step_tables.h"
#include "cluster/sources/tar_members.h"

namespace {

using namespace forerun;
using namespace forerun::cluster;

constexpr std::string_view kPolluxJobs =
    "name,time,application,num_replicas,batch_size\n"
    "a,0,cifar10,1,128\n"
    "b,10,bert,3,96\n"
    "c,20,bert,8,64\n";
constexpr std::string_view kGavelJobs =
    "A3C\tpython3 main.py\t--max-steps\t0\t1000\t0.0\t1\n"
    "ResNet-50 (batch size 64)\tpython3 main.py\t--steps\t1\t500\t30.0\t2\n";
constexpr std::string_view kCsvJobs =
    "id,arrival,gpus,model,batch,iterations\n"
    "a,0,1,cifar10,128,100\n"
    "b,5,4,bert,96,50\n";

void check_jobs(const Result<LoadedJobs>& loaded, const Cluster& cluster) {
  if (!loaded.ok()) {
    CHECK(!loaded.error().what.empty() && !loaded.error().where.empty(), "an error without what or where");
    return;
  }
  const Workload& workload = loaded->workload;
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    CHECK(can_ever_run(workload.jobs[job], workload.truth, job, cluster), "a job that can never run");
  }
}

void read_archive(const std::string& bytes, const LoadOptions& options, const Cluster& cluster) {
  const auto members = parse_tar(bytes, "fuzz.tar");
  if (!members.ok()) {
    CHECK(!members.error().what.empty(), "an error without what");
    return;
  }
  check_jobs(load_pollux_with(LineReader::from_text(kPolluxJobs, "jobs"), *members, "fuzz.tar", options), cluster);
  const auto tables = StepTables::read(*members, "fuzz.tar");
  if (!tables.ok()) return;
  static_cast<void>(tables->speeds(tables->applications(), tables->types(), {32, 64}));
  check_jobs(load_csv_with(LineReader::from_text(kCsvJobs, "jobs"), &*tables, options), cluster);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool archive = data[0] % 2 == 0;
  const auto cluster = parse_cluster(archive ? "t4=16" : "v100=8,p100=4,k80=2");
  LoadOptions options;
  options.cluster = &*cluster;
  options.lenient = (data[0] & 0x40) != 0;
  if (archive) {
    read_archive(bytes, options, *cluster);
  } else {
    check_jobs(load_gavel_with(LineReader::from_text(kGavelJobs, "jobs"), bytes, "fuzz.json", options), *cluster);
  }
  return 0;
}
