// What predictions for other GPUs than the measured one draw on, to tell when errors that were kept of them are stale.
#pragma once

#include <string>

#include "base/result.h"

namespace forerun {

// As cost_models_fingerprint (predict/cost_models.h), and of the devices that were judged and how times carry over to them.
Result<std::string> carried_models_fingerprint();

}  // namespace forerun
