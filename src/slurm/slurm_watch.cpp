#include "slurm/slurm_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "base/line_writer.h"

namespace forerun {
namespace {

using WatchClock = std::chrono::steady_clock;

constexpr double kFirstRetry = 1;   // seconds
constexpr double kLastRetry = 10;   // below the 30 s after which a controller that came back looks at limits
constexpr double kAliveSlack = 30;  // seconds that a look may take
constexpr int64_t kLongestMinutes = int64_t{10} * 366 * 24 * 60;

int64_t now_of(const ExtendOptions& options) {
  if (options.now) return options.now();
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The limit after a step that leaves at least `within` seconds, of a job that has `left` seconds: none may be left
// where the controller was away.
int64_t stepped(const SlurmJob& job, int64_t left, const ExtendOptions& options) {
  const auto limit = static_cast<double>(job.limit_min);
  const double short_by = std::ceil((options.within - static_cast<double>(left)) / 60);
  const double wanted = std::max({std::ceil(limit * (1 + options.step)), limit + short_by, limit + 1});
  const auto minutes = static_cast<int64_t>(std::min(wanted, static_cast<double>(kLongestMinutes)));
  return *job.hard_limit_min == 0 ? minutes : std::min(minutes, *job.hard_limit_min);
}

// A job that ended in the meantime needs no limit.
bool is_over(const Error& error) {
  return error.what.find("already finished") != std::string::npos ||
         error.what.find("already completing or completed") != std::string::npos ||
         error.what.find("Invalid job id") != std::string::npos;
}

// Sets the limits of jobs that `wanted` gives one for; a negative one leaves it.
Result<Extended> set_limits(const ExtendOptions& options, const std::function<int64_t(const SlurmJob&)>& wanted) {
  const Result<std::vector<SlurmJob>> jobs = show_jobs(options.run);
  if (!jobs) return jobs.error();
  Extended done;
  for (SlurmJob job : *jobs) {
    if (job.over() || !job.soft()) continue;
    const int64_t minutes = wanted(job);
    if (minutes >= 0) {
      const std::string limit = minutes == 0 ? "UNLIMITED" : std::to_string(minutes);
      const Result<std::string> set =
          options.run({"scontrol", "update", fmt::format("JobId={}", job.id), "TimeLimit=" + limit});
      if (!set) {
        if (unreachable(set.error())) return set.error().within("Slurm job " + job.label);
        if (!is_over(set.error())) done.faults.push_back(set.error().within("Slurm job " + job.label));
      } else {
        job.limit_min = minutes;
        done.raised.push_back(job);
      }
    }
    if (job.soft()) ++done.soft;
  }
  return done;
}

// "forerun-extend 1 SECONDS-SINCE-1970 AT-WORK-UNTIL SHORTEST-LIMIT", as job_submit.lua reads it.
Status renew_alive(const WatchOptions& options) {
  if (options.alive.empty()) return {};
  Result<LineWriter> file = LineWriter::create(options.alive, {.overwrite = true});
  if (!file) return file.error();
  const int64_t now = now_of(options.extend);
  const auto vouched = static_cast<int64_t>(std::ceil(2 * options.every + kAliveSlack));
  if (const Status status =
          file->write(fmt::format("forerun-extend 1 {} {} {}", now, now + vouched, shortest_watched(options.every)));
      !status) {
    return status.error();
  }
  return file->finish();
}

class LimitWatcher {
 public:
  LimitWatcher(const WatchOptions& options, const WorkControl& control)
      : options_(options), control_(control), work_(control) {}

  void run() {
    while (work_.goes_on()) {
      look();
      if (work_.goes_on()) pause(retry_ > 0 ? std::min(retry_, options_.every) : options_.every);
    }
  }

 private:
  void pause(double seconds) const {
    if (options_.pause) {
      options_.pause(seconds);
    } else {
      pause_unless(seconds, control_.stop);
    }
  }

  // The file is renewed only where all went well; jobs that run are looked after in any case.
  void look() {
    const Result<Extended> done = extend_limits(options_.extend);
    if (done && options_.looked) options_.looked(*done);
    if (!done) return failed(done.error());
    if (!done->faults.empty()) return failed(done->faults.front());
    if (const Status renewed = renew_alive(options_); !renewed) return failed(renewed.error());
    if (retry_ > 0 && options_.back) {
      options_.back(std::chrono::duration<double>(WatchClock::now() - last_good_).count());
    }
    retry_ = 0;
    last_good_ = WatchClock::now();
  }

  void failed(const Error& error) {
    retry_ = std::min(retry_ == 0 ? kFirstRetry : 2 * retry_, kLastRetry);
    if (options_.trouble) options_.trouble(error, retry_);
  }

  const WatchOptions& options_;
  const WorkControl& control_;
  Work work_;
  double retry_ = 0;  // seconds to the next try; 0: the last look went well
  WatchClock::time_point last_good_ = WatchClock::now();
};

}  // namespace

int64_t shortest_watched(double every) { return std::max<int64_t>(std::llround(std::ceil((2 * every + 30) / 60)), 1); }

void pause_unless(double seconds, const std::stop_token& stop) {
  const auto end = WatchClock::now() + std::chrono::duration<double>(seconds);
  while (WatchClock::now() < end && !stop.stop_requested()) {
    const std::chrono::duration<double> left = end - WatchClock::now();
    std::this_thread::sleep_for(std::min(left, std::chrono::duration<double>(0.1)));
  }
}

Result<Extended> extend_limits(const ExtendOptions& options) {
  const int64_t now = now_of(options);
  return set_limits(options, [&](const SlurmJob& job) {
    if (job.state != "RUNNING" || job.start <= 0) return int64_t{-1};
    const int64_t left = (job.end > 0 ? job.end : job.start + job.limit_min * 60) - now;
    return static_cast<double>(left) >= options.within ? int64_t{-1} : stepped(job, left, options);
  });
}

Result<Extended> release_limits(const ExtendOptions& options) {
  return set_limits(options, [](const SlurmJob& job) { return *job.hard_limit_min; });
}

Result<Extended> watch_limits(const WatchOptions& options, const WorkControl& control) {
  if (options.extend.within < 2 * options.every) {
    return Error{
        fmt::format("a look every {} s can miss jobs with less than {} s left", options.every, options.extend.within),
        "", "give --within at least twice --watch"};
  }
  // A file that cannot be written and a command that is not there are found out before the first look.
  if (const Status status = renew_alive(options); !status) return status.error();
  if (!options.alive.empty()) unlink(options.alive.c_str());
  if (const Result<std::string> there = options.extend.run({"squeue", "--version"}); !there) return there.error();
  LimitWatcher(options, control).run();
  if (!options.alive.empty()) unlink(options.alive.c_str());
  return release_limits(options.extend);
}

}  // namespace forerun
