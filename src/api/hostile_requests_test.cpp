// Requests as a server or a script may fill them in, with no command line to check them first: numbers that are none, too
// large or negative, names that are no text. Each is an Error with a word; none reaches an abort.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "api/compare.h"
#include "api/fit.h"
#include "api/predict.h"
#include "api/scale.h"
#include "api/schedule.h"
#include "api/slurm.h"
#include "api/whatif.h"

namespace forerun {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
const std::string kNoText = "\xff\xfe\x80";

const CostModels& hostile_models() {
  static const Result<CostModels> loaded = load_cost_models();
  CHECK(loaded.ok(), loaded.error().message());
  return *loaded;
}

template <class Request, class Ask>
void expect_refused(const std::vector<std::function<void(Request&)>>& changes, const Request& sound, const Ask& ask) {
  const auto whole = ask(sound);
  EXPECT_TRUE(whole.ok()) << whole.error().message();
  for (size_t i = 0; i < changes.size(); ++i) {
    Request request = sound;
    changes[i](request);
    const auto answer = ask(request);
    EXPECT_FALSE(answer.ok()) << "change " << i;
    if (!answer.ok()) {
      EXPECT_FALSE(answer.error().what.empty()) << "change " << i;
    }
  }
}

ModelRequest hostile_model() {
  ModelRequest model;
  model.model = "resnet18";
  model.batch = 2;
  return model;
}

// What every question that takes a model refuses.
template <class Request>
std::vector<std::function<void(Request&)>> model_changes() {
  return {
      [](Request& r) { r.model.model = ""; },
      [](Request& r) { r.model.model = kNoText; },
      [](Request& r) { r.model.model = "/"; },
      [](Request& r) { r.model.model = std::string(1 << 16, 'x'); },
      [](Request& r) {
        r.model.settings = {{"", ""}};
      },
      [](Request& r) {
        r.model.settings = {{kNoText, kNoText}};
      },
      [](Request& r) {
        r.model.settings = {{"image", "nan"}};
      },
      [](Request& r) {
        r.model.settings = {{"image", "-1"}};
      },
      [](Request& r) {
        r.model.settings = {{"image", "99999999999999999999"}};
      },
      [](Request& r) { r.memory.parallel = {.gpus = 0, .replicas = true}; },
      [](Request& r) { r.memory.parallel = {.gpus = kHuge, .zero = 3}; },
      [](Request& r) { r.memory.parallel = {.gpus = 8, .zero = 7}; },
      [](Request& r) { r.memory.parallel = {.gpus = 8, .replicas = true, .bucket = Bytes(0)}; },
      [](Request& r) { r.memory.reserve = Bytes(-1); },
      [](Request& r) { r.memory.margin = kNaN; },
      [](Request& r) { r.memory.margin = -1; },
  };
}

TEST(HostileRequests, Predict) {
  auto changes = model_changes<PredictRequest>();
  for (const int64_t batch : {int64_t{0}, int64_t{-1}, kHuge}) {
    changes.push_back([batch](PredictRequest& r) { r.model.batch = batch; });
    changes.push_back([batch](PredictRequest& r) {
      r.model.model = FORERUN_SOURCE_DIR "/examples/onnx/small_cnn.onnx";
      r.model.batch = batch;
    });
  }
  changes.push_back([](PredictRequest& r) { r.gpu = kNoText; });
  expect_refused<PredictRequest>(changes, {.model = hostile_model()},
                                 [](const auto& request) { return predict(request, hostile_models()); });
}

TEST(HostileRequests, Fit) {
  auto changes = model_changes<FitRequest>();
  for (const double share : {kNaN, -0.1, 1.0, 1e300}) {
    changes.push_back([share](FitRequest& r) { r.reserve_share = share; });
  }
  changes.push_back([](FitRequest& r) { r.reserve = Bytes(-1); });
  changes.push_back([](FitRequest& r) { r.axis = ""; });
  changes.push_back([](FitRequest& r) { r.axis = kNoText; });
  FitRequest sound;
  sound.model = hostile_model();
  sound.changes = false;
  expect_refused<FitRequest>(changes, sound, [](const auto& request) {
    return fit(request, *hostile_models().devices.find("t4"), hostile_models());
  });
}

TEST(HostileRequests, Compare) {
  auto changes = model_changes<CompareRequest>();
  changes.push_back([](CompareRequest& r) { r.gpus = {""}; });
  changes.push_back([](CompareRequest& r) { r.gpus = {kNoText}; });
  changes.push_back([](CompareRequest& r) { r.job.iterations = -1; });
  changes.push_back([](CompareRequest& r) { r.job.tokens = 5; });
  changes.push_back([](CompareRequest& r) { r.deadline_hours = -1; });
  changes.push_back([](CompareRequest& r) { r.job.samples = 5, r.budget = 0; });
  changes.push_back([](CompareRequest& r) { r.given = {{kNoText, 1}}; });
  changes.push_back([](CompareRequest& r) { r.prices.gpus = {{kNoText, 1}}; });
  CompareRequest sound;
  sound.model = hostile_model();
  sound.gpus = {"t4"};
  expect_refused<CompareRequest>(changes, sound,
                                 [](const auto& request) { return compare_gpus(request, hostile_models()); });
}

TEST(HostileRequests, Scale) {
  std::vector<std::function<void(ScaleQuestion&)>> changes = {
      [](ScaleQuestion& q) { q.model = kNoText; },
      [](ScaleQuestion& q) { q.gpu = "h2000"; },
      [](ScaleQuestion& q) { q.gpus = {}; },
      [](ScaleQuestion& q) { q.network = "nanGb/s"; },
      [](ScaleQuestion& q) { q.network = ""; },
      [](ScaleQuestion& q) { q.strategy = kNoText; },
      [](ScaleQuestion& q) { q.strategy = "tp=9223372036854775807"; },
      [](ScaleQuestion& q) { q.efficiency = "/nowhere"; },
  };
  for (const int64_t number : {int64_t{0}, int64_t{-8}, kHuge}) {
    changes.push_back([number](ScaleQuestion& q) { q.gpus = {number}; });
    changes.push_back([number](ScaleQuestion& q) { q.node = number; });
    if (number == 0) continue;
    changes.push_back([number](ScaleQuestion& q) { q.micro_batch = number; });
    changes.push_back([number](ScaleQuestion& q) { q.global_batch = number; });
  }
  ScaleQuestion sound;
  sound.model = "resnet18";
  sound.micro_batch = 2;
  expect_refused<ScaleQuestion>(changes, sound,
                                [](const auto& question) { return scale_out(question, hostile_models()); });
}

TEST(HostileRequests, Schedule) {
  std::vector<std::function<void(ScheduleRequest&)>> changes = {
      [](ScheduleRequest& r) { r.policies.clear(); },
      [](ScheduleRequest& r) { r.repeat = 0; },
      [](ScheduleRequest& r) { r.repeat = kHuge; },
      [](ScheduleRequest& r) { r.gpus_per_node = -1; },
      [](ScheduleRequest& r) { r.nodes_per_rack = -1; },
      [](ScheduleRequest& r) { r.cluster = cluster::Cluster{}; },
      [](ScheduleRequest& r) { r.file = kNoText; },
      [](ScheduleRequest& r) { r.synthetic.reset(); },
      [](ScheduleRequest& r) { r.synthetic->jobs = -1; },
      [](ScheduleRequest& r) { r.synthetic->jobs = kHuge; },
      [](ScheduleRequest& r) { r.synthetic->gpus = 0; },
      [](ScheduleRequest& r) { r.synthetic->load = kNaN; },
      [](ScheduleRequest& r) { r.synthetic->days = -1; },
      [](ScheduleRequest& r) { r.simulation.node_loss = kNaN; },
      [](ScheduleRequest& r) { r.simulation.restart_cost = cluster::Time(-1); },
      [](ScheduleRequest& r) { r.simulation.failures.mean_hours_between = kNaN; },
      [](ScheduleRequest& r) { r.network.oversubscription = kNaN; },
  };
  ScheduleRequest sound;
  sound.synthetic = cluster::SyntheticOptions{.jobs = 50, .gpus = 8};
  sound.policies = {*cluster::parse_policy("fifo")};
  expect_refused<ScheduleRequest>(changes, sound, [](const auto& request) { return schedule(request); });
}

TEST(HostileRequests, SlurmLimits) {
  std::vector<std::function<void(LimitOptions&)>> changes = {
      [](LimitOptions& o) { o.margin = kNaN; },          [](LimitOptions& o) { o.margin = -1; },
      [](LimitOptions& o) { o.startup = kNaN; },         [](LimitOptions& o) { o.startup = 1e300; },
      [](LimitOptions& o) { o.gpus_per_node = 0; },      [](LimitOptions& o) { o.gpu = kNoText; },
      [](LimitOptions& o) { o.network.link = kNoText; },
  };
  expect_refused<LimitOptions>(changes, {}, [](const auto& options) {
    return predict_limit("model=resnet18 batch=2 iterations=10 gpus=16", options, hostile_models());
  });
  for (const std::string text : {"", "model", "model=", "model=resnet18", "model=resnet18 iterations=nan",
                                 "model=resnet18 iterations=1e400", "model=resnet18 iterations=10 gpus=1e18",
                                 "model=resnet18 iterations=10 batch=-1", "duration=nan", "duration=-1", "\xff=\xfe"}) {
    EXPECT_FALSE(predict_limit(text, {}, hostile_models()).ok()) << text;
  }
}

TEST(HostileRequests, WhatIf) {
  WhatIfQuestion question;
  question.applications = *whatif::parse_applications({"amp"});
  for (const std::string& gpu : {kNoText, std::string("h2000")}) {
    question.gpu = gpu;
    EXPECT_FALSE(what_if(hostile_model(), question, hostile_models()).ok());
  }
  for (const std::string text : {"", ":", "amp:", "batch:factor=nan", "batch:factor=1e400", "ddp:workers=-1",
                                 "ddp:workers=9223372036854775807", "\xff", "gpu:name=\xff"}) {
    const auto applications = whatif::parse_applications({text});
    if (!applications) continue;
    question.gpu = "h200";
    question.applications = *applications;
    EXPECT_FALSE(what_if(hostile_model(), question, hostile_models()).ok()) << text;
  }
}

}  // namespace
}  // namespace forerun
