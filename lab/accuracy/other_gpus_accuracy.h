// Forerun, Habitat and NeuSight side by side on GPUs that none of them learned from, as text and JSON: single ops and whole models.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/dataset/metrics.h"

namespace forerun {

// The same ops on one GPU, each predictor without what it knows of that GPU.
struct OtherGpuOps {
  std::string gpu;
  std::string kind;
  int64_t ops = 0;
  std::optional<double> forerun;  // mean relative errors; nothing: not judged on just these ops
  std::optional<double> habitat;  // over all GPUs that the ops were measured on as origins
  int64_t habitat_cases = 0;      // pairs of an op and an origin
  std::optional<double> neusight;
};

// Habitat as its paper judges it: from one GPU to another, both among those that its MLPs learned from, on ops left out.
struct HabitatPair {
  std::string origin, destination;
  std::map<std::string, learn::ErrorSummary> by_kind;  // kinds of op
  learn::ErrorSummary all;
};

// A whole model on a GPU.
struct OtherGpuModel {
  std::string gpu, model, what;
  int64_t batch = 0;
  int64_t length = 0;
  double measured_ms = 0;
  std::optional<double> forerun_ms, neusight_ms;
  std::map<std::string, double> habitat_ms;  // by origin
};

struct OtherGpusAccuracy {
  std::string data;  // what it is, in words, with fingerprints (base/provenance.h)
  std::string date;  // when it was judged, and on what
  std::string machine;
  // By predictor, fingerprint of what was kept beside it then: weights of the same training on all tables, cost models. Missing
  // where the judged ones were trained otherwise.
  std::map<std::string, std::string> weights;
  std::vector<OtherGpuOps> ops;
  std::vector<OtherGpuOps> traced_ops;  // of whole models, where traces tell their times; Forerun is not asked op by op
  std::vector<HabitatPair> pairs;
  std::vector<OtherGpuModel> models;
  std::vector<std::string> not_judged;  // what and why
  double habitat_published = 0;         // error of iterations between GPUs, as its paper has it
  double habitat_by_ets = 0;            // the same, as the authors of ETS found it
  std::vector<double> neusight_published;
};

std::string to_text(const OtherGpusAccuracy& accuracy);
std::string to_json(const OtherGpusAccuracy& accuracy);  // one object

// Fills in what the papers published (data/papers/other_gpus.json).
Status add_published(OtherGpusAccuracy& accuracy);

}  // namespace forerun
