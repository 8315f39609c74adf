// How fast Forerun itself is: a model from its name to its answer, a profiler trace from disk to columns, a file of
// recorded runs from disk to predictions, the replay of allocators, traces and clusters.
//
// Measured in this process after start-up (the data folder is read), wall-clock, the median of several repetitions for a
// model and one pass for the file. An answer is looked at before its time counts. Left out: start-up, and writing reports
// to a terminal; `program` has both, of the program as users start it.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/datasets.h"
#include "base/provenance.h"
#include "cluster_bench.h"
#include "memory_bench.h"
#include "predict/cost_models.h"
#include "predict/predict.h"
#include "program_bench.h"
#include "report/prediction.h"
#include "serve_bench.h"
#include "timeline_bench.h"
#include "trace_bench.h"

namespace {

using namespace forerun;
using Clock = std::chrono::steady_clock;

constexpr int kRepetitions = 31;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

struct NamedCase {
  std::string model;
  int64_t batch = 0;
  int64_t parameters = 0;  // the published count: the answer must have it
};

// From name to report text, kRepetitions times. Returns false where the answer is wrong.
bool time_model(const NamedCase& wanted, const Device& device, const CostModels& cost_models) {
  std::vector<double> times;
  Prediction prediction;
  size_t text_bytes = 0;
  for (int i = 0; i < kRepetitions; ++i) {
    const Clock::time_point start = Clock::now();
    ModelRequest request;
    request.model = wanted.model;
    request.batch = wanted.batch;
    const Result<TrainingRun> run = build_run(request, device);
    if (!run) {
      fmt::print("{}\n", run.error().message());
      return false;
    }
    prediction = predict(*run, device, cost_models);
    text_bytes = to_text(prediction).size();
    times.push_back(seconds_since(start));
  }
  if (prediction.parameters != wanted.parameters || prediction.times.iteration.value <= 0 || text_bytes == 0) {
    fmt::print("{}: wrong answer ({} parameters, {} ns)\n", wanted.model, prediction.parameters,
               prediction.times.iteration.value);
    return false;
  }
  std::sort(times.begin(), times.end());
  fmt::print("{:<34}{:>10.2f} ms median {:>9.2f} ms best {:>9} ops\n",
             fmt::format("{}, batch {}, name to answer", wanted.model, wanted.batch), times[times.size() / 2] * 1e3,
             times.front() * 1e3, prediction.ops);
  return true;
}

bool time_records(const std::string& path, const CostModels& cost_models) {
  if (!std::filesystem::exists(path)) {
    fmt::print("predict over recorded runs: not measured, {} is absent\n", path);
    return true;
  }
  size_t records = 0;
  int64_t ops = 0;
  size_t bad = 0;
  RecordHandlers handlers;
  handlers.prediction = [&](const Prediction& prediction) {
    ++records;
    ops += prediction.ops;
  };
  std::string reason;  // why the first of them is bad
  handlers.bad_record = [&](const Error& error) {
    if (++bad == 1) reason = error.message();
  };
  const Clock::time_point start = Clock::now();
  const Status status = predict_records(path, std::nullopt, cost_models, handlers);
  const double seconds = seconds_since(start);
  if (!status || records == 0 || bad > 0) {
    fmt::print("{}: {} records, {} bad; {}\n", path, records, bad, status ? reason : status.error().message());
    return false;
  }
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) * 1e-6;
  fmt::print("{:<34}{:>10.2f} s {:>15.1f} records/s {:>12} records, {} ops, {:.1f} MB\n",
             fmt::format("predict over {}", std::filesystem::path(path).filename().string()), seconds,
             static_cast<double>(records) / seconds, records, ops, megabytes);
  return true;
}

// Measures on a data set of others where it is here, and says so where it is not.
bool with_dataset(const char* name, const std::function<bool(const std::string& path)>& measure) {
  const Result<std::filesystem::path> path = dataset(name);
  if (path) return measure(path->string());
  fmt::print("{}: not measured; {}\n", name, path.error().remedy);
  return true;
}

struct Part {
  const char* name;
  const char* what;
  std::function<bool()> run;  // false: an answer was wrong
};

// What there is to measure, in the order it is measured.
std::vector<Part> all_parts(const std::string& records, const Device& device, const CostModels& cost_models) {
  const auto models = [&] {
    bool good = true;
    for (const NamedCase& wanted : {NamedCase{"resnet50", 64, 25557032}, NamedCase{"gpt2", 8, 124439808}}) {
      good = time_model(wanted, device, cost_models) && good;
    }
    fmt::print("{:<34}{:>10.1f} MiB\n", "peak memory so far", peak_mebibytes());
    return good;
  };
  const auto fit = [&] {
    const bool first = bench::time_fit("resnet50", device, cost_models);
    return bench::time_fit("gpt2", device, cost_models) && first;
  };
  const auto cluster = [] {
    const bool philly = with_dataset("cluster/philly/philly.csv.gz", bench::time_philly);
    return bench::time_growth(10'000'000) && philly;
  };
  const auto program = [] {
    const std::string model = "meta-llama/Llama-3.1-8B";
    const bool predicted =
        bench::time_program({"forerun predict Llama-3.1-8B", {"predict", model, "--precision", "bf16", "--json"}, 40});
    const bool compiled = bench::time_program({"predict Llama-3.1-8B, compiled",
                                               {"predict", model, "--precision", "bf16", "--compile=default", "--json"},
                                               100});
    return bench::time_program({"forerun compare Llama-3.1-8B",
                                {"compare", model, "--precision", "bf16", "--gpus", "all", "--json"},
                                300}) &&
           predicted && compiled;
  };
  return {{"models", "a model from its name to its answer", models},
          {"program", "the program from its start to its end", program},
          {"traces", "a profiler trace from disk to columns",
           [] { return bench::time_trace(FORERUN_DATA_DIR "/h200/whatif_traces/vit_b_16.base.trace.json.zst"); }},
          {"records", "recorded runs from disk to predictions", [&] { return time_records(records, cost_models); }},
          {"memory", "their allocators replayed", [&] { return bench::time_memory(records, device, cost_models); }},
          {"fit", "the largest batch of a model", fit},
          {"serve", "the server's answers, and lists of 10^5 results", [] { return bench::time_serve(); }},
          {"cluster", "jobs scheduled", cluster},
          {"replay", "ten million tasks read and replayed; exchanges and pipelines simulated", [] {
             return bench::time_replay(3'333'333) && bench::time_exchange(10'000, 100) &&
                    bench::time_pipeline(64, 4, 4096);
           }}};
}

}  // namespace

int main(int argc, char** argv) {
  const Result<CostModels> cost_models = load_cost_models();
  if (!cost_models) {
    fmt::print("{}\n", cost_models.error().message());
    return 1;
  }
  const Result<Device> device = cost_models->devices.find("h200");
  CHECK(device.ok(), "the catalogue has no H200");
  std::string records = FORERUN_DATA_DIR "/h200/first-starter.jsonl.zst";
  const std::vector<Part> parts = all_parts(records, *device, *cost_models);

  CLI::App app("How fast Forerun itself is: wall-clock, in one process, after start-up");
  app.name("./run bench");
  std::vector<std::string> names, asked;
  std::string help = "Parts (all of them where none is named; those whose data is absent say so):\n";
  for (const Part& part : parts) {
    names.emplace_back(part.name);
    help += fmt::format("  {:<10}{}\n", part.name, part.what);
  }
  app.add_option("part", asked, "What to measure, see below")->check(CLI::IsMember(names));
  app.add_option("--records", records,
                 "Run records for `records` and `memory` (default: data/h200/first-starter.jsonl.zst)")
      ->check(CLI::ExistingFile);
  app.footer(help + "Example:\n  ./run bench records --records FILE.jsonl.gz");
  CLI11_PARSE(app, argc, argv);

  fmt::print("{} UTC, {}\n", today_utc(), this_machine());
  bool good = true;
  for (const Part& part : parts) {
    if (asked.empty() || std::find(asked.begin(), asked.end(), part.name) != asked.end()) good = part.run() && good;
  }
  fmt::print("{:<34}{:>10.1f} MiB\n", "peak memory", peak_mebibytes());
  return good ? 0 : 1;
}
