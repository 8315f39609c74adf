// forerun slurm: predicted limits for Slurm, replay of a trace on a real Slurm, soft limits.
#include <fmt/core.h>

#include <set>

#include "api/slurm.h"
#include "base/line_writer.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "cli/setup_options.h"
#include "report/slurm.h"

namespace forerun::cli {
namespace {

struct SlurmOptions {
  std::string jobs;
  std::string description;
  std::string format = "csv";
  std::string predictions;
  std::string gpus = "8";
  std::string order = "sjf";
  std::string machine;
  std::string policy;  // simulated beside a replay; empty: none
  LimitOptions limit;
  SlurmReplayOptions replay;
  bool json = false;
  bool csv = false;
  std::string out;
  HtmlOption limits_html, replay_html;
  bool partial = false;
  std::string socket;
  ServeOptions serve;
  WatchOptions watch;
  double every = 0;  // seconds; 0: one look
  bool release = false;
};

// SIGINT and SIGTERM ask to stop; the second one ends the program at once. What is printed comes as it may.
class SlurmWork : public CommandWork {
 public:
  explicit SlurmWork(Answer answer = Answer::as_it_comes) : CommandWork({}, answer, {SIGINT, SIGTERM}) {}
};

// What goes wrong again and again is said once.
class AwayMessages {
 public:
  void trouble(const Error& error, double again_in) {
    if (error.message() == last_) return;
    last_ = error.message();
    fmt::print(stderr, "forerun: {}; trying again in {:.0f} s and so on\n", last_, again_in);
  }
  void back(double seconds) {
    last_.clear();
    fmt::print(stderr, "forerun: all is well again after {:.0f} s\n", seconds);
  }

 private:
  std::string last_;
};

LimitOptions limit_options(const SlurmOptions& options) {
  LimitOptions limit = options.limit;
  limit.order = options.order == "srsf" ? JobOrder::least_gpu_time : JobOrder::shortest;
  return limit;
}

// The table for job_submit.lua has no room for it.
void tell_calibration(const std::vector<JobLimit>& limits) {
  std::set<std::string> told;
  for (const JobLimit& limit : limits) told.insert(limit.calibration);
  told.erase("");
  for (const std::string& one : told) fmt::print(stderr, "forerun: {}\n", one);
}

void tell_what_does_not_fit(const std::vector<JobLimit>& limits) {
  for (const JobLimit& limit : limits) {
    if (limit.fits) continue;
    fmt::print(stderr, "forerun: job {} does not fit in the memory of a {}\n", limit.job, limit.gpu);
  }
}

// The file is replaced as a whole.
Status write_whole(const std::string& path, std::string text) {
  Result<LineWriter> file = LineWriter::create(path, {.overwrite = true});
  if (!file) return file.error();
  while (text.ends_with('\n')) text.pop_back();
  if (const Status status = file->write(text); !status) return status.error();
  return file->finish();
}

int limits(const SlurmOptions& options) {
  const Result<CostModels> cost_models = load_cost_models_for(options.machine);
  if (!cost_models) return fail(cost_models.error());
  int64_t bad = 0;
  const auto bad_row = [&](const Error& error) {
    ++bad;
    fmt::print(stderr, "forerun: {}\n", error.message());
  };
  const auto found =
      predict_limits(options.jobs, limit_options(options), *cost_models, bad_row, CommandWork().control());
  if (!found) return fail(found.error());
  if (!options.json) tell_calibration(*found);
  tell_what_does_not_fit(*found);
  if (bad > 0) fmt::print(stderr, "forerun: {} rows could not be predicted\n", bad);
  if (options.limits_html.asked()) {
    if (const Status status = write_html(options.limits_html, limits_json(*found)); !status.ok())
      return fail(status.error());
  }
  const std::string text = options.json ? limits_json(*found) : limits_csv(*found);
  if (options.out.empty()) {
    fmt::print("{}", text);
  } else if (found->empty() || (bad > 0 && !options.partial)) {
    fmt::print(stderr, "forerun: {} is left as it is{}\n", options.out,
               found->empty() ? "" : "; --partial writes the other rows");
  } else if (const Status status = write_whole(options.out, text); !status) {
    return fail(status.error());
  }
  return bad > 0 ? kInputAtFault : kDone;
}

int ask(const SlurmOptions& options) {
  if (!options.socket.empty()) {
    const Result<std::string> answer = ask_server(options.socket, options.description);
    if (!answer) return fail(answer.error());
    fmt::print("{}", *answer);
    return kDone;
  }
  const Result<CostModels> cost_models = load_cost_models_for(options.machine);
  if (!cost_models) return fail(cost_models.error());
  const auto found = predict_limit(options.description, limit_options(options), *cost_models);
  if (!found) return fail(found.error());
  fmt::print("{}", options.json ? limits_json({*found}) : limits_csv({*found}));
  std::fflush(stdout);
  if (!options.json) tell_calibration({*found});
  tell_what_does_not_fit({*found});
  return kDone;
}

int serve(const SlurmOptions& options) {
  const Result<CostModels> cost_models = load_cost_models_for(options.machine);
  if (!cost_models) return fail(cost_models.error());
  if (cost_models->machine != nullptr) cost_models->machine->prepare(*cost_models);
  const LimitOptions limit = limit_options(options);
  ServeOptions given = options.serve;
  given.socket = options.socket;
  given.ready = [&] {
    fmt::print(stderr, "forerun: listening at {}\n", options.socket);
    if (const auto& machine = cost_models->machine) {
      fmt::print(stderr, "forerun: answers are calibrated by {}\n", machine->file());
    }
  };
  const auto answer = [&](const std::string& description) -> Result<std::string> {
    const auto found = predict_limit(description, limit, *cost_models);
    if (!found) return found.error();
    return limits_csv({*found});
  };
  const Status served = serve_descriptions(given, answer, SlurmWork().control());
  return served ? kDone : fail(served.error());
}

Result<SlurmReplayRequest> replay_request(const SlurmOptions& options) {
  SlurmReplayRequest request{.jobs = options.jobs, .limits = options.predictions, .replay = options.replay};
  const auto cluster = cluster::parse_cluster(options.gpus);
  if (!cluster) return cluster.error();
  request.cluster = *cluster;
  const auto format = parse_job_format(options.format);
  if (!format) return format.error();
  request.format = *format;
  if (options.policy.empty()) return request;
  auto policy = cluster::parse_policy(options.policy);
  if (!policy) return policy.error();
  request.replay.policy = std::move(*policy);
  return request;
}

int replay(const SlurmOptions& options) {
  auto request = replay_request(options);
  if (!request) return fail(request.error());
  AwayMessages messages;
  request->replay.trouble = [&](const Error& error, double again_in) { messages.trouble(error, again_in); };
  request->replay.back = [&](double seconds) { messages.back(seconds); };
  const auto answer = slurm_replay(*request, SlurmWork(CommandWork::Answer::when_whole).control());
  if (!answer) return fail(answer.error());
  if (options.replay_html.asked()) {
    if (const Status status = write_html(options.replay_html, replay_json(*answer)); !status.ok())
      return fail(status.error());
  }
  fmt::print("{}", options.json ? replay_json(*answer) : options.csv ? replay_csv(*answer) : replay_text(*answer));
  if (answer->other_jobs > 0) {
    fmt::print(stderr, "forerun: {} jobs of others waited or ran when the replay began; they share in its times\n",
               answer->other_jobs);
  }
  if (answer->away > 0) {
    fmt::print(stderr, "forerun: the controller was away for {:.0f} s; starts and submissions may be late by that\n",
               answer->away);
  }
  if (answer->fault.empty()) return kDone;
  fmt::print(stderr, "forerun: {}; {} jobs of this replay were cancelled, what was seen of the others stands above\n",
             answer->fault, answer->cancelled);
  return kInputAtFault;
}

void print_raised(const Extended& done) {
  for (const SlurmJob& job : done.raised) {
    fmt::print("{} {}: limit raised to {}\n", job.label, job.name,
               job.limit_min == 0 ? "unlimited" : fmt::format("{} min", job.limit_min));
  }
  std::fflush(stdout);
}

// One look, or the release of all.
int extend_once(const SlurmOptions& options) {
  const ExtendOptions& given = options.watch.extend;
  const auto done = options.release ? release_limits(given) : extend_limits(given);
  if (!done) return fail(done.error());
  print_raised(*done);
  for (const Error& fault : done->faults) fmt::print(stderr, "forerun: {}\n", fault.message());
  return done->faults.empty() ? kDone : kInputAtFault;
}

int extend(const SlurmOptions& options) {
  if (options.every <= 0 || options.release) return extend_once(options);
  AwayMessages messages;
  WatchOptions watch = options.watch;
  watch.every = options.every;
  watch.looked = print_raised;
  watch.trouble = [&](const Error& error, double again_in) { messages.trouble(error, again_in); };
  watch.back = [&](double seconds) { messages.back(seconds); };
  const auto released = watch_limits(watch, SlurmWork().control());
  if (!released) return fail(released.error());
  print_raised(*released);
  fmt::print(stderr, "forerun: stopped; {} jobs got their hard limits back\n", released->raised.size());
  for (const Error& fault : released->faults) fmt::print(stderr, "forerun: {}\n", fault.message());
  return released->faults.empty() ? kDone : kInputAtFault;
}

void add_limit_options(CLI::App& verb, SlurmOptions& options) {
  verb.add_option("--gpu", options.limit.gpu, "Of jobs that name none; default: that of --machine, else h200");
  add_machine_option(verb, options.machine);
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
}

void add_limits(CLI::App& slurm, const std::shared_ptr<SlurmOptions>& options, Run& chosen) {
  CLI::App* verb = slurm.add_subcommand("limits", "Predict time limits, memory and priorities of a file of jobs");
  verb->add_option("JOBS", options->jobs, "CSV with id, model, batch, iterations, gpus; see docs/slurm.md")->required();
  add_limit_options(*verb, *options);
  add_html_option(*verb, options->limits_html);
  verb->add_flag("--json", options->json, "One JSON object a job");
  CLI::Option* out = verb->add_option("--out", options->out,
                                      "Write to a file, replaced as a whole, or left as it is where a row is at fault");
  verb->add_flag("--partial", options->partial, "With --out: write the other rows all the same")->needs(out);
  verb->footer(
      "  forerun slurm limits jobs.csv --out /etc/slurm/predictions.csv\n"
      "examples/slurm/job_submit.lua reads that file when jobs are submitted. Rows are sorted by job.");
  verb->callback([options, &chosen] { chosen = [options] { return limits(*options); }; });
}

void add_ask(CLI::App& slurm, const std::shared_ptr<SlurmOptions>& options, Run& chosen) {
  CLI::App* verb = slurm.add_subcommand("ask", "The same for one job, described by key=value");
  verb->add_option("DESCRIPTION", options->description, "\"model=resnet50 batch=64 iterations=10000 gpu=a100_80gb\"")
      ->required();
  add_limit_options(*verb, *options);
  verb->add_flag("--json", options->json, "One JSON object a job");
  CLI::Option* socket = verb->add_option("--socket", options->socket,
                                         "Ask `forerun slurm serve` there, which answers by its own options");
  for (CLI::Option* other : verb->get_options()) {
    if (other != socket && !other->get_positional() && other->get_name() != "--help") socket->excludes(other);
  }
  verb->footer(
      "  forerun slurm ask \"model=resnet50 batch=64 iterations=10000\"\n"
      "  sbatch --comment \"forerun:model=resnet50 batch=64 iterations=10000\" ... asks this by job_submit.lua");
  verb->callback([options, &chosen] { chosen = [options] { return ask(*options); }; });
}

void add_serve(CLI::App& slurm, const std::shared_ptr<SlurmOptions>& options, Run& chosen) {
  CLI::App* verb = slurm.add_subcommand("serve", "Answer `ask` at a socket, without starting anew for each job");
  verb->add_option("--socket", options->socket, "Its path")->required();
  verb->add_option("--seconds", options->serve.seconds, "That an answer may take; default 2")->check(CLI::Range(1, 60));
  verb->add_option("--at-once", options->serve.at_once, "Answers at a time; default 8")->check(CLI::Range(1, 1024));
  add_limit_options(*verb, *options);
  verb->footer(
      "  forerun slurm serve --socket /run/forerun-serve/ask.socket\n"
      "examples/slurm/forerun-serve.service runs it for good.");
  verb->callback([options, &chosen] { chosen = [options] { return serve(*options); }; });
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
  verb->add_option("--policy", options->policy, "Simulate the trace too and compare the order of starts");
  verb->add_option("--gpus", options->gpus, "For the simulation and for checking the trace; default 8");
  verb->add_option("--away", options->replay.away, "Seconds that the controller may be away at a time; default 600")
      ->check(CLI::Range(0.0, 1e6));
  add_html_option(*verb, options->replay_html);
  verb->add_flag("--json", options->json, "One JSON object");
  verb->add_flag("--csv", options->csv, "A row a job");
  verb->footer(
      "  forerun slurm replay trace.csv --speed 60 --policy easy --gpus 8\n"
      "Uses sbatch, squeue and scancel of the Slurm that SLURM_CONF names. examples/slurm/virtual_cluster.py starts "
      "one "
      "to try.\nA replay that is stopped cancels its own jobs and prints what it saw.");
  verb->callback([options, &chosen] { chosen = [options] { return replay(*options); }; });
}

void add_extend(CLI::App& slurm, const std::shared_ptr<SlurmOptions>& options, Run& chosen) {
  CLI::App* verb = slurm.add_subcommand("extend", "Raise soft limits of running jobs towards what they would have had");
  verb->add_option("--within", options->watch.extend.within,
                   "Seconds left from which on a limit is raised; default 120")
      ->check(CLI::Range(0.0, 1e6));
  verb->add_option("--step", options->watch.extend.step, "Share of the limit to raise it by; default 0.5")
      ->check(CLI::Range(0.0, 100.0));
  CLI::Option* watch = verb->add_option("--watch", options->every, "Do so again every that many seconds; default: once")
                           ->check(CLI::Range(0.1, 600.0));
  verb->add_option("--alive", options->watch.alive, "With --watch: the file that job_submit.lua looks for")
      ->needs(watch);
  verb->add_flag("--release", options->release, "Give all jobs their hard limits; for when it is not watched any more")
      ->excludes(watch);
  verb->footer(
      "  forerun slurm extend --watch 30 --alive /run/forerun-extend/alive\n"
      "  forerun slurm extend --release\n"
      "Needs `soft = true` in job_submit.lua, which notes the hard limits, and an operator's rights.\n"
      "examples/slurm/forerun-extend.service runs it for good.");
  verb->callback([options, &chosen] { chosen = [options] { return extend(*options); }; });
}

}  // namespace

void add_slurm(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<SlurmOptions>();
  CLI::App* slurm = app.add_subcommand("slurm", "Predicted limits for Slurm, and traces replayed on a real one");
  slurm->require_subcommand(1);
  slurm->footer(
      "Start with:\n"
      "  forerun slurm ask \"model=resnet50 batch=64 iterations=10000\"    what Slurm would be told about a job\n"
      "  forerun slurm limits jobs.csv --out /etc/slurm/predictions.csv   the same for a file of jobs\n"
      "  forerun slurm replay trace.csv --policy easy --gpus 8            a trace on a real Slurm\n"
      "docs/slurm.md tells how to install it.");
  add_limits(*slurm, options, chosen);
  add_ask(*slurm, options, chosen);
  add_serve(*slurm, options, chosen);
  add_replay_verb(*slurm, options, chosen);
  add_extend(*slurm, options, chosen);
}

}  // namespace forerun::cli
