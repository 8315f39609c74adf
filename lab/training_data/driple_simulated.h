// Simulated workloads to pre-train on: the training families' models of measured records, with other widths, depths,
// inputs, batches, optimizers and modes, in every setting asked for. Deterministic for a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "ingest/resources/resource_record.h"
#include "lab/training_data/driple_builder.h"

namespace forerun {

// Adds `count` workloads made from `patterns` (records of any families: others than the training ones are passed over).
// Every iteration is built once and simulated in each mode and setting found among the patterns. What cannot be built
// is made up anew; gives how many there are.
int64_t add_simulated_workloads(const std::vector<ResourceRecord>& patterns, int64_t count, uint64_t seed,
                                DripleWorkloadBuilder& builder);

}  // namespace forerun
