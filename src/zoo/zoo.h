// The model zoo: model configuration -> forward graph.
//
// A family (resnet, gpt2, ...) is one file with a list of parameters, their defaults, and a build function; a model
// (resnet50) is a family with some parameters set. Defaults and structure are those of torchvision and transformers.
// Every family also has the input's parameters (batch, image, channels, classes, or batch, length, vocab).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "graph/forward_builder.h"
#include "graph/training_run.h"

namespace forerun::zoo {

using ParameterValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>>;

struct Parameter {
  std::string name;
  ParameterValue otherwise;  // the default; it also fixes the kind of value
  std::string help;
};

// The values a model is built from: the family's defaults with what the model and the user set.
class Configuration {
 public:
  void set(const std::string& name, ParameterValue value) { values_[name] = std::move(value); }
  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  // A missing name or another kind is our fault: a family reads only what it declares.
  [[nodiscard]] int64_t integer(const std::string& name) const;
  [[nodiscard]] double real(const std::string& name) const;
  [[nodiscard]] bool flag(const std::string& name) const;
  [[nodiscard]] const std::string& text(const std::string& name) const;
  [[nodiscard]] const std::vector<int64_t>& list(const std::string& name) const;
  [[nodiscard]] const std::map<std::string, ParameterValue>& values() const { return values_; }

 private:
  std::map<std::string, ParameterValue> values_;
};

struct Family {
  std::string name;
  std::string description;  // one line for `forerun zoo`
  InputKind input = InputKind::image;
  std::string flavour = "lm";  // of tokens: "hf" for transformers models, whose loop keeps no reference to the logits
  std::vector<Parameter> parameters;  // its own and the input's
  // Appends the model's ops to `builder`, from its inputs to `builder.result(logits)`.
  // Values that make no sense are reported with builder.fail(what, remedy).
  void (*build)(ForwardBuilder& builder, const Configuration& configuration) = nullptr;
};

struct NamedModel {
  std::string name;    // "resnet50"
  std::string family;  // "resnet"
  std::vector<std::pair<std::string, ParameterValue>> settings;
};

// All of them, in the order `forerun zoo` shows.
const std::vector<Family>& families();
const std::vector<NamedModel>& models();

// The names that `build` takes: families, models, timm's names for them (timm_names.h) and public checkpoints
// (checkpoints.h), without their organisations.
std::vector<std::string> known_names();
bool is_known_name(const std::string& name);

struct Model {
  std::string family;
  Configuration configuration;
  InputSpec input;
  Graph forward;
  std::string model_type;          // of a config; empty for names of the zoo
  std::vector<std::string> notes;  // of a config: what was assumed of it

  // What answers call it.
  [[nodiscard]] const std::string& shown_family() const { return model_type.empty() ? family : model_type; }
};

// Builds a model, family or public checkpoint by name, with parameters as text from the command line ("batch" -> "64", "layers" -> "3,4,6,3").
// Unknown names and values of the wrong kind are errors that name the nearest known ones.
Result<Model> build(std::string_view name, const std::vector<std::pair<std::string, std::string>>& settings);

// The same of a Hugging Face config.json; `architectures.h` lists the model types.
Result<Model> build_config(const std::string& path, const std::vector<std::pair<std::string, std::string>>& settings);

// The family of records whose `args` are a config: models of the transformers library.
inline constexpr std::string_view kConfigFamily = "transformers";

// Builds the model of a run record: its family, `args` (a JSON object) and input.
Result<Model> build_recorded(std::string_view family, const std::string& arguments, const InputSpec& input);

}  // namespace forerun::zoo
