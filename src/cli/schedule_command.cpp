// forerun schedule: a workload on a cluster under scheduling policies, and what predictions are worth to them.
#include "cli/schedule_command.h"

#include <fmt/format.h>

#include <charconv>

#include "base/json_writer.h"
#include "base/output_file.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "cli/lab_program.h"
#include "cli/setup_options.h"
#include "cli/shard_options.h"
#include "report/schedule.h"
#include "report/schedule_runs.h"

namespace forerun::cli {
namespace {

// A number in a range. CLI::Range lets through what is no number at all.
CLI::Validator number_between(double least, double most) {
  const auto fault = [least, most](const std::string& text) -> std::string {
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && stop == text.data() + text.size() && value >= least && value <= most) return "";
    return fmt::format("'{}' is no number from {} to {}", text, least, most);
  };
  return {fault, fmt::format("FLOAT in [{} - {}]", least, most)};
}

struct ScheduleOptions {
  ScheduleRequest request;
  std::string format = "csv", gpus, synthetic, from, to, draw, svg, jobs_out;
  int64_t first = 0;
  int32_t most_gpus = 0;
  double restart_cost = 0, failure_hours = 0, repair_hours = 1, checkpoint = 0;
  std::vector<std::string> policies, compare, by, quotas;
  std::string predictor = "perfect";
  WorkLimits limits;
  HtmlOption html;
  ShardOptions shard;
  bool json = false, list = false;
};

int list_names() {
  fmt::print("policies\n");
  for (const auto& entry : cluster::policies()) fmt::print("  {:<16}{}\n", entry.name, entry.description);
  fmt::print("  {:<16}{}\n", "./FILE.py, .so",
             "your own, in Python or as a shared library (docs/cluster.md); timeout=SECONDS");
  fmt::print("\nformats of jobs\n");
  for (const auto& entry : cluster::sources()) fmt::print("  {:<16}{}\n", entry.name, entry.description);
  fmt::print("  {:<16}{}\n", kRecordsFormat,
             "measured training runs (data/h200): true times, and what is predicted of them");
  fmt::print("\npredictors\n");
  for (const auto& entry : cluster::predictors()) fmt::print("  {:<16}{}\n", entry.name, entry.description);
  return kDone;
}

// Reads an option that may be left out.
template <class Value, class Parse>
Status read_option(const std::string& text, std::optional<Value>& into, Parse parse) {
  if (text.empty()) return {};
  auto value = parse(text);
  if (!value) return value.error();
  into = *std::move(value);
  return {};
}

Status fill(ScheduleOptions& options) {
  ScheduleRequest& request = options.request;
  const auto from = [](const std::string& text) { return parse_when(text, "--from"); };
  const auto to = [](const std::string& text) { return parse_when(text, "--to"); };
  for (const Status& status :
       {read_option(options.synthetic, request.synthetic, cluster::parse_synthetic),
        read_option(options.gpus, request.cluster, cluster::parse_cluster),
        read_option(options.draw, request.draw, cluster::parse_draw),
        read_option(options.from, request.load.from, from), read_option(options.to, request.load.to, to)}) {
    if (!status) return status;
  }
  const auto format = parse_job_format(options.format);
  if (!format) return format.error();
  request.format = *format;
  if (options.first > 0) request.load.first = static_cast<size_t>(options.first);
  if (options.most_gpus > 0) request.load.most_gpus = options.most_gpus;
  options.policies.insert(options.policies.end(), options.compare.begin(), options.compare.end());
  for (const std::string& text : options.policies) {
    auto policy = cluster::parse_policy(text);
    if (!policy) return policy.error();
    request.policies.push_back(std::move(*policy));
  }
  auto predictor = parse_predictor(options.predictor);
  if (!predictor) return predictor.error();
  request.predictor = std::move(*predictor);
  for (const std::string& text : options.by) {
    const auto by = cluster::parse_breakdown(text);
    if (!by) return by.error();
    request.by.push_back(*by);
  }
  request.keep_schedules = !options.svg.empty() || !options.jobs_out.empty() || options.html.asked();
  auto quotas = cluster::parse_quotas(options.quotas);
  if (!quotas) return quotas.error();
  request.simulation.quotas = *std::move(quotas);
  request.simulation.restart_cost = cluster::time_from_seconds(options.restart_cost);
  request.simulation.failures.mean_hours_between = options.failure_hours;
  request.simulation.failures.repair = cluster::time_from_seconds(options.repair_hours * 3600);
  request.simulation.failures.checkpoint_every = cluster::time_from_seconds(options.checkpoint);
  return {};
}

Status write_jobs(const ScheduleAnswer& answer, const std::string& path) {
  auto file = OutputFile::create(path);
  if (!file) return file.error();
  const auto add = [&](std::string_view text) { return file->write(text); };
  if (Status status = write_jobs_csv(answer, add); !status) return status;
  return file->finish();
}

// With the jobs, as --jobs-out has them, where a page can still show them.
constexpr size_t kJobsOfPage = 200'000;

Status write_schedule_html(const ScheduleAnswer& answer, const HtmlOption& html) {
  const size_t rows = answer.workload.jobs.size() * answer.report.outcomes.size();
  if (rows > kJobsOfPage) {
    return write_html(html, to_json(answer.report), {{"jobs_left_out", fmt::format("{}", rows)}});
  }
  std::string jobs;
  const auto add = [&](std::string_view text) {
    jobs += text;
    return Status();
  };
  if (Status status = write_jobs_csv(answer, add); !status) return status;
  return write_html(html, to_json(answer.report), {{"jobs", json_quoted(jobs)}});
}

// Files that the request reads.
std::vector<std::string> files_of(const ScheduleRequest& request) {
  std::vector<std::string> files = {request.file, request.load.companion};
  if (request.machine != kNoMachine) files.push_back(request.machine);
  for (const cluster::PolicySpec& policy : request.policies) files.push_back(policy.file);
  std::erase(files, "");
  return files;
}

int run_schedule_shard(const ScheduleOptions& options, const CLI::App& verb) {
  const CommandWork work(options.limits);
  const auto cases = ScheduleCases::read(options.request, work.control());
  if (!cases) return fail(cases.error());
  if (options.request.machine.empty() && !cases->report().calibration.empty()) return fail(machine_not_named());
  const auto sharded = sharded_work(verb, cases->plan().size(), files_of(options.request),
                                    to_json(ScheduleHeading{cases->report(), cases->plan()}));
  if (!sharded) return fail(sharded.error());
  return run_shard(options.shard, *sharded, {options.request.threads, "simulations"}, work.control(),
                   [&](size_t number) -> Result<std::string> {
                     const auto run = cases->simulate(number);
                     if (!run) return run.error();
                     return to_json(*run);
                   });
}

struct ScheduleMerge {
  MergeOptions merge;
  bool json = false;
};

int merge_schedule(const ScheduleMerge& options) {
  const Result<PartSet> parts = open_parts(options.merge, "schedule");
  if (!parts) return fail(parts.error());
  Result<ScheduleHeading> heading = read_schedule_heading(parts->work().about, options.merge.parts.front());
  if (!heading) return fail(heading.error());
  if (heading->plan.size() != parts->size()) {
    return fail({"does not have as many simulations as it says", options.merge.parts.front(), "make the parts anew"});
  }
  std::vector<SimulatedRun> runs;
  for (size_t number = 0; number < parts->size(); ++number) {
    const Result<std::string> row = parts->row(number);
    if (!row) return fail(row.error());
    Result<SimulatedRun> run = read_simulated_run(*row, fmt::format("case {}", number));
    if (!run) return fail(run.error());
    runs.push_back(std::move(*run));
  }
  heading->report.outcomes = outcomes_of(heading->plan, std::move(runs));
  Result<MergedOutput> output = MergedOutput::open(options.merge.out);
  if (!output) return fail(output.error());
  Status status = output->write(options.json ? to_json(heading->report) + "\n" : to_text(heading->report));
  if (status.ok()) status = output->finish();
  return status.ok() ? kDone : fail(status.error());
}

void add_schedule_merge(CLI::App& verb, Run& chosen) {
  auto options = std::make_shared<ScheduleMerge>();
  CLI::App* app = add_merge(verb, options->merge, "simulations");
  app->add_flag("--json", options->json, "JSON: an object, or a list of them for several policies");
  app->footer(
      "Examples:\n"
      "  forerun schedule merge part-0.jsonl part-1.jsonl --json");
  app->callback([options, &chosen] { chosen = [options] { return merge_schedule(*options); }; });
}

int run(ScheduleOptions& options, const AskPredictor& ask, const CLI::App& verb) {
  if (options.list) return list_names();
  if (Status status = fill(options); !status) return fail(status.error());
  if (options.request.predictor.kind == cluster::PredictorKind::learned) {
    if (!ask) return hand_all_to_lab("`--predictor " + options.request.predictor.name + "`");
    auto oracle = ask(options.request.predictor.name);
    if (!oracle) return fail(oracle.error());
    options.request.oracle = std::move(*oracle);
  }
  if (options.shard.any()) return run_schedule_shard(options, verb);
  const auto answer = schedule(options.request, CommandWork(options.limits).control());
  if (!answer) return fail(answer.error());
  if (!options.svg.empty()) {
    const std::string picture = to_svg(answer->report, answer->workload, answer->cluster);
    if (const Status status = write_whole_file(options.svg, picture); !status) return fail(status.error());
  }
  if (!options.jobs_out.empty()) {
    if (const Status status = write_jobs(*answer, options.jobs_out); !status) return fail(status.error());
  }
  if (options.html.asked()) {
    if (const Status status = write_schedule_html(*answer, options.html); !status) return fail(status.error());
  }
  fmt::print("{}{}", options.json ? to_json(answer->report) : to_text(answer->report), options.json ? "\n" : "");
  return kDone;
}

void add_job_options(CLI::App& verb, ScheduleOptions& options) {
  ScheduleRequest& request = options.request;
  const char* group = "Which jobs";
  verb.add_option("FILE", request.file, "The jobs: a table or trace, plain, .gz or .zst");
  verb.add_option("--format", options.format, "What the file is: csv (default), philly, hydra, ...; --list names all")
      ->group(group);
  verb.add_option("--synthetic", options.synthetic, "Made-up jobs instead of a file: jobs=1000000,gpus=10000,seed=1")
      ->group(group);
  verb.add_option("--first", options.first, "Only the first N jobs, in order of submission")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->group(group);
  verb.add_option("--from", options.from, "Only jobs submitted then or later: 2017-10-09")->group(group);
  verb.add_option("--to", options.to, "Only jobs submitted before then")->group(group);
  verb.add_option("--max-gpus", options.most_gpus, "Only jobs with at most so many GPUs")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->group(group);
  verb.add_option("--member", request.load.member, "Which file of an archive")->group(group);
  verb.add_option(
          "--throughputs", request.load.companion,
          "Measured speeds: gavel's throughputs, pollux' step times; csv: step times by placement (Pollux, Titan)")
      ->group(group);
  verb.add_option("--draw", options.draw,
                  "Draws what the jobs do not state: v100=1.4..2 (times as long there), deadlines=30 (percent), "
                  "slack=1.2..3, seed=1")
      ->group(group);
  verb.add_flag("--lenient", request.load.lenient, "Count rows at fault and leave them out")->group(group);
}

void add_cluster_options(CLI::App& verb, ScheduleOptions& options) {
  ScheduleRequest& request = options.request;
  const char* group = "The cluster";
  verb.add_option("--gpus", options.gpus, "How many: 480, or by type: a100=10,v100=20")->group(group);
  CLI::Option* nodes = verb.add_option("--gpus-per-node", request.gpus_per_node,
                                       "Lays the GPUs out on nodes; without it they are counted")
                           ->check(CLI::Range(1, 1024))
                           ->group(group);
  CLI::Option* racks = verb.add_option("--nodes-per-rack", request.nodes_per_rack, "Puts the nodes in racks")
                           ->check(CLI::Range(1, 100000))
                           ->needs(nodes)
                           ->group(group);
  verb.add_option("--network", request.network.link,
                  "Link between nodes, for gangs whose gradients are known: 100gbe (default), hdr, ndr, ...")
      ->group(group);
  verb.add_option("--oversubscription", request.network.oversubscription,
                  "How much less of that link there is across racks (default 1: as much)")
      ->check(number_between(1, 1000))
      ->needs(racks)
      ->group(group);
  verb.add_option("--node-loss", request.simulation.node_loss,
                  "Other gangs: share of speed lost by every doubling of nodes beyond the fewest")
      ->check(number_between(0, 0.99))
      ->needs(nodes)
      ->group(group);
  verb.add_option("--rack-loss", request.simulation.rack_loss, "Other gangs: share of speed lost across racks")
      ->check(number_between(0, 0.99))
      ->needs(racks)
      ->group(group);
  verb.add_option("--restart-cost", options.restart_cost, "Seconds a stopped job loses when it next starts")
      ->check(number_between(0, 1e9))
      ->group(group);
  CLI::Option* failures = verb.add_option("--failure-hours", options.failure_hours,
                                          "Mean hours until a node (without nodes: a GPU) fails; 0: none does")
                              ->check(number_between(0, 1e9))
                              ->group(group);
  verb.add_option("--repair-hours", options.repair_hours, "Hours until it is back (default 1)")
      ->check(number_between(0, 1e6))
      ->needs(failures)
      ->group(group);
  verb.add_option("--checkpoint", options.checkpoint, "Seconds between checkpoints: work since is lost on a failure")
      ->check(number_between(0, 1e9))
      ->needs(failures)
      ->group(group);
}

void add_policy_options(CLI::App& verb, ScheduleOptions& options) {
  ScheduleRequest& request = options.request;
  request.machine.clear();  // the one of the configuration folder, unless another is named
  const char* group = "Who goes first, knowing what";
  verb.add_option("--policy", options.policies,
                  "fifo, sjf, easy, ... or with options: gavel:round=60; --list names all")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  verb.add_option("--compare", options.compare, "Several policies, one row each")->group(group);
  verb.add_option("--predictor", options.predictor,
                  "What the policy knows of durations: perfect (default), none, error:8, limits:3, hybrid, "
                  "error-like:ets, ...; --list names all")
      ->group(group);
  add_machine_option(verb, request.machine);
  verb.get_option("--machine")->group(group);
  verb.add_option("--quota", options.quotas,
                  "GPUs that jobs of a user or group may take up at once: user=8, user:ann=16, group=64")
      ->group(group);
  verb.add_option("--repeat", request.repeat, "Seeds of a random predictor or of failures, for confidence intervals")
      ->check(CLI::Range(1, 100000))
      ->group(group);
  verb.add_option("--seed", request.seed, "The first seed")->check(CLI::NonNegativeNumber)->group(group);
  verb.add_option("--threads", request.threads, "Simulations at once (default 1)")
      ->check(CLI::Range(1, 256))
      ->group(group);
}

void add_answer_options(CLI::App& verb, ScheduleOptions& options) {
  const char* group = "The answer";
  verb.add_option("--by", options.by, "Also completion times and waits by user, group (virtual cluster) or size")
      ->group(group);
  verb.add_option(
          "--jobs-out", options.jobs_out,
          "Writes a table of all jobs into this file (CSV): when each ran under each policy, with the first seed")
      ->group(group);
  verb.add_option("--svg", options.svg, "Draws completion times, use of GPUs and a Gantt chart into this file")
      ->group(group);
  add_html_option(verb, options.html)->group(group);
  verb.add_flag("--json", options.json, "JSON: an object, or a list of them for several policies")->group(group);
  verb.add_flag("--list,--policies", options.list, "Policies, formats and predictors there are")->group(group);
}

}  // namespace

void add_schedule(CLI::App& app, Run& chosen) { add_schedule_asking({}, app, chosen); }

void add_schedule_asking(const AskPredictor& ask, CLI::App& app, Run& chosen) {
  auto options = std::make_shared<ScheduleOptions>();
  CLI::App* verb = app.add_subcommand("schedule", "Play jobs on a cluster under scheduling policies");
  add_job_options(*verb, *options);
  add_cluster_options(*verb, *options);
  add_policy_options(*verb, *options);
  add_answer_options(*verb, *options);
  add_shard_options(*verb, options->shard, "simulations (one a policy and seed)");
  add_work_limits(*verb, options->limits);
  add_schedule_merge(*verb, chosen);
  verb->footer(
      "Examples:\n"
      "  forerun schedule examples/jobs.csv --gpus 8 --compare fifo sjf easy srtf\n"
      "  forerun schedule philly.csv.gz --format philly --max-gpus 64 --gpus 480 --policy sjf --json\n"
      "  forerun schedule jobs.csv --gpus a100=4,v100=8 --policy allox --predictor error:8 --repeat 10\n"
      "  forerun schedule data/h200 --format records --gpus h200=16 --policy sjf --predictor hybrid\n"
      "  forerun schedule --synthetic jobs=1000000,gpus=10000 --policy srtf\n"
      "  forerun schedule jobs.csv --gpus 8 --policy sjf --predictor error:8 --repeat 99 --shard 0/4 --out a\n"
      "Seconds are simulated ones. docs/cluster.md says what is simulated, docs/jobs.md how jobs are described.");
  verb->callback([options, ask, verb, &chosen] {
    if (asks_merge(*verb)) return;
    for (const char* one : {"--svg", "--jobs-out", "--html", "--json", "--list"}) {
      if (!options->shard.any() || verb->get_option(one)->count() == 0) continue;
      throw CLI::ValidationError(one, std::string_view(one) == "--json"
                                          ? "is for `forerun schedule merge`: --out keeps all that it needs"
                                          : "shows what no shard keeps: leave out --out");
    }
    chosen = [options, ask, verb] { return run(*options, ask, *verb); };
  });
}

}  // namespace forerun::cli
