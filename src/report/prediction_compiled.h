// A compiled iteration beside the eager one, for people and for programs.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "predict/compiled.h"
#include "report/text_style.h"

namespace forerun {

// A table of both, the largest fused kernels with what is in them, and what stays with libraries.
std::string to_text(const CompiledPrediction& compiled, const Prediction& eager, const TextStyle& style = {});
// The fields of the object `compiled`.
void write_fields(JsonWriter& json, const CompiledPrediction& compiled, const Prediction& eager);
// The eager prediction as ever, with the object `compiled` behind its fields; one line.
std::string to_json(const Prediction& eager, const CompiledPrediction& compiled);

// Everything that the compiled iteration runs on the GPU, a row each in its order: to be held against a profiler's trace.
std::string kernels_csv(const CompiledPrediction& compiled);

}  // namespace forerun
