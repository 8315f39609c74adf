// Breakdown, overlap and idle causes: on small traces by hand, and on real ones against the values that Holistic Trace
// Analysis gives.
#include "timeline/trace_breakdown.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "base/needs_dataset.h"
#include "ingest/kineto/kineto_reader.h"
#include "timeline/trace_analysis.h"

namespace forerun {
namespace {

std::string kernel(const std::string& name, int stream, int start, int duration, int correlation = 0) {
  return fmt::format(
      R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{"device":0,"stream":{},"correlation":{}}}}})",
      name, stream, start, duration, stream, correlation);
}
std::string call(int start, int duration, int correlation) {
  return fmt::format(
      R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":{},"args":{{"correlation":{}}}}})",
      start, duration, correlation);
}
std::string mark(const std::string& name, int start, int duration) {
  return fmt::format(R"({{"ph":"X","cat":"user_annotation","name":"{}","pid":1,"tid":1,"ts":{},"dur":{},"args":{{}}}})",
                     name, start, duration);
}

Trace trace_of(const std::vector<std::string>& events) {
  std::string text = "[";
  for (const std::string& event : events) text += (text.size() == 1 ? "" : ",") + event;
  auto trace = read_kineto_text(text + "]", "test.json");
  EXPECT_TRUE(trace.ok());
  return std::move(*trace);
}

RankAnalysis analyzed(const Trace& trace, AnalysisOptions options = {}) {
  options.critical_path = false;
  return analyze(std::span(&trace, 1), options).ranks.at(0);
}

TEST(TraceBreakdown, SeparatesComputationCommunicationAndIdle) {
  // 0-10 compute, 8-20 nccl, 20-22 idle, 22-30 compute, 25-27 copy, 30-40 idle, 40-41 copy
  const Trace trace = trace_of(
      {kernel("gemm", 7, 0, 10), kernel("ncclKernel_AllReduce_RING_LL_Sum_float", 20, 8, 12), kernel("gemm", 7, 22, 8),
       R"({"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":9,"ts":25,"dur":2,"args":{"device":0,"stream":9}})",
       R"({"ph":"X","cat":"gpu_memset","name":"Memset","pid":0,"tid":9,"ts":40,"dur":1,"args":{"device":0,"stream":9}})"});
  const RankAnalysis rank = analyzed(trace);
  ASSERT_EQ(rank.devices.size(), 1U);
  const DeviceBreakdown& device = rank.devices[0];
  EXPECT_EQ(device.span, Nanoseconds(41'000));
  EXPECT_EQ(device.compute, Nanoseconds(18'000));
  EXPECT_EQ(device.communication, Nanoseconds(12'000));
  EXPECT_EQ(device.copy, Nanoseconds(3'000));
  EXPECT_EQ(device.idle, Nanoseconds(12'000));
  EXPECT_EQ(device.overlap, Nanoseconds(2'000));
  EXPECT_EQ(device.exposed_communication, Nanoseconds(10'000));
  EXPECT_EQ(device.exposed_copy, Nanoseconds(1'000));
  EXPECT_EQ(device.compute + device.exposed_communication + device.exposed_copy + device.idle, device.span);
  EXPECT_EQ(device.causes.total(), device.idle);
  EXPECT_EQ(device.streams.size(), 3U);
}

TEST(TraceBreakdown, TellsWhyNothingRan) {
  // launched in time, 2 us pause; launched late; launched in time, 30 us pause
  const Trace trace = trace_of({call(0, 1, 1), kernel("a", 7, 10, 10, 1), call(2, 1, 2), kernel("b", 7, 22, 8, 2),
                                call(45, 1, 3), kernel("c", 7, 50, 10, 3), call(46, 1, 4), kernel("d", 7, 90, 10, 4)});
  const IdleCauses causes = analyzed(trace).devices.at(0).causes;
  EXPECT_EQ(causes.kernel_wait, Nanoseconds(2'000));
  EXPECT_EQ(causes.host_wait, Nanoseconds(20'000));
  EXPECT_EQ(causes.other, Nanoseconds(30'000));
}

TEST(TraceBreakdown, CommunicationUnderAnotherName) {
  const Trace trace = trace_of({mark("nccl:all_reduce", 0, 10), call(1, 2, 1), kernel("mystery", 20, 20, 5, 1),
                                call(12, 2, 2), kernel("mystery", 7, 30, 5, 2)});
  const RankAnalysis rank = analyzed(trace);
  EXPECT_EQ(rank.communication_kernels, 1);
  EXPECT_EQ(rank.devices.at(0).communication, Nanoseconds(5'000));
}

TEST(TraceBreakdown, CommunicationWithoutNccl) {
  const Trace trace =
      trace_of({kernel("void deep_ep::internode_ll::dispatch<true, 7168>(void*)", 20, 0, 5),
                kernel("void vllm::cross_device_reduce_2stage<half, 8>", 20, 10, 5), kernel("gemm", 7, 20, 5)});
  const RankAnalysis rank = analyzed(trace);
  EXPECT_EQ(rank.communication_kernels, 2);
  EXPECT_EQ(rank.devices.at(0).communication, Nanoseconds(10'000));
  EXPECT_EQ(rank.devices.at(0).compute, Nanoseconds(5'000));
}

TEST(TraceBreakdown, CountsQueuesAndLaunches) {
  const Trace trace = trace_of({call(0, 2, 1), call(2, 2, 2), call(4, 60, 3), kernel("a", 7, 10, 10, 1),
                                kernel("b", 7, 20, 1, 2), kernel("c", 7, 200, 10, 3), kernel("d", 7, 210, 10, 3)});
  const RankAnalysis rank = analyzed(trace);
  EXPECT_EQ(rank.launches.launches, 4);
  EXPECT_EQ(rank.launches.calls, 3);
  EXPECT_EQ(rank.launches.graph_kernels, 2);
  EXPECT_EQ(rank.launches.slow_calls, 1);
  EXPECT_EQ(rank.launches.late_starts, 2);
  EXPECT_EQ(rank.launches.short_work, 3);
  ASSERT_EQ(rank.queues.size(), 1U);
  EXPECT_EQ(rank.queues[0].longest, 4);
}

TEST(TraceBreakdown, GivesTimeToKernelsOpsAndPhases) {
  const auto op = [](const std::string& name, int start, int duration, const std::string& arguments) {
    return fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":1,"tid":1,"ts":{},"dur":{},"args":{{{}}}}})",
                       name, start, duration, arguments);
  };
  const Trace trace = trace_of({op("aten::linear", 0, 20, ""), op("aten::addmm", 2, 10, ""), call(4, 2, 1),
                                kernel("gemm", 7, 30, 12, 1), mark("Optimizer.step#SGD.step", 40, 20),
                                op("aten::add_", 42, 8, ""), call(44, 2, 2), kernel("add", 7, 60, 3, 2)});
  const Usage usage = analyzed(trace).usage;
  ASSERT_EQ(usage.kernels.size(), 2U);
  EXPECT_EQ(usage.kernels[0].name, "gemm");
  ASSERT_EQ(usage.ops.size(), 3U);
  EXPECT_EQ(usage.ops[0].name, "aten::addmm");
  EXPECT_EQ(usage.ops[0].gpu, Nanoseconds(12'000));
  EXPECT_EQ(usage.ops[2].name, "aten::linear");
  EXPECT_EQ(usage.ops[2].host, Nanoseconds(10'000));  // without aten::addmm
  Nanoseconds gpu;
  for (const UsageRow& row : usage.phases) {
    gpu += row.gpu;
    if (row.name == "update") {
      EXPECT_EQ(row.gpu, Nanoseconds(3000));
    }
    if (row.name == "forward") {
      EXPECT_EQ(row.host, Nanoseconds(20000));
    }
  }
  EXPECT_EQ(gpu, Nanoseconds(15'000));
}

TEST(TraceBreakdown, IntervalsAgreeWithCountingMoments) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    constexpr int kMoments = 60;
    const auto some = [&] {
      Intervals intervals;
      for (int i = 0; i < 6; ++i) {
        const auto begin = static_cast<int64_t>(random() % kMoments);
        intervals.push_back({begin, begin + static_cast<int64_t>(random() % 10)});
      }
      return intervals;
    };
    const auto has = [](const Intervals& intervals, int64_t moment) {
      return std::any_of(intervals.begin(), intervals.end(),
                         [&](const Interval& i) { return i.begin <= moment && moment < i.end; });
    };
    const Intervals a = some(), b = some();
    const Intervals all = united(a), both = intersection(united(a), united(b)), gaps = gaps_of(united(a), 5, 50);
    int64_t count_all = 0, count_both = 0, count_gaps = 0;
    for (int64_t moment = 0; moment < kMoments + 20; ++moment) {
      count_all += has(a, moment) ? 1 : 0;
      count_both += has(a, moment) && has(b, moment) ? 1 : 0;
      count_gaps += moment >= 5 && moment < 50 && !has(a, moment) ? 1 : 0;
    }
    EXPECT_EQ(length_of(all).value, count_all);
    EXPECT_EQ(length_of(both).value, count_both);
    EXPECT_EQ(length_of(gaps).value, count_gaps);
  }
}

struct Golden {
  const char* file;
  int64_t span_us, idle_us, compute_us, non_compute_us;
  double overlap_percent;
};

// Three steps with work of less than a microsecond, pauses of 29 and 30 us, work that overlaps on a stream, a wait on a
// stream, and communication under a name that tool does not know.
constexpr const char* kSmallTrace = R"({"schemaVersion":1,"baseTimeNanoseconds":1700000000000000123,"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0.5,"dur":400.0,"args":{}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":10.1,"dur":2.25,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":20.3,"dur":30.5,"args":{"device":0,"stream":7,"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":13.0,"dur":2.25,"args":{"correlation":2}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":51.2,"dur":0.6,"args":{"device":0,"stream":7,"correlation":2}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":15.5,"dur":2.25,"args":{"correlation":3}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":7,"ts":80.7,"dur":4.1,"args":{"device":0,"stream":7,"correlation":3}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":18.5,"dur":2.25,"args":{"correlation":4}},
{"ph":"X","cat":"kernel","name":"void deep_ep::intranode::dispatch<8>","pid":0,"tid":7,"ts":112.9,"dur":10.0,"args":{"device":0,"stream":7,"correlation":4}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":140.2,"dur":2.25,"args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":150.9,"dur":20.2,"args":{"device":0,"stream":7,"correlation":5}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":30.0,"dur":2.25,"args":{"correlation":6}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL","pid":0,"tid":20,"ts":60.5,"dur":70.25,"args":{"device":0,"stream":20,"correlation":6}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":32.0,"dur":2.25,"args":{"correlation":7}},
{"ph":"X","cat":"gpu_memset","name":"Memset","pid":0,"tid":20,"ts":60.75,"dur":1.5,"args":{"device":0,"stream":20,"correlation":7}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":34.0,"dur":2.25,"args":{"correlation":8}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL","pid":0,"tid":20,"ts":170.5,"dur":30.0,"args":{"device":0,"stream":20,"correlation":8}},
{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":1,"tid":1,"ts":205.0,"dur":40.0,"args":{"correlation":900}},
{"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"tid":7,"ts":206.25,"dur":30.5,"args":{"device":0,"stream":7,"correlation":900}},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":1,"tid":1,"ts":400.5,"dur":300.0,"args":{}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":410.0,"dur":2.25,"args":{"correlation":9}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":420.0,"dur":50.75,"args":{"device":0,"stream":7,"correlation":9}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":412.0,"dur":2.25,"args":{"correlation":10}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":471.1,"dur":50.75,"args":{"device":0,"stream":7,"correlation":10}},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":1,"tid":1,"ts":700.5,"dur":300.0,"args":{}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":710.0,"dur":2.25,"args":{"correlation":11}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":720.0,"dur":50.0,"args":{"device":0,"stream":7,"correlation":11}}
]})";

// The values are those that HolisticTraceAnalysis 0.5.0 printed for this file (get_temporal_breakdown,
// get_idle_time_breakdown, get_comm_comp_overlap).
TEST(TraceBreakdown, CountsASmallTraceLikeHolisticTraceAnalysis) {
  const auto trace = read_kineto_text(kSmallTrace, "small.json");
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  AnalysisOptions options;
  options.breakdown.like_hta = true;
  const DeviceBreakdown device = analyzed(*trace, options).devices.at(0);
  EXPECT_EQ(device.idle.value, 226'000);
  EXPECT_EQ(device.compute.value, 156'000);
  EXPECT_EQ(device.non_compute().value, 118'000);
  EXPECT_EQ(device.span.value, 500'000);
  EXPECT_NEAR(100 * device.overlap_share(), 9.18, 0.005);
  ASSERT_EQ(device.streams.size(), 2U);
  EXPECT_EQ(device.streams[0].stream, 7);
  EXPECT_EQ(device.streams[0].idle.host_wait.value, 278'000);
  EXPECT_EQ(device.streams[0].idle.kernel_wait.value, 33'000);
  EXPECT_EQ(device.streams[0].idle.other.value, 30'000);
  EXPECT_EQ(device.streams[1].idle.host_wait.value, 0);
  EXPECT_EQ(device.streams[1].idle.kernel_wait.value, -69'000);
  EXPECT_EQ(device.streams[1].idle.other.value, 109'000);
  EXPECT_EQ(device.causes.total(), device.idle);
}

// What HolisticTraceAnalysis 0.5.0 reports of real traces.
TEST(TraceBreakdown, AgreesWithHolisticTraceAnalysis) {
  for (const Golden& golden : {Golden{"transformer_v100_404_allreduce", 1'396'669, 643'612, 496'485, 256'572, 0.0},
                               Golden{"resnet50_ddp_a100_rank0of2", 435'586, 338'781, 75'169, 21'636, 14.31}}) {
    NEEDS_DATASET(path, fmt::format("traces/hta/{}.json.gz", golden.file));
    const auto trace = read_kineto(path);
    ASSERT_TRUE(trace.ok());
    AnalysisOptions options;
    options.breakdown.like_hta = true;
    const DeviceBreakdown device = analyzed(*trace, options).devices.at(0);
    EXPECT_EQ(device.span.value, golden.span_us * 1000);
    EXPECT_EQ(device.idle.value, golden.idle_us * 1000);
    EXPECT_EQ(device.compute.value, golden.compute_us * 1000);
    EXPECT_EQ(device.non_compute().value, golden.non_compute_us * 1000);
    EXPECT_NEAR(100 * device.overlap_share(), golden.overlap_percent, 0.005);
    EXPECT_EQ(device.causes.total(), device.idle);
  }
}

TEST(TraceRanks, FindsClockOffsetsAndTheStraggler) {
  std::vector<Trace> ranks;
  for (int r = 0; r < 3; ++r) {
    std::vector<std::string> events;
    for (int k = 0; k < 5; ++k) {
      // All end at 100 k + 80; rank 2 arrives 20 us after the others. Clocks are 1000 us apart.
      const int arrives = 100 * k + (r == 2 ? 60 : 40);
      events.push_back(kernel("ncclDevKernel_AllReduce", 20, 1000 * r + arrives, 100 * k + 80 - arrives));
    }
    ranks.push_back(trace_of(events));
    ranks.back().rank = r;
  }
  AnalysisOptions options;
  options.critical_path = false;
  const RankComparison comparison = analyze(ranks, options).comparison;
  EXPECT_EQ(comparison.matched, 5);
  EXPECT_EQ(comparison.ranks[1].clock_offset, Nanoseconds(1'000'000));
  EXPECT_EQ(comparison.ranks[2].clock_offset, Nanoseconds(2'000'000));
  EXPECT_EQ(comparison.straggler, 2);
  EXPECT_EQ(comparison.ranks[2].arrived_last, 5);
  EXPECT_EQ(comparison.ranks[2].kept_waiting, Nanoseconds(5 * 20'000 * 2));
}

TEST(TraceRanks, ClocksOfRealRanksAreAMillisecondApartAtMost) {
  NEEDS_DATASET(folder, "traces/param/dlrm_8ranks");
  std::vector<Trace> ranks;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    auto trace = read_kineto(entry.path().string());
    ASSERT_TRUE(trace.ok());
    ranks.push_back(std::move(*trace));
  }
  std::sort(ranks.begin(), ranks.end(), [](const Trace& a, const Trace& b) { return a.rank < b.rank; });
  AnalysisOptions options;
  options.critical_path = false;
  const RankComparison comparison = analyze(ranks, options).comparison;
  ASSERT_EQ(comparison.ranks.size(), 8U);
  EXPECT_GT(comparison.matched, 0);
  for (const RankRow& row : comparison.ranks) EXPECT_LT(std::abs(row.clock_offset.value), 1'000'000) << row.rank;
}

TEST(TraceChangesTest, NamesWhatChanged) {
  const Trace before = trace_of({kernel("slow", 7, 0, 50), kernel("same", 7, 60, 5)});
  const Trace after = trace_of({kernel("fast", 7, 0, 10), kernel("same", 7, 60, 5)});
  const TraceChanges changes = changes_between(analyzed(before), analyzed(after));
  ASSERT_EQ(changes.kernels.size(), 3U);
  EXPECT_EQ(changes.kernels[0].name, "slow");
  EXPECT_EQ(changes.kernels[0].change(), Nanoseconds(-50'000));
  EXPECT_EQ(changes.kernels[1].name, "fast");
  EXPECT_EQ(changes.kernels[2].change(), Nanoseconds(0));
}

TEST(TracePathTest, SaysWhatWouldMoveIt) {
  // The GPU is the bottleneck: two long kernels launched at once.
  const Trace trace =
      trace_of({call(0, 2, 1), call(3, 2, 2), kernel("long", 7, 10, 1000, 1), kernel("short", 7, 1011, 10, 2)});
  const auto path = path_of(std::span(&trace, 1), {});
  ASSERT_TRUE(path.ok()) << path.error().message();
  ASSERT_FALSE(path->levers.empty());
  EXPECT_EQ(path->levers[0].name, "long");
  EXPECT_EQ(path->levers[0].saved, Nanoseconds(500'000));
  EXPECT_EQ(path->names[0].name, "long");
  EXPECT_GT(path->gpu, path->host);
  EXPECT_LE(path->host + path->gpu + path->communication, path->simulated);
}

}  // namespace
}  // namespace forerun
