// The settings of Driple's network by name, for ablations.
//
// The paper's are layer gcn, readout set2set, grouping uniform or proportional, depth 0 (half the groups), target max,
// globals no, basis none, nets 1. What differs by default: `target` log, the squared error of
// standardised logarithms (divided by their maximum, short bursts count for nothing); `globals`, figures of the whole
// workload beside the graph, since here one setting holds workloads of several batches, optimizers and modes: `workload`
// what a model's source tells, `costs` also what `forerun predict` says its ops take; `basis` simulation, by which the
// network learns the ratio of measured to simulated numbers; `loss` percent, by which it learns what it is judged by;
// `nets`, networks whose answers are averaged, each of which
// stops by families of its own.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/dataset/predictor.h"

namespace forerun::learn {

struct DripleOptions {
  std::string layer = "gcn";              // gcn, gin, gat, mpnn
  std::string readout = "set2set";        // set2set, sum, mean, max
  std::string grouping = "proportional";  // none, uniform, proportional
  std::string target = "log";             // log, max
  std::string globals = "workload";       // no, workload, costs
  std::string basis = "none";             // none, simulation
  std::string loss = "squares";           // squares, percent (of what was measured; with target log)
  std::string nodes = "ops";              // ops, all (op_groups.h)
  std::string tune = "late+mlp";  // all, or some of first, late, gru, readout, mlp: what transfer learning changes
  std::string rescale = "yes";    // yes, no: whether transfer learning scales targets anew
  int64_t groups = 100;           // M of uniform grouping
  int64_t depth = 0;              // K; 0: half the groups
  int64_t nets = 1;
  int64_t dropout = 0;  // percent of the MLP's inputs
  int64_t late = 50;    // percent of the repeated layers that get weights of their own where `tune` names them
};

// Parts of the network that can be tuned: the first layer, the late repeated ones, the GRU cell, the readout, the MLP.
inline constexpr std::array<const char*, 5> kDripleParts = {"first", "late", "gru", "readout", "mlp"};
// The parts that a value of `tune` names.
std::vector<std::string> driple_parts(const std::string& tune);

Settings settings_of(const DripleOptions& options);
// Sets what is named, and leaves the rest as it is.
Status set_driple_options(const Settings& settings, DripleOptions& options);

}  // namespace forerun::learn
