// Every long question under a control that stops it, or that gives it too little time or memory: the answer is an Error of
// that kind, never half an answer, and what was to be written is not there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "api/compare.h"
#include "api/data.h"
#include "api/fit.h"
#include "api/memory_replay.h"
#include "api/predict.h"
#include "api/replay.h"
#include "api/scale.h"
#include "api/schedule.h"
#include "api/sweep.h"
#include "api/trace.h"
#include "api/whatif.h"
#include "api/zoo_check.h"
#include "base/parallel.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

const CostModels& stopped_models() {
  static const Result<CostModels> loaded = load_cost_models();
  CHECK(loaded.ok(), loaded.error().message());
  return *loaded;
}

const std::string kRuns = FORERUN_SOURCE_DIR "/tests/data/run1.jsonl.zst";
const std::string kTrace = FORERUN_SOURCE_DIR "/tests/corpus/kineto/small.json";

ModelRequest small_model(int64_t batch = 2) {
  ModelRequest request;
  request.model = "resnet18";
  request.batch = batch;
  return request;
}

template <class T>
Status status_of(const Result<T>& result) {
  return result.ok() ? Status() : Status(result.error());
}

Status sweep_question(const WorkControl& control) {
  SweepRequest request;
  request.base.model = "resnet18";
  request.axes = {{"batch", {"1", "2", "3", "4"}}};
  return sweep(
      *sweep_cases(request, stopped_models()), stopped_models(), 2, [](const SweepCase&, const Result<Prediction>&) {},
      control);
}

Status fit_question(const WorkControl& control) {
  FitRequest request;
  request.model = small_model();
  return status_of(fit(request, *stopped_models().devices.find("t4"), stopped_models(), control));
}

Status schedule_question(const WorkControl& control) {
  ScheduleRequest request;
  request.synthetic = cluster::SyntheticOptions{.jobs = 2000, .gpus = 100};
  request.policies = {*cluster::parse_policy("sjf"), *cluster::parse_policy("srtf")};
  request.threads = 2;
  return status_of(schedule(request, control));
}

Status scheduled_file_question(const WorkControl& control) {
  ScheduleRequest request;
  request.file = FORERUN_SOURCE_DIR "/examples/jobs.csv";
  request.cluster = *cluster::parse_cluster("a100=4,v100=8");
  request.policies = {*cluster::parse_policy("fifo")};
  return status_of(schedule(request, control));
}

Status scale_question(const WorkControl& control, bool search) {
  ScaleQuestion question;
  question.model = "gpt2_small";
  question.search = search;
  question.global_batch = 64;
  return status_of(scale_out(question, stopped_models(), control));
}

Status trace_question(const WorkControl& control) {
  const auto files = trace_files({kTrace}, "trace");
  return files ? status_of(read_traces(*files, false, control)) : files.error();
}

Status replay_question(const WorkControl& control) {
  const auto files = trace_files({kTrace}, "replay");
  return files ? replay_traces(*files, {}, {}, control) : files.error();
}

Status predict_records_question(const WorkControl& control) {
  PredictRecordsRequest request;
  request.file = kRuns;
  return status_of(predict_records(request, stopped_models(), {}, control));
}

Status compare_question(const WorkControl& control) {
  CompareRequest request;
  request.model = small_model();
  request.gpus = {"h200", "t4", "a100_80gb"};
  return status_of(compare_gpus(request, stopped_models(), control));
}

Status memory_replay_question(const WorkControl& control) {
  const MemoryReplayHandlers handlers{.row = [](const MemoryReplayRow&) {}, .problem = [](const DataProblem&) {}};
  return replay_memory({kRuns}, {}, handlers, control);
}

// By name: asks it under a control.
std::map<std::string, std::function<Status(const WorkControl&)>> long_questions() {
  return {
      {"predict",
       [](auto& c) { return status_of(predict(PredictRequest{.model = small_model()}, stopped_models(), c)); }},
      {"predict records", predict_records_question},
      {"sweep", sweep_question},
      {"fit", fit_question},
      {"compare", compare_question},
      {"whatif", [](auto& c) { return status_of(what_if(small_model(), {}, stopped_models(), c)); }},
      {"whatif ranking", [](auto& c) { return status_of(rank_what_ifs(small_model(), {}, stopped_models(), c)); }},
      {"scale", [](auto& c) { return scale_question(c, false); }},
      {"scale search", [](auto& c) { return scale_question(c, true); }},
      {"schedule", schedule_question},
      {"schedule of a file", scheduled_file_question},
      {"trace", trace_question},
      {"replay", replay_question},
      {"memory replay", memory_replay_question},
      {"zoo check", [](auto& c) { return status_of(check_zoo(kRuns, c)); }},
      {"data summary",
       [](auto& c) {
         return status_of(data_summary({{kRuns}, {}}, c));
       }},
      {"data noise",
       [](auto& c) {
         return status_of(data_noise({{kRuns}, {}}, c));
       }},
      {"data list",
       [](auto& c) {
         return data_list(
             {{kRuns}, {}}, [](const RunRecord&) {}, c);
       }},
      {"data check",
       [](auto& c) {
         return status_of(data_check({{kRuns}, {}}, {}, c));
       }},
  };
}

TEST(StoppedQuestions, GoTheirWayWithoutAControl) {
  for (const auto& [name, ask] : long_questions()) {
    if (name == "whatif") continue;  // it asks for no optimization
    const Status status = ask({});
    EXPECT_TRUE(status.ok()) << name << ": " << (status.ok() ? "" : status.error().message());
  }
}

TEST(StoppedQuestions, AStopIsAnErrorOfItsOwn) {
  for (const auto& [name, ask] : long_questions()) {
    std::stop_source stop;
    stop.request_stop();
    const Status status = ask({.progress = {}, .stop = stop.get_token(), .budget = {}});
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().kind, ErrorKind::stopped) << name << ": " << status.error().message();
  }
}

TEST(StoppedQuestions, AStopFromTheFirstWordOfProgressIsHeard) {
  for (const auto& [name, ask] : long_questions()) {
    std::stop_source stop;
    bool told = false;
    const auto progress = [&, &name = name](const Progress& now) {
      told = true;
      EXPECT_FALSE(now.what.empty()) << name;
      stop.request_stop();
    };
    const Status status = ask({.progress = progress, .stop = stop.get_token(), .budget = {}});
    if (!told) continue;  // too short to have stages
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().kind, ErrorKind::stopped) << name << ": " << status.error().message();
  }
}

TEST(StoppedQuestions, LimitsAreNamed) {
  for (const auto& [name, ask] : long_questions()) {
    const Status late = ask({.progress = {}, .stop = {}, .budget = Budget::of(1e-9)});
    ASSERT_FALSE(late.ok()) << name;
    EXPECT_EQ(late.error().kind, ErrorKind::time_limit) << name << ": " << late.error().message();
    EXPECT_NE(late.error().message().find("--time-limit"), std::string::npos) << name;
    const Status large = ask({.progress = {}, .stop = {}, .budget = Budget::of(0, Bytes(4096))});
    ASSERT_FALSE(large.ok()) << name;
    EXPECT_EQ(large.error().kind, ErrorKind::memory_limit) << name << ": " << large.error().message();
  }
}

TEST(StoppedQuestions, AStoppedMergeLeavesNoFile) {
  const fs::path folder = fs::path(testing::TempDir()) / "stopped_merge";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string out = (folder / "out.jsonl").string();
  for (const bool there : {false, true}) {
    if (there) std::ofstream(out) << "as it was\n";
    std::stop_source stop;
    int stages = 0;
    const auto progress = [&](const Progress& now) {
      if (now.done == 0 && ++stages == 2) stop.request_stop();  // when writing begins
    };
    const auto merged = data_merge({out, {kRuns}, {.overwrite = true, .problem = [](const DataProblem&) {}}},
                                   {.progress = progress, .stop = stop.get_token(), .budget = {}});
    ASSERT_FALSE(merged.ok());
    EXPECT_EQ(merged.error().kind, ErrorKind::stopped);
    EXPECT_EQ(fs::exists(out), there);
    const auto files = std::distance(fs::directory_iterator(folder), fs::directory_iterator());
    EXPECT_EQ(files, there ? 1 : 0) << "an unfinished file is left";
  }
  std::ifstream kept(out);
  std::string line;
  std::getline(kept, line);
  EXPECT_EQ(line, "as it was");
  fs::remove_all(folder);
}

TEST(StoppedQuestions, TwoCanBeAskedAtOnceAndOneStopped) {
  std::stop_source stop;
  stop.request_stop();
  const WorkControl stopped{.progress = {}, .stop = stop.get_token(), .budget = {}};
  const WorkControl free;
  std::vector<Status> answers(4);
  parallel_for(answers.size(), answers.size(),
               [&](size_t i) { answers[i] = sweep_question(i % 2 == 0 ? free : stopped); });
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].ok(), i % 2 == 0) << i;
}

}  // namespace
}  // namespace forerun
