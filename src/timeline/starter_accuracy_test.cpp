// The analytic model and the two-lane timeline against the measured starter runs: GPU busy time and iteration time by
// family. Guards against a change that makes the hand-set model much worse; the bands are wide because nothing is
// fitted.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/data_dir.h"
#include "cost/analytic/analytic.h"
#include "device/catalogue.h"
#include "ingest/capture/run_record.h"
#include "timeline/host_gpu_timeline.h"

namespace forerun {
namespace {

struct Errors {
  int records = 0;
  double gpu = 0;
  double iteration = 0;
};

TEST(StarterAccuracyTest, AnalyticModelStaysWithinItsBand) {
  const std::string file = FORERUN_DATA_DIR "/h200/first-starter.jsonl.zst";
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok()) << folder.error().message();
  const auto catalogue = load_devices(*folder / "devices");
  const auto constants = load_analytic_constants(*folder / "cost/analytic.json");
  const auto host_constants = load_host_constants(*folder / "host/default.json");
  ASSERT_TRUE(catalogue.ok() && constants.ok() && host_constants.ok());
  auto reader = RunRecordReader::open(file, Fields::inputs_and_measurements);
  ASSERT_TRUE(reader.ok()) << reader.error().message();

  std::map<std::string, Errors> families;
  while (true) {
    auto record = reader->next();
    ASSERT_TRUE(record.ok()) << record.error().message();
    if (!record->has_value()) break;
    const RunRecord& r = **record;
    if (!r.has_graph || !r.measured || r.measured->out_of_memory) continue;
    const auto device = catalogue->find(r.run.environment.gpu);
    ASSERT_TRUE(device.ok()) << device.error().message();
    const auto costs = analytic_costs(r.run.graph, *device, r.run.setup, *constants);
    const HostCosts host = host_costs(r.run.graph, costs, *host_constants);
    LaneSetup setup;
    setup.gap = device->launch_gap;
    setup.per_iteration = host.per_iteration;
    const IterationTiming times = host_gpu_timeline(lane_ops(r.run.graph, costs, host), setup);
    Errors& errors = families[r.run.family];
    ++errors.records;
    errors.gpu += std::abs(microseconds(times.gpu_busy) / r.measured->gpu_busy_us - 1);
    errors.iteration += std::abs(milliseconds(times.iteration) / r.measured->pipelined_median_ms - 1);
  }
  ASSERT_EQ(families.size(), 9u);
  for (const auto& [family, errors] : families) {
    const double gpu = errors.gpu / errors.records;
    const double iteration = errors.iteration / errors.records;
    std::printf("%-14s %3d records  GPU busy %5.1f %%  iteration %5.1f %%\n", family.c_str(), errors.records, 100 * gpu,
                100 * iteration);
    EXPECT_LT(gpu, 0.35) << family;
    EXPECT_LT(iteration, 0.40) << family;
  }
}

}  // namespace
}  // namespace forerun
