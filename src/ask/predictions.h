// The predictions that the words of `predict` ask for, to whoever makes more of them than their JSON.
#pragma once

#include <vector>

#include "ask/ask.h"
#include "ask/question.h"
#include "predict/prediction.h"

namespace forerun::ask {

// One, or those of every run of a file of records, as they were recorded. Reads what the question has not been asked for yet
// and holds it to have no other words.
Result<std::vector<Prediction>> predictions(Question& question, const Asking& asking);

}  // namespace forerun::ask
