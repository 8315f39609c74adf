// forerun slurm: predicted limits for Slurm, replay of a trace on a real Slurm, soft limits.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "api/slurm_cluster.h"
#include "api/slurm_limits.h"
#include "cli/command.h"
#include "cli/setup_options.h"
#include "cluster/sources/sources.h"

namespace forerun::cli {
namespace {

struct SlurmOptions {
  std::string jobs;
  std::string description;
  std::string format = "csv";
  std::string predictions;
  std::string gpus = "8";
  std::string order = "sjf";
  LimitOptions limit;
  SlurmReplayOptions replay;
  bool json = false;
  bool csv = false;
  double within = 120;
  double step = 0.5;
  double watch = 0;
};

LimitOptions limit_options(const SlurmOptions& options) {
  LimitOptions limit = options.limit;
  limit.order = options.order == "srsf" ? JobOrder::least_gpu_time : JobOrder::shortest;
  limit.setup = [](const std::string& precision, const std::string& optimizer) {
    return parse_setup({.precision = precision, .optimizer = optimizer, .channels_last = false});
  };
  return limit;
}

void print_limits(const std::vector<JobLimit>& limits, bool json) {
  fmt::print("{}", json ? limits_json(limits) : limits_csv(limits));
  for (const JobLimit& limit : limits) {
    if (limit.fits) continue;
    fmt::print(stderr, "forerun: job {} does not fit in the memory of a {}\n", limit.job, limit.gpu);
  }
}

int limits(const SlurmOptions& options) {
  const Result<Knowledge> knowledge = load_knowledge();
  if (!knowledge) return fail(knowledge.error());
  int64_t bad = 0;
  const auto found = predict_limits(options.jobs, limit_options(options), *knowledge, [&](const Error& error) {
    ++bad;
    fmt::print(stderr, "forerun: {}\n", error.message());
  });
  if (!found) return fail(found.error());
  print_limits(*found, options.json);
  if (bad > 0) fmt::print(stderr, "forerun: {} rows could not be predicted\n", bad);
  return bad > 0 ? kInputAtFault : kDone;
}

int ask(const SlurmOptions& options) {
  const Result<Knowledge> knowledge = load_knowledge();
  if (!knowledge) return fail(knowledge.error());
  const auto found = predict_limit(options.description, limit_options(options), *knowledge);
  if (!found) return fail(found.error());
  print_limits({*found}, options.json);
  return kDone;
}

int replay(const SlurmOptions& options) {
  const auto cluster = cluster::parse_cluster(options.gpus);
  if (!cluster) return fail(cluster.error());
  cluster::LoadOptions load;
  load.cluster = &*cluster;
  const auto jobs = cluster::load_jobs(options.jobs, options.format, load);
  if (!jobs) return fail(jobs.error());
  SlurmReplayOptions replay_options = options.replay;
  replay_options.cluster = *cluster;
  if (!options.predictions.empty()) {
    const auto limits = read_limits(options.predictions);
    if (!limits) return fail(limits.error());
    for (const JobLimit& limit : *limits) replay_options.limits[limit.job] = limit;
  }
  const bool progress = isatty(fileno(stderr)) != 0;
  if (progress) {
    replay_options.progress = [&](size_t submitted, size_t over) {
      fmt::print(stderr, "\r{} of {} submitted, {} over", submitted, jobs->workload.jobs.size(), over);
    };
  }
  const auto answer = replay_on_slurm(jobs->workload, replay_options);
  if (progress) fmt::print(stderr, "\r\033[K");
  if (!answer) return fail(answer.error());
  fmt::print("{}", options.json ? replay_json(*answer) : options.csv ? replay_csv(*answer) : replay_text(*answer));
  return kDone;
}

int extend(const SlurmOptions& options) {
  while (true) {
    const auto raised = extend_limits(options.within, options.step);
    if (!raised) return fail(raised.error());
    for (const SlurmJob& job : *raised) {
      fmt::print("{} {}: limit raised to {} min\n", job.id, job.name, job.limit_seconds / 60);
    }
    if (options.watch <= 0) return kDone;
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::duration<double>(options.watch));
  }
}

void add_limit_options(CLI::App& verb, SlurmOptions& options) {
  verb.add_option("--gpu", options.limit.gpu, "Of jobs that name none; default h200");
  verb.add_option("--margin", options.limit.margin, "Share of the predicted time on top of it; default 0.2")
      ->check(CLI::Range(0.0, 100.0));
  verb.add_option("--startup", options.limit.startup,
                  "Seconds before the first iteration and after the last; default 60")
      ->check(CLI::Range(0.0, 1e6));
  verb.add_option("--gpus-per-node", options.limit.gpus_per_node, "For what gangs say to each other; default 8")
      ->check(CLI::Range(1, 1024));
  verb.add_option("--network", options.limit.network.link, "Link between nodes; default 100gbe");
  verb.add_option("--order", options.order, "Priorities by time (sjf) or by GPU time (srsf); default sjf")
      ->check(CLI::IsMember({"sjf", "srsf"}));
  verb.add_flag("--json", options.json, "One JSON object a job");
}

void add_limits(CLI::App& slurm, const std::shared_ptr<SlurmOptions>& options, Run& chosen) {
  CLI::App* verb = slurm.add_subcommand("limits", "Predict time limits, memory and priorities of a file of jobs");
  verb->add_option("JOBS", options->jobs, "CSV with id, model, batch, iterations, gpus; see docs/slurm.md")->required();
  add_limit_options(*verb, *options);
  verb->footer(
      "  forerun slurm limits jobs.csv > /etc/slurm/predictions.csv\n"
      "examples/slurm/job_submit.lua reads that file when jobs are submitted.");
  verb->callback([options, &chosen] { chosen = [options] { return limits(*options); }; });
}

void add_ask(CLI::App& slurm, const std::shared_ptr<SlurmOptions>& options, Run& chosen) {
  CLI::App* verb = slurm.add_subcommand("ask", "The same for one job, described by key=value");
  verb->add_option("DESCRIPTION", options->description, "\"model=resnet50 batch=64 iterations=10000 gpu=a100_80gb\"")
      ->required();
  add_limit_options(*verb, *options);
  verb->footer(
      "  sbatch --comment \"forerun:model=resnet50 batch=64 iterations=10000\" ... asks this by job_submit.lua");
  verb->callback([options, &chosen] { chosen = [options] { return ask(*options); }; });
}

void add_replay_verb(CLI::App& slurm, const std::shared_ptr<SlurmOptions>& options, Run& chosen) {
  CLI::App* verb = slurm.add_subcommand("replay", "Submit a trace to a real Slurm; read back starts and ends");
  verb->add_option("JOBS", options->jobs, "A trace; jobs sleep for their durations")->required();
  verb->add_option("--format", options->format, "As of `forerun schedule`; default csv");
  verb->add_option("--speed", options->replay.speed, "How many times faster than in the trace; default 1")
      ->check(CLI::Range(1e-3, 1e6));
  verb->add_option("--partition", options->replay.partition, "Default: Slurm's own");
  verb->add_option("--predictions", options->predictions,
                   "What `forerun slurm limits` wrote, to pass with each job; default: left to job_submit.lua");
  verb->add_option("--policy", options->replay.policy, "Simulate the trace too and compare the order of starts");
  verb->add_option("--gpus", options->gpus, "For the simulation and for checking the trace; default 8");
  verb->add_flag("--json", options->json, "One JSON object");
  verb->add_flag("--csv", options->csv, "A row a job");
  verb->footer(
      "  forerun slurm replay trace.csv --speed 60 --policy easy --gpus 8\n"
      "Uses sbatch and scontrol of the Slurm that SLURM_CONF names. examples/slurm/virtual_cluster.py starts one to "
      "try.");
  verb->callback([options, &chosen] { chosen = [options] { return replay(*options); }; });
}

void add_extend(CLI::App& slurm, const std::shared_ptr<SlurmOptions>& options, Run& chosen) {
  CLI::App* verb = slurm.add_subcommand("extend", "Raise soft limits of running jobs towards what their users stated");
  verb->add_option("--within", options->within, "Seconds left from which on a limit is raised; default 120")
      ->check(CLI::Range(0.0, 1e6));
  verb->add_option("--step", options->step, "Share of the limit to raise it by; default 0.5")
      ->check(CLI::Range(0.0, 100.0));
  verb->add_option("--watch", options->watch, "Do so again every that many seconds; default: once")
      ->check(CLI::Range(0.0, 1e6));
  verb->footer("Needs `soft = true` in job_submit.lua, which notes the users' limits, and an operator's rights.");
  verb->callback([options, &chosen] { chosen = [options] { return extend(*options); }; });
}

}  // namespace

void add_slurm(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<SlurmOptions>();
  CLI::App* slurm = app.add_subcommand("slurm", "Predicted limits for Slurm, and traces replayed on a real one");
  slurm->require_subcommand(1);
  add_limits(*slurm, options, chosen);
  add_ask(*slurm, options, chosen);
  add_replay_verb(*slurm, options, chosen);
  add_extend(*slurm, options, chosen);
}

}  // namespace forerun::cli
