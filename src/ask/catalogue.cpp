// What questions can be asked of: GPUs, links, models, optimizations.
#include "api/catalogue.h"

#include "ask/answers.h"
#include "base/json_writer.h"
#include "report/catalogue.h"
#include "whatif/optimizations.h"

namespace forerun::ask {

Result<std::string> answer_devices(Question& question, const Asking& asking) {
  const auto device_files = question.texts("device_files");
  if (const Status status = question.status(); !status.ok()) return status.error();
  const auto models = asking.knowledge.with(device_files);
  if (!models) return models.error();
  const auto evidences = GpuEvidences::load(**models);
  if (!evidences) return evidences.error();
  std::string lines;
  for (const Device& device : (*models)->devices.devices()) lines += to_json(device, evidences->of(device)) + "\n";
  return lines;
}

Result<std::string> answer_links(Question& question, const Asking& asking) {
  if (const Status status = question.status(); !status.ok()) return status.error();
  const auto models = asking.knowledge.with();
  if (!models) return models.error();
  const auto sources = load_link_sources();
  if (!sources) return sources.error();
  std::string lines;
  for (const Link& link : (*models)->devices.links()) lines += to_json(link, *sources) + "\n";
  return lines;
}

Result<std::string> answer_models(Question& question, const Asking& /*asking*/) {
  if (const Status status = question.status(); !status.ok()) return status.error();
  const auto checkpoints = zoo::checkpoints();
  if (!checkpoints) return checkpoints.error();
  std::string lines;
  for (const zoo::Family& family : zoo::families()) lines += to_json(family) + "\n";
  for (const zoo::Architecture& architecture : zoo::architectures()) {
    lines += to_json(architecture, *checkpoints) + "\n";
  }
  return lines;
}

Result<std::string> answer_optimizations(Question& question, const Asking& /*asking*/) {
  if (const Status status = question.status(); !status.ok()) return status.error();
  JsonWriter json;
  json.begin_array();
  for (const whatif::Optimization& one : whatif::optimizations()) {
    json.begin_object().field("name", one.name).field("summary", one.summary).key("parameters").begin_array();
    for (const auto& parameter : one.parameters) json.value(std::string(parameter));
    json.end_array().end_object();
  }
  return json.end_array().take();
}

}  // namespace forerun::ask
