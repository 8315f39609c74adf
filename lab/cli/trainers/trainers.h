// What `forerun train` trains: one file each in this folder, one line each in trainers.cpp; the learned predictors, which are
// trained alike, have one for all (learned.cpp). What is fitted by least squares and not learned: lab/cli/calibrations.
#pragma once

#include <string>
#include <vector>

#include "lab/cli/task.h"

namespace forerun::cli {

using Trainer = Task;

// In the order of `forerun train --help`. Learned predictors are among them where the program was built with LibTorch.
const std::vector<Trainer>& trainers();

Trainer hybrid_trainer();
Trainer driple_trainer();
Trainer habitat_trainer();
Trainer neusight_trainer();

// A predictor of lab/learn/predictors.h; one that is not there fails when it is run. `in_epochs`: it is trained epoch by
// epoch, and takes the options of that.
Trainer learned_trainer(const std::string& name, const std::string& summary, bool in_epochs);

// Writes a suite's data as one file, and trains nothing: `forerun train` without a name.
Trainer data_cache_writer();

}  // namespace forerun::cli
