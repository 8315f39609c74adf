// How fast Forerun itself is: a model from its name to its answer, a profiler trace from disk to columns, a file of
// recorded runs from disk to predictions, the replay of allocators, traces and clusters.
//
// Measured in this process after start-up (the data folder is read), wall-clock, the median of several repetitions for a
// model and one pass for the file. An answer is looked at before its time counts. Left out: start-up, and writing reports
// to a terminal.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "api/knowledge.h"
#include "api/predict.h"
#include "base/check.h"
#include "cluster_bench.h"
#include "memory_bench.h"
#include "report/prediction.h"
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

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

struct NamedCase {
  std::string model;
  int64_t batch = 0;
  int64_t parameters = 0;  // the published count: the answer must have it
};

// From name to report text, kRepetitions times. Returns false where the answer is wrong.
bool time_model(const NamedCase& wanted, const Device& device, const Knowledge& knowledge) {
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
    prediction = predict(*run, device, knowledge);
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

bool time_records(const std::string& path, const Knowledge& knowledge) {
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
  handlers.bad_record = [&](const Error&) { ++bad; };
  const Clock::time_point start = Clock::now();
  const Status status = predict_records(path, std::nullopt, knowledge, handlers);
  const double seconds = seconds_since(start);
  if (!status || records == 0 || bad > 0) {
    fmt::print("{}: {} records, {} bad; {}\n", path, records, bad, status ? "" : status.error().message());
    return false;
  }
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) * 1e-6;
  fmt::print("{:<34}{:>10.2f} s {:>15.1f} records/s {:>12} records, {} ops, {:.1f} MB\n",
             fmt::format("predict over {}", std::filesystem::path(path).filename().string()), seconds,
             static_cast<double>(records) / seconds, records, ops, megabytes);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("How fast Forerun itself is; all parts, or those that are named");
  std::vector<std::string> parts;
  std::string records = FORERUN_SHARED_DATA_DIR "/h200/starter.jsonl.gz";
  app.add_option("part", parts, "models, traces, records, memory, fit, cluster or replay")
      ->check(CLI::IsMember({"models", "traces", "records", "memory", "fit", "cluster", "replay"}));
  app.add_option("--records", records, "Run records for the parts records and memory (default: those of ../shared)")
      ->check(CLI::ExistingFile);
  app.footer(
      "Wall-clock, in this process, after start-up. Parts whose data is absent say so.\n"
      "Examples:\n"
      "  ./run bench                                    everything, about a minute\n"
      "  ./run bench models                             a model from its name to its answer\n"
      "  ./run bench records --records FILE.jsonl.gz    predictions for recorded runs");
  CLI11_PARSE(app, argc, argv);

  const Result<Knowledge> knowledge = load_knowledge();
  if (!knowledge) {
    fmt::print("{}\n", knowledge.error().message());
    return 1;
  }
  const Result<Device> device = knowledge->devices.find("h200");
  CHECK(device.ok(), "the catalogue has no H200");

  fmt::print("{} UTC, {}, {} cores\n", today(), processor(), std::thread::hardware_concurrency());
  const auto asked = [&](const char* part) {
    return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  bool good = true;
  if (asked("models")) {
    for (const NamedCase& wanted : {NamedCase{"resnet50", 64, 25557032}, NamedCase{"gpt2", 8, 124439808}}) {
      good = time_model(wanted, *device, *knowledge) && good;
    }
    fmt::print("{:<34}{:>10.1f} MiB\n", "peak memory so far", peak_mebibytes());
  }
  if (asked("traces")) {
    good = bench::time_trace(FORERUN_SHARED_DATA_DIR "/traces/hta/transformer_v100_404_allreduce.json.gz") && good;
  }
  if (asked("records")) good = time_records(records, *knowledge) && good;
  if (asked("memory")) good = bench::time_memory(records, *device, *knowledge) && good;
  if (asked("fit")) {
    for (const char* model : {"resnet50", "gpt2"}) good = bench::time_fit(model, *device, *knowledge) && good;
  }
  if (asked("cluster")) {
    good = bench::time_philly(FORERUN_SHARED_DATA_DIR "/cluster/philly/philly.csv.gz") && good;
    good = bench::time_growth(10'000'000) && good;
  }
  if (asked("replay")) good = bench::time_replay(3'333'333) && good;
  fmt::print("{:<34}{:>10.1f} MiB\n", "peak memory", peak_mebibytes());
  return good ? 0 : 1;
}
