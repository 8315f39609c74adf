#include "guard/lock_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/json_writer.h"
#include "base/output_file.h"
#include "base/toml_file.h"

namespace forerun::guard {
namespace {

constexpr const char* kLockRemedy =
    "take the committed one, or delete it and have it written anew (`forerun check --update`)";
constexpr std::array<std::string_view, 3> kVerdicts = {"fits", "may_not_fit", "does_not_fit"};

Error bad_entry(const std::string& what, const toml::node& node, const std::string& where) {
  return {what, line_of(node, where), kLockRemedy};
}

// Reads the fields of one baseline; the first fault is kept.
class Entry {
 public:
  Entry(const toml::table& table, const std::string& where) : table_(table), where_(where) {}

  std::string text(const char* name) {
    const auto value = table_[name].value_exact<std::string>();
    if (!value) fault(name);
    return value.value_or("");
  }
  double number(const char* name) {
    const toml::node* node = table_.get(name);
    const auto value = node != nullptr && node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !std::isfinite(*value) || *value < 0) fault(name);
    return value.value_or(0);
  }
  void fault(const char* name) {
    if (!fault_) fault_ = bad_entry(fmt::format("a baseline has no sound {}", name), table_, where_);
  }
  [[nodiscard]] Status status() const { return fault_ ? Status(*fault_) : Status(); }

 private:
  const toml::table& table_;
  const std::string& where_;
  std::optional<Error> fault_;
};

Result<Baseline> baseline_of(const toml::table& table, const std::string& where) {
  Entry entry(table, where);
  Baseline baseline{.figures = {.iteration_ms = entry.number("iteration_ms"),
                                .reserved_gib = entry.number("reserved_gib"),
                                .verdict = entry.text("verdict")},
                    .asked = entry.text("asked"),
                    .predicted_by = entry.text("predicted_by")};
  const auto& verdict = baseline.figures.verdict;
  if (std::find(kVerdicts.begin(), kVerdicts.end(), verdict) == kVerdicts.end()) entry.fault("verdict");
  if (const Status status = entry.status(); !status.ok()) return status.error();
  return baseline;
}

// As TOML has text: in quotes, with the escapes of JSON, and DEL escaped too.
std::string toml_quoted(std::string_view text) {
  std::string out;
  for (const char c : json_quoted(text)) out += c == '\x7f' ? "\\u007F" : std::string(1, c);
  return out;
}

std::string key_text(const std::string& name) {
  const auto bare = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), bare) ? name : toml_quoted(name);
}

}  // namespace

Result<Lock> parse_lock(const std::string& text, const std::string& where) {
  const auto file = parse_toml(text, where, kLockRemedy);
  if (!file) return file.error();
  Lock lock;
  for (const auto& [section, entries] : *file) {
    if (!entries.is_table()) return bad_entry("is no lock of Forerun", entries, where);
    Baselines& baselines = lock[std::string(section.str())];
    for (const auto& [name, entry] : *entries.as_table()) {
      if (!entry.is_table()) return bad_entry("is no lock of Forerun", entry, where);
      Result<Baseline> baseline = baseline_of(*entry.as_table(), where);
      if (!baseline) return baseline.error();
      baselines.emplace(std::string(name.str()), std::move(*baseline));
    }
  }
  return lock;
}

std::string lock_text(const Lock& lock) {
  std::string text =
      "# Figures that guards are held to, written by `forerun check --update` and `pytest --forerun-update`. Commit "
      "this "
      "file.\n";
  for (const auto& [section, baselines] : lock) {
    for (const auto& [name, baseline] : baselines) {
      text += fmt::format("\n[{}.{}]\n", key_text(section), key_text(name));
      text += fmt::format("asked = {}\n", toml_quoted(baseline.asked));
      text += fmt::format("iteration_ms = {}\n", baseline.figures.iteration_ms);
      text += fmt::format("reserved_gib = {}\n", baseline.figures.reserved_gib);
      text += fmt::format("verdict = {}\n", toml_quoted(baseline.figures.verdict));
      text += fmt::format("predicted_by = {}\n", toml_quoted(baseline.predicted_by));
    }
  }
  return text;
}

Result<Lock> read_lock(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown) && !unknown) return Lock();
  const auto text = read_toml_text(path, "lock", kLockRemedy);
  if (!text) return text.error();
  return parse_lock(*text, path);
}

Status write_lock(const std::string& path, const Lock& lock) { return write_whole_file(path, lock_text(lock)); }

}  // namespace forerun::guard
