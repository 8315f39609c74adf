// "Which models, GPUs and links are there?": what other questions are asked of. The zoo's families and models are
// zoo::families() and zoo::models(), what config.json files may describe zoo::architectures(), public checkpoints
// zoo::checkpoints(); GPUs and links are CostModels::devices, which load_cost_models() reads once; where links' figures
// come from is LinkSources.
#pragma once

#include "device/link_sources.h"  // IWYU pragma: export
#include "predict/cost_models.h"  // IWYU pragma: export
#include "zoo/architectures.h"    // IWYU pragma: export
#include "zoo/checkpoints.h"      // IWYU pragma: export
#include "zoo/zoo.h"              // IWYU pragma: export
