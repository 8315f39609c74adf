// The words that questions share: the model and how it is trained, its memory, the length of the run, prices, limits.
#pragma once

#include <string>
#include <vector>

#include "api/predict.h"
#include "ask/question.h"

namespace forerun::ask {

// batch, set and the words of predict/setup_text.h; `model` is read too and must be given unless `optional`. Call before
// status(); model_request() parses what was read.
struct ModelWords {
  std::string model;
  std::optional<int64_t> batch;
  KeyValues settings;
  SetupText setup;
};
ModelWords read_model(Question& question, bool optional = false);
// The words as a request: the file is looked at, the setup parsed. `verb` names the question in errors about files.
Result<ModelRequest> model_request(const ModelWords& words, std::string_view verb);

MemoryText read_memory(Question& question);  // allocator, ddp, bucket_view, zero, gpus
JobLength read_job(Question& question);      // iterations, samples, tokens, epochs, dataset_size

struct PriceWords {
  std::string file;
  std::vector<std::string> given;  // "h100=2.5"
};
PriceWords read_prices(Question& question);  // prices, price

unsigned read_threads(Question& question);

// The control with what time_limit (seconds) and memory_limit ("2GiB") say.
WorkControl read_limits(Question& question, const WorkControl& control);

}  // namespace forerun::ask
