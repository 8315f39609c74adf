// "What does distributed training of this model do to the GPU and the network?": `forerun scale MODEL --testbed`.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/training_run.h"
#include "ingest/resources/resource_record.h"
#include "predict/cost_models.h"
#include "testbed/resource_simulation.h"

namespace forerun {

struct ResourceQuestion {
  std::string model;  // zoo name
  std::vector<std::pair<std::string, std::string>> settings;
  int64_t batch = 0;  // of each worker; 0: the family's
  std::string gpu;    // empty: usual_gpu
  TrainingSetup setup;
  bool default_optimizer = true;
  std::string setting = "P1w2-10G";
  bool async = false;     // parameter servers answer each worker at once
  bool own_gpus = false;  // each worker has a GPU
  bool overlap = false;   // each layer's gradients leave when they are there
};

// What a learned predictor says of the same training: idle and burst durations in milliseconds and amounts of gpu, memory,
// send and receive, as ResourceUse::metrics has them.
struct LearnedResources {
  std::string predictor;
  std::array<double, 12> figures{};
  std::vector<double>
      judged;  // mean errors of the four resources on model families it was not trained on; may be empty
  std::string trained_on;
  std::vector<std::string> notes;
};

struct ResourceAnswer {
  std::string model;
  std::string gpu;
  std::string setting;  // "P1w2-10G"
  std::string mode;     // sync, async or allreduce
  int64_t batch = 0;    // of each worker
  int64_t parameters = 0;
  bool shared_gpu = true;
  scale::ResourceUse use;
  std::string calibration;             // what of a machine's readings counted; empty: there are none
  std::vector<LearnedResources> with;  // asked beside the simulation
};

// Rates of the hosts: data/scale/testbed.json where it is there, else rough figures.
inline constexpr const char* kHostRatesFile = "scale/testbed.json";
Result<scale::HostRates> testbed_rates();

// How the simulation shares links for a record.
scale::LinkState simulated_links(const ResourceRecord& record);

// What one worker does in an iteration on a GPU of its own, from the iteration as `forerun predict` sees it.
scale::WorkerLoad worker_load(const TrainingRun& run, const Device& device, const CostModels& cost_models);

// One worker's iteration.
Result<TrainingRun> worker_run(const ResourceQuestion& question, const Device& gpu);

Result<ResourceAnswer> simulate_training(const ResourceQuestion& question, const CostModels& cost_models);

}  // namespace forerun
