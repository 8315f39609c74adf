// Which Forerun predicted a figure: its version, and a fingerprint of the sources and data that predictions are made of. Two
// figures of the same question that differ, and have the same of these, differ because of the user's model.
#pragma once

#include <string>

#include "base/result.h"

namespace forerun::guard {

extern const char* const kSourceFingerprint;  // of the stages up to predict/; the build writes it

Result<std::string> models_version();  // "0.1.0, models 5f3a90c2d81b7e64"

}  // namespace forerun::guard
