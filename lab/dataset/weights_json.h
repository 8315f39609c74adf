// The JSON files of a weights folder: written whole, read with what must be there.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "lab/dataset/predictor.h"

namespace forerun::learn {

Status write_json(const std::string& folder, const std::string& file, const nlohmann::json& json);
// One JSON object with these fields.
Result<nlohmann::json> read_json(const std::string& folder, const std::string& file,
                                 std::initializer_list<const char*> fields);
// Its field `settings`: an object of texts.
Result<Settings> settings_from(const nlohmann::json& json);

}  // namespace forerun::learn
