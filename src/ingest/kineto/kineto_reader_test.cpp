// The reader on what real files hold: categories of every era, times exact to the nanosecond, broken and cut events.
#include "ingest/kineto/kineto_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/line_writer.h"
#include "base/needs_dataset.h"
#include "ingest/trace/trace_links.h"

namespace forerun {
namespace {

std::string file_of(const std::string& events, const std::string& tail = R"(,"traceName":"x"})") {
  return R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":"Tesla V100"},{"id":1,"name":"other"}],)"
         R"("distributedInfo":{"backend":"nccl","rank":3,"world_size":8},"traceEvents":[)" +
         events + "\n]" + tail;
}

std::string op(const std::string& name, const std::string& start, const std::string& duration) {
  return fmt::format(
      R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":10,"tid":11,"ts":{},"dur":{},"args":{{"External id":5}}}})", name,
      start, duration);
}

Trace read_text(const std::string& text, const KinetoOptions& options = {}) {
  auto trace = read_kineto_text(text, "test.json", options);
  EXPECT_TRUE(trace.ok()) << (trace.ok() ? "" : trace.error().message());
  return trace.ok() ? std::move(*trace) : Trace();
}

TEST(KinetoReader, TakesAnEventAndItsArguments) {
  const Trace trace = read_text(file_of(
      R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":100.5,"dur":2.25,"args":{"External id":12,)"
      R"("device":0,"stream":7,"correlation":91,"registers per thread":40,"shared memory":400,"grid":[4,5,6],"block":[128,1,1]}},)"
      R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":"9","ts":90,"dur":5,"args":{"External id":12,)"
      R"("Sequence number":7,"Fwd thread id":1,"Input Dims":[[2, 3],[]],"Input type":["float",""]}})"));
  ASSERT_EQ(trace.size(), 2U);
  EXPECT_EQ(trace.rank, 3);
  EXPECT_EQ(trace.world_size, 8);
  EXPECT_EQ(trace.gpu, "Tesla V100");
  EXPECT_TRUE(trace.names_process_group);
  EXPECT_EQ(trace.name(0), "aten::mm");  // by start
  EXPECT_EQ(trace.events.sequence[0], 7);
  EXPECT_EQ(trace.events.forward_thread[0], 1);
  EXPECT_EQ(trace.lane_of(0).thread, 9);
  EXPECT_EQ(trace.text(trace.ops[trace.events.detail[0]].dims), "[[2, 3],[]]");
  EXPECT_EQ(trace.events.start[1], 100500);
  EXPECT_EQ(trace.events.duration[1], 2250);
  EXPECT_EQ(trace.events.correlation[1], 91);
  EXPECT_EQ(trace.kernels[trace.events.detail[1]].grid[2], 6U);
  EXPECT_EQ(trace.kernels[trace.events.detail[1]].registers, 40U);
}

TEST(KinetoReader, TimesAreExact) {
  const Trace trace = read_text(file_of(op("a", "1712195495519689.253", "0.001") + "," +
                                        op("b", "3846115180460.5095", "1e3") + "," + op("c", "\"12\"", "7")));
  ASSERT_EQ(trace.size(), 3U);
  EXPECT_EQ(trace.events.start[0], 12000);
  EXPECT_EQ(trace.events.start[1], 3846115180460510);  // half a nanosecond is rounded up
  EXPECT_EQ(trace.events.duration[1], 1000000);
  EXPECT_EQ(trace.events.start[2], 1712195495519689253);
  EXPECT_EQ(trace.events.duration[2], 1);
}

TEST(KinetoReader, AddsTheBaseTimeWhereverItStands) {
  const std::string events = op("a", "1.5", "1");
  EXPECT_EQ(read_text(file_of(events, R"(,"baseTimeNanoseconds":1735632360000000000})")).events.start[0],
            1735632360000001500);
  EXPECT_EQ(
      read_text(R"({"baseTimeNanoseconds": 1735632360000000000, "traceEvents": [)" + events + "]}").events.start[0],
      1735632360000001500);
  EXPECT_EQ(read_text("[" + events + "]").events.start[0], 1500);  // a list without anything around it
}

TEST(KinetoReader, KnowsTheCategoriesOfEveryEra) {
  const auto kind = [](const std::string& category, const std::string& name) {
    return read_text(
               "[" +
               fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":1,"ts":1,"dur":1}})", category, name) +
               "]")
        .events.kind.at(0);
  };
  EXPECT_EQ(kind("Operator", "aten::add"), EventKind::op);
  EXPECT_EQ(kind("Operator", "ProfilerStep#3"), EventKind::annotation);
  EXPECT_EQ(kind("Operator", "enumerate(DataLoader)#_Iter.__next__"), EventKind::annotation);
  EXPECT_EQ(kind("Runtime", "cudaLaunchKernel"), EventKind::runtime);
  EXPECT_EQ(kind("Kernel", "gemm"), EventKind::kernel);
  EXPECT_EQ(kind("Memcpy", "Memcpy HtoD"), EventKind::copy);
  EXPECT_EQ(kind("gpu_memset", "Memset"), EventKind::fill);
  EXPECT_EQ(kind("cuda_driver", "cuLaunchKernel"), EventKind::driver);
  EXPECT_EQ(kind("cuda_sync", "Stream Sync"), EventKind::sync);
  EXPECT_EQ(kind("python_function", "nn.Module: Linear_0"), EventKind::python);
  EXPECT_EQ(kind("of next year", "x"), EventKind::other);
}

TEST(KinetoReader, KeepsCollectivesAndWaits) {
  const Trace trace = read_text(file_of(
      R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","pid":0,"tid":20,"ts":1,"dur":2,"args":{"device":0,"stream":20,)"
      R"("correlation":4,"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"Group size":2,"dtype":"Float",)"
      R"("In split size":[],"Process Group Name":"0","Process Group Ranks":[0, 1]}},)"
      R"({"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":7,"ts":3,"dur":1,"args":{"cuda_sync_kind":)"
      R"("Stream Wait Event","stream":7,"correlation":5,"device":0,"wait_on_stream":20,"wait_on_cuda_event_record_corr_id":4,)"
      R"("wait_on_cuda_event_id":9}})"));
  ASSERT_EQ(trace.collectives.size(), 1U);
  EXPECT_EQ(trace.collectives[0].bytes(trace.names), 4000);
  EXPECT_EQ(trace.collectives[0].group_size, 2);
  EXPECT_EQ(trace.text(trace.collectives[0].ranks), "[0, 1]");
  ASSERT_EQ(trace.syncs.size(), 1U);
  EXPECT_EQ(trace.syncs[0].wait_on_stream, 20);
  EXPECT_EQ(trace.syncs[0].record_correlation, 4);
}

TEST(KinetoReader, StreamsOfOldAndAmdFiles) {
  const Trace trace = read_text(file_of(
      R"({"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":"stream 7","ts":1,"dur":1,"args":{"correlation":4}},)"
      R"({"ph":"X","cat":"kernel","name":"k","pid":2,"tid":0,"ts":5,"dur":1,"args":{"device":2,"stream":0,"correlation":5}},)"
      R"({"ph":"X","cat":"Trace","name":"t","pid":"Spans","tid":"PyTorch Profiler","ts":1,"dur":9})"));
  ASSERT_EQ(trace.size(), 3U);
  EXPECT_EQ(trace.lane_of(1).thread, 7);
  EXPECT_EQ(trace.lane_of(2).kind, TraceLane::Kind::gpu_stream);
  EXPECT_EQ(trace.lane_of(2).process, 2);
  EXPECT_EQ(trace.lane_of(2).thread, 0);
  EXPECT_EQ(trace.events.kind[0], EventKind::other);
}

struct Broken {
  std::string name;  // as in the file
  std::string read;  // as it comes out
};

TEST(KinetoReader, MendsBrokenStrings) {
  for (const Broken& broken :
       {Broken{R"(say "hi" twice)", R"(say "hi" twice)"}, Broken{R"(one " only)", R"(one " only)"},
        Broken{"C:\\dir\\xyz", "C:\\dir\\xyz"}, Broken{"ends in a backslash\\", "ends in a backslash\\"},
        Broken{"tab\tand\nline", "tab\tand\nline"}, Broken{"bad \xff\xfe utf8", "bad \xEF\xBF\xBD\xEF\xBF\xBD utf8"},
        Broken{std::string("nul\x01 here"), "nul\x01 here"}, Broken{R"(a", b)", R"(a", b)"}}) {
    const Trace trace =
        read_text(file_of(op("before", "1", "1") + ",\n" + op(broken.name, "2", "1") + ",\n" + op("after", "3", "1")));
    ASSERT_EQ(trace.size(), 3U) << broken.name << ": " << trace.counts.first_problem;
    EXPECT_EQ(trace.name(0), "before");
    EXPECT_EQ(trace.name(1), broken.read);
    EXPECT_EQ(trace.name(2), "after");
    EXPECT_EQ(trace.counts.repaired, 1) << broken.name;
    EXPECT_EQ(trace.counts.skipped, 0);
    EXPECT_FALSE(trace.counts.truncated);
    EXPECT_EQ(trace.rank, 3);
  }
}

TEST(KinetoReader, EscapesAreNoRepairs) {
  const Trace trace = read_text(file_of(op(R"(a\"b\\c\u00e9\n)", "1", "1")));
  EXPECT_EQ(trace.name(0), "a\"b\\c\u00e9\n");
  EXPECT_EQ(trace.counts.repaired, 0);
}

TEST(KinetoReader, SkipsWhatCannotBeMended) {
  const Trace trace =
      read_text(file_of(op("before", "1", "1") + R"(, {"ph":"X","cat":"cpu_op","name":)" + "," +
                        op("late", "\"noon\"", "1") + "," + op("negative", "5", "-3") + "," + op("after", "9", "1")));
  EXPECT_EQ(trace.name(0), "before");
  EXPECT_EQ(trace.name(static_cast<EventIndex>(trace.size() - 1)), "after");
  EXPECT_GE(trace.counts.skipped, 1);
  EXPECT_EQ(trace.counts.repaired, 1);  // the negative duration
  EXPECT_FALSE(trace.counts.first_problem.empty());
}

TEST(KinetoReader, ACutFileIsAnErrorThatSaysWhere) {
  std::string events;
  for (int i = 0; i < 8; ++i) events += (i == 0 ? "" : ",\n") + op("op", std::to_string(i), "1");
  for (const std::string& whole :
       {file_of(events), file_of(events, R"(, "baseTimeNanoseconds": 7, "o": {"a": "}]"}})"), "[" + events + "]"}) {
    for (size_t size = 1; size < whole.size(); ++size) {
      for (const size_t block : {size_t{64}, size_t{1} << 18}) {
        KinetoOptions options;
        options.block_bytes = block;
        const auto trace = read_kineto_text(whole.substr(0, size), "cut.json", options);
        ASSERT_FALSE(trace.ok()) << whole.substr(0, size);
        EXPECT_EQ(trace.error().where, "cut.json");
        EXPECT_NE(trace.error().what.find(fmt::format("ends at byte {}", size)), std::string::npos)
            << trace.error().message();
        EXPECT_FALSE(trace.error().remedy.empty());
      }
    }
    EXPECT_EQ(read_text(whole).size(), 8U);
    EXPECT_EQ(read_text(whole + "\n" + std::string(64, '\0')).size(), 8U);
  }
}

TEST(KinetoReader, CutCompressedFilesAreErrorsThatSayWhere) {
  std::string events;
  for (int i = 0; i < 2000; ++i) events += (i == 0 ? "" : ",\n") + op("op", std::to_string(i * 7919 % 2003), "1");
  for (const char* ending : {".json.gz", ".json.zst"}) {
    const std::string path = fmt::format("{}/{}_cut{}", ::testing::TempDir(), getpid(), ending);
    auto writer = LineWriter::create(path, {.overwrite = true, .zstd_level = 3});
    ASSERT_TRUE(writer.ok()) << writer.error().message();
    ASSERT_TRUE(writer->write(file_of(events)).ok());
    ASSERT_TRUE(writer->finish().ok());
    EXPECT_EQ(read_kineto(path)->size(), 2000U);
    const auto size = static_cast<size_t>(std::filesystem::file_size(path));
    for (const size_t kept : {size - 1, size - 5, size / 2, size_t{20}}) {
      std::filesystem::resize_file(path, kept);
      const auto trace = read_kineto(path);
      ASSERT_FALSE(trace.ok()) << kept;
      EXPECT_EQ(trace.error().where, path);
      EXPECT_NE(trace.error().what.find(fmt::format("ends too early, at byte {}", kept)), std::string::npos)
          << trace.error().message();
    }
    std::filesystem::remove(path);
  }
}

TEST(KinetoReader, TwoTracesInOneFileAreRefused) {
  const std::string one = file_of(op("a", "1", "1"));
  for (const std::string& two : {one + "\n" + one, "[" + op("a", "1", "1") + "]\n[" + op("b", "1", "1") + "]"}) {
    const auto trace = read_kineto_text(two, "two.json", {});
    ASSERT_FALSE(trace.ok());
    EXPECT_NE(trace.error().what.find("follows the end"), std::string::npos) << trace.error().message();
  }
}

TEST(KinetoReader, OfACutFileThePartThatIsThereCanBeAskedFor) {
  KinetoOptions options;
  options.partial = true;
  std::string events;
  for (int i = 0; i < 100; ++i) events += (i == 0 ? "" : ",\n") + op("op", std::to_string(i), "1");
  const std::string whole = file_of(events);
  const std::string start = R"("traceEvents":[)";
  for (size_t size = whole.find(start) + start.size(); size < whole.size() - 20; size += 7) {
    const auto trace = read_kineto_text(whole.substr(0, size), "cut", options);
    if (!trace.ok()) continue;  // not even one event
    EXPECT_TRUE(trace->counts.truncated);
    EXPECT_LE(trace->counts.skipped, 1);
    EXPECT_LE(trace->size(), 100U);
    EXPECT_GE(trace->size() + 3, (size - whole.find(start)) / 100);
  }
}

TEST(KinetoReader, BlocksOfAnySizeGiveTheSame) {
  std::string events;
  for (int i = 0; i < 300; ++i) {
    events +=
        (i == 0 ? "\n" : ",\n  ") + op(i % 50 == 7 ? "say \"hi\"" : "op " + std::to_string(i), std::to_string(i), "1");
  }
  const std::string text = file_of(events, R"(, "baseTimeNanoseconds": 1000000000000})");
  const Trace whole = read_text(text);
  ASSERT_EQ(whole.size(), 300U);
  EXPECT_EQ(whole.counts.repaired, 6);
  for (const size_t block : {64U, 200U, 1000U, 4096U}) {
    KinetoOptions options;
    options.block_bytes = block;
    const Trace trace = read_text(text, options);
    EXPECT_EQ(trace.events.start, whole.events.start) << block;
    EXPECT_EQ(trace.counts.repaired, 6);
    EXPECT_EQ(trace.counts.skipped, 0);
    for (EventIndex i = 0; i < trace.size(); ++i) ASSERT_EQ(trace.name(i), whole.name(i));
  }
}

// An event that holds lists of objects, some nested, each of which looks like the begin of an event.
std::string nesting_op(int number, size_t objects) {
  std::string list;
  for (size_t i = 0; i < objects; ++i) {
    list += i == 0 ? "" : i % 2 == 0 ? ", " : ",\n";
    list += i % 5 == 4
                ? fmt::format(R"({{"name":"no event","args":[{{"a":1}}, {{"ph":"X","ts":{0}}}, {{"cat":"]"}}]}})", i)
                : fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"no {{\"ph\" event","ts":{0},"dur":1}})", i);
  }
  return fmt::format(
      R"({{"args":{{"deep":{{"list":[{0}]}},"External id":5}},"ph":"X","cat":"cpu_op","name":"op {1}","pid":1,"tid":1,)"
      R"("ts":{1},"dur":1,"more":[{0}]}})",
      list, number);
}

TEST(KinetoReader, WhatLooksLikeAnEventWithinOneIsNone) {
  for (const size_t objects : {0U, 1U, 2U, 7U, 60U}) {
    std::string events;
    for (int i = 0; i < 40; ++i) {
      events += (i == 0 ? "" : ",\n") + nesting_op(i, i % 3 == 0 ? objects : i % 3 == 1 ? 0 : objects / 2);
    }
    for (const std::string& text : {file_of(events), "[" + events + "]"}) {
      for (const size_t block : {64U, 200U, 700U, 4096U, 1U << 18}) {
        for (const size_t threads : {1U, 3U}) {
          KinetoOptions options;
          options.block_bytes = block;
          options.threads = threads;
          const Trace trace = read_text(text, options);
          ASSERT_EQ(trace.size(), 40U) << objects << " objects, blocks of " << block << ": "
                                       << trace.counts.first_problem;
          EXPECT_EQ(trace.counts.read, 40);
          EXPECT_EQ(trace.counts.repaired + trace.counts.skipped, 0) << trace.counts.first_problem;
          for (EventIndex i = 0; i < trace.size(); ++i) ASSERT_EQ(trace.name(i), fmt::format("op {}", i));
        }
      }
    }
  }
}

TEST(KinetoReader, ABrokenEventTakesNoneOfThoseThatNest) {
  const std::string text =
      file_of(nesting_op(0, 30) + "," + op("say \"hi\"", "1", "1") + "," + nesting_op(2, 30) +
              R"(, {"ph":"X","args":{"a":[{"b":1}, )" + nesting_op(4, 30) + "," + op("after", "5", "1"));
  for (const size_t block : {200U, 4096U, 1U << 18}) {
    KinetoOptions options;
    options.block_bytes = block;
    // The list that was never closed takes what follows it: the file ends within that event.
    const auto refused = read_kineto_text(text, "test.json", options);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().what.find("truncated"), std::string::npos) << refused.error().message();
    options.partial = true;
    const Trace trace = read_text(text, options);
    ASSERT_EQ(trace.size(), 3U) << block << trace.counts.first_problem;
    EXPECT_EQ(trace.name(1), "say \"hi\"");
    EXPECT_EQ(trace.counts.repaired, 1);
    EXPECT_EQ(trace.counts.skipped, 1);
  }
}

TEST(KinetoReader, AnEventTooLongToHoldIsSkippedToItsEnd) {
  KinetoOptions options;
  options.block_bytes = 256;
  options.largest_event = 1024;
  for (const size_t threads : {1U, 3U}) {
    options.threads = threads;
    const Trace trace =
        read_text(file_of(op("before", "1", "1") + "," + nesting_op(2, 100) + "," + op("after", "3", "1")), options);
    ASSERT_EQ(trace.size(), 2U) << trace.counts.first_problem;
    EXPECT_EQ(trace.name(1), "after");
    EXPECT_EQ(trace.counts.skipped, 1);
  }
}

TEST(KinetoReader, AnEventTooLongToHoldIsSkipped) {
  KinetoOptions options;
  options.block_bytes = 256;
  options.largest_event = 1024;
  const Trace trace = read_text(
      file_of(op("before", "1", "1") + "," + op(std::string(5000, 'x'), "2", "1") + "," + op("after", "3", "1")),
      options);
  ASSERT_EQ(trace.size(), 2U);
  EXPECT_EQ(trace.name(1), "after");
  EXPECT_EQ(trace.counts.skipped, 1);
}

TEST(KinetoReader, SaysWhatIsNoTrace) {
  for (const std::string& text : {std::string(), std::string("{}"), std::string("hello"),
                                  std::string(R"({"traceEvents":3})"), std::string("[1,2,3]")}) {
    const auto trace = read_kineto_text(text, "none.json", {});
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_EQ(trace.error().where, "none.json");
    EXPECT_FALSE(trace.error().remedy.empty());
  }
  EXPECT_EQ(read_text(R"({"traceEvents":[]})").size(), 0U);
  EXPECT_FALSE(read_kineto("/nowhere/trace.json").ok());
}

TEST(KinetoReader, TheNameOfTheFileTellsTheRank) {
  const std::string text = R"({"traceEvents":[)" + op("a", "1", "1") + "]}";
  EXPECT_EQ(read_kineto_text(text, "logs/rank-34.Jul.json", {})->rank, 34);
  EXPECT_EQ(read_kineto_text(text, "worker7_step_12.json", {})->rank, 7);
  EXPECT_EQ(read_kineto_text(text, "trace.json", {})->rank, -1);
}

TEST(KinetoReader, LinksLaunchesOpsAndGraphs) {
  const auto call = [](int at, int correlation) {
    return fmt::format(R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":2,)"
                       R"("args":{{"correlation":{}}}}})",
                       at, correlation);
  };
  const auto kernel = [](int at, int correlation) {
    return fmt::format(R"({{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{},"dur":2,)"
                       R"("args":{{"device":0,"stream":7,"correlation":{}}}}})",
                       at, correlation);
  };
  const auto host_op = [](const std::string& name, int at, int duration) {
    return fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":1,"tid":1,"ts":{},"dur":{},"args":{{}}}})", name,
                       at, duration);
  };
  const Trace trace = read_text(file_of(host_op("outer", 0, 20) + "," + host_op("inner", 1, 5) + "," + call(2, 100) +
                                        "," + call(12, 101) + "," + kernel(30, 100) + "," + kernel(40, 101) + "," +
                                        kernel(50, 101) + "," + kernel(60, 999)));
  const TraceLinks links = link_events(trace);
  EXPECT_EQ(links.device_work, 4);
  EXPECT_EQ(links.linked, 3);
  const auto name = [&](EventIndex i) { return i == kNoIndex ? std::string("none") : trace.name(i); };
  ASSERT_EQ(trace.size(), 8U);  // outer inner call call k k k k
  EXPECT_EQ(name(links.parent[1]), "outer");
  EXPECT_EQ(name(links.parent[2]), "inner");
  EXPECT_EQ(name(links.parent[3]), "outer");
  EXPECT_EQ(links.launch[4], 2U);
  EXPECT_EQ(name(links.op[4]), "inner");
  EXPECT_EQ(name(links.op[5]), "outer");
  EXPECT_EQ(links.launch[7], kNoIndex);
  EXPECT_EQ(links.launched(3).size(), 2U);
}

// Every trace of the data set reads whole; docs/datasets.md says what they are.
TEST(KinetoReader, ReadsEveryRealTrace) {
  NEEDS_DATASET(folder, "traces");
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".json.gz") || path.find("_et") != std::string::npos) continue;
    const auto trace = read_kineto(path);
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    ++files;
    EXPECT_EQ(trace->counts.repaired + trace->counts.skipped, 0) << path << ": " << trace->counts.first_problem;
    EXPECT_FALSE(trace->counts.truncated) << path;
    EXPECT_GT(trace->size(), 0U) << path;
    for (EventIndex i = 1; i < trace->size(); ++i) ASSERT_LE(trace->events.start[i - 1], trace->events.start[i]);
  }
  EXPECT_GT(files, 20);
}

}  // namespace
}  // namespace forerun
