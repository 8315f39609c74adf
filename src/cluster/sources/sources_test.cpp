// Job sources: what they read, and what they say of rows at fault.
#include "cluster/sources/sources.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "base/needs_dataset.h"
#include "cluster/sources/cell_values.h"
#include "cluster/sources/introsort_order.h"

namespace forerun::cluster {
namespace {

using Load = Result<LoadedJobs> (*)(LineReader, const LoadOptions&);

Result<LoadedJobs> read(Load load, const std::string& text, const std::string& gpus = "", bool lenient = false) {
  static Cluster cluster;
  LoadOptions options;
  options.lenient = lenient;
  if (!gpus.empty()) {
    cluster = *parse_cluster(gpus);
    options.cluster = &cluster;
  }
  return load(LineReader::from_text(text, "jobs.csv"), options);
}

std::string message(Load load, const std::string& text, const std::string& gpus = "") {
  const auto loaded = read(load, text, gpus);
  return loaded.ok() ? "loaded" : loaded.error().message();
}

int64_t left_out(const LoadedJobs& loaded, Fault fault) { return loaded.faults[static_cast<size_t>(fault)]; }

const std::string kPlain =
    "id,submit,gpus,duration,deadline,user,priority\n"
    "a,0,4,3600,7200,ann,\n"
    "b,10.5,1,0.25,,bob,3\n";

TEST(CsvSource, ReadsEveryColumn) {
  const auto loaded = read(load_csv, kPlain, "8");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Workload& jobs = loaded->workload;
  ASSERT_EQ(jobs.jobs.size(), 2U);
  EXPECT_EQ(jobs.jobs[0].gpus, 4);
  EXPECT_EQ(jobs.jobs[0].deadline, Time(7200 * kSecond.value));
  EXPECT_EQ(jobs.jobs[1].deadline, kNever);
  EXPECT_EQ(jobs.jobs[1].arrival, Time(10'500'000'000));
  EXPECT_EQ(jobs.jobs[1].priority, 3);
  EXPECT_EQ(jobs.truth.of(1, 0), Time(250'000'000));
  EXPECT_EQ(jobs.users, (std::vector<std::string>{"ann", "bob"}));
  EXPECT_EQ(jobs.name_of(1), "b");
}

TEST(CsvSource, TakesDurationsByTypeAndStepTimes) {
  const auto typed = read(load_csv, "duration_A100,duration_v100\n10,20\n30,\n", "v100=2,a100=1");
  ASSERT_TRUE(typed.ok()) << typed.error().message();
  EXPECT_EQ(typed->workload.truth.of(0, 0), Time(20 * kSecond.value));  // in the order of --gpus
  EXPECT_EQ(typed->workload.truth.of(0, 1), Time(10 * kSecond.value));
  EXPECT_EQ(typed->workload.truth.of(1, 0), kNever);
  const auto steps = read(load_csv, "iterations,step_ms\n1000,250\n", "1");
  ASSERT_TRUE(steps.ok()) << steps.error().message();
  EXPECT_EQ(steps->workload.truth.of(0, 0), Time(250 * kSecond.value));
}

TEST(CsvSource, NamesFileAndLineOfEveryFault) {
  EXPECT_EQ(message(load_csv, kPlain + "c,20,9,5,,,\n", "8").find("jobs.csv:4: job 'c' asks for 9 GPUs"), 0U);
  EXPECT_EQ(message(load_csv, kPlain + "c,20,1,-5,,,\n").find("jobs.csv:4: job 'c' has a negative duration"), 0U);
  EXPECT_EQ(message(load_csv, kPlain + "a,20,1,5,,,\n").find("jobs.csv:4: job 'a' stands in the file already"), 0U);
  EXPECT_EQ(message(load_csv, kPlain + "c,3,1,5,,,\n").find("jobs.csv:4: job 'c' arrives before"), 0U);
  EXPECT_EQ(message(load_csv, kPlain + "c,20,1,x,,,\n").find("jobs.csv:4: 'x' in column duration is no number"), 0U);
  EXPECT_EQ(message(load_csv, kPlain + "c,20\n").find("jobs.csv:4: 2 cells"), 0U);
  EXPECT_NE(message(load_csv, "id,submit\na,1\n").find("jobs.csv:1"), std::string::npos);
  EXPECT_NE(message(load_csv, "duration_a100\n3\n", "h100=4").find("they have them for a100"), std::string::npos);
  EXPECT_NE(message(load_csv, "").find("empty"), std::string::npos);
}

TEST(CsvSource, ColumnsThatAreNotReadAreNamedOrRefused) {
  const auto loaded = read(load_csv, "id,duration,colour\na,5,red\n", "1");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->unused, (std::vector<std::string>{"colour"}));
  EXPECT_EQ(loaded->real, (std::vector<std::string>{"id", "duration"}));
  EXPECT_EQ(message(load_csv, "id,duration,Depends\nb,5,a\n").find("jobs.csv:1: the column 'Depends' is not simulated"),
            0U);
  EXPECT_NE(message(load_csv, "id,duration,Duration\na,5,6\n").find("'Duration' twice"), std::string::npos);
  EXPECT_NE(message(load_philly, "timestamp,duration,num_gpus,duration\n").find("'duration' twice"), std::string::npos);
  EXPECT_NE(message(load_csv, "duration,duration_a100\n5,6\n").find("in two ways"), std::string::npos);
  EXPECT_NE(message(load_csv, "duration,iterations,step_ms\n5,6,7\n").find("in two ways"), std::string::npos);
  EXPECT_NE(message(load_csv, "duration_2080ti,duration_GTX2080Ti\n5,6\n").find("already"), std::string::npos);
}

TEST(CsvSource, TimesBeyondTheClockAreRefused) {
  EXPECT_NE(message(load_csv, "duration\n9e9\n").find("127 years"), std::string::npos);
  EXPECT_NE(message(load_csv, "duration\n1e300\n").find("127 years"), std::string::npos);
  EXPECT_NE(message(load_csv, "duration\nnan\n").find("no number"), std::string::npos);
  EXPECT_NE(message(load_csv, "duration\ninf\n").find("no number"), std::string::npos);
  EXPECT_NE(message(load_csv, "iterations,step_ms\n1e200,1e200\n").find("127 years"), std::string::npos);
  EXPECT_NE(message(load_csv, "iterations,step_ms\n-5,-5\n").find("negative"), std::string::npos);
  EXPECT_NE(message(load_csv, "duration_a100,duration_v100\n1e11,5\n").find("127 years"), std::string::npos);
  EXPECT_EQ(message(load_csv, "duration\n4e9\n"), "loaded");
}

TEST(CsvSource, LenientCountsAndLeavesOut) {
  const auto loaded =
      read(load_csv, kPlain + "c,20,9,5,,,\nd,20,1,-5,,,\na,20,1,5,,,\ne,3,1,5,,,\nf\ng,30,1,1,,,\n", "8", true);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->workload.jobs.size(), 3U);
  for (const Fault fault :
       {Fault::too_large, Fault::negative_time, Fault::duplicate, Fault::out_of_order, Fault::malformed}) {
    EXPECT_EQ(left_out(*loaded, fault), 1) << name_of(fault);
  }
}

TEST(PhillySource, SortsAndRebases) {
  const auto loaded = read(load_philly,
                           "timestamp,duration,num_gpus,gpu_time,cluster\n"
                           "2017-10-09 07:01:55,66.0,1,66.0,b\n"
                           "2017-10-09 07:00:00,10.0,2,20.0,a\n"
                           "2017-10-09 07:00:00,10.0,2,20.0,a\n");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->workload.jobs.size(), 3U);  // rows that are alike are different jobs
  EXPECT_EQ(loaded->workload.jobs[0].gpus, 2);
  EXPECT_EQ(loaded->workload.jobs[2].arrival, Time(115 * kSecond.value));
  EXPECT_EQ(loaded->workload.origin, 1507532400);
  EXPECT_EQ(message(load_philly, "timestamp,duration,num_gpus\nyesterday,1,1\n").find("jobs.csv:2: no job"), 0U);
  EXPECT_NE(message(load_philly, "a,b\n1,2\n").find("no column 'timestamp'"), std::string::npos);
}

TEST(HydraSource, ReadsTypesAndDeadlines) {
  const std::string text =
      ",job_name,norm_job_submit_time,ddl,A100,V100,GTX2080Ti\n"
      "0,x,0,7767.0,2141.0,3621.0,5452.0\n1,y,0,inf,434.0,706.0,1078.0\n";
  const auto loaded = read(load_hydra, text, "2080ti=1,a100=2");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->workload.truth.of(0, 0), Time(5452 * kSecond.value));
  EXPECT_EQ(loaded->workload.truth.of(0, 1), Time(2141 * kSecond.value));
  EXPECT_EQ(loaded->workload.jobs[0].deadline, Time(7767 * kSecond.value));
  EXPECT_EQ(loaded->workload.jobs[1].deadline, kNever);
  EXPECT_NE(message(load_hydra, text, "t4=3").find("no durations for GPU type 't4'"), std::string::npos);
}

TEST(GavelSource, TurnsStepsIntoTime) {
  const std::string rates =
      R"json({"v100": {"('LM', 1)": {"null": 4.0, "('LM', 1)": [2.0, 2.0]}, "('LM', 2)": {"null": 6.0}},
                                    "k80": {"('LM', 1)": {"null": 0.0}}, "v100_unconsolidated": {}})json";
  const std::string trace = "LM\tpython\t-n\t1\t120\t5.0\t2\nLM\tpython\tlm\t-n\t1\t80\t1\t1\t2.0\t7\n";
  const auto loaded = load_gavel_with(LineReader::from_text(trace, "a.trace"), rates, "rates.json", {});
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Workload& jobs = loaded->workload;
  ASSERT_EQ(jobs.gpu_types, (std::vector<std::string>{"k80", "v100"}));
  EXPECT_EQ(jobs.truth.of(0, 1), Time(20 * kSecond.value));
  EXPECT_EQ(jobs.truth.of(1, 0), kNever);
  EXPECT_EQ(jobs.jobs[1].deadline, Time((2 + 40) * kSecond.value));  // twice its own 20 s after arriving at 7 - 5
  const auto unknown = load_gavel_with(LineReader::from_text("A\t\t\t\t1\t0\t1\n", "a.trace"), rates, "rates.json", {});
  EXPECT_EQ(unknown.error().message().find("a.trace:1: no throughput was measured for 'A'"), 0U);
}

TEST(AlibabaSource, PassesOverPodsWithoutGpus) {
  const std::string text =
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
      "p0,1,1,1,460,,LS,Running,100,250,150\n"
      "p1,1,1,0,0,,BE,Running,100,250,150\n"
      "p2,1,1,1,1000,V100M16|T4,BE,Running,120,250,150\n";
  const auto loaded = read(load_alibaba, text, "t4=1");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->workload.jobs.size(), 2U);
  EXPECT_EQ(loaded->passed_over, 1);
  EXPECT_EQ(loaded->workload.truth.of(0, 0), Time(100 * kSecond.value));
  EXPECT_EQ(message(load_alibaba, text, "a100=1").find("jobs.csv:4: pod 'p2' needs a GPU of type V100M16|T4"), 0U);
}

TEST(CsvSource, ReadsWhatJobsRunAfterArraysAndLimits) {
  const auto loaded = read(load_csv,
                           "id,submit,duration,after,array,limit,group\n"
                           "prepare,0,60,,,90,vision\n"
                           "sweep,0,100,prepare,0-4:2%2,,vision\n"
                           "report,5,10,prepare; sweep,,20.5,\n"
                           "last,6,10,sweep_2,,,\n",
                           "8");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Workload& jobs = loaded->workload;
  EXPECT_EQ(jobs.ids, (std::vector<std::string>{"prepare", "sweep_0", "sweep_2", "sweep_4", "report", "last"}));
  EXPECT_EQ(jobs.array_of, (std::vector<int32_t>{-1, 0, 0, 0, -1, -1}));
  ASSERT_EQ(jobs.arrays.size(), 1U);
  EXPECT_EQ(jobs.arrays[0].most_at_once, 2);
  const std::vector<std::vector<JobIndex>> after = {{}, {0}, {0}, {0}, {0, 1, 2, 3}, {2}};
  EXPECT_EQ(jobs.after, after);
  EXPECT_EQ(jobs.limits[0], Time(90 * kSecond.value));
  EXPECT_EQ(jobs.limits[3], kNever);
  EXPECT_EQ(jobs.limits[4], Time(20'500'000'000));
  EXPECT_EQ(jobs.virtual_clusters, (std::vector<std::string>{"vision"}));
}

TEST(CsvSource, RefusesDependenciesAndArraysThatCannotBe) {
  const std::string heading = "id,duration,after,array\n";
  for (const char* rows : {"a,5,a,\n", "a,5,b,\nb,5,,\n", "a,5,,\nb,5,c,\n", "a,5,,0-2\nb,5,a_3,\n", "a,5,a,0-2\n"}) {
    EXPECT_NE(message(load_csv, heading + rows).find("which does not stand above it"), std::string::npos) << rows;
  }
  for (const char* array :
       {"x", "3-1", "0-", "-2", "0-3%0", "0-3%", "0-9999999", "9223372036854775807", "1;1", "0-4:0", "%3"}) {
    EXPECT_NE(message(load_csv, heading + "a,5,," + array + "\n").find("in column array is no list"), std::string::npos)
        << array;
  }
  EXPECT_NE(message(load_csv, heading + "a,5,,\"1,1\"\n").find("no list of indices"), std::string::npos);
  EXPECT_NE(message(load_csv, heading + "a,5,,0-1\na,5,,\n").find("stands in the file already"), std::string::npos);
  EXPECT_NE(message(load_csv, heading + "a_1,5,,\na,5,,0-1\n").find("stands in the file already"), std::string::npos);
  EXPECT_NE(message(load_csv, "id,duration,limit\na,5,0\n").find("is no time limit"), std::string::npos);
  EXPECT_NE(message(load_csv, "id,duration,vc,group\na,5,x,y\n").find("which are one"), std::string::npos);
}

TEST(CsvSource, DoesNotWaitForJobsThatAreNotAskedFor) {
  Cluster cluster = *parse_cluster("8");
  LoadOptions options;
  options.cluster = &cluster;
  options.most_gpus = 1;
  const auto loaded = load_csv(
      LineReader::from_text("id,gpus,duration,after\nwide,4,10,\na,1,10,wide\nb,1,10,a;wide\n", "jobs.csv"), options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const std::vector<std::vector<JobIndex>> after = {{}, {0}};
  EXPECT_EQ(loaded->workload.after, after);
  ASSERT_EQ(loaded->made.size(), 1U);
  EXPECT_EQ(loaded->made[0], "2 dependencies on jobs left out: taken as met");
}

TEST(SacctSource, KeepsWhatUsersStatedAsLimits) {
  const std::string row = "|2024-03-01T10:00:00|3600|gres/gpu=2\n";
  const auto raw = read(load_sacct, "JobID|TimelimitRaw|Submit|ElapsedRaw|ReqTRES\n1|90" + row + "2|" + row, "4");
  ASSERT_TRUE(raw.ok()) << raw.error().message();
  EXPECT_EQ(raw->workload.limits, (std::vector<Time>{Time(5400 * kSecond.value), kNever}));
  EXPECT_EQ(raw->real.back(), "time limit");
  const auto text = read(
      load_sacct,
      "JobID|Timelimit|Submit|ElapsedRaw|ReqTRES\n1|1-00:00:30" + row + "2|UNLIMITED" + row + "3|Partition_Limit" + row,
      "4");
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_EQ(text->workload.limits, (std::vector<Time>{Time(86430 * kSecond.value), kNever, kNever}));
  const auto none = read(load_sacct, "JobID|Submit|ElapsedRaw|ReqTRES\n1" + row, "4");
  EXPECT_TRUE(none->workload.limits.empty());
}

TEST(SacctSource, ReadsAccounting) {
  const std::string text =
      "JobID|User|Partition|Submit|Elapsed|ReqTRES|State\n"
      "812|ann|gpu|2024-03-01T10:00:00|1-01:00:10|billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2|COMPLETED\n"
      "812.batch|||2024-03-01T10:00:00|01:00:10|cpu=8|COMPLETED\n"
      "813|bob|cpu|2024-03-01T10:00:01|00:00:05|cpu=8|COMPLETED\n";
  const auto loaded = read(load_sacct, text, "4");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  ASSERT_EQ(loaded->workload.jobs.size(), 1U);
  EXPECT_EQ(loaded->workload.jobs[0].gpus, 2);
  EXPECT_EQ(loaded->workload.truth.of(0, 0), Time(90010 * kSecond.value));
  EXPECT_EQ(loaded->passed_over, 2);
  EXPECT_EQ(message(load_sacct, text, "h100=4").find("jobs.csv:2: job '812' asks for GPUs of type a100"), 0U);
}

// As Slurm 22.05 wrote it, on one line each.
std::string jobcomp_line(const std::string& id, const std::string& name, const std::string& start,
                         const std::string& tres) {
  return "JobId=" + id + " UserId=ann(1001) GroupId=ann(1001) Name=" + name +
         " JobState=COMPLETED Partition=gpu TimeLimit=5 StartTime=" + start +
         " EndTime=2026-11-15T16:01:30 NodeList=node0 NodeCnt=1 ProcCnt=1 WorkDir=/tmp ReservationName= Tres=" + tres +
         " Account= QOS= WcKey= Cluster=unknown SubmitTime=2026-11-15T16:00:29 EligibleTime=2026-11-15T16:00:29 "
         "DerivedExitCode=0:0 ExitCode=0:0 \n";
}

TEST(JobcompSource, ReadsTheLogOfCompletedJobs) {
  const std::string gpus = "cpu=1,mem=1G,node=1,billing=1,gres/gpu=2";
  const std::string text = jobcomp_line("1", "my job Size=4", "2026-11-15T16:00:30", gpus) +
                           jobcomp_line("2", "cpu", "2026-11-15T16:00:30", "cpu=1,mem=1G") +
                           jobcomp_line("3", "never", "Unknown", gpus);
  const auto loaded = read(load_jobcomp, text, "4");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Workload& jobs = loaded->workload;
  ASSERT_EQ(jobs.jobs.size(), 1U);
  EXPECT_EQ(loaded->passed_over, 2);
  EXPECT_EQ(jobs.jobs[0].gpus, 2);
  EXPECT_EQ(jobs.truth.of(0, 0), Time(60 * kSecond.value));
  EXPECT_EQ(jobs.users[0], "ann");
  EXPECT_EQ(jobs.limits[0], Time(300 * kSecond.value));
  EXPECT_EQ(jobs.virtual_clusters[0], "gpu");
  EXPECT_EQ(jobs.kinds[0], "my job");  // a word like a key ends it
  EXPECT_EQ(jobs.origin, 1794758429);
  EXPECT_EQ(message(load_jobcomp, text + "JobId=4 Name=x\n", "4").find("jobs.csv:4: no job"), 0U);
  EXPECT_NE(message(load_jobcomp, jobcomp_line("2", "cpu", "2026-11-15T16:00:30", "cpu=1"), "4")
                .find("AccountingStorageTRES=gres/gpu"),
            std::string::npos);
  const auto lenient = read(load_jobcomp, text + "nonsense\n", "4", true);
  ASSERT_TRUE(lenient.ok());
  EXPECT_EQ(left_out(*lenient, Fault::malformed), 1);
}

TEST(PaiSource, AMiniBatchTakesAsLongAsItsSlowestWorker) {
  const auto loaded =
      read(load_pai, ",worker,gpu,time,batch_time_norm\n0,0,50,1,100\n1,1,75,1,300\n2,0,50,11,200\n3,1,75,11,100\n");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->workload.jobs[0].gpus, 2);                                  // of 1.25
  EXPECT_EQ(loaded->workload.truth.of(0, 0), Time(int64_t{11} * 250'000'000));  // 300 and 200 ms, 11 mini-batches
  EXPECT_EQ(message(load_pai, ",worker,gpu,time,batch_time_norm\n0,0,50,1,x\n").find("jobs.csv:2: no mini-batch"), 0U);
}

TarMember table_file(const std::string& name, const std::string& text) { return {name, text}; }

TEST(StepTables, ReadsBothArchives) {
  const auto tables = StepTables::read(
      {table_file("traces/bert/placements.csv", "placement,local_bsz,step_time,sync_time\n1,4,0.5,0\n11,4,0.7,0.2\n"),
       table_file("x/fminfo/A100/vit-large_placements.csv", "placement,local_bsz,step_time,sync_time\n1,4,0.1,0\n"),
       table_file("x/fminfo/A100/vit-large_scalability.csv",
                  "num_nodes,num_replicas,local_bsz,step_time,sync_time\n2,8,4,0.2,0.1\n"),
       table_file("x/fminfo/A100/vit-large_memory.csv", "local_bsz,gpu_memory\n4,2.7\n")},
      "a.tar");
  ASSERT_TRUE(tables.ok()) << tables.error().message();
  EXPECT_EQ(tables->types(), (std::vector<std::string>{"t4", "a100"}));
  EXPECT_EQ(tables->applications(), (std::vector<std::string>{"bert", "vit-large"}));
  EXPECT_DOUBLE_EQ(*tables->find("bert", "t4")->step(2, 2, 8), 0.7);
  EXPECT_DOUBLE_EQ(*tables->find("vit-large", "a100")->step(8, 2, 32), 0.2);
  EXPECT_EQ(tables->find("bert", "a100"), nullptr);
  const auto broken = StepTables::read({table_file("traces/bert/placements.csv",
                                                   "placement,local_bsz,step_time,"
                                                   "sync_time\n1,4,0.5,0\n0,4,1,0\n")},
                                       "a.tar");
  EXPECT_NE(broken.error().message().find("placements.csv:3"), std::string::npos) << broken.error().message();
  EXPECT_FALSE(StepTables::read({}, "a.tar").ok());
}

TEST(CsvSource, TakesStepTimesFromTables) {
  const auto tables = StepTables::read({table_file("f/A100/vit_placements.csv",
                                                   "placement,local_bsz,step_time,sync_time\n1,4,0.1,0\n"
                                                   "2,4,0.2,0.1\n11,4,0.4,0.3\n")},
                                       "a.tar");
  ASSERT_TRUE(tables.ok());
  const Cluster cluster = *parse_cluster("a100=4,v100=4");
  LoadOptions options;
  options.cluster = &cluster;
  const std::string text = "id,gpus,model,batch,iterations\na,2,vit,4,100\n";
  const auto loaded = load_csv_with(LineReader::from_text(text, "jobs.csv"), &*tables, options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Workload& jobs = loaded->workload;
  EXPECT_EQ(jobs.truth.of(0, 0), Time(20 * kSecond.value));
  EXPECT_EQ(jobs.truth.of(0, 1), kNever);                                   // not measured there
  EXPECT_DOUBLE_EQ(*jobs.speeds->measured_speed({0, 0, 0, 2, 2, 2}), 0.5);  // on two nodes
  EXPECT_TRUE(jobs.named[0].measured);
  const auto unknown = load_csv_with(LineReader::from_text(text + "b,1,bert,4,9\n", "jobs.csv"), &*tables, options);
  EXPECT_EQ(unknown.error().message().find("jobs.csv:3: no step times were measured for 'bert'"), 0U)
      << unknown.error().message();
}

TEST(CsvSource, AsksForTheStepsOfModels) {
  const Cluster cluster = *parse_cluster("a100=4,v100=4");
  LoadOptions options;
  options.cluster = &cluster;
  options.step_times = [](const StepQuestion& question) -> Result<StepAnswer> {
    if (question.configuration.model != "resnet50") return Error{"no such model", "", "name another"};
    const bool a100 = question.gpu_type == "a100";
    return StepAnswer{a100 ? Time(kSecond.value / 10) : kNever, Bytes(100)};
  };
  const std::string text = "id,gpus,model,batch,precision,set,iterations\na,2,resnet50,4,fp32,width=64,100\n";
  const auto loaded = load_csv(LineReader::from_text(text, "jobs.csv"), options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Workload& jobs = loaded->workload;
  EXPECT_EQ(jobs.truth.of(0, 0), Time(10 * kSecond.value));
  EXPECT_EQ(jobs.truth.of(0, 1), kNever);
  EXPECT_FALSE(jobs.named[0].measured);
  EXPECT_EQ(jobs.configurations[0].settings, (KeyValues{{"width", "64"}}));
  EXPECT_EQ(jobs.configurations[0].setup.precision, Precision::fp32);
  EXPECT_TRUE(jobs.configurations[0].default_optimizer);
  EXPECT_EQ(jobs.configurations[0].fault, "");
  EXPECT_EQ(jobs.traffic[0].gradients, Bytes(100));
  const auto unknown = load_csv(LineReader::from_text(text + "b,1,vgg,4,,,9\n", "jobs.csv"), options);
  EXPECT_EQ(unknown.error().message().find("jobs.csv:3: no such model"), 0U) << unknown.error().message();
}

TEST(CsvSource, ReadsHowModelsAreTrained) {
  const Cluster cluster = *parse_cluster("a100=4");
  LoadOptions options;
  options.cluster = &cluster;
  options.step_times = [](const StepQuestion& question) -> Result<StepAnswer> {
    if (!question.configuration.fault.empty()) return Error{question.configuration.fault, "", ""};
    return StepAnswer{kSecond, Bytes(1)};
  };
  const std::string heading = "id,model,iterations,Checkpoint,accumulate,lora,freeze,ema,clip_grad,loop,optimizer\n";
  const auto loaded =
      load_csv(LineReader::from_text(
                   heading + "a,gpt2,1,block,4,8:c_attn,wte;wpe,yes,0.5,lightning,lion\nb,gpt2,1,,,,,,,,\n", "t"),
               options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Configuration& a = loaded->workload.configurations[0];
  EXPECT_EQ(a.setup.checkpointing, Checkpointing::block);
  EXPECT_EQ(a.setup.accumulate, 4);
  EXPECT_EQ(a.setup.lora.rank, 8);
  EXPECT_EQ(a.setup.freeze, (std::vector<std::string>{"wte", "wpe"}));
  EXPECT_TRUE(a.setup.ema);
  EXPECT_EQ(a.setup.clip_norm, 0.5);
  EXPECT_EQ(a.setup.loop, TrainingLoop::lightning);
  EXPECT_EQ(a.setup.optimizer.kind, OptimizerKind::lion);
  EXPECT_FALSE(a.default_optimizer);
  const Configuration& b = loaded->workload.configurations[1];
  EXPECT_EQ(b.setup, TrainingSetup{});
  EXPECT_TRUE(b.default_optimizer);
  const auto at_fault = [&](const std::string& text) {
    const auto read = load_csv(LineReader::from_text(text, "jobs.csv"), options);
    return read.ok() ? std::string("loaded") : read.error().message();
  };
  EXPECT_NE(at_fault("id,model,iterations,ema\na,gpt2,1,perhaps\n").find("jobs.csv:2: ema cannot be 'perhaps'"),
            std::string::npos);
  EXPECT_NE(at_fault("id,model,iterations,accumulate\na,gpt2,1,0\n").find("1 to 4096"), std::string::npos);
  EXPECT_NE(at_fault("id,model,iterations,clip_grad\na,gpt2,1,nan\n").find("clip_grad cannot be"), std::string::npos);
  // A misspelt option would be another run; where nothing is predicted, it is passed over and named.
  EXPECT_NE(at_fault("id,model,iterations,chekpoint\na,gpt2,1,block\n").find("did you mean checkpoint"),
            std::string::npos);
  EXPECT_EQ(at_fault("id,model,iterations,duration,chekpoint\na,gpt2,1,9,block\n"), "loaded");
  options.lenient = true;
  EXPECT_EQ(at_fault("id,model,iterations,chekpoint\na,gpt2,1,block\n"), "loaded");
}

TEST(CsvSource, ElasticBoundsMustHoldTheGang) {
  const std::string heading = "id,gpus,duration,min_gpus,max_gpus\n";
  EXPECT_EQ(message(load_csv, heading + "a,4,10,2,8\n", "8"), "loaded");
  EXPECT_EQ(message(load_csv, heading + "a,4,10,2,3\n", "8").find("jobs.csv:2: job 'a' runs with 2 to 3"), 0U);
  EXPECT_EQ(message(load_csv, heading + "a,4,10,-1,8\n", "8").find("jobs.csv:2"), 0U);
}

TEST(Sources, FiltersByTimeAndSize) {
  LoadOptions options;
  options.from = parse_date("2017-10-09 07:00:30");
  options.most_gpus = 2;
  const std::string text =
      "timestamp,duration,num_gpus\n2017-10-09 07:00:00,1,1\n2017-10-09 07:00:30,1,4\n2017-10-09 07:00:31,1,2\n"
      "2017-10-09 07:00:40,1,2\n";
  auto loaded = load_philly(LineReader::from_text(text, "t"), options);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->workload.jobs.size(), 2U);
  EXPECT_EQ(loaded->filtered, 2);
  options.first = 1;
  loaded = load_philly(LineReader::from_text(text, "t"), options);
  EXPECT_EQ(loaded->workload.jobs.size(), 1U);
  options.to = options.from;
  EXPECT_FALSE(load_philly(LineReader::from_text(text, "t"), options).ok());
}

TEST(Sources, UnknownFormatIsAnswered) {
  EXPECT_NE(load_jobs("x", "phily", {}).error().message().find("philly"), std::string::npos);
}

TEST(Sources, ReadsRealTraces) {
  NEEDS_DATASET(folder, "cluster/");
  const auto count = [&](const std::string& file, const std::string& format) -> size_t {
    const auto loaded = load_jobs(folder + file, format, {});
    EXPECT_TRUE(loaded.ok()) << file << ": " << (loaded.ok() ? "" : loaded.error().message());
    return loaded.ok() ? loaded->workload.jobs.size() : 0;
  };
  EXPECT_EQ(count("philly/philly.csv.gz", "philly"), 82247U);
  EXPECT_EQ(count("hydra/heavy_30_ddl.csv", "hydra"), 5000U);
  EXPECT_EQ(count("hydra/light_20_ddl.csv", "hydra"), 5000U);
  EXPECT_EQ(count("gavel/physical_cluster/small_test.trace", "gavel"), 20U);
  EXPECT_GT(count("gavel/msr_seed0/ee9e8c.trace.gz", "gavel"), 1000U);
  EXPECT_GT(count("alibaba/openb_pod_list_default.csv", "alibaba"), 6000U);
  EXPECT_EQ(count("alibaba/pai_minibatch/job_4_norm.csv", "pai"), 1U);
  const auto titan = read_tar(folder + "titan/fminfo.tar.gz");
  ASSERT_TRUE(titan.ok()) << titan.error().message();
  const auto tables = StepTables::read(*titan, "fminfo.tar.gz");
  ASSERT_TRUE(tables.ok()) << tables.error().message();
  EXPECT_EQ(tables->types(), (std::vector<std::string>{"a100", "v100"}));
  EXPECT_EQ(tables->applications(), (std::vector<std::string>{"roberta-base", "roberta-large", "vit", "vit-large"}));
  const SpeedTable& vit = *tables->find("vit", "v100");
  EXPECT_GT(*vit.step(4, 4, 64), *vit.step(4, 1, 64));  // spread over four nodes it takes longer
}

TEST(IntrosortOrder, SortsAnySize) {
  std::mt19937_64 random(5);
  for (const size_t size : {0, 1, 2, 15, 16, 17, 18, 100, 1000, 5000}) {
    for (const uint64_t values : {1, 3, 50, 1000000}) {
      std::vector<int64_t> keys(size);
      for (int64_t& key : keys) key = static_cast<int64_t>(random() % values);
      const std::vector<uint32_t> order = introsort_order(keys);
      std::vector<bool> seen(size, false);
      for (size_t i = 0; i < size; ++i) {
        EXPECT_FALSE(seen[order[i]]);
        seen[order[i]] = true;
        EXPECT_TRUE(i == 0 || keys[order[i - 1]] <= keys[order[i]]);
      }
    }
  }
}

TEST(ParseDate, TakesDatesAndClocks) {
  EXPECT_EQ(parse_date("1970-01-02"), Time(86400 * kSecond.value));
  EXPECT_EQ(parse_date("2017-10-09T07:01:55"), Time(1507532515 * kSecond.value));
  EXPECT_EQ(parse_date("2017-10-09 07:01:55.5"), Time(1507532515 * kSecond.value + 500'000'000));
  for (const char* text : {"", "2017", "2017-13-01", "2017-02-30", "2017-10-09 25:00", "2017-10-09x", "x"}) {
    EXPECT_FALSE(parse_date(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace forerun::cluster
