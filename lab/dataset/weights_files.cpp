#include "lab/dataset/weights_files.h"

#include <filesystem>
#include <fstream>

#include "base/byte_source.h"
#include "base/output_file.h"

namespace forerun::learn {
namespace {

constexpr const char* kRemedy = "name a folder that `forerun train` wrote";

}  // namespace

Status write_json(const std::string& folder, const std::string& file, const nlohmann::json& json) {
  const std::string path = (std::filesystem::path(folder) / file).string();
  return write_whole_file(path, json.dump(1) + "\n");
}

Result<nlohmann::json> read_json(const std::string& folder, const std::string& file,
                                 std::initializer_list<const char*> fields) {
  const std::string path = (std::filesystem::path(folder) / file).string();
  std::ifstream in(path);
  if (!in) return Error{"cannot be read", path, kRemedy};
  nlohmann::json json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Error{"is no JSON object", path, kRemedy};
  for (const char* field : fields) {
    if (!json.contains(field)) return Error{std::string("has no field '") + field + "'", path, kRemedy};
  }
  return json;
}

Result<std::string> bytes_of(const std::string& path) {
  const auto source = ByteSource::open(path);
  if (!source) return source.error();
  std::string bytes;
  std::string piece(1 << 16, '\0');
  while (true) {
    const auto count = (*source)->read(piece.data(), piece.size());
    if (!count) return count.error();
    if (*count == 0) return bytes;
    bytes.append(piece.data(), *count);
  }
}

Result<Settings> settings_from(const nlohmann::json& json) {
  Settings settings;
  const nlohmann::json& object = json.at("settings");
  if (!object.is_object()) return Error{"the settings are no JSON object", "", kRemedy};
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) return Error{"the setting '" + key + "' is no text", "", kRemedy};
    settings[key] = value.get<std::string>();
  }
  return settings;
}

}  // namespace forerun::learn
