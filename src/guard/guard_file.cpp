#include "guard/guard_file.h"

#include <filesystem>
#include <map>

#include "base/json_writer.h"
#include "base/nearest.h"
#include "base/toml_file.h"
#include "guard/judgement.h"

namespace forerun::guard {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGuardsRemedy = "docs/check.md shows one";
constexpr int kDeepestGuard = 8;

using Words = std::map<std::string, const toml::node*>;

// A value as JSON. Dates and times have no meaning here.
Status write_value(JsonWriter& json, const toml::node& node, const std::string& where, int depth = 0) {
  if (depth > kDeepestGuard) return Error{"has lists within lists without end", line_of(node, where), kGuardsRemedy};
  if (const toml::table* table = node.as_table()) {
    json.begin_object();
    for (const auto& [key, value] : *table) {
      json.key(key.str());
      if (Status status = write_value(json, value, where, depth + 1); !status.ok()) return status;
    }
    json.end_object();
  } else if (const toml::array* array = node.as_array()) {
    json.begin_array();
    for (const toml::node& value : *array) {
      if (Status status = write_value(json, value, where, depth + 1); !status.ok()) return status;
    }
    json.end_array();
  } else if (node.is_string()) {
    json.value(node.as_string()->get());
  } else if (node.is_boolean()) {
    json.value(node.as_boolean()->get());
  } else if (node.is_integer()) {
    json.value(node.as_integer()->get());
  } else if (node.is_floating_point()) {
    json.value(node.as_floating_point()->get());
  } else {
    return Error{"a date is no value of any word", line_of(node, where), kGuardsRemedy};
  }
  return {};
}

// A file as it lies from here. What is no file beside the TOML file may be a name, of a model.
std::string resolved(const std::string& file, const fs::path& folder, bool may_be_name) {
  const fs::path path = folder / file;
  std::error_code unknown;
  const bool name = may_be_name && !fs::exists(path, unknown) && !fs::exists(file, unknown);
  return name ? file : path.lexically_normal().string();
}

// The words as JSON, those that name files seen from `folder`.
Result<std::string> words_json(const Words& words, const std::string& where, const fs::path& folder) {
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, node] : words) {
    json.key(name);
    const bool files = name == "model" || name == "prices" || name == "device_files" || name == "machine";
    if (files && node->is_string()) {
      json.value(resolved(node->as_string()->get(), folder, name == "model"));
    } else if (files && node->is_array()) {
      json.begin_array();
      for (const toml::node& file : *node->as_array()) {
        if (!file.is_string()) return Error{name + " holds what is no text", line_of(file, where), kGuardsRemedy};
        json.value(resolved(file.as_string()->get(), folder, false));
      }
      json.end_array();
    } else if (Status status = write_value(json, *node, where); !status.ok()) {
      return status.error();
    }
  }
  return json.end_object().take();
}

Status add_entry(std::string name, const toml::node& guard, const Words& words, const std::string& path,
                 std::vector<GuardEntry>& entries) {
  Words predicted = words;
  for (const std::string_view rule : Rules::kNames) predicted.erase(std::string(rule));
  Result<std::string> asked = words_json(predicted, path, "");
  if (!asked) return asked.error();
  Result<std::string> seen = words_json(words, path, fs::path(path).parent_path());
  if (!seen) return seen.error();
  std::string place = fmt::format("{}, guard {}", line_of(guard, path), name);
  entries.push_back({std::move(name), std::move(place), std::move(*asked), std::move(*seen)});
  return {};
}

Status add_guard(const std::string& name, const toml::node& guard, const Words& defaults, const std::string& path,
                 std::vector<GuardEntry>& entries) {
  if (!guard.is_table()) {
    return Error{fmt::format("the guard {} is no table", name), line_of(guard, path),
                 fmt::format("write [guard.{}] and its words below", name)};
  }
  Words words = defaults;
  for (const auto& [key, value] : *guard.as_table()) words[std::string(key.str())] = &value;
  const auto gpu = words.find("gpu");
  const toml::array* gpus = gpu == words.end() ? nullptr : gpu->second->as_array();
  if (gpus == nullptr) return add_entry(name, guard, words, path, entries);
  if (gpus->empty()) return Error{"the list of GPUs is empty", line_of(*gpus, path), "name one"};
  for (const toml::node& one : *gpus) {
    if (!one.is_string())
      return Error{"a GPU is given by its name", line_of(one, path), "`forerun devices` lists them"};
    words["gpu"] = &one;
    const std::string named = fmt::format("{} on {}", name, one.as_string()->get());
    if (Status status = add_entry(named, guard, words, path, entries); !status.ok()) return status;
  }
  return {};
}

Result<const toml::table*> table_named(const toml::table& file, const char* name, const std::string& path) {
  const toml::node* node = file.get(name);
  if (node != nullptr && !node->is_table()) {
    return Error{fmt::format("{} is no table", name), line_of(*node, path), kGuardsRemedy};
  }
  return node == nullptr ? nullptr : node->as_table();
}

Status no_name_twice(const std::vector<GuardEntry>& entries) {
  std::map<std::string, const GuardEntry*> named;
  for (const GuardEntry& entry : entries) {
    if (!named.emplace(entry.name, &entry).second) {
      return Error{fmt::format("there are two guards '{}'", entry.name), entry.place, "rename one"};
    }
  }
  return {};
}

}  // namespace

Result<std::vector<GuardEntry>> parse_guards(const std::string& text, const std::string& path) {
  const auto file = parse_toml(text, path, kGuardsRemedy);
  if (!file) return file.error();
  for (const auto& [key, node] : *file) {
    if (key == "guard" || key == "defaults") continue;
    return Error{fmt::format("there is no '{}' here", key.str()), line_of(node, path),
                 did_you_mean(key.str(), {"guard", "defaults"})};
  }
  const auto guards = table_named(*file, "guard", path);
  if (!guards) return guards.error();
  const auto defaults = table_named(*file, "defaults", path);
  if (!defaults) return defaults.error();
  Words words;
  if (*defaults != nullptr) {
    for (const auto& [key, value] : **defaults) words[std::string(key.str())] = &value;
  }
  std::vector<GuardEntry> entries;
  if (*guards != nullptr) {
    for (const auto& [name, guard] : **guards) {
      if (Status status = add_guard(std::string(name.str()), guard, words, path, entries); !status.ok()) {
        return status.error();
      }
    }
  }
  if (entries.empty()) return Error{"there are no guards", path, "write a table [guard.NAME] with a model and a rule"};
  if (const Status status = no_name_twice(entries); !status.ok()) return status.error();
  return entries;
}

Result<std::vector<GuardEntry>> read_guards(const std::string& path) {
  const auto text = read_toml_text(path, "file of guards", kGuardsRemedy);
  if (!text) return text.error();
  return parse_guards(*text, path);
}

}  // namespace forerun::guard
