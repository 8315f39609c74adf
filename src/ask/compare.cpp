#include "api/compare.h"

#include "ask/answers.h"
#include "ask/run_words.h"
#include "report/compare.h"

namespace forerun::ask {

Result<std::string> answer_compare(Question& question, const Asking& asking) {
  const ModelWords words = read_model(question);
  const PriceWords price_words = read_prices(question);
  const auto device_files = question.texts("device_files");
  const std::string machine = question.text("machine");
  CompareRequest request{.job = read_job(question)};
  request.gpus = question.texts("gpus");
  if (request.gpus == std::vector<std::string>{"all"}) request.gpus.clear();
  const std::string by = question.text("by");
  if (!by.empty() && by != "time" && by != "cost") question.refuse("by", "cannot be '" + by + "'", "give time or cost");
  request.by = by == "cost" ? CompareBy::cost : CompareBy::time;
  const std::string deadline = question.word("deadline");
  request.budget = question.number("budget", 1e-12, 1e15);
  request.largest_batch = !question.flag("no_largest_batch");
  request.threads = read_threads(question);
  const WorkControl control = read_limits(question, asking.control);
  if (const Status status = question.status(); !status.ok()) return status.error();
  Result<ModelRequest> model = model_request(words, "compare");
  if (!model) return model.error();
  request.model = std::move(*model);
  const auto models = asking.knowledge.with(device_files, machine);
  if (!models) return models.error();
  const DeviceCatalogue& devices = (*models)->devices;
  Result<Prices> prices = asked_prices(price_words.file, price_words.given, devices);
  if (!prices) return prices.error();
  request.prices = std::move(*prices);
  Result<std::vector<GpuPrice>> given = parse_prices(price_words.given, devices);
  if (!given) return given.error();
  request.given = std::move(*given);
  if (!deadline.empty()) {
    const Result<double> hours = parse_deadline(deadline);
    if (!hours) return hours.error();
    request.deadline_hours = *hours;
  }
  const Result<CompareAnswer> answer = compare_gpus(request, **models, control);
  if (!answer) return answer.error();
  return to_json(*answer);
}

}  // namespace forerun::ask
