#include "records/data_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

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

Error nothing_in(const std::vector<std::string>& files, const std::string& what) {
  const bool one = files.size() == 1;
  return {fmt::format("{} no {}", one ? "holds" : "hold", what),
          one ? files.front() : fmt::format("{} files", files.size()),
          "name files that python/forerun wrote; docs/records.md describes them"};
}

}  // namespace forerun
