// Builds workloads that predictors of resources look at (lab/dataset/driple/workload.h) from `resources/1` records, measured or
// made up: the iteration from the zoo, its figures, and what the simulation says. An iteration that several workloads
// share (modes, settings) is built once.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "ingest/resources/resource_record.h"
#include "lab/dataset/driple/workload.h"
#include "lab/training_data/driple_columns.h"
#include "predict/cost_models.h"
#include "records/data_split.h"
#include "testbed/resource_simulation.h"

namespace forerun {

class DripleWorkloadBuilder {
 public:
  DripleWorkloadBuilder(const CostModels& cost_models, const Device& device, const scale::HostRates& rates,
                        DataSplit split, GpuTimes gpu_times = GpuTimes::clocks)
      : cost_models_(cost_models), device_(device), rates_(rates), split_(std::move(split)), gpu_times_(gpu_times) {}

  // How often the links of each setting came to be shared in each way, by which simulations are averaged: what these
  // windows of training families show (link_state.h).
  void learn_link_states(std::span<const ResourceRecord> records);

  // A measured workload, or one more window of it: records of one id and setting are one workload.
  Status add_measured(const ResourceRecord& record);
  // The same among the windows in which links were shared as in this one; nothing where they always are.
  Status add_divided(const ResourceRecord& record);
  // One to pre-train on, whose numbers are the simulation's, in the setting "sim:P1w2-10G".
  Status add_simulated(const ResourceRecord& record);
  // One of a setting that nobody measured, "P2w4-10G (simulated)".
  Status add_unmeasured(const ResourceRecord& record);
  // One whose numbers nobody knows, to ask about.
  Status add_asked(const ResourceRecord& record);

  // Whether the links of its setting are shared now in one way and now in another.
  [[nodiscard]] bool links_differ(const ResourceRecord& record) const {
    return link_shares_.contains(table_setting(record));
  }
  [[nodiscard]] bool trains_on(const std::string& family) const;
  [[nodiscard]] const learn::ResourceData& data() const { return data_; }
  learn::ResourceData finish() && { return std::move(data_); }

 private:
  struct Iteration {
    uint32_t example = 0;
    IterationFigures figures;
    scale::WorkerLoad load;
  };
  using LinkShares = std::map<scale::LinkState, double>;
  Result<const Iteration*> iteration_of(const ResourceRecord& record);
  Result<learn::ResourceWorkload> workload_of(const ResourceRecord& record, const LinkShares& links);
  [[nodiscard]] LinkShares links_of(const ResourceRecord& record) const;
  Status add_labelled_by_simulation(const ResourceRecord& record, const std::string& setting);
  Status add_window_of(const ResourceRecord& record, const std::string& setting, const LinkShares& links,
                       learn::Labels labels);

  const CostModels& cost_models_;
  const Device& device_;
  const scale::HostRates& rates_;
  DataSplit split_;
  GpuTimes gpu_times_;                             // by which the GPU's numbers, and memory's amount, are told
  std::map<std::string, Iteration> iterations_;    // by what the record says of model, input and training
  std::map<std::string, size_t> measured_;         // by id and setting
  std::map<std::string, LinkShares> link_shares_;  // by setting; others have one state
  learn::ResourceData data_;
};

}  // namespace forerun
