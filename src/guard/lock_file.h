// forerun.lock: the figures that guards are held to, kept beside the model's sources and committed with them.
//
//   # Figures that guards are held to, ...
//   [check."resnet50 on a100"]
//   asked = '{"batch":64,"gpu":"a100","model":"resnet50"}'
//   iteration_ms = 53.104512
//   reserved_gib = 5.98046875
//   verdict = "fits"
//   predicted_by = "0.1.0, models 5f3a90c2d81b7e64"
//
// Who keeps baselines in it has a section of its own (`check`: forerun.toml, `check nightly.toml`: another file of guards,
// `pytest`: tests), so that several may share one.
// TOML, sorted by name, figures with all of their digits: a difference of two versions shows what changed and nothing else.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "guard/judgement.h"

namespace forerun::guard {

using Baselines = std::map<std::string, Baseline>;  // by the guard's name
using Lock = std::map<std::string, Baselines>;      // by section

// A file that is not there is an empty lock.
Result<Lock> read_lock(const std::string& path);
Status write_lock(const std::string& path, const Lock& lock);  // whole or not at all

Result<Lock> parse_lock(const std::string& text, const std::string& where);
std::string lock_text(const Lock& lock);

}  // namespace forerun::guard
