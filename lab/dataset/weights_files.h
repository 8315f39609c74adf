// The files of a weights folder: JSON, written whole and read with what must be there, and bytes, compressed or not.
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

// What a file holds, decompressed.
Result<std::string> bytes_of(const std::string& path);

}  // namespace forerun::learn
