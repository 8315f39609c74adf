#include "report/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json_writer.h"
#include "report/table.h"

namespace forerun {
namespace {

std::string tera(double rate) { return rate > 0 ? fmt::format("{:.1f}", rate / 1e12) : "-"; }

int64_t op_count(const GpuEvidence& evidence) {
  int64_t count = 0;
  for (const auto& [kind, number] : evidence.ops) count += number;
  return count;
}

std::string error_text(const GpuEvidence& evidence) {
  if (!evidence.error) return "-";
  return (evidence.of == "own" ? "" : "~") + percent(*evidence.error, 0);
}

struct ValueText {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return fmt::format("{}", v); }
  std::string operator()(const std::string& v) const { return v; }
  std::string operator()(const std::vector<int64_t>& v) const { return fmt::format("{}", fmt::join(v, ",")); }
};

std::vector<std::string> models_of(const zoo::Family& family) {
  std::vector<std::string> models;
  for (const zoo::NamedModel& model : zoo::models()) {
    if (model.family == family.name) models.push_back(model.name);
  }
  return models;
}

FigureSources sources_of(const Link& link, const LinkSources& sources) {
  const auto found = sources.find(link.name);
  return found == sources.end() ? FigureSources{"not told", "not told"} : found->second;
}

}  // namespace

std::string devices_text(const DeviceCatalogue& devices, const GpuEvidences& evidences) {
  Table table(
      {"GPU", "names", "measured", "ops", "runs", "error", "CC", "SMs", "MHz", "GiB", "GB/s", "fp32", "tf32", "bf16"});
  table.align_left(1);
  for (const Device& d : devices.devices()) {
    const GpuEvidence evidence = evidences.of(d);
    table.add({d.name, fmt::format("{}", fmt::join(d.aliases, ", ")),
               d.measured == Measured::never ? "-" : std::string(name_of(d.measured)),
               evidence.ops.empty() ? "-" : grouped(op_count(evidence)),
               evidence.runs > 0 ? grouped(evidence.runs) : "-", error_text(evidence),
               d.compute_capability > 0 ? d.capability_text() : "-", fmt::format("{}", d.sm_count),
               fmt::format("{:.0f}", d.clock_mhz), fmt::format("{:.0f}", gibibytes(d.memory)),
               fmt::format("{:.0f}", d.memory_bandwidth / 1e9), tera(d.peak.fp32), tera(d.peak.tf32_tensor),
               tera(d.peak.bf16_tensor)});
  }
  return table.text("") +
         "\nmeasured: here, or in tables of others; times on the other GPUs are carried over from those."
         "\nops, runs: single ops that were timed there, and whole models that judge it. error: to expect in the mean, "
         "from runs on GPUs"
         "\nleft out of all fits: its own, ~ of those as far from what was measured (forerun eval --suite gpus); "
         "--json has kinds."
         "\nCC: compute capability. Rates in TFLOP/s, dense. Sources: data/devices. Add a GPU with --device-file "
         "FILE.\n";
}

std::string links_text(const DeviceCatalogue& devices, const LinkSources& sources) {
  Table table({"link", "names", "GB/s", "latency us", "sources"});
  table.align_left(1);
  table.align_left(4);
  std::vector<std::string> named;  // sources in the order of the table
  const auto number_of = [&](const std::string& source) {
    const auto found = std::find(named.begin(), named.end(), source);
    const auto place = found - named.begin();
    if (found == named.end()) named.push_back(source);
    return place + 1;
  };
  for (const Link& link : devices.links()) {
    const FigureSources of = sources_of(link, sources);
    const auto rate = number_of(of.bandwidth), latency = number_of(of.latency);
    table.add({link.name, fmt::format("{}", fmt::join(link.aliases, ", ")), fmt::format("{:g}", link.bandwidth / 1e9),
               fmt::format("{:g}", microseconds(link.latency)),
               rate == latency ? fmt::format("[{}]", rate) : fmt::format("[{}] [{}]", rate, latency)});
  }
  std::string text = table.text("");
  text += "\nSources of rate and latency\n";
  for (size_t i = 0; i < named.size(); ++i) text += fmt::format("  [{}] {}\n", i + 1, named[i]);
  return text +
         "\nOne direction, before protocol overhead; NVLink: of one GPU, to all others of its domain. "
         "Several side by side: 8xndr."
         "\nAdd links of your own with --device-file FILE (links/1).\n";
}

std::string to_json(const Device& device, const GpuEvidence& evidence) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.devices/1")
      .field("name", device.name)
      .field("aliases", device.aliases)
      .field("architecture", device.architecture)
      .field("compute_capability", device.capability_text())
      .field("measured", name_of(device.measured));
  if (device.power_w > 0) json.field("power_w", device.power_w);
  json.field("sm_count", device.sm_count)
      .field("clock_mhz", device.clock_mhz)
      .field("memory", device.memory.value)
      .field("memory_bandwidth", device.memory_bandwidth)
      .field("fp32", device.peak.fp32)
      .field("tf32_tensor", device.peak.tf32_tensor)
      .field("bf16_tensor", device.peak.bf16_tensor)
      .field("file", std::filesystem::path(device.file).filename().string());
  json.key("evidence").begin_object().key("ops").begin_object();
  for (const auto& [kind, number] : evidence.ops) json.field(kind, number);
  json.end_object().field("runs", evidence.runs);
  if (evidence.error) json.field("expected_error", *evidence.error).field("expected_from", evidence.of);
  return json.end_object().end_object().take();
}

std::string to_json(const Link& link, const LinkSources& sources) {
  const FigureSources of = sources_of(link, sources);
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.devices.links/1")
      .field("name", link.name)
      .field("aliases", link.aliases)
      .field("bandwidth", link.bandwidth)
      .field("latency_us", microseconds(link.latency))
      .field("bandwidth_source", of.bandwidth)
      .field("latency_source", of.latency);
  return json.end_object().take();
}

namespace {

std::string family_text(const zoo::Family& family, const std::vector<std::string>& models) {
  std::string text = fmt::format("{}: {}\n", family.name, family.description);
  if (!models.empty()) text += fmt::format("  models: {}\n", fmt::join(models, ", "));
  Table table({"parameter", "default", ""});
  table.align_left(1);
  table.align_left(2);
  for (const zoo::Parameter& p : family.parameters) table.add({p.name, std::visit(ValueText{}, p.otherwise), p.help});
  return text + table.text();
}

std::string family_json(const zoo::Family& family, const std::vector<std::string>& models) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.zoo/1")
      .field("family", family.name)
      .field("description", family.description)
      .field("input", name_of(family.input))
      .field("models", models)
      .key("parameters")
      .begin_array();
  for (const zoo::Parameter& p : family.parameters) {
    json.begin_object()
        .field("name", p.name)
        .field("default", std::visit(ValueText{}, p.otherwise))
        .field("help", p.help)
        .end_object();
  }
  return json.end_array().end_object().take();
}

// The family of a model type under the type's own name.
zoo::Family family_of(const zoo::Architecture& architecture) {
  zoo::Family family = architecture.family();
  family.name = architecture.model_type;
  return family;
}

std::vector<std::string> names_of_type(const std::string& model_type, const std::vector<zoo::Checkpoint>& checkpoints) {
  std::vector<std::string> names;
  for (const zoo::Checkpoint& checkpoint : checkpoints) {
    if (checkpoint.model_type != model_type) continue;
    names.insert(names.end(), checkpoint.names.begin(), checkpoint.names.end());
  }
  return names;
}

}  // namespace

std::string to_text(const zoo::Family& family) { return family_text(family, models_of(family)); }
std::string to_json(const zoo::Family& family) { return family_json(family, models_of(family)); }

std::string to_text(const zoo::Architecture& architecture, const std::vector<zoo::Checkpoint>& checkpoints) {
  return family_text(family_of(architecture), names_of_type(architecture.model_type, checkpoints));
}

std::string to_json(const zoo::Architecture& architecture, const std::vector<zoo::Checkpoint>& checkpoints) {
  return family_json(family_of(architecture), names_of_type(architecture.model_type, checkpoints));
}

std::string to_text(const zoo::Checkpoint& checkpoint) {
  return fmt::format("{}: {} of {} parameters\n  names: {}\n  config: {}\n", checkpoint.names.front(),
                     checkpoint.model_type, checkpoint.parameters, fmt::join(checkpoint.names, ", "),
                     checkpoint.config);
}

std::string config_models_text(const std::vector<zoo::Checkpoint>& checkpoints) {
  std::string text = "Hugging Face config.json files of these model types, and public checkpoints by name\n";
  for (const zoo::Architecture& architecture : zoo::architectures()) {
    const std::vector<std::string> names = names_of_type(architecture.model_type, checkpoints);
    text += fmt::format("  {}{}{}\n", architecture.model_type, names.empty() ? "" : ": ", fmt::join(names, ", "));
  }
  return text;
}

}  // namespace forerun
