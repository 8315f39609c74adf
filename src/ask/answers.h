// The questions there are, one file each; the list is in ask.cpp.
#pragma once

#include <string>

#include "ask/ask.h"
#include "ask/question.h"

namespace forerun::ask {

Result<std::string> answer_predict(Question& question, const Asking& asking);
Result<std::string> answer_ops(Question& question, const Asking& asking);
Result<std::string> answer_memory(Question& question, const Asking& asking);
Result<std::string> answer_fit(Question& question, const Asking& asking);
Result<std::string> answer_compare(Question& question, const Asking& asking);
Result<std::string> answer_sweep(Question& question, const Asking& asking);
Result<std::string> answer_whatif(Question& question, const Asking& asking);
Result<std::string> answer_trace(Question& question, const Asking& asking);
Result<std::string> answer_scale(Question& question, const Asking& asking);
Result<std::string> answer_schedule(Question& question, const Asking& asking);
Result<std::string> answer_jobs(Question& question, const Asking& asking);
Result<std::string> answer_check(Question& question, const Asking& asking);
Result<std::string> answer_judge(Question& question, const Asking& asking);
Result<std::string> answer_devices(Question& question, const Asking& asking);
Result<std::string> answer_links(Question& question, const Asking& asking);
Result<std::string> answer_models(Question& question, const Asking& asking);
Result<std::string> answer_optimizations(Question& question, const Asking& asking);

}  // namespace forerun::ask
