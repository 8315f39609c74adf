// From a name and settings, or from a run record, to a model: finds the family, reads values by the kind of their
// defaults, checks that they are sane, and lets the family build its forward graph.
//
// Checks here hold for every family: counts are positive, layers number at most some thousands, sizes stay far from
// overflow. What only one family knows (groups that must divide widths) it reports itself.
#include "zoo/zoo.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/nearest.h"
#include "zoo/architectures.h"
#include "zoo/checkpoints.h"
#include "zoo/families.h"
#include "zoo/timm_names.h"

namespace forerun::zoo {
namespace {

constexpr int64_t kMaxInteger = 1'000'000'000;
constexpr double kMaxReal = 1e6;
constexpr size_t kMaxListLength = 1024;
constexpr int64_t kMaxLayers = 4096;

template <class T>
const T& get(const std::map<std::string, ParameterValue>& values, const std::string& name) {
  const auto found = values.find(name);
  CHECK(found != values.end(), "no parameter " + name);
  const T* value = std::get_if<T>(&found->second);
  CHECK(value != nullptr, "parameter " + name + " is of another kind");
  return *value;
}

// Parameters that count modules: a large value would not be wrong, only endless.
bool counts_layers(std::string_view name) {
  static constexpr std::string_view kNames[] = {"layers", "depth", "depths", "enc",     "dec",
                                                "stages", "nodes", "rep",    "repeats", "blocks"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

const Family* find_family(std::string_view name) {
  for (const Family& family : families()) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

const Parameter* find_parameter(const Family& family, std::string_view name) {
  for (const Parameter& parameter : family.parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

Error unknown_parameter(const Family& family, std::string_view name) {
  std::vector<std::string> known;
  for (const Parameter& parameter : family.parameters) known.push_back(parameter.name);
  return {fmt::format("family {} has no parameter '{}'", family.name, name.substr(0, 80)), "",
          did_you_mean(name, known)};
}

std::string_view kind_name(const ParameterValue& value) {
  static constexpr std::string_view kNames[] = {"true or false", "a whole number", "a number", "text",
                                                "whole numbers separated by commas"};
  return kNames[value.index()];
}

Error wrong_kind(const Parameter& parameter, std::string_view text) {
  return {fmt::format("'{}' is not {}", text.substr(0, 80), kind_name(parameter.otherwise)),
          "parameter " + parameter.name, parameter.help};
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<ParameterValue> parse_list(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']') && text.size() >= 2) text = text.substr(1, text.size() - 2);
  std::vector<int64_t> list;
  while (list.size() <= kMaxListLength) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    const auto value = parse_number<int64_t>(item);
    if (!value) return std::nullopt;
    list.push_back(*value);
    if (comma == text.size()) return list;
    text.remove_prefix(comma + 1);
  }
  return std::nullopt;
}

// The value of a text, of the kind of the parameter's default.
std::optional<ParameterValue> parse(const ParameterValue& kind, const std::string& text) {
  if (std::holds_alternative<bool>(kind)) {
    if (text == "true" || text == "1" || text == "yes" || text == "on") return ParameterValue(true);
    if (text == "false" || text == "0" || text == "no" || text == "off") return ParameterValue(false);
    return std::nullopt;
  }
  if (std::holds_alternative<int64_t>(kind)) {
    const auto value = parse_number<int64_t>(text);
    return value ? std::optional<ParameterValue>(*value) : std::nullopt;
  }
  if (std::holds_alternative<double>(kind)) {
    const auto value = parse_number<double>(text);
    return value ? std::optional<ParameterValue>(*value) : std::nullopt;
  }
  if (std::holds_alternative<std::string>(kind)) return ParameterValue(text);
  return parse_list(text);
}

// The same from JSON; null switches a number or flag off, as records do ("se": null).
std::optional<ParameterValue> from_json(const ParameterValue& kind, const nlohmann::json& value) {
  const bool off = value.is_null();
  if (std::holds_alternative<bool>(kind)) {
    if (off || value.is_boolean()) return ParameterValue(!off && value.get<bool>());
  } else if (std::holds_alternative<int64_t>(kind)) {
    if (off || value.is_number_integer()) return ParameterValue(off ? int64_t{0} : value.get<int64_t>());
  } else if (std::holds_alternative<double>(kind)) {
    if (off || value.is_number()) return ParameterValue(off ? 0.0 : value.get<double>());
  } else if (std::holds_alternative<std::string>(kind)) {
    if (value.is_string()) return ParameterValue(value.get<std::string>());
  } else if (value.is_array() && value.size() <= kMaxListLength) {
    std::vector<int64_t> list;
    for (const nlohmann::json& item : value) {
      if (!item.is_number_integer()) return std::nullopt;
      list.push_back(item.get<int64_t>());
    }
    return list;
  }
  return std::nullopt;
}

// A default of 0 says that 0 makes sense; elsewhere numbers start at 1.
Status check_integers(const Parameter& parameter, const std::vector<int64_t>& values, int64_t least) {
  int64_t total = 0;
  for (const int64_t value : values) {
    if (value < least || value > kMaxInteger) {
      return Error{fmt::format("{} lies outside {} to {}", value, least, kMaxInteger), "parameter " + parameter.name,
                   parameter.help};
    }
    total += value;
  }
  if (counts_layers(parameter.name) && total > kMaxLayers) {
    return Error{fmt::format("{} layers are more than {}", total, kMaxLayers), "parameter " + parameter.name,
                 "build a shallower model"};
  }
  return {};
}

Status check_value(const Parameter& parameter, const ParameterValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    return check_integers(parameter, {*integer}, std::min<int64_t>(1, std::get<int64_t>(parameter.otherwise)));
  }
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    if (list->empty()) return Error{"an empty list", "parameter " + parameter.name, parameter.help};
    return check_integers(parameter, *list, 1);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    const bool probability = parameter.name.find("dropout") != std::string::npos;
    const double most = probability ? 1 : kMaxReal;
    if (!(*real >= 0 && *real <= most)) {
      return Error{fmt::format("{} lies outside 0 to {}", *real, most), "parameter " + parameter.name, parameter.help};
    }
  }
  return {};
}

// The input's parameters under the names that families give them.
struct InputField {
  const char* name;
  int64_t InputSpec::*member;
};
constexpr InputField kInputFields[] = {
    {"batch", &InputSpec::batch},      {"channels", &InputSpec::channels}, {"features", &InputSpec::channels},
    {"samples", &InputSpec::channels}, {"image", &InputSpec::size},        {"length", &InputSpec::size},
    {"classes", &InputSpec::classes},  {"vocab", &InputSpec::classes},
};

Result<Model> build_configured(const Family& family, Configuration configuration) {
  for (const Parameter& parameter : family.parameters) {
    const Status status = check_value(parameter, configuration.values().at(parameter.name));
    if (!status) return status.error().within("family " + family.name);
  }
  ForwardBuilder builder;
  family.build(builder, configuration);
  Result<Graph> forward = builder.finish();
  if (!forward) return forward.error().within("family " + family.name);
  InputSpec input{.kind = family.input, .flavour = family.input == InputKind::tokens ? family.flavour : ""};
  for (const InputField& field : kInputFields) {
    if (configuration.has(field.name)) input.*field.member = configuration.integer(field.name);
  }
  return Model{family.name, std::move(configuration), std::move(input), *std::move(forward), "", {}};
}

// Sets what the user gave on top of `configuration`.
Status apply_settings(const Family& family, const std::vector<std::pair<std::string, std::string>>& settings,
                      Configuration& configuration) {
  std::set<std::string_view> given;
  for (const auto& [key, text] : settings) {
    const Parameter* parameter = find_parameter(family, key);
    if (parameter == nullptr) return unknown_parameter(family, key);
    if (!given.insert(key).second) {
      return Error{fmt::format("{} is given twice", key), "family " + family.name, "give each parameter once"};
    }
    std::optional<ParameterValue> value = parse(parameter->otherwise, text);
    if (!value) return wrong_kind(*parameter, text).within("family " + family.name);
    configuration.set(key, *std::move(value));
  }
  return {};
}

Result<Model> build_described(DescribedModel described,
                              const std::vector<std::pair<std::string, std::string>>& settings) {
  if (const Status status = apply_settings(described.family, settings, described.parameters); !status.ok()) {
    return status.error();
  }
  Result<Model> model = build_configured(described.family, std::move(described.parameters));
  if (!model) return model;
  model->model_type = std::move(described.model_type);
  model->notes = std::move(described.notes);
  return model;
}

Error other_input(const Family& family, const InputSpec& input) {
  return {fmt::format("family {} takes {} input, the record has {}", family.name, name_of(family.input),
                      name_of(input.kind)),
          "", "correct the record's family or input"};
}

// A record's args are the config; its input says how it was fed.
Result<Model> build_recorded_config(const std::string& arguments, const InputSpec& input) {
  Result<HfConfig> config = HfConfig::parse(arguments, "args");
  if (!config) return config.error();
  Result<DescribedModel> described = described_model(*std::move(config));
  if (!described) return described.error();
  if (described->family.input != input.kind) return other_input(described->family, input);
  described->parameters.set("batch", input.batch);
  for (const char* name : {"length", "image"}) {
    if (described->parameters.has(name)) described->parameters.set(name, input.size);
  }
  if (described->parameters.has("samples")) described->parameters.set("samples", input.channels);
  return build_described(*std::move(described), {});
}

Result<Model> build_checkpoint(std::string_view name,
                               const std::vector<std::pair<std::string, std::string>>& settings) {
  Result<std::optional<Checkpoint>> checkpoint = find_checkpoint(name);
  if (!checkpoint) return checkpoint.error();
  if (!checkpoint->has_value()) {
    return Error{fmt::format("no model or family is called '{}'", name.substr(0, 80)), "",
                 did_you_mean(name, known_names()) + " `forerun zoo` lists them all"};
  }
  Result<HfConfig> config = HfConfig::parse((*checkpoint)->config, (*checkpoint)->names.front());
  if (!config) return config.error();
  Result<DescribedModel> described = described_model(*std::move(config));
  if (!described) return described.error();
  return build_described(*std::move(described), settings);
}

Configuration defaults_of(const Family& family) {
  Configuration configuration;
  for (const Parameter& parameter : family.parameters) configuration.set(parameter.name, parameter.otherwise);
  return configuration;
}

}  // namespace

std::vector<std::string> known_names() {
  std::vector<std::string> known;
  for (const Family& family : families()) known.push_back(family.name);
  for (const NamedModel& model : models()) known.push_back(model.name);
  for (std::string& name : timm_names()) known.push_back(std::move(name));
  if (const auto list = checkpoints()) {
    for (const Checkpoint& checkpoint : *list) {
      for (const std::string& name : checkpoint.names) known.push_back(name.substr(name.find('/') + 1));
    }
  }
  return known;
}

bool is_known_name(const std::string& name) {
  const auto named = [&](const auto& entry) { return entry.name == name; };
  if (std::any_of(models().begin(), models().end(), named) ||
      std::any_of(families().begin(), families().end(), named)) {
    return true;
  }
  if (zoo_name_of_timm(name)) return true;
  const auto checkpoint = find_checkpoint(name);
  return checkpoint && checkpoint->has_value();
}

int64_t Configuration::integer(const std::string& name) const { return get<int64_t>(values_, name); }
double Configuration::real(const std::string& name) const { return get<double>(values_, name); }
bool Configuration::flag(const std::string& name) const { return get<bool>(values_, name); }
const std::string& Configuration::text(const std::string& name) const { return get<std::string>(values_, name); }
const std::vector<int64_t>& Configuration::list(const std::string& name) const {
  return get<std::vector<int64_t>>(values_, name);
}

Result<Model> build(std::string_view name, const std::vector<std::pair<std::string, std::string>>& settings) {
  const auto named =
      std::find_if(models().begin(), models().end(), [&](const NamedModel& m) { return m.name == name; });
  const Family* family = find_family(named == models().end() ? name : named->family);
  if (family == nullptr) {
    const auto meant = zoo_name_of_timm(name);
    return meant ? build(*meant, settings) : build_checkpoint(name, settings);
  }
  Configuration configuration = defaults_of(*family);
  if (named != models().end()) {
    for (const auto& [key, value] : named->settings) {
      const Parameter* parameter = find_parameter(*family, key);
      CHECK(parameter != nullptr && parameter->otherwise.index() == value.index(), named->name + " sets " + key);
      configuration.set(key, value);
    }
  }
  if (const Status status = apply_settings(*family, settings, configuration); !status.ok()) return status.error();
  return build_configured(*family, std::move(configuration));
}

Result<Model> build_config(const std::string& path, const std::vector<std::pair<std::string, std::string>>& settings) {
  Result<HfConfig> config = HfConfig::read(path);
  if (!config) return config.error();
  Result<DescribedModel> described = described_model(*std::move(config));
  if (!described) return described.error();
  return build_described(*std::move(described), settings);
}

Result<Model> build_recorded(std::string_view family_name, const std::string& arguments, const InputSpec& input) {
  if (family_name == kConfigFamily) return build_recorded_config(arguments, input);
  const Family* family = find_family(family_name);
  if (family == nullptr) {
    std::vector<std::string> known;
    for (const Family& f : families()) known.push_back(f.name);
    return Error{fmt::format("no family is called '{}'", family_name.substr(0, 80)), "",
                 did_you_mean(family_name, known)};
  }
  if (family->input != input.kind) return other_input(*family, input);
  const nlohmann::json object = nlohmann::json::parse(arguments, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Error{"args is not a JSON object", "family " + family->name, "give {} for defaults"};
  Configuration configuration = defaults_of(*family);
  for (const InputField& field : kInputFields) {
    if (configuration.has(field.name)) configuration.set(field.name, input.*field.member);
  }
  for (const auto& [key, item] : object.items()) {
    const Parameter* parameter = find_parameter(*family, key);
    if (parameter == nullptr) return unknown_parameter(*family, key);
    std::optional<ParameterValue> value = from_json(parameter->otherwise, item);
    if (!value) {
      const std::string text = item.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      return wrong_kind(*parameter, text).within("family " + family->name);
    }
    configuration.set(key, *std::move(value));
  }
  Result<Model> model = build_configured(*family, std::move(configuration));
  if (model) model->input.flavour = input.flavour;
  return model;
}

}  // namespace forerun::zoo
