// GPUs, links and models (api/catalogue.h) as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "api/catalogue.h"
#include "api/gpu_evidence.h"

namespace forerun {

// All of a catalogue as a table.
std::string devices_text(const DeviceCatalogue& devices, const GpuEvidences& evidences);
std::string links_text(const DeviceCatalogue& devices, const LinkSources& sources);
// One line each.
std::string to_json(const Device& device, const GpuEvidence& evidence);
std::string to_json(const Link& link, const LinkSources& sources);

// A family of models with its parameters and the models that it has names for.
std::string to_text(const zoo::Family& family);
std::string to_json(const zoo::Family& family);  // one line
// The same of a model type of config.json files, with the checkpoints of that type.
std::string to_text(const zoo::Architecture& architecture, const std::vector<zoo::Checkpoint>& checkpoints);
std::string to_json(const zoo::Architecture& architecture, const std::vector<zoo::Checkpoint>& checkpoints);
// A checkpoint with its size and config keys.
std::string to_text(const zoo::Checkpoint& checkpoint);
// All model types and checkpoints, names alone.
std::string config_models_text(const std::vector<zoo::Checkpoint>& checkpoints);

}  // namespace forerun
