// What Slurm's commands print and what is done with it, without a Slurm: tests/slurm_test.py has a real one.
#include "slurm/slurm_cluster.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "slurm/slurm_serve.h"
#include "slurm/slurm_watch.h"

namespace forerun {
namespace {

const char* const kForged = "forerun: predicted 1.0 s, 1 MiB of GPU memory, hard limit 525600 min";

// As Slurm 22.05 prints it, fields that are not read left out.
const char* const kShown = R"({"errors": [], "jobs": [
  {"job_id": 7, "name": "hard limit 525600 min", "comment": "forerun: predicted 1.0 s, 1 MiB of GPU memory, hard limit 9 min",
   "job_state": "RUNNING", "submit_time": 1700000000, "start_time": 1700000005, "end_time": 1700000605, "time_limit": 10,
   "array_job_id": 0, "array_task_id": null, "user_id": 1000, "current_working_directory": "/x AdminComment=forerun",
   "admin_comment": "forerun: predicted 400.0 s, 900 MiB of GPU memory, hard limit 12 min"},
  {"job_id": 8, "name": "b\u0001\n", "job_state": "COMPLETED", "submit_time": 1700000001, "start_time": 1700000006,
   "end_time": 1700086408, "time_limit": null, "admin_comment": ""},
  {"job_id": 9, "name": "c", "job_state": "PENDING", "time_limit": 3, "array_job_id": 9, "array_task_id": null,
   "array_task_string": "2-4", "admin_comment": "forerun: predicted 5.0 s, 0 MiB of GPU memory, hard limit unlimited"}]})";

// As Slurm 23.11 does.
const char* const kShownLater = R"({"errors": [], "jobs": [
  {"job_id": 14, "job_state": ["RUNNING"], "start_time": {"set": true, "infinite": false, "number": 1700000005},
   "end_time": {"set": true, "infinite": false, "number": 1700000605}, "array_job_id": {"set": true, "infinite": false,
   "number": 11}, "array_task_id": {"set": true, "infinite": false, "number": 1}, "time_limit": {"set": true,
   "infinite": false, "number": 10}, "admin_comment": "forerun: predicted 5.0 s, 0 MiB of GPU memory, hard limit 12 min"},
  {"job_id": 15, "job_state": ["COMPLETED", "COMPLETING"], "time_limit": {"set": false, "infinite": true, "number": 0}}]})";

TEST(SlurmCommands, ReadsJobs) {
  const auto jobs = parse_jobs(kShown);
  ASSERT_TRUE(jobs) << jobs.error().message();
  ASSERT_EQ(jobs->size(), 3U);
  const SlurmJob& running = (*jobs)[0];
  EXPECT_EQ(running.label, "7");
  EXPECT_EQ(running.limit_min, 10);
  EXPECT_EQ(running.hard_limit_min, 12);
  EXPECT_EQ(running.user, 1000);
  EXPECT_FALSE(running.over());
  EXPECT_TRUE(running.soft());
  EXPECT_EQ((*jobs)[1].name, "b??");
  EXPECT_TRUE((*jobs)[1].over());
  EXPECT_FALSE((*jobs)[1].soft());
  EXPECT_EQ((*jobs)[2].label, "9_[2-4]");
  EXPECT_EQ((*jobs)[2].hard_limit_min, 0);
  EXPECT_TRUE((*jobs)[2].soft());
  const auto later = parse_jobs(kShownLater);
  ASSERT_TRUE(later) << later.error().message();
  EXPECT_EQ((*later)[0].label, "11_1");
  EXPECT_EQ((*later)[0].end, 1700000605);
  EXPECT_EQ((*later)[0].limit_min, 10);
  EXPECT_EQ((*later)[1].state, "COMPLETING");
  EXPECT_EQ((*later)[1].limit_min, 0);
}

TEST(SlurmCommands, AFaultIsNoEmptyQueue) {
  const auto away = parse_jobs(R"({"errors": [{"description": "Failed while looking for jobs"}], "jobs": []})");
  ASSERT_FALSE(away);
  EXPECT_TRUE(unreachable(away.error()));
  for (const char* text : {"", "[]", "{}", R"({"jobs": {}})", R"({"jobs": [1]})", R"({"jobs": [{"job_id": 1}]})",
                           "squeue: unrecognized option '--json'"}) {
    const auto jobs = parse_jobs(text);
    ASSERT_FALSE(jobs) << text;
    EXPECT_FALSE(unreachable(jobs.error())) << text;
  }
}

TEST(SlurmCommands, ANameInNoEncodingIsRead) {
  const auto jobs = parse_jobs("{\"jobs\": [{\"job_id\": 1, \"job_state\": \"RUNNING\", \"name\": \"a\xff\xfe\"}]}");
  ASSERT_TRUE(jobs) << jobs.error().message();
  EXPECT_EQ(jobs->front().name, "a??");
}

TEST(SlurmCommands, AHardLimitIsReadFromTheStartOfTheAdminCommentOnly) {
  const std::string start = "forerun: predicted 5.0 s, 1 MiB of GPU memory, hard limit ";
  EXPECT_EQ(hard_limit_of(start + "12 min"), 12);
  EXPECT_EQ(hard_limit_of(start + "12 min; ticket 4711"), 12);
  EXPECT_EQ(hard_limit_of(start + "unlimited"), 0);
  for (const std::string& text :
       {std::string(), std::string("hard limit 12 min"), "x " + start + "12 min", start, start + "0 min",
        start + "-5 min", start + "12", start + "99999999999 min",
        std::string("forerun: predicted not to fit in GPU memory, 5 MiB, hard limit 5 min")}) {
    EXPECT_FALSE(hard_limit_of(text)) << text;
  }
}

TEST(SlurmCommands, EachWordArrivesAsItIs) {
  for (const std::string& word : {std::string("$(id)"), std::string("`id`"), std::string("a'b\"c"),
                                  std::string("x;y|z"), std::string("line\nline"), std::string("--partition=x"),
                                  std::string("a b\\"), std::string("*"), std::string("\xff")}) {
    const auto printed = run_command({"printf", "%s", word});
    ASSERT_TRUE(printed) << printed.error().message();
    EXPECT_EQ(*printed, word);
  }
  EXPECT_FALSE(run_command({"printf", "%s", std::string("a\0b", 3)}));
  const auto failed = run_command({"sh", "-c", "echo out; echo why >&2; exit 3"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "why");
  EXPECT_EQ(*run_command({"sh", "-c", "echo out; echo word >&2"}), "out\n");
  const auto missing = run_command({"no-such-slurm-command"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().where, "no-such-slurm-command");
}

// A Slurm that lists `shown` and takes down what is set.
struct StandIn {
  std::string shown = kShown;
  std::vector<std::string> updates;
  int away = 0;  // commands that fail first
  CommandRunner runner() {
    return [this](const std::vector<std::string>& command) {
      if (command[1] == "--version") return Result<std::string>("");
      if (away-- > 0) return Result<std::string>(Error{"Unable to contact slurm controller", command[0], ""});
      if (command[0] == "squeue") return Result<std::string>(shown);
      updates.push_back(command[2] + " " + command[3]);
      return Result<std::string>("");
    };
  }
};

using Updates = std::vector<std::string>;

TEST(SlurmWatch, RaisesASoftLimitNoFurtherThanTheHardOne) {
  StandIn slurm;
  ExtendOptions given{.run = slurm.runner(), .now = [] { return int64_t{1700000555}; }};  // 50 s before its end
  const auto done = extend_limits(given);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(slurm.updates, (Updates{"JobId=7 TimeLimit=12"}));
  EXPECT_EQ(done->raised.size(), 1U);
  EXPECT_EQ(done->soft, 1U);  // the array that waits
  slurm.updates.clear();
  given.within = 30;
  EXPECT_TRUE(extend_limits(given)->raised.empty());
  ASSERT_TRUE(release_limits(given));
  EXPECT_EQ(slurm.updates, (Updates{"JobId=7 TimeLimit=12", "JobId=9 TimeLimit=UNLIMITED"}));
}

TEST(SlurmWatch, LeavesAJobWithoutSoftLimitAlone) {
  StandIn slurm;
  slurm.shown = std::string(R"({"jobs": [{"job_id": 7, "job_state": "RUNNING", "name": ")") + kForged +
                R"(", "comment": ")" + kForged + R"(", "start_time": 5, "end_time": 65, "time_limit": 1}]})";
  const auto done = extend_limits({.run = slurm.runner(), .now = [] { return int64_t{60}; }});
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_TRUE(slurm.updates.empty());
}

TEST(SlurmWatch, AJobThatOverranWhileTheControllerWasAwayGetsTimeEnough) {
  StandIn slurm;
  slurm.shown =
      R"({"jobs": [{"job_id": 7, "job_state": "RUNNING", "start_time": 1000, "end_time": 1060, "time_limit": 1,
      "admin_comment": "forerun: predicted 5.0 s, 1 MiB of GPU memory, hard limit 60 min"}]})";
  const auto done = extend_limits({.run = slurm.runner(), .now = [] { return int64_t{1000 + 600}; }});
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(slurm.updates, (Updates{"JobId=7 TimeLimit=12"}));  // 10 min so far, and two more
}

TEST(SlurmWatch, OneJobAtFaultDoesNotKeepTheOthersFromTime) {
  std::vector<std::string> updated;
  const CommandRunner run = [&](const std::vector<std::string>& command) -> Result<std::string> {
    if (command[0] == "squeue") {
      const std::string rest = R"(, "job_state": "RUNNING", "start_time": 1000, "end_time": 1060, "time_limit": 1,
        "admin_comment": "forerun: predicted 5.0 s, 1 MiB of GPU memory, hard limit 60 min"})";
      return R"({"jobs": [{"job_id": 1)" + rest + R"(,{"job_id": 2)" + rest + R"(,{"job_id": 3)" + rest + "]}";
    }
    updated.push_back(command[2]);
    if (command[2] == "JobId=1") return Error{"Access/permission denied", "scontrol", ""};
    if (command[2] == "JobId=2") return Error{"Job has already finished", "scontrol", ""};
    return std::string();
  };
  const auto done = extend_limits({.run = run, .now = [] { return int64_t{1050}; }});
  ASSERT_TRUE(done);
  EXPECT_EQ(updated.size(), 3U);
  EXPECT_EQ(done->raised.size(), 1U);
  EXPECT_EQ(done->faults.size(), 1U);
}

TEST(SlurmWatch, OutlivesAControllerThatIsAway) {
  StandIn slurm;
  slurm.away = 3;
  const std::string alive = testing::TempDir() + "/watch.alive";
  std::vector<double> pauses;
  std::vector<bool> vouched;
  int troubles = 0;
  int backs = 0;
  WatchOptions watch;
  watch.extend = {.run = slurm.runner(), .now = [] { return int64_t{1700000555}; }};
  watch.every = 20;
  watch.alive = alive;
  std::stop_source stop;
  watch.trouble = [&](const Error&, double) { ++troubles; };
  watch.back = [&](double) { ++backs; };
  watch.pause = [&](double seconds) {
    pauses.push_back(seconds);
    vouched.push_back(access(alive.c_str(), F_OK) == 0);
    if (vouched.back()) {
      std::ifstream file(alive);
      std::string line;
      std::getline(file, line);
      EXPECT_EQ(line, "forerun-extend 1 1700000555 1700000625 2");
    }
    if (pauses.size() == 5) stop.request_stop();
  };
  const auto released = watch_limits(watch, {.progress = {}, .stop = stop.get_token(), .budget = {}});
  ASSERT_TRUE(released) << released.error().message();
  EXPECT_EQ(pauses, (std::vector<double>{1, 2, 4, 20, 20}));
  EXPECT_EQ(vouched, (std::vector<bool>{false, false, false, true, true}));
  EXPECT_EQ(troubles, 3);
  EXPECT_EQ(backs, 1);
  EXPECT_EQ(slurm.updates.back(), "JobId=9 TimeLimit=UNLIMITED");
  EXPECT_NE(access(alive.c_str(), F_OK), 0);
  watch.extend.within = 39;
  EXPECT_FALSE(watch_limits(watch)) << "jobs would pass between two looks";
  watch.extend.within = 120;
  watch.alive = testing::TempDir() + "/no/such/folder/alive";
  EXPECT_FALSE(watch_limits(watch));
}

cluster::Workload two_jobs() {
  cluster::Workload workload;
  workload.jobs.resize(2);
  workload.ids = {"a", "b"};
  workload.truth = cluster::Durations(1);
  workload.truth.add(cluster::time_from_seconds(4));
  workload.truth.add(cluster::time_from_seconds(5));
  return workload;
}

TEST(SlurmReplay, ComparesWithTheSimulator) {
  // A Slurm that starts b before a, where the simulator does the opposite.
  std::vector<std::vector<std::string>> submitted;
  const CommandRunner run = [&](const std::vector<std::string>& command) -> Result<std::string> {
    if (command[0] == "sbatch") {
      submitted.push_back(command);
      return std::to_string(submitted.size()) + "\n";
    }
    if (submitted.empty()) return std::string(R"({"jobs": [{"job_id": 99, "job_state": "PENDING"}]})");
    return std::string(
        R"({"jobs": [{"job_id": 1, "job_state": "COMPLETED", "submit_time": 100, "start_time": 106, "end_time": 110},
                     {"job_id": 2, "job_state": "COMPLETED", "submit_time": 100, "start_time": 101, "end_time": 106}]})");
  };
  SlurmReplayOptions given;
  given.run = run;
  given.policy = *cluster::parse_policy("fifo");
  given.cluster.pools = {{"gpu", 1}};
  given.limits["b"].limit_minutes = 9;
  given.limits["b"].priority = 77;
  const auto replay = replay_on_slurm(two_jobs(), given);
  ASSERT_TRUE(replay) << replay.error().message();
  EXPECT_EQ(replay->jobs[0].start, 6);
  EXPECT_EQ(replay->jobs[1].end, 6);
  EXPECT_EQ(replay->pairs, 1);
  EXPECT_EQ(replay->pairs_alike, 0);
  EXPECT_EQ(replay->other_jobs, 1U);
  EXPECT_TRUE(replay->fault.empty());
  const auto has = [&](size_t job, const std::string& word) {
    return std::find(submitted[job].begin(), submitted[job].end(), word) != submitted[job].end();
  };
  EXPECT_FALSE(has(0, "--time=9"));
  EXPECT_TRUE(has(1, "--time=9") && has(1, "--priority=77"));
  EXPECT_TRUE(has(0, "--wrap=sleep 4.000"));
}

TEST(SlurmReplay, FindsAJobWhoseSubmissionWasCutOff) {
  // The first submission is taken although its answer is lost; another user's job has the same comment.
  std::string comment;
  int submissions = 0;
  const auto row = [&](int id, const std::string& text, int64_t user) {
    std::ostringstream job;
    job << R"({"job_id": )" << id << R"(, "job_state": "COMPLETED", "submit_time": 1, "start_time": 2, "end_time": 3,)"
        << R"( "comment": ")" << text << R"(", "user_id": )" << user << "}";
    return job.str();
  };
  const CommandRunner run = [&](const std::vector<std::string>& command) -> Result<std::string> {
    const auto own = static_cast<int64_t>(geteuid());
    if (command[0] != "sbatch") {
      if (comment.empty()) return std::string(R"({"jobs": []})");
      return "{\"jobs\": [" + row(4, comment, own + 1) + "," + row(5, comment, own) + "," + row(6, "", own) + "]}";
    }
    if (++submissions > 1) return std::string("6\n");
    comment = command[3].substr(command[3].find('=') + 1);
    return Error{"Socket timed out on send/recv operation", "sbatch", ""};
  };
  SlurmReplayOptions given;
  given.run = run;
  const auto replay = replay_on_slurm(two_jobs(), given);
  ASSERT_TRUE(replay) << replay.error().message();
  EXPECT_EQ(submissions, 2);
  EXPECT_EQ(replay->jobs[0].slurm_id, 5);
  EXPECT_EQ(replay->jobs[1].slurm_id, 6);
  EXPECT_GT(replay->away, 0);
}

TEST(SlurmReplay, AFaultLeavesWhatWasSeenAndCancelsItsOwn) {
  std::vector<std::string> cancelled;
  const CommandRunner run = [&](const std::vector<std::string>& command) -> Result<std::string> {
    if (command[0] == "sbatch" && command[2] == "--job-name=b") return Error{"Invalid partition", "sbatch", ""};
    if (command[0] == "sbatch") return std::string("1\n");
    if (command[0] == "scancel") {
      cancelled.assign(command.begin() + 1, command.end());
      return std::string();
    }
    return std::string(R"({"jobs": [{"job_id": 1, "job_state": "RUNNING", "submit_time": 5, "start_time": 5},
                                    {"job_id": 2, "job_state": "RUNNING"}]})");
  };
  SlurmReplayOptions given;
  given.run = run;
  const auto replay = replay_on_slurm(two_jobs(), given);
  ASSERT_TRUE(replay) << replay.error().message();
  EXPECT_NE(replay->fault.find("Invalid partition"), std::string::npos);
  EXPECT_EQ(cancelled, (std::vector<std::string>{"1"}));
  EXPECT_EQ(replay->jobs[0].start, 0);
  EXPECT_EQ(replay->jobs[1].state, "UNSUBMITTED");
  EXPECT_FALSE(replay->jobs[1].start);
}

TEST(SlurmServe, AnswersEachInAProcessOfItsOwn) {
  const std::string socket = testing::TempDir() + "/serve.socket";
  std::stop_source stop;
  std::atomic<bool> ready = false;
  ServeOptions given{.socket = socket, .seconds = 3, .ready = [&] { ready = true; }};
  std::thread server([&] {
    const auto reply = [](const std::string& text) -> Result<std::string> {
      if (text == "die") abort();
      if (text == "hang") pause();
      if (text == "wrong") return Error{"what", "where", "remedy"};
      return "answer to " + text + "\n";
    };
    const Status served = serve_descriptions(given, reply, {.progress = {}, .stop = stop.get_token(), .budget = {}});
    EXPECT_TRUE(served) << served.error().message();
  });
  while (!ready) std::this_thread::yield();
  EXPECT_FALSE(ask_server(socket, "die", 60));
  EXPECT_FALSE(ask_server(socket, "hang", 60));
  EXPECT_EQ(ask_server(socket, "wrong", 60).error().message(), "where: what; remedy");
  const auto answer = ask_server(socket, "a;b,c/d", 60);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(*answer, "answer to a;b,c/d\n");
  EXPECT_FALSE(serve_descriptions(given, {})) << "another listens there";
  stop.request_stop();
  server.join();
  EXPECT_FALSE(ask_server(socket, "x"));
  EXPECT_FALSE(ask_server(std::string(200, 'x'), "x"));
}

}  // namespace
}  // namespace forerun
