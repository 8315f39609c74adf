#include "lab/learn/driple/driple_options.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/nearest.h"

namespace forerun::learn {
namespace {

struct WordSetting {
  const char* key;
  std::string DripleOptions::*field;
  std::vector<std::string> allowed;
};

struct NumberSetting {
  const char* key;
  int64_t DripleOptions::*field;
  int64_t least, most;
};

const std::vector<WordSetting>& word_settings() {
  static const std::vector<WordSetting> list = {
      {"layer", &DripleOptions::layer, {"gcn", "gin", "gat", "mpnn"}},
      {"readout", &DripleOptions::readout, {"set2set", "sum", "mean", "max"}},
      {"grouping", &DripleOptions::grouping, {"none", "uniform", "proportional"}},
      {"target", &DripleOptions::target, {"log", "max"}},
      {"globals", &DripleOptions::globals, {"no", "workload", "costs"}},
      {"basis", &DripleOptions::basis, {"none", "simulation"}},
      {"loss", &DripleOptions::loss, {"squares", "percent"}},
      {"nodes", &DripleOptions::nodes, {"ops", "all"}},
      {"tune", &DripleOptions::tune, {}},
      {"rescale", &DripleOptions::rescale, {"yes", "no"}}};
  return list;
}

const std::vector<NumberSetting>& number_settings() {
  static const std::vector<NumberSetting> list = {{"groups", &DripleOptions::groups, 1, 2048},
                                                  {"depth", &DripleOptions::depth, 0, 2048},
                                                  {"nets", &DripleOptions::nets, 1, 16},
                                                  {"dropout", &DripleOptions::dropout, 0, 90},
                                                  {"late", &DripleOptions::late, 1, 100}};
  return list;
}

Error no_such_value(const std::string& key, const std::string& value, const std::string& allowed) {
  return {"'" + value + "' is no value of '" + key + "'", "settings of driple", "use " + allowed};
}

// "all", or parts joined by plus signs.
bool names_parts(const std::string& value) {
  if (value == "all") return true;
  const std::vector<std::string> parts = driple_parts(value);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    return std::find(kDripleParts.begin(), kDripleParts.end(), part) != kDripleParts.end();
  });
}

Status set_driple_word(const WordSetting& word, const std::string& value, DripleOptions& options) {
  if (word.field == &DripleOptions::tune) {
    if (!names_parts(value)) return no_such_value(word.key, value, "all, or some of first+late+gru+readout+mlp");
  } else if (std::find(word.allowed.begin(), word.allowed.end(), value) == word.allowed.end()) {
    std::string list;
    for (const std::string& name : word.allowed) list += (list.empty() ? "" : ", ") + name;
    return no_such_value(word.key, value, list);
  }
  options.*word.field = value;
  return {};
}

Status set_driple_number(const NumberSetting& setting, const std::string& value, DripleOptions& options) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < setting.least || number > setting.most) {
    return no_such_value(setting.key, value, std::to_string(setting.least) + " to " + std::to_string(setting.most));
  }
  options.*setting.field = number;
  return {};
}

}  // namespace

std::vector<std::string> driple_parts(const std::string& tune) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= tune.size()) {
    const size_t end = std::min(tune.find('+', begin), tune.size());
    parts.push_back(tune.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Settings settings_of(const DripleOptions& options) {
  Settings settings;
  for (const WordSetting& word : word_settings()) settings[word.key] = options.*word.field;
  for (const NumberSetting& number : number_settings()) settings[number.key] = std::to_string(options.*number.field);
  return settings;
}

Status set_driple_options(const Settings& settings, DripleOptions& options) {
  for (const auto& [key, value] : settings) {
    const auto named = [&name = key](const auto& each) { return name == each.key; };
    const auto word = std::find_if(word_settings().begin(), word_settings().end(), named);
    const auto number = std::find_if(number_settings().begin(), number_settings().end(), named);
    Status status;
    if (word != word_settings().end()) {
      status = set_driple_word(*word, value, options);
    } else if (number != number_settings().end()) {
      status = set_driple_number(*number, value, options);
    } else {
      std::vector<std::string> known;
      for (const auto& [name, unused] : settings_of(options)) known.push_back(name);
      return Error{"there is no setting '" + key + "'", "settings of driple", did_you_mean(key, known)};
    }
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace forerun::learn
