// How fast the cluster simulator is: the Philly trace under the common policies, and how the cost grows with the number of
// made-up jobs on 100,000 GPUs, up to a year of them (10 million). Metrics are part of the time, generating jobs is not.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "cluster/policies.h"
#include "cluster/simulator.h"
#include "cluster/sources/sources.h"
#include "cluster/synthetic.h"

namespace forerun::bench {

// Seconds to simulate and measure; negative where a job did not end.
inline double time_policy(const cluster::Workload& workload, const cluster::Cluster& cluster, const std::string& name) {
  const auto begin = std::chrono::steady_clock::now();
  auto policy = cluster::make_policy(name);
  const cluster::Schedule schedule = simulate(workload, cluster, workload.truth, **policy);
  const cluster::Metrics metrics = metrics_of(schedule, workload, cluster);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return metrics.unfinished == 0 ? seconds : -1;
}

inline bool time_philly(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    fmt::print("schedule Philly: not measured, {} is absent\n", path);
    return true;
  }
  const auto cluster = cluster::parse_cluster("480");
  cluster::LoadOptions options;
  options.cluster = &*cluster;
  const auto begin = std::chrono::steady_clock::now();
  const auto loaded = cluster::load_jobs(path, "philly", options);
  const double loading = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!loaded) return false;
  fmt::print("{:<34}{:>10.3f} s\n", "read the Philly trace", loading);
  bool good = true;
  for (const char* policy : {"fifo", "sjf", "easy", "2d-las", "srtf"}) {
    const double seconds = time_policy(loaded->workload, *cluster, policy);
    good = good && seconds >= 0;
    fmt::print("{:<34}{:>10.3f} s {:>15.0f} jobs/s\n",
               fmt::format("Philly, {} jobs, {}", loaded->workload.jobs.size(), policy), seconds,
               static_cast<double>(loaded->workload.jobs.size()) / seconds);
  }
  return good;
}

// The slope of log(seconds) over log(jobs), by least squares.
inline double growth_exponent(const std::vector<double>& jobs, const std::vector<double>& seconds) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto count = static_cast<double>(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    const double a = std::log(jobs[i]);
    const double b = std::log(seconds[i]);
    x += a, y += b, xx += a * a, xy += a * b;
  }
  return (count * xy - x * y) / (count * xx - x * x);
}

inline bool time_growth(int64_t most_jobs) {
  bool good = true;
  for (const char* policy : {"fifo", "srtf"}) {
    std::vector<double> jobs, seconds;
    for (int64_t size = most_jobs / 16; size <= most_jobs; size *= 2) {
      const cluster::Workload workload = cluster::synthetic_jobs({.jobs = size, .gpus = 100000, .seed = 1});
      const double time = time_policy(workload, *cluster::parse_cluster("100000"), policy);
      good = good && time > 0;
      jobs.push_back(static_cast<double>(size));
      seconds.push_back(time);
      fmt::print("{:<34}{:>10.2f} s {:>15.0f} jobs/s\n", fmt::format("100,000 GPUs, {} jobs, {}", size, policy), time,
                 static_cast<double>(size) / time);
    }
    fmt::print("{:<34}{:>10.2f}   (n log n: about 1.06)\n", fmt::format("growth exponent, {}", policy),
               growth_exponent(jobs, seconds));
  }
  return good;
}

}  // namespace forerun::bench
