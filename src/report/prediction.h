// A Prediction as text, JSON and CSV, and how far predictions lie from what was measured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "predict/prediction.h"
#include "report/memory_answer.h"
#include "report/text_style.h"

namespace forerun {

struct CompiledPrediction;

// The verdict first, on one screen: at most 25 lines of 100 columns unless a warning comes before it; with details all there is.
// With a compiled prediction beside it, its verdict stands there too; what else there is of it, prediction_compiled.h has.
std::string to_text(const Prediction& prediction, const TextStyle& style = {},
                    const CompiledPrediction* compiled = nullptr);
std::string_view verdict_words(FitVerdict verdict);  // "DOES NOT FIT"
std::string rate_text(double per_second);            // "2.71", "1,234"
// What the GPU has to hold: "7.33 GiB"; "at least 126.33 GiB" where it does not fit.
std::string needed_text(const Prediction& prediction);
// What it needs, of what that is made and where the peak is, in a few lines.
std::string memory_summary(const Prediction& prediction);
// The line "Memory ...: fits in ...": the figures and the verdict.
std::string memory_headline(const Prediction& prediction);
std::string setup_text(const TrainingSetup& setup);                 // "fp32, SGD (foreach) momentum 0.9"
std::string to_json(const Prediction& prediction);                  // one line
void write_fields(JsonWriter& json, const Prediction& prediction);  // the same fields, but for the schema
std::string csv_header();
std::string to_csv(const Prediction& prediction);  // one line
std::vector<std::string> csv_columns();            // the header's names
std::vector<std::string> csv_cells(const Prediction& prediction);

// A line for each warning of the record that the prediction is made from: stands before everything else.
std::string warnings_text(const Prediction& prediction);

// One line of the table that `predict` prints for a file of many runs, and its heading.
std::string summary_header();
std::string summary_line(const Prediction& prediction);

std::string error_table(const std::vector<ErrorSample>& samples);

}  // namespace forerun
