// What would an optimization bring to an iteration, traced or predicted?
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/work_control.h"
#include "ingest/trace/trace.h"
#include "predict/cost_models.h"
#include "predict/predict.h"
#include "whatif/editable_iteration.h"
#include "whatif/optimizations.h"

namespace forerun {

struct WhatIfAnswer {
  std::string file;
  std::vector<std::string> applied;  // as given: "batch:factor=2"
  double baseline_ms = 0;            // simulated, nothing applied
  double predicted_ms = 0;
  double low_ms = 0, high_ms = 0;                    // eight of ten measurements should lie between
  double baseline_gpu_ms = 0, predicted_gpu_ms = 0;  // sum of kernels
  bool traced = true;                                // or predicted from a model
  bool unprofiled = true;                            // the profiler's part was taken out
  std::vector<std::string> assumptions;

  [[nodiscard]] double gain() const { return baseline_ms > 0 ? 1 - predicted_ms / baseline_ms : 0; }
};

struct WhatIfQuestion {
  std::vector<whatif::Application> applications;  // in this order
  std::string gpu;         // in the catalogue; empty: the one that the trace names, or the default
  bool unprofiled = true;  // take out what the profiler cost the host: times as a user measures them
};

Result<WhatIfAnswer> what_if(const Trace& trace, const WhatIfQuestion& question, const CostModels& cost_models,
                             const WorkControl& control = {});
// Of a model that was not traced: the predicted iteration.
Result<WhatIfAnswer> what_if(const ModelRequest& model, const WhatIfQuestion& question, const CostModels& cost_models,
                             const WorkControl& control = {});

// Optimizations over the values of one of their parameters: P3 and parameter servers from 1 to 100 Gb/s, DDP on 2 to 64
// workers.
struct WhatIfSweep {
  std::string key;                  // "network", "workers": what at least one of the applications takes
  std::vector<std::string> values;  // as the parameter takes them
  bool each = false;                // every application by itself, side by side; or all of them together
};
// "workers=2,4,8"; "bandwidth=1gbe,10gbe" is network, "bandwidth=1,10" is bandwidth_gbps.
Result<WhatIfSweep> parse_what_if_sweep(const std::string& text);

struct WhatIfCurve {
  std::vector<std::string> applied;  // without the parameter that varies
  std::vector<WhatIfAnswer> points;  // by value
};
struct WhatIfSweepAnswer {
  std::string file;
  WhatIfSweep sweep;
  double baseline_ms = 0;  // nothing applied
  std::vector<WhatIfCurve> curves;
};
Result<WhatIfSweepAnswer> sweep_what_ifs(const Trace& trace, const WhatIfQuestion& question, const WhatIfSweep& sweep,
                                         const CostModels& cost_models, const WorkControl& control = {});
Result<WhatIfSweepAnswer> sweep_what_ifs(const ModelRequest& model, const WhatIfQuestion& question,
                                         const WhatIfSweep& sweep, const CostModels& cost_models,
                                         const WorkControl& control = {});

// The iteration before anything is applied, for callers that edit it themselves (timeline/graph_edit.h). The trace, where
// there is one, and the cost models must outlive it.
struct BaseIteration {
  std::unique_ptr<const whatif::OpTimer> timer;  // null where the trace's GPU is not known
  whatif::EditableIteration edited;
  // Of a model: what `forerun predict` says of its time as it is set up here; null for a trace.
  std::function<Result<Prediction>(const whatif::EditableIteration& edited)> predicted = {};
};
Result<BaseIteration> base_iteration(const Trace& trace, const WhatIfQuestion& question, const CostModels& cost_models);
Result<BaseIteration> base_iteration(const ModelRequest& model, const WhatIfQuestion& question,
                                     const CostModels& cost_models);

// Every optimization that makes sense without parameters, behind those of the question; the largest gain first. Those that
// do not apply are left out.
Result<std::vector<WhatIfAnswer>> rank_what_ifs(const Trace& trace, const WhatIfQuestion& question,
                                                const CostModels& cost_models, const WorkControl& control = {});
Result<std::vector<WhatIfAnswer>> rank_what_ifs(const ModelRequest& model, const WhatIfQuestion& question,
                                                const CostModels& cost_models, const WorkControl& control = {});

}  // namespace forerun
