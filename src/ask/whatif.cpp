// What optimizations would bring: `apply` in order, or with `all` each that makes sense, one answer a line.
#include "api/whatif.h"

#include "api/trace.h"
#include "ask/answers.h"
#include "ask/run_words.h"
#include "report/whatif.h"

namespace forerun::ask {
namespace {

std::string lines_of(const std::vector<WhatIfAnswer>& ranking) {
  std::string lines;
  for (const WhatIfAnswer& answer : ranking) lines += to_json(answer) + "\n";
  return lines;
}

// Of a trace and of a model alike.
template <class Source>
Result<std::string> ask_of(const Source& source, const WhatIfQuestion& asked, bool all, const CostModels& cost_models,
                           const WorkControl& control) {
  if (all) {
    const auto ranking = rank_what_ifs(source, asked, cost_models, control);
    return ranking ? Result<std::string>(lines_of(*ranking)) : ranking.error();
  }
  const auto answer = what_if(source, asked, cost_models, control);
  return answer ? Result<std::string>(to_json(*answer)) : answer.error();
}

bool is_model(const std::optional<FileKind>& file) {
  return !file || *file == FileKind::onnx_model || *file == FileKind::model_config || *file == FileKind::records;
}

}  // namespace

Result<std::string> answer_whatif(Question& question, const Asking& asking) {
  const ModelWords words = read_model(question);
  WhatIfQuestion asked;
  asked.gpu = question.text("gpu");
  asked.unprofiled = !question.flag("profiled");
  const std::string machine = question.text("machine");
  const auto apply = question.texts("apply");
  const bool all = question.flag("all");
  const WorkControl control = read_limits(question, asking.control);
  if (apply.empty() && !all)
    question.refuse("apply", "there is nothing to apply", "name an optimization, or ask for all");
  if (const Status status = question.status(); !status.ok()) return status.error();
  auto applications = whatif::parse_applications(apply);
  if (!applications) return applications.error();
  asked.applications = std::move(*applications);
  const auto models = asking.knowledge.with({}, machine);
  if (!models) return models.error();
  const auto file = model_file(words.model, "whatif");
  if (!file) return file.error();
  if (is_model(*file)) {
    const Result<ModelRequest> request = model_request(words, "whatif");
    if (!request) return request.error();
    return ask_of(*request, asked, all, **models, control);
  }
  if (words.setup.any() || !words.settings.empty() || words.batch) {
    return Error{"a trace is taken as it was recorded", words.model,
                 "leave out what says how a model is trained; `apply` changes a trace"};
  }
  const auto trace = read_profiler_trace(words.model, "whatif", control);
  if (!trace) return trace.error();
  return ask_of(*trace, asked, all, **models, control);
}

}  // namespace forerun::ask
