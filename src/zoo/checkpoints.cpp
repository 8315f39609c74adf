#include "zoo/checkpoints.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/data_dir.h"

namespace forerun::zoo {
namespace {

std::string folded(std::string_view name) {
  std::string text(name);
  for (char& letter : text) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (letter == '_' || letter == '.') letter = '-';
  }
  return text;
}

// The name without its organisation.
std::string_view model_part(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

bool has_name(const Checkpoint& checkpoint, const std::string& wanted) {
  return std::any_of(checkpoint.names.begin(), checkpoint.names.end(), [&](const std::string& name) {
    const std::string known = folded(name);
    return known == wanted || model_part(known) == wanted;
  });
}

std::optional<Checkpoint> checkpoint_of(const nlohmann::json& entry) {
  Checkpoint checkpoint;
  const bool whole = entry.is_object() && entry.contains("names") && entry["names"].is_array() &&
                     entry.contains("parameters") && entry["parameters"].is_number_integer() &&
                     entry.contains("config") && entry["config"].is_object();
  if (!whole) return std::nullopt;
  for (const nlohmann::json& name : entry["names"]) {
    if (!name.is_string()) return std::nullopt;
    checkpoint.names.push_back(name.get<std::string>());
  }
  const nlohmann::json& config = entry["config"];
  const auto type = config.find(config.contains("model_type") ? "model_type" : "_class_name");
  if (checkpoint.names.empty() || type == config.end() || !type->is_string()) return std::nullopt;
  checkpoint.model_type = type->get<std::string>();
  checkpoint.parameters = entry["parameters"].get<int64_t>();
  checkpoint.config = config.dump();
  return checkpoint;
}

}  // namespace

Result<std::vector<Checkpoint>> checkpoints() {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  const std::string path = (*folder / "zoo" / "checkpoints.json").string();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    return Error{"the file cannot be read", path, "it comes with Forerun's data folder"};
  const nlohmann::json value = nlohmann::json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object() || !value.contains("checkpoints") || !value["checkpoints"].is_array()) {
    return Error{"holds no list of checkpoints", path, "it comes with Forerun's data folder"};
  }
  std::vector<Checkpoint> list;
  for (const nlohmann::json& entry : value["checkpoints"]) {
    auto checkpoint = checkpoint_of(entry);
    if (!checkpoint) return Error{"an entry lacks names, parameters or config with model_type", path, ""};
    list.push_back(*std::move(checkpoint));
  }
  return list;
}

Result<std::optional<Checkpoint>> find_checkpoint(std::string_view name) {
  auto list = checkpoints();
  if (!list) return list.error();
  const std::string wanted = folded(name);
  std::string without_slash = wanted;  // DiT-XL/2 is DiT-XL-2
  std::replace(without_slash.begin(), without_slash.end(), '/', '-');
  for (Checkpoint& checkpoint : *list) {
    if (has_name(checkpoint, wanted) || has_name(checkpoint, without_slash)) {
      return std::optional<Checkpoint>(std::move(checkpoint));
    }
  }
  return std::optional<Checkpoint>();
}

std::vector<std::string> names_of_organisation(std::string_view name) {
  const size_t slash = name.find('/');
  const auto list = checkpoints();
  if (slash == std::string_view::npos || !list) return {};
  const std::string organisation = folded(name.substr(0, slash + 1));
  std::vector<std::string> names;
  for (const Checkpoint& checkpoint : *list) {
    for (const std::string& known : checkpoint.names) {
      if (folded(known).starts_with(organisation)) names.push_back(known);
    }
  }
  return names;
}

}  // namespace forerun::zoo
