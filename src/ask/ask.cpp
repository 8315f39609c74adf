#include "ask/ask.h"

#include <fmt/format.h>

#include "ask/answers.h"
#include "base/nearest.h"

namespace forerun::ask {
namespace {

struct Entry {
  const char* name;
  Result<std::string> (*answer)(Question& question, const Asking& asking);
};

constexpr Entry kQuestions[] = {
    {"predict", answer_predict},    // api/predict.h
    {"ops", answer_ops},            // the ops of that prediction, in columns
    {"memory", answer_memory},      // its memory, op by op, in columns
    {"fit", answer_fit},            // api/fit.h
    {"compare", answer_compare},    // api/compare.h
    {"sweep", answer_sweep},        // api/sweep.h, in columns
    {"whatif", answer_whatif},      // api/whatif.h
    {"trace", answer_trace},        // api/trace.h, with its kernels, ops, modules and phases in columns
    {"scale", answer_scale},        // api/scale.h and api/mixed_scale.h
    {"schedule", answer_schedule},  // api/schedule.h
    {"jobs", answer_jobs},          // its jobs, as CSV
    {"check", answer_check},        // ask/check.h
    {"judge", answer_judge},        // figures that were predicted elsewhere, against the same lock
    {"devices", answer_devices},    // api/catalogue.h
    {"links", answer_links},       {"models", answer_models}, {"optimizations", answer_optimizations},
};

}  // namespace

std::vector<std::string> questions() {
  std::vector<std::string> names;
  for (const Entry& entry : kQuestions) names.emplace_back(entry.name);
  return names;
}

Result<std::string> answer(std::string_view name, std::string_view question, const Asking& asking) {
  for (const Entry& entry : kQuestions) {
    if (name != entry.name) continue;
    Result<Question> words = Question::parse(question);
    if (!words) return words.error();
    Result<std::string> answered = entry.answer(*words, asking);
    if (answered) return answered;
    return in_words(answered.error());
  }
  return Error{fmt::format("there is no question '{}'", name), "", did_you_mean(name, questions())};
}

}  // namespace forerun::ask
