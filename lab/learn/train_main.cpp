// forerun-train: trains a predictor on a cached data set, where there is LibTorch and nothing else (preset `train`).
//
//   forerun-train NAME --cache FILE... [--start FOLDER] [--out FOLDER] [--epochs N] [--batch N] [--rate X] [--patience N] [--seed N]
//                 [--seconds S | --minutes M] [--validation SHARE | --validate-on GROUP]... [--device auto|cpu|cuda]
//                 [--checkpoint FOLDER] [--resume] [--curve FILE] [--set NAME=VALUE]... [--split families|random[:SEED]]
//
//   forerun-train ets --meta [--tasks N] [--support N] [--inner-steps N] [--inner-rate X] ...
//   forerun-train ets --study few --cache FILE --start FOLDER|scratch... [--few K]... [--draws N] [--epochs N] ...
//
//   forerun-train simulate --count N --out FILE [--seed N] [--traced N] [--gpu NAME] [--analytic]
//
// `--meta` learns a start across the GPUs of the caches, and `--study few` judges starts on a GPU they have not seen
// (lab/learn/few_study.h), a line of JSON each. `simulate` writes iterations that Forerun labels (lab/simulation) as a cache to train on; several caches are one. `forerun-train driple` has data and options of its own (lab/learn/driple/driple_command.h).
// Progress goes to standard error; what came out to standard output, as text and, last, one line of JSON.
// `forerun train` is the same with readers for every kind of data.
#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/partial_files.h"
#include "lab/learn/driple/driple_command.h"
#include "lab/learn/few_study.h"
#include "lab/learn/training_session.h"
#include "lab/simulation/simulated_iterations.h"
#include "predict/predict.h"

namespace {

using namespace forerun;
using namespace forerun::learn;

enum ExitCode : int { kDone = 0, kInputAtFault = 1, kUsage = 2 };

int usage(const std::string& what) {
  std::string names;
  for (const PredictorEntry& entry : predictors()) names += fmt::format("  {:<12} {}\n", entry.name, entry.summary);
  fmt::print(stderr,
             "forerun-train: {}\nforerun-train NAME --cache FILE... [--start FOLDER] [--out FOLDER] [--epochs N] "
             "[--batch N] [--rate X] "
             "[--patience N] [--seed N] [--seconds S | --minutes M] [--validation SHARE | --validate-on GROUP]... "
             "[--device D] [--checkpoint FOLDER] "
             "[--resume] [--curve FILE] [--set NAME=VALUE]... [--split families|random[:SEED]]\n"
             "forerun-train ets --meta [--tasks N] [--support N] [--inner-steps N] [--inner-rate X] ...\n"
             "forerun-train ets --study few --cache FILE --start FOLDER|scratch... [--few K]... [--draws N] ...\n"
             "forerun-train simulate --count N --out FILE [--seed N] [--traced N] [--gpu NAME] [--analytic]\n{}",
             what, names);
  return kUsage;
}

template <class T>
bool parse(std::string_view text, T& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

template <class T>
bool parse(std::string_view text, std::optional<T>& into) {
  T value{};
  if (!parse(text, value)) return false;
  into = value;
  return true;
}

// What the words ask for.
struct TrainCall {
  TrainingRequest request;
  std::vector<std::string> caches;
  Division division;
  MetaOptions meta;
  std::string study;
  FewRequest few;
};

bool set_meta(const std::string& option, const std::string& value, MetaOptions& meta) {
  if (option == "--tasks") return parse(value, meta.tasks);
  if (option == "--support") return parse(value, meta.support);
  if (option == "--inner-steps") return parse(value, meta.inner_steps);
  return option == "--inner-rate" && parse(value, meta.inner_rate);
}

bool set_study(const std::string& option, const std::string& value, TrainCall& call) {
  if (option == "--study") return (call.study = value) == kFewStudy;
  if (option == "--draws") return parse(value, call.few.draws) && call.few.draws > 0;
  if (option != "--few") return false;
  int64_t count = 0;
  if (!parse(value, count) || count < 1) return false;
  call.few.few.push_back(count);
  return true;
}

// Sets what an option names; false where it is unknown or its value is no good.
bool set(const std::string& option, const std::string& value, TrainCall& call) {
  TrainingRequest& request = call.request;
  TrainOptions& options = request.options;
  if (option == "--cache") return call.caches.push_back(value), !value.empty();
  if (option == "--split") {
    const auto division = parse_division(value);
    if (division) call.division = *division;
    return division.ok();
  }
  if (option == "--start") return call.few.starts.push_back(value), !value.empty();
  if (option == "--out") return !(request.out = value).empty();
  if (option == "--device") return !(options.device = value).empty();
  if (option == "--checkpoint") return !(options.checkpoint = value).empty();
  if (option == "--curve") return !(options.curve = value).empty();
  if (option == "--epochs") return parse(value, options.epochs);
  if (option == "--batch") return parse(value, options.batch);
  if (option == "--rate") return parse(value, options.learning_rate);
  if (option == "--patience") return parse(value, options.patience);
  if (option == "--seed") return parse(value, options.seed);
  if (option == "--seconds") return parse(value, options.seconds);
  if (option == "--minutes") {
    if (!parse(value, options.seconds)) return false;
    options.seconds *= 60;
    return true;
  }
  if (option == "--validation") return parse(value, options.validation);
  if (option == "--validate-on") return options.validate_on.push_back(value), !value.empty();
  if (option == "--set") {
    const size_t equals = value.find('=');
    if (equals == std::string::npos) return false;
    options.settings[value.substr(0, equals)] = value.substr(equals + 1);
    return true;
  }
  return set_meta(option, value, call.meta) || set_study(option, value, call);
}

int fail(const Error& error) {
  fmt::print(stderr, "forerun-train: {}\n", error.message());
  return kInputAtFault;
}

int simulate(std::vector<std::string> words) {
  simulation::SimulationOptions options;
  std::string gpu{kDefaultGpu};
  std::string out;
  const bool analytic = std::erase(words, "--analytic") > 0;
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string& value = words[i + 1];
    const bool known = words[i] == "--count"    ? parse(value, options.count)
                       : words[i] == "--seed"   ? parse(value, options.seed)
                       : words[i] == "--traced" ? parse(value, options.traced)
                       : words[i] == "--gpu"    ? !(gpu = value).empty()
                       : words[i] == "--out"    ? !(out = value).empty()
                                                : false;
    if (!known) return usage(fmt::format("'{}' is no option, or its value is no good", words[i]));
  }
  if (words.size() % 2 != 0 || out.empty()) return usage("where to? --out is missing");
  const auto cost_models = load_cost_models({}, analytic ? Trees::without : Trees::with);
  if (!cost_models) return fail(cost_models.error());
  const auto device = cost_models->devices.find(gpu);
  if (!device) return fail(device.error());
  const WorkControl control{.progress = [](const Progress& progress) {
    fmt::print(stderr, "\r{} of {} {}", progress.done, progress.total, progress.what);
  }};
  const auto data = simulate_iterations(options, *device, *cost_models, control);
  if (!data) return fail(data.error());
  if (const Status saved = data->save(out); !saved.ok()) return fail(saved.error());
  fmt::print("\n{}: {}, {} distinct ops\n", out, data->source, data->rows().size());
  return kDone;
}

int run_study(TrainCall& call, const DataSet& data) {
  call.few.predictor = call.request.predictor;
  call.few.options = call.request.options;
  call.few.progress = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  const auto rows = run_few_study(call.few, data);
  if (!rows) return fail(rows.error());
  fmt::print("{}", to_text(*rows));
  for (const FewRow& row : *rows) fmt::print("{}\n", to_json_line(row));
  return kDone;
}

int train_predictor(TrainCall& call, const DataSet& data) {
  TrainingRequest& request = call.request;
  if (call.few.starts.size() > 1) return usage("training starts from one folder");
  if (!call.few.starts.empty()) request.options.start = call.few.starts.front();
  request.options.progress = [](const EpochReport& report) { fmt::print(stderr, "{}\n", to_text(report)); };
  const auto outcome = train_and_save(request, data);
  if (!outcome) return fail(outcome.error());
  fmt::print("{}{}\n", to_text(*outcome), to_json(request, *outcome));
  return kDone;
}

int train(const std::vector<std::string>& words) {
  if (words.empty() || words[0].rfind("--", 0) == 0) return usage("which predictor?");
  if (words[0] == "driple") return driple_command({words.begin() + 1, words.end()});
  if (words[0] == "simulate") return simulate({words.begin() + 1, words.end()});
  TrainCall call{.request = {.predictor = words[0]}};
  bool meta = false;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--resume") {
      call.request.options.resume = true;
    } else if (words[i] == "--meta") {
      meta = true;
    } else if (i + 1 >= words.size() || !set(words[i], words[i + 1], call)) {
      return usage(fmt::format("'{}' is no option, or its value is missing or no good", words[i]));
    } else {
      ++i;
    }
  }
  if (call.caches.empty()) return usage("which data? --cache is missing");
  if (!call.study.empty() && call.few.starts.empty()) return usage("from where? --start is missing");
  if (meta) call.request.options.meta = call.meta;

  auto data = DataSet::load(call.caches);
  if (!data) return fail(data.error());
  if (const Status divided = divide(*data, call.division); !divided.ok()) return fail(divided.error());
  return call.study.empty() ? train_predictor(call, *data) : run_study(call, *data);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit of its size is an error as on a full disk
  remove_partial_files_on_signals();
  const int code = train({argv + 1, argv + argc});
  if (std::ferror(stdout) == 0 && std::fflush(stdout) == 0) return code;
  std::fputs("forerun-train: standard output cannot be written; the answer is not whole\n", stderr);
  return code == kDone ? static_cast<int>(kInputAtFault) : code;
}
