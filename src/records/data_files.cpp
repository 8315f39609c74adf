#include "records/data_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "base/json_file.h"
#include "base/nearest.h"
#include "ingest/importers.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

// A file that is known to hold something else; of one that cannot be told its reader says more.
Status check_kind(const std::string& path) {
  const auto kind = sniff_file(path);
  if (!kind || !is_told(*kind) || *kind == FileKind::records || *kind == FileKind::resource_records) return {};
  return refused_file(*kind, path, "data");
}

}  // namespace

Result<std::vector<std::string>> record_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  std::set<std::string> known;
  const auto add = [&](const std::string& path) {
    std::error_code code;
    const fs::path whole = fs::weakly_canonical(path, code);
    if (known.insert(code ? path : whole.string()).second) files.push_back(path);
  };
  for (const std::string& path : paths) {
    std::error_code code;
    if (!fs::exists(path, code)) return Error{"is not there", path, "name record files or folders of them"};
    if (!fs::is_directory(path, code)) {
      if (const Status status = check_kind(path); !status.ok()) return status.error();
      add(path);
      continue;
    }
    auto found = files_below(path, FileKind::records);
    if (!found) return found.error();
    for (const std::string& file : *found) add(file);
  }
  return files;
}

Result<std::map<std::string, std::string>> family_splits(const std::vector<std::string>& files) {
  std::map<std::string, std::string> splits;
  std::set<fs::path> looked;
  for (const std::string& file : files) {
    const fs::path path = fs::path(file).parent_path() / "split.json";
    std::error_code code;
    if (!looked.insert(path).second || !fs::exists(path, code)) continue;
    Result<JsonObject> object = JsonObject::read(path);
    if (!object) return object.error();
    for (const std::string& part : object->keys()) {
      for (const std::string& family : object->texts(part)) splits.emplace(family, part);
    }
    if (const Status status = object->status(); !status.ok()) return status.error();
  }
  return splits;
}

Result<std::set<std::string>> training_families(const std::vector<std::string>& files,
                                                const std::set<std::string>& without) {
  const auto splits = family_splits(files);
  if (!splits) return splits.error();
  std::set<std::string> families;
  for (const auto& [family, part] : *splits) {
    if (part == "train") families.insert(family);
  }
  const std::vector<std::string> known(families.begin(), families.end());
  for (const std::string& family : without) {
    if (families.erase(family) == 0) {
      return Error{fmt::format("'{}' is no family of the training split", family), "", did_you_mean(family, known)};
    }
  }
  return families;
}

Error nothing_in(const std::vector<std::string>& files, const std::string& what) {
  const bool one = files.size() == 1;
  return {fmt::format("{} no {}", one ? "holds" : "hold", what),
          one ? files.front() : fmt::format("{} files", files.size()),
          "name files that python/forerun wrote; docs/records.md describes them"};
}

}  // namespace forerun
