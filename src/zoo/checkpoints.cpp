#include "zoo/checkpoints.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "base/small_file.h"

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

// The file as it lies on the disk. Most questions are about one entry: the others are not parsed.
class CheckpointFile {
 public:
  static Result<CheckpointFile> read() {
    constexpr size_t kLargest = size_t{16} << 20;
    const auto folder = data_dir();
    if (!folder) return folder.error();
    const std::filesystem::path path = *folder / "zoo" / "checkpoints.json";
    Result<std::string> text = read_small_file(path, {kLargest, kRemedy});
    if (!text) return text.error();
    if (!text->starts_with("{\"format\": \"checkpoints/1\""))
      return Error{"holds no list of checkpoints", path.string(), kRemedy};
    return CheckpointFile(path.string(), std::move(*text));
  }

  // Each entry, as text, until `visit` says that it has seen enough.
  template <class Visit>
  void each_entry(Visit visit) const {
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = std::min(text_.find('\n', begin), text_.size());
      std::string_view line = std::string_view(text_).substr(begin, end - begin);
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      if (line.ends_with(',')) line.remove_suffix(1);
      if (line.starts_with("{\"names\"") && !visit(line)) return;
      begin = end + 1;
    }
  }

  [[nodiscard]] Error nothing_found() const { return {"has no entry at the beginning of a line", path_, kRemedy}; }

  [[nodiscard]] Result<Checkpoint> parse(std::string_view entry) const {
    auto checkpoint = checkpoint_of(nlohmann::json::parse(entry, nullptr, /*allow_exceptions=*/false));
    if (!checkpoint) return Error{"an entry lacks names, parameters or config with model_type", path_, kRemedy};
    return *std::move(checkpoint);
  }

 private:
  static constexpr const char* kRemedy = "it comes with Forerun's data folder";
  CheckpointFile(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  std::string path_;
  std::string text_;
};

}  // namespace

Result<std::vector<Checkpoint>> checkpoints() {
  const Result<CheckpointFile> file = CheckpointFile::read();
  if (!file) return file.error();
  std::vector<Checkpoint> list;
  Status status;
  file->each_entry([&](std::string_view entry) {
    Result<Checkpoint> checkpoint = file->parse(entry);
    if (!checkpoint) status = checkpoint.error();
    if (checkpoint) list.push_back(*std::move(checkpoint));
    return status.ok();
  });
  if (!status.ok()) return status.error();
  if (list.empty()) return file->nothing_found();
  return list;
}

Result<std::optional<Checkpoint>> find_checkpoint(std::string_view name) {
  const Result<CheckpointFile> file = CheckpointFile::read();
  if (!file) return file.error();
  const std::string wanted = folded(name);
  std::string without_slash = wanted;  // DiT-XL/2 is DiT-XL-2
  std::replace(without_slash.begin(), without_slash.end(), '/', '-');
  Result<std::optional<Checkpoint>> found = std::optional<Checkpoint>();
  file->each_entry([&](std::string_view entry) {
    const std::string text = folded(entry);
    if (text.find(wanted) == std::string::npos && text.find(without_slash) == std::string::npos) return true;
    Result<Checkpoint> checkpoint = file->parse(entry);
    if (!checkpoint) {
      found = checkpoint.error();
    } else if (has_name(*checkpoint, wanted) || has_name(*checkpoint, without_slash)) {
      found = std::optional<Checkpoint>(*std::move(checkpoint));
    }
    return found && !found->has_value();
  });
  return found;
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
