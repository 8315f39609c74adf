// forerun scale: the step of many GPUs, and the best plan for them.
#include "cli/scale_command.h"

#include <fmt/format.h>

#include <set>

#include "api/scale.h"
#include "api/scale_records.h"
#include "api/scale_resources.h"
#include "base/options_text.h"
#include "base/output_file.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "cli/job_options.h"
#include "cli/lab_program.h"
#include "cli/setup_options.h"
#include "report/scale.h"
#include "report/scale_records.h"
#include "report/scale_resources.h"

namespace forerun::cli {
namespace {

struct ScaleOptions {
  std::string machine;
  ScaleQuestion question;
  std::string stack;
  std::vector<std::string> settings;
  SetupOptions setup;
  PriceOptions prices;
  double mttf = 0, storage = 0;  // 0: not given
  double restart = -1;           // below 0: not given
  double spread = 0;             // per cent
  std::vector<int64_t> gpus;     // empty: not given
  std::string batches;           // the same: even
  std::string svg;
  std::string timeline;
  std::vector<std::string> device_files;
  int64_t top = 0;  // 0: not given
  bool json = false;
  std::string testbed;
  std::string mode = "sync";
  bool own_gpus = false;
  std::vector<std::string> records;
  std::vector<std::string> with;  // learned predictors that are asked beside the simulation
  std::string weights;            // folder of weights of the user's own, for one of those
  WorkLimits limits;
  HtmlOption html;
};

Status read_settings(const std::vector<std::string>& texts, ScaleQuestion& question) {
  const OptionGrammar grammar{"--set", "write NAME=VALUE, such as layers=96,width=12288"};
  for (const std::string& text : texts) {
    const auto settings = parse_key_values(text, grammar);
    if (!settings) return settings.error();
    for (const KeyValue& setting : *settings) {
      if (Status status = add_once(setting, question.settings, grammar); !status) return status;
    }
  }
  return {};
}

int write_picture(const std::string& picture, const std::string& path) {
  if (const Status status = write_whole_file(path, picture); !status) return fail(status.error());
  fmt::print(stderr, "{} is written\n", path);
  return kDone;
}

int refuse(const Error& error) {
  fail(error);
  return kUsage;
}

// What training in a setting of the testbed does to GPU and network.
int simulate_command(const ScaleOptions& options, const AskResources& ask) {
  if (options.mode != "sync" && options.mode != "async") {
    return fail({"there is no mode '" + options.mode + "'", "--mode", "sync or async"});
  }
  const ScaleQuestion& asked = options.question;
  const ResourceQuestion question{.model = asked.model,
                                  .settings = asked.settings,
                                  .batch = asked.micro_batch,
                                  .gpu = asked.gpu,
                                  .setup = asked.setup,
                                  .default_optimizer = asked.default_optimizer,
                                  .setting = options.testbed,
                                  .async = options.mode == "async",
                                  .own_gpus = options.own_gpus};
  const auto cost_models = load_cost_models_for(options.machine, options.device_files);
  if (!cost_models) return fail(cost_models.error());
  auto answer = simulate_training(question, *cost_models);
  if (!answer) return fail(answer.error());
  for (const std::string& name : options.with) {
    auto learned = ask(name, options.weights, question, *cost_models);
    if (!learned) return fail(learned.error());
    answer->with.push_back(std::move(*learned));
  }
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, to_json(*answer)); !status.ok()) return fail(status.error());
  }
  fmt::print("{}", options.json ? to_json(*answer) + "\n" : to_text(*answer));
  return options.svg.empty() ? kDone : write_picture(to_svg(*answer), options.svg);
}

// Records of the same workloads with simulated metrics, one a line.
int simulate_files(const ScaleOptions& options) {
  const auto cost_models = load_cost_models_for(options.machine, options.device_files);
  if (!cost_models) return fail(cost_models.error());
  int64_t done = 0;
  std::set<std::string> calibrations;
  WorkloadHandlers handlers;
  handlers.bad_record = [](const Error& error) { fmt::print(stderr, "forerun: {}\n", error.message()); };
  handlers.workload = [&](const RecordedWorkload& workload) {
    fmt::print("{}\n", simulated_record(workload));
    if (!workload.simulated.calibration.empty()) calibrations.insert(workload.simulated.calibration);
    ++done;
  };
  const auto rates = testbed_rates();
  if (!rates) return fail(rates.error());
  const Status status = simulate_records(options.records, options.question.gpu, *cost_models, *rates, handlers,
                                         CommandWork(options.limits, CommandWork::Answer::as_it_comes).control());
  if (!status) return fail(status.error());
  for (const std::string& told : calibrations) fmt::print(stderr, "forerun: {}\n", told);
  if (done == 0) return fail({"no resources/1 record could be simulated", options.records[0], "see docs/records.md"});
  return kDone;
}

int mixed_command(const ScaleOptions& options, const CostModels& cost_models) {
  const auto share = options.batches == "by-speed" ? BatchShare::by_speed : BatchShare::even;
  const auto answer = scale_out_mixed(options.question, share, cost_models, CommandWork(options.limits).control());
  if (!answer) return fail(answer.error());
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, to_json(*answer)); !status.ok()) return fail(status.error());
  }
  fmt::print("{}", options.json ? to_json(*answer) + "\n" : to_text(*answer));
  return answer->whole.steps.front().fits ? kDone : kDoesNotFit;
}

// Options that say nothing of what is asked are refused rather than passed over.
std::optional<Error> fault_of_options(const ScaleOptions& options) {
  if (!options.stack.empty() && options.stack != "pytorch" && options.stack != "megatron") {
    return Error{"there is no stack '" + options.stack + "'", "--stack", "pytorch or megatron"};
  }
  if (options.stack == "megatron" && (!options.testbed.empty() || !options.records.empty())) {
    return Error{"the testbed trains with PyTorch", "--stack megatron", "leave it out"};
  }
  if (!options.setup.compile.empty() && (!options.testbed.empty() || !options.records.empty())) {
    return Error{"the testbed trains with eager PyTorch", "--compile", "leave it out"};
  }
  const bool kinds = names_kinds(options.question.gpu);
  if (options.top > 0 && (!options.question.search || options.gpus.size() > 1)) {
    return Error{"all that is asked for is printed, but of a search's plans for one number of GPUs", "--top",
                 "leave it out, or add --search and give one --gpus"};
  }
  if (!options.timeline.empty() && (!options.testbed.empty() || !options.records.empty())) {
    return Error{"a step's timeline is that of a plan; the testbed's series are drawn by --svg", "--timeline",
                 "leave it out"};
  }
  if (!options.timeline.empty() && !options.timeline.ends_with(".json") && !options.timeline.ends_with(".svg")) {
    return Error{"'" + options.timeline + "' is neither a trace nor a picture", "--timeline",
                 "name a .json file for Perfetto and chrome://tracing, or an .svg file"};
  }
  if (!options.testbed.empty() && options.question.job.any()) {
    return Error{"hours of a job are told of a plan, not of the testbed", "--iterations, --samples",
                 "leave out --testbed"};
  }
  if (options.prices.any() && (kinds || !options.testbed.empty())) {
    return Error{"a price makes the cost of a plan on GPUs of one kind", "--price, --prices", "name one kind of GPU"};
  }
  const bool risks = options.mttf != 0 || options.restart != -1 || options.storage != 0 || options.spread != 0;
  if (risks && (kinds || !options.testbed.empty() || !options.records.empty())) {
    return Error{"failures and slow GPUs are told of plans on GPUs of one kind",
                 "--mttf, --restart, --storage, --spread", "leave them out"};
  }
  if (options.question.oversubscription != 1 && (kinds || !options.testbed.empty() || !options.records.empty())) {
    return Error{"an oversubscribed network is modelled for GPUs of one kind", "--oversubscription", "leave it out"};
  }
  if (!options.batches.empty() && !kinds) {
    return Error{"batches are dealt out to several kinds of GPU", "--batches", "name them, as --gpu h200=8,a100=8"};
  }
  if (!kinds) return std::nullopt;
  if (!options.batches.empty() && options.batches != "even" && options.batches != "by-speed") {
    return Error{"batches are not '" + options.batches + "'", "--batches", "even or by-speed"};
  }
  if (!options.gpus.empty())
    return Error{"--gpu tells already how many there are of each kind", "--gpus", "leave it out"};
  if (!options.svg.empty() || !options.timeline.empty()) {
    return Error{"there is no picture of several kinds of GPU", "--svg, --timeline", "leave it out"};
  }
  if (options.question.global_batch > 0 && options.question.micro_batch > 0) {
    return Error{"of several kinds of GPU, each has one batch a step", "--global-batch, --micro-batch",
                 "give one of them"};
  }
  return std::nullopt;
}

// What a learned predictor is asked for is refused before another program is started for it.
std::optional<Error> fault_of_asking(const ScaleOptions& options) {
  if (options.with.empty()) {
    if (options.weights.empty()) return std::nullopt;
    return Error{"weights are those of a learned predictor", "--weights", "name one, as --with driple"};
  }
  if (options.testbed.empty()) {
    return Error{"a learned predictor is asked about a setting of the testbed", "--with",
                 "name one, as --testbed P1w2-10G"};
  }
  if (options.weights.empty() || options.with.size() == 1) return std::nullopt;
  return Error{"weights are those of one predictor", "--weights", "give --with once"};
}

// One kind of GPU with its number is that GPU, and so many: h200=8.
Status take_one_kind(ScaleOptions& options) {
  ScaleQuestion& question = options.question;
  if (!names_kinds(question.gpu) || !options.gpus.empty()) return {};
  const auto kinds = parse_gpu_kinds(question.gpu, question.network);
  if (!kinds) return kinds.error();
  if (kinds->size() > 1) return {};
  question.gpu = kinds->front().gpu;
  options.gpus = {kinds->front().gpus};
  if (question.network) question.network = kinds->front().network;
  return {};
}

int scale_command(ScaleOptions options, const AskResources& ask) {
  if (const auto fault = fault_of_asking(options)) return refuse(*fault);
  if (const Status status = take_one_kind(options); !status) return refuse(status.error());
  if (const auto fault = fault_of_options(options)) return refuse(*fault);
  if (!options.gpus.empty()) options.question.gpus = options.gpus;
  if (!options.with.empty() && !ask) return hand_all_to_lab("`--with " + options.with.front() + "`");
  ScaleQuestion& question = options.question;
  if (!options.records.empty() && options.html.asked()) {
    return refuse({"records of simulated workloads are no page", "--html", "ask about one with MODEL and --testbed"});
  }
  if (!options.records.empty()) return simulate_files(options);
  if (question.model.empty()) {
    fmt::print(stderr, "forerun: give MODEL or --records; see `forerun scale --help`\n");
    return kUsage;
  }
  if (const Status status = read_settings(options.settings, question); !status) return fail(status.error());
  if (!options.stack.empty()) question.megatron = options.stack == "megatron";
  question.default_precision = options.setup.precision.empty();
  question.default_optimizer = options.setup.optimizer.empty();
  const auto setup = parse_setup(options.setup);
  if (!setup) return fail(setup.error());
  question.setup = *setup;
  if (!options.testbed.empty()) return simulate_command(options, ask);
  question.plain_attention = setup->attention == Attention::eager;
  const auto cost_models = load_cost_models_for(options.machine, options.device_files);
  if (!cost_models) return fail(cost_models.error());
  if (names_kinds(question.gpu)) return mixed_command(options, *cost_models);
  if (options.mttf != 0) question.risks.mttf_hours = options.mttf;
  if (options.restart != -1) question.risks.restart_minutes = options.restart;
  if (options.storage != 0) question.risks.storage_rate = options.storage * 1e9;
  question.risks.spread = options.spread / 100;
  question.picture = !options.timeline.empty();
  if (options.top > 0) question.shown = static_cast<size_t>(options.top);
  auto prices = asked_prices(options.prices, cost_models->devices);
  if (!prices) return fail(prices.error());
  question.prices = std::move(*prices);
  const auto answer = scale_out(question, *cost_models, CommandWork(options.limits).control());
  if (!answer) return fail(answer.error());
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, to_json(*answer)); !status.ok()) return fail(status.error());
  }
  fmt::print("{}", options.json ? to_json(*answer) + "\n" : to_text(*answer, question.shown));
  if (answer->seconds > 10) fmt::print(stderr, "{} plans in {:.1f} s\n", answer->considered, answer->seconds);
  if (!options.svg.empty()) {
    if (const int code = write_picture(to_svg(*answer), options.svg); code != kDone) return code;
  }
  if (!options.timeline.empty()) {
    const std::string drawn = options.timeline.ends_with(".svg") ? step_svg(*answer) : step_trace(*answer);
    if (const int code = write_picture(drawn, options.timeline); code != kDone) return code;
  }
  const bool fits = std::any_of(answer->steps.begin(), answer->steps.end(), [](const auto& step) { return step.fits; });
  return fits ? kDone : kDoesNotFit;
}

constexpr const char* kScaleFooter =
    "A plan is a product: tensor (tp) x context (cp) x data (dp) x pipeline (pp) parallelism = GPUs. Write it as\n"
    "  dp | zero1 | zero2 | zero3 | fsdp | hsdp | ps | ps-async | tp | pp   one kind over all GPUs\n"
    "  tp=8,pp=4,chunks=2,zero=1,mb=2,checkpoint                     a product; dp is what is left\n"
    "  tp=8,sp,cp=2,pp=16,zb                                         sequence parallelism, context groups, zero "
    "bubble\n"
    "  hsdp | fsdp,shard=16 | fsdp,no-reshard | fsdp,selective       sharded within a node; among 16; gathered once;\n"
    "                                                                cheap results made again\n"
    "  tp=2,ep=8,zero=1                                              experts dealt out to 8 of the data-parallel GPUs\n"
    "  zero2,offload                                                 the optimizer on the host\n"
    "Gradients travel in buckets of 25 MiB, or by bsp, wfbp, mg-wfbp, bytescheduler.\n"
    "chunks interleaves a pipeline, mb is the micro-batch, servers=N counts parameter servers (default: one a node),\n"
    "to which a node pushes the sum of its GPUs' gradients; no-overlap sends gradients after the backward pass.\n"
    "--global-batch says how many samples a step has.\n"
    "The iteration is the one that `forerun predict` tells of, with the same options: on one GPU both say the same.\n"
    "Plans with tp or pp, and a search, take gpt2, llama and bert as Megatron-LM trains them: fused kernels, weights "
    "in\n"
    "half precision with a float32 copy (float16 where the GPU has no bfloat16 units); --stack pytorch is eager "
    "PyTorch.\n"
    "Columns: `scaling` is the speed against as many GPUs that never wait for each other, `peak` what the model's own\n"
    "products use of the peak of the units that run them (TF32 for convolutions in float32), `bubble` waiting for "
    "other\n"
    "stages, `tensor` exchange within tensor groups, `exposed` what the exchange of gradients and parameters adds of "
    "all\n"
    "it takes, ! does not fit in memory.\n"
    "Examples:\n"
    "  forerun scale gpt2_xl --gpu a100 --gpus 8 --strategy zero1 --micro-batch 4 --precision amp_bf16\n"
    "  forerun scale resnet50 --gpu v100 --gpus 1,2,4,8,16,32 --node 4 --network 25gbe --micro-batch 64 --svg out.svg\n"
    "  forerun scale gpt3_175b --gpu a100 --gpus 512 --global-batch 1536 --search --explain tp=8,pp=8\n"
    "  forerun scale Mixtral-8x7B-v0.1 --gpu h100 --gpus 64 --strategy ep=8,zero=1 --precision bf16\n"
    "  forerun scale Llama-3.1-405B --gpu h100 --gpus 16384 --strategy tp=8,sp,pp=16 --tokens 15.6T\n"
    "  forerun scale gpt2 --set layers=48,width=8192,heads=64,length=2048,positions=2048 --gpu h100 --gpus 64 \\\n"
    "      --network 8xndr --strategy tp=8,pp=2,checkpoint --global-batch 512 --precision bf16\n"
    "  forerun scale gpt2_small --gpu h100 --gpus 1,8,32 --micro-batch 16 --precision amp_bf16 --compile\n"
    "  forerun scale Llama-3.1-8B --gpu h100 --gpus 64 --strategy fsdp,checkpoint --precision amp_fp8\n"
    "--testbed prints what training does to GPU and network: Driple's idle duration, burst duration and burst amount "
    "of\n"
    "GPU, GPU memory, sent and received bytes:\n"
    "  forerun scale resnet50 --testbed P1w2-10G --micro-batch 32 --svg series.svg\n"
    "  forerun scale resnet50 --testbed P1w2-10G --micro-batch 32 --with driple\n"
    "Several kinds of GPU train data-parallel replicas; all wait for the slowest:\n"
    "  forerun scale resnet50 --gpu h200=8,a100=8 --network h200=8xndr,a100=25gbe --batches by-speed\n"
    "How it is computed and how accurate it is: docs/scale.md.";

}  // namespace

void add_scale(CLI::App& app, Run& chosen) { add_scale_asking({}, app, chosen); }

void add_scale_asking(const AskResources& ask, CLI::App& app, Run& chosen) {
  auto options = std::make_shared<ScaleOptions>();
  ScaleQuestion& question = options->question;
  CLI::App* verb =
      app.add_subcommand("scale", "Time, throughput and memory of training on many GPUs; finds the best plan");
  verb->add_option("MODEL", question.model,
                   "A model or family of `forerun zoo`, a config.json, an ONNX file or a captured run");
  verb->add_option("--set", options->settings, "Parameters of the family: NAME=VALUE,...")->allow_extra_args(false);
  verb->add_option("--gpu", question.gpu,
                   "A GPU of `forerun devices` (default: that of --machine, else h200); or several kinds with numbers, "
                   "h200=16,a100=8");
  verb->add_option("--gpus", options->gpus, "How many; several numbers give a row each (default 8)")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  verb->add_option("--node", question.node, "GPUs of a node (default 8)");
  verb->add_option("--network", question.network,
                   "A node's connection: a link of `forerun devices`, 8xndr, 800Gb/s or 100GB/s; of several kinds of "
                   "GPU one for all or each its own, h200=8xndr,a100=25gbe. Default: what the vendor's machine has for "
                   "each GPU (8xhdr of A100, 8xndr of H100, H200 and B200)");
  verb->add_option("--batches", options->batches,
                   "Of several kinds of GPU: even (default), or by-speed, so that none waits for long");
  verb->add_option("--within", question.within, "Link between GPUs of a node, where it is not the GPU's own");
  verb->add_option("--strategy", question.strategy, "The plan (default dp); see below");
  verb->add_flag("--search", question.search,
                 "Try all plans that make sense and rank those that fit; the best for each of several --gpus");
  verb->add_option("--explain", question.explain,
                   "With --search: a plan whose time is told part by part beside that of the best, and why it loses");
  verb->add_option("--oversubscription", question.oversubscription,
                   "Of the network: how many times more its nodes may send than it carries (default 1)");
  verb->add_option("--device-file", options->device_files,
                   "JSON file with a further GPU or links of your own; repeatable")
      ->allow_extra_args(false);
  verb->add_option("--top", options->top, "Plans of a search to print (default 10)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  verb->add_option("--global-batch", question.global_batch, "Samples a step (default: one micro-batch a replica)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  verb->add_option(
          "--micro-batch", question.micro_batch,
          "Samples that pass through the model at once (default: the batch that `forerun predict` takes, or of "
          "--global-batch the largest up to it that each replica's share can be made of)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  add_job_options(*verb, question.job);
  add_price_options(*verb, options->prices);
  verb->add_option("--mttf", options->mttf,
                   "Of the job: hours after which a GPU fails in the mean (default 50,677, as Llama 3's did)");
  verb->add_option("--restart", options->restart, "Of the job: minutes until it trains again (default 10)");
  verb->add_option("--storage", options->storage,
                   "Of the job: GB/s at which checkpoints are written, of all nodes (default 1 for each node)");
  verb->add_option("--spread", options->spread,
                   "Of the job: per cent by which GPUs' speeds differ (standard deviation); the slowest decides");
  verb->add_option("--efficiency", question.efficiency, "File of constants, in place of data/scale/a100_megatron.json");
  verb->add_option("--testbed", options->testbed,
                   "Simulate the testbed instead: P1w2-10G (servers, workers, links) or AR4-10G (all-reduce)");
  verb->add_option("--records", options->records,
                   "Simulate the workloads of these resources/1 files: the same records with simulated metrics");
  verb->add_option("--mode", options->mode, "--testbed: sync (default) or async parameter servers");
  verb->add_flag("--own-gpus", options->own_gpus, "--testbed: a GPU for each worker; without it they share one");
  verb->add_option("--with", options->with,
                   "--testbed: ask a learned predictor too: driple or driple+simulation; repeatable (forerun-lab)")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--weights", options->weights, "Folder of weights that `forerun train driple` wrote, for --with");
  verb->add_option(
      "--stack", options->stack,
      "Whose software trains: pytorch (eager, as `forerun predict` has it) or megatron (Megatron-LM; gpt2, "
      "llama and bert). Default: megatron where layers are shared (tp, pp, --search), else pytorch");
  add_setup_options(*verb, options->setup);
  add_compile_option(*verb, options->setup);
  add_machine_option(*verb, options->machine);
  verb->add_option("--svg", options->svg,
                   "Write throughput over the number of GPUs as a picture; with --testbed the series");
  verb->add_option(
      "--timeline", options->timeline,
      "Write the step by stage, computation and network: .json for Perfetto and chrome://tracing, .svg as a "
      "picture with the memory of each stage");
  add_work_limits(*verb, options->limits);
  add_html_option(*verb, options->html);
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->footer(kScaleFooter);
  verb->callback([options, ask, &chosen] { chosen = [options, ask] { return scale_command(*options, ask); }; });
}

}  // namespace forerun::cli
