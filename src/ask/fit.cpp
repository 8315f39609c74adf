#include "api/fit.h"

#include "ask/answers.h"
#include "ask/run_words.h"
#include "report/fit.h"

namespace forerun::ask {

Result<std::string> answer_fit(Question& question, const Asking& asking) {
  ModelWords words = read_model(question);
  const std::string gpu = question.text("gpu");
  const auto device_files = question.texts("device_files");
  const std::string machine = question.text("machine");
  const MemoryText memory_words = read_memory(question);
  const std::string axis = question.text("axis");
  const std::string reserve = question.text("reserve");
  const std::string margin = question.text("margin");
  FitRequest request{.job = read_job(question)};
  const PriceWords price_words = read_prices(question);
  request.changes = !question.flag("brief");
  const WorkControl control = read_limits(question, asking.control);
  if (!axis.empty()) request.axis = axis;
  if (words.batch && request.axis == "batch") {
    question.refuse("batch", "is what is looked for", "leave it out, or look along another axis");
  }
  for (const KeyValue& setting : words.settings) {
    if (setting.first == request.axis || (request.axis == "seq" && setting.first == "length")) {
      question.refuse("set", setting.first + " is what is looked for", "leave it out, or look along another axis");
    }
  }
  if (const Status status = question.status(); !status.ok()) return status.error();
  Result<ModelRequest> model = model_request(words, "fit");
  if (!model) return model.error();
  request.model = std::move(*model);
  Result<MemoryQuestion> memory = parse_memory(memory_words);
  if (!memory) return memory.error();
  request.memory = std::move(*memory);
  if (!reserve.empty()) {
    if (const Status status = parse_reserve(reserve, request); !status.ok()) return status.error();
  }
  if (!margin.empty()) {
    if (const Status status = parse_margin(margin, request); !status.ok()) return status.error();
  }
  const auto models = asking.knowledge.with(device_files, machine);
  if (!models) return models.error();
  Result<Prices> prices = asked_prices(price_words.file, price_words.given, (*models)->devices);
  if (!prices) return prices.error();
  request.prices = std::move(*prices);
  const Result<Device> device = asked_gpu(gpu, **models);
  if (!device) return device.error();
  const Result<FitAnswer> answer = fit(request, *device, **models, control);
  if (!answer) return answer.error();
  return to_json(*answer);
}

}  // namespace forerun::ask
