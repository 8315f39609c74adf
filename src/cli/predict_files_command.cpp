// forerun predict MODEL: iteration time and memory of a model, or of every run of a file.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/lab_program.h"
#include "cli/predict_command.h"
#include "report/prediction.h"

namespace forerun::cli {
namespace {

// The runs of a file, a line each as they come; of a single run nothing, since it is told at length.
class TableOfRuns {
 public:
  void add(const Prediction& p) {
    if (++count_ == 1) {
      first_ = p;
      return;
    }
    if (count_ == 2) {
      fmt::print("{}{}", warnings_text(first_), summary_header());
      fmt::print("{}", summary_line(first_));
    }
    fmt::print("{}{}", warnings_text(p), summary_line(p));
  }
  // Null where there were none, or several.
  [[nodiscard]] const Prediction* only() const { return count_ == 1 ? &first_ : nullptr; }

 private:
  int64_t count_ = 0;
  Prediction first_;
};

int predict_file(const PredictOptions& options, const CostModels& cost_models) {
  if (options.setup.any()) {
    fmt::print(stderr,
               "forerun: {}: a recorded run is predicted as it was recorded, with its precision, optimizer, layout and "
               "loop; record it again as it shall be trained (python -m forerun.capture), or name a model\n",
               fmt::join(options.setup.given(), ", "));
    return kUsage;
  }
  auto settings = predict_settings(options);
  if (settings && options.batch > 0) settings->emplace_back("batch", fmt::format("{}", options.batch));
  const Result<RecordSizes> sizes = settings ? record_sizes(*settings) : Result<RecordSizes>(settings.error());
  if (!sizes) {
    fail(sizes.error());
    return kUsage;
  }
  if (options.memory_files.any()) {
    fmt::print(stderr, "forerun: --memory-svg, --memory-chrome and --memory-snapshot show one run: give a model\n");
    return kUsage;
  }
  Result<MemoryQuestion> memory = parse_memory(options.memory);
  if (!memory) return fail(memory.error());
  auto prices = asked_prices(options.prices, cost_models.devices);
  if (!prices) return fail(prices.error());
  const bool text = !options.json && !options.csv;
  bool first = true;
  std::string page;
  TableOfRuns table;
  const RecordHandlers handlers{
      .prediction =
          [&](const Prediction& p) {
            if (options.html.asked()) page += to_json(p) + "\n";
            if (text) return table.add(p);
            if (options.csv) fmt::print(stderr, "{}", warnings_text(p));
            if (options.csv && first) fmt::print("{}", csv_header());
            first = false;
            print_prediction(options, p);
          },
      .bad_record = [&](const Error& error) { fmt::print(stderr, "forerun: {}\n", error.message()); }};
  const auto answer =
      predict_records({.file = options.model,
                       .gpu = options.gpu,
                       .sizes = *sizes,
                       .memory = std::move(*memory),
                       .job = options.job,
                       .prices = std::move(*prices),
                       .errors = text},
                      cost_models, handlers, CommandWork(options.limits, CommandWork::Answer::as_it_comes).control());
  if (!answer) return fail(answer.error());
  const std::vector<Prediction>& predictions = answer->predictions;
  if (options.csv && first) fmt::print("{}", csv_header());
  if (const Prediction* only = table.only()) print_prediction(options, *only);
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, page); !status.ok()) return fail(status.error());
  }
  if (!answer->errors.empty()) fmt::print("\n{}", error_table(answer->errors));
  if (answer->bad > 0) {
    fmt::print(stderr, "forerun: {} of {} records could not be predicted\n", answer->bad,
               answer->bad + static_cast<int64_t>(predictions.size()));
    return kInputAtFault;
  }
  const bool alone = predictions.size() == 1;
  return alone && predictions.front().memory_answer.verdict == FitVerdict::does_not_fit ? kDoesNotFit : kDone;
}

}  // namespace

void add_predict(CLI::App& app, Run& chosen) {
  add_predict_with(
      {.kind = [](const std::string& model) { return model_file(model, "predict"); },
       .build_run = build_run,
       .predict_records = predict_file,
       .ask = [](const PredictOptions& options) { return hand_all_to_lab("`--with " + options.with.front() + "`"); }},
      app, chosen);
}

}  // namespace forerun::cli
