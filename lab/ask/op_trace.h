// OpTrace: the times of an iteration's ops as a predictor tells them, with what was measured beside them: a table, a
// picture and a Chrome trace. ETS predicts such a trace op by op.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/training_run.h"
#include "lab/dataset/predictor.h"

namespace forerun {

struct OpTime {
  double gpu_us = 0;
  double gap_us = 0;  // idle GPU time behind it
};

struct OpTraceRow {
  size_t op = 0;  // in the iteration's order
  std::string name, phase, module;
  OpTime predicted;
  std::optional<OpTime> measured;
};

struct OpTrace {
  std::string id;
  std::string predictor;
  std::vector<OpTraceRow> rows;  // of ops that take time on the GPU, in order
  [[nodiscard]] bool has_measured() const { return !rows.empty() && rows.front().measured.has_value(); }
};

// `measured`: by op; empty where nothing was measured.
OpTrace op_trace(const TrainingRun& run, const std::string& predictor, const learn::Prediction& prediction,
                 const std::vector<OpTime>& measured);

// The kinds of op that take longest together: how often, predicted, measured, and the error of each.
std::string to_text(const OpTrace& trace);
std::string to_csv(const OpTrace& trace);
std::string to_svg(const OpTrace& trace);
std::string to_chrome(const OpTrace& trace);

}  // namespace forerun
