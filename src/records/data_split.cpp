#include "records/data_split.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/json_file.h"
#include "base/nearest.h"

namespace forerun {

namespace fs = std::filesystem;

Status DataSplit::read(const std::string& path) {
  Result<JsonObject> object = JsonObject::read(path);
  if (!object) return object.error();
  for (const std::string& part : object->keys()) {
    if (part == kIds) {
      JsonObject ids = object->object(part);
      for (const std::string& of : ids.keys()) {
        for (const std::string& beginning : ids.texts(of)) ids_.emplace(beginning, of);
      }
      continue;
    }
    for (const std::string& family : object->texts(part)) families_.emplace(family, part);
  }
  return object->status();
}

Result<DataSplit> DataSplit::beside(const std::vector<std::string>& files) {
  DataSplit split;
  std::set<fs::path> looked;
  for (const std::string& file : files) {
    const fs::path path = fs::path(file).parent_path() / kFile;
    std::error_code code;
    if (!looked.insert(path).second || !fs::exists(path, code)) continue;
    if (const Status status = split.read(path.string()); !status.ok()) return status.error();
  }
  return split;
}

DataSplit DataSplit::of_families(std::map<std::string, std::string, std::less<>> parts) {
  DataSplit split;
  split.families_ = std::move(parts);
  return split;
}

std::string DataSplit::part_of_family(std::string_view family) const {
  const auto found = families_.find(family);
  return found == families_.end() ? "" : found->second;
}

std::string DataSplit::part_of(std::string_view id, std::string_view family) const {
  for (const auto& [beginning, part] : ids_) {
    if (id.substr(0, beginning.size()) == beginning) return part;
  }
  return part_of_family(family);
}

std::set<std::string> DataSplit::training_families() const {
  std::set<std::string> families;
  for (const auto& [family, part] : families_) {
    if (part == kTrain) families.insert(family);
  }
  return families;
}

Result<TrainingPart> TrainingPart::beside(const std::vector<std::string>& files, const std::set<std::string>& without) {
  auto split = DataSplit::beside(files);
  if (!split) return split.error();
  std::set<std::string> families = split->training_families();
  const std::vector<std::string> known(families.begin(), families.end());
  for (const std::string& family : without) {
    if (families.erase(family) == 0) {
      return Error{fmt::format("'{}' is no family of the training split", family), "", did_you_mean(family, known)};
    }
  }
  return TrainingPart(std::move(*split), std::move(families));
}

bool TrainingPart::contains(const TrainingRun& run) const {
  return families_.contains(run.family) && split_.part_of(run) == DataSplit::kTrain;
}

bool TrainingPart::contains_ops_of(std::string_view family) const {
  return families_.contains(std::string(family)) || split_.part_of_family(family).empty();
}

}  // namespace forerun
