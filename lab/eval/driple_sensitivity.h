// How sensitive bursts and idles are to workload and setting (lab/accuracy/driple_sensitivity.h), from measured records and
// from the simulation.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "ingest/resources/resource_record.h"
#include "lab/accuracy/driple_sensitivity.h"
#include "predict/cost_models.h"

namespace forerun {

// Patterns and spreads of the records of a setting (as table_setting names it); one workload simulated in many settings.
Result<DripleSensitivity> driple_sensitivity(std::span<const ResourceRecord> records, const std::string& setting,
                                             const CostModels& cost_models);

}  // namespace forerun
