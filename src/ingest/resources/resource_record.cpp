#include "ingest/resources/resource_record.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/line_reader.h"

namespace forerun {
namespace {

using ResourceJson = nlohmann::json;

constexpr const char* kResourceRemedy = "leave the record out, or measure it again with forerun.testbed";

Error broken_resource(const std::string& what) { return {what, "", kResourceRemedy}; }

Result<std::string> word_in(const ResourceJson& record, const char* field) {
  const auto found = record.find(field);
  if (found == record.end() || !found->is_string()) return broken_resource(std::string("no text stands in ") + field);
  return found->get<std::string>();
}

Result<double> amount_in(const ResourceJson& record, const char* field) {
  const auto found = record.find(field);
  if (found == record.end() || !found->is_number()) return broken_resource(std::string("no number stands in ") + field);
  const double value = found->get<double>();
  if (!std::isfinite(value) || value < 0 || value > 1e18) {
    return broken_resource(std::string("the number in ") + field + " makes no sense");
  }
  return value;
}

BurstPattern pattern_in(const ResourceJson& figures) {
  const auto found = figures.find("pattern");
  if (found == figures.end() || !found->is_string()) return BurstPattern::unknown;
  return *found == "I"     ? BurstPattern::idle
         : *found == "BIB" ? BurstPattern::alternating
         : *found == "B"   ? BurstPattern::burst
                           : BurstPattern::unknown;
}

Result<BurstFigures> figures_in(const ResourceJson& metrics, const char* resource) {
  const auto found = metrics.find(resource);
  if (found == metrics.end() || !found->is_object()) {
    return broken_resource(std::string("there are no metrics of ") + resource);
  }
  const auto idle = amount_in(*found, "idle_ms");
  if (!idle) return idle.error();
  const auto burst = amount_in(*found, "burst_ms");
  if (!burst) return burst.error();
  const auto amount = amount_in(*found, "amount");
  if (!amount) return amount.error();
  return BurstFigures{*idle, *burst, *amount, pattern_in(*found)};
}

// These are for those who fit constants; no prediction needs them, so they may be missing.
MeasuredSteps steps_in(const ResourceJson& record) {
  MeasuredSteps steps;
  const std::tuple<const char*, const char*, double*> fields[] = {{"phases_ms", "compute", &steps.compute},
                                                                  {"phases_ms", "to_host", &steps.to_host},
                                                                  {"phases_ms", "exchange", &steps.exchange},
                                                                  {"phases_ms", "to_device", &steps.to_device},
                                                                  {"phases_ms", "server_update", &steps.server_update},
                                                                  {"levels", "gpu", &steps.gpu_level},
                                                                  {"levels", "memory", &steps.memory_level}};
  for (const auto& [part, field, into] : fields) {
    const auto found = record.find(part);
    if (found == record.end() || !found->is_object()) continue;
    if (const auto value = amount_in(*found, field)) *into = *value;
  }
  return steps;
}

// The mean milliseconds of an iteration in which any worker computes; -1 where a record does not tell.
double computing_in(const ResourceJson& record) {
  const auto window = amount_in(record, "window_ms");
  const auto iterations = amount_in(record, "iterations");
  const auto series = record.find("series");
  if (!window || !iterations || !(*iterations > 0) || series == record.end() || !series->is_object()) return -1;
  const auto compute = series->find("compute");
  if (compute == series->end() || !compute->is_array() || compute->empty()) return -1;
  double sum = 0;
  for (const ResourceJson& value : *compute) sum += value.is_number() ? value.get<double>() : 0;
  return sum / static_cast<double>(compute->size()) / 100 * *window / *iterations;
}

// Of a record that saw kernels: times of the workers' clocks, with the levels that counters had meanwhile.
void add_clocks(const ResourceJson& metrics, MeasuredResources& measured) {
  const auto compute = figures_in(metrics, "compute");
  if (!compute) return;
  const double levels[] = {measured.steps.gpu_level, measured.steps.memory_level};
  for (size_t i = 0; i < measured.by_clocks.size(); ++i) {
    measured.by_clocks[i] = *compute;
    measured.by_clocks[i].amount *= std::max(0.0, levels[i]) / 100;
  }
}

Result<MeasuredResources> measured_in(const ResourceJson& record) {
  const auto metrics = record.find("metrics");
  if (metrics == record.end() || !metrics->is_object()) return broken_resource("there are no metrics");
  MeasuredResources measured;
  for (size_t i = 0; i < kMeasuredResources.size(); ++i) {
    const auto figures = figures_in(*metrics, kMeasuredResources[i]);
    if (!figures) return figures.error();
    measured.metrics[i] = *figures;
  }
  const auto times = record.find("iteration_ms");
  if (times == record.end() || !times->is_array() || times->empty())
    return broken_resource("iteration_ms has no times");
  for (const ResourceJson& time : *times) {
    if (!time.is_number()) return broken_resource("iteration_ms holds what is no number");
    measured.iteration_ms += time.get<double>() / static_cast<double>(times->size());
  }
  measured.steps = steps_in(record);
  measured.by_clocks = {measured.metrics[0], measured.metrics[1]};
  if (const auto seen = word_in(record, "gpu_times"); seen && *seen == "kernels") {
    measured.gpu_times = GpuTimes::kernels;
    add_clocks(*metrics, measured);
  }
  measured.computing_ms = computing_in(record);
  return measured;
}

// The part of the record that a run record has too.
Result<RunRecord> described_in(const ResourceJson& record, RunDecoder& decoder) {
  ResourceJson head;
  for (const char* field : {"id", "family", "args", "input", "run"}) {
    if (!record.contains(field)) return broken_resource(std::string("the field ") + field + " is missing");
    head[field] = record[field];
  }
  head["params"] = 0;  // which the zoo tells
  std::string text = head.dump(-1, ' ', false, ResourceJson::error_handler_t::replace);
  const size_t length = text.size();
  text.append(LineReader::kPadding, ' ');
  auto described = decoder.decode(std::string_view(text).substr(0, length), Fields::description);
  if (!described) return described.error();
  described->has_graph = false;
  return described;
}

Result<ResourceRecord> record_in(const ResourceJson& json, RunDecoder& decoder) {
  auto described = described_in(json, decoder);
  if (!described) return described.error();
  ResourceRecord record;
  record.described = std::move(*described);
  record.id = record.described.run.id;
  const std::pair<const char*, std::string*> words[] = {
      {"model", &record.model}, {"setting", &record.setting}, {"mode", &record.mode}};
  for (const auto& [field, into] : words) {
    auto word = word_in(json, field);
    if (!word) return word.error();
    *into = std::move(*word);
  }
  if (const auto tcp = word_in(json, "tcp")) record.tcp = *tcp;
  if (const auto environment = json.find("env"); environment != json.end() && environment->is_object()) {
    if (const auto host = word_in(*environment, "host")) record.host = *host;
  }
  const auto servers = amount_in(json, "servers");
  if (!servers) return servers.error();
  const auto workers = amount_in(json, "workers");
  if (!workers) return workers.error();
  const auto rate = amount_in(json, "link_bits_per_second");
  if (!rate) return rate.error();
  if (*workers < 1 || *rate <= 0) return broken_resource("a setting has workers and links");
  record.servers = static_cast<int64_t>(*servers);
  record.workers = static_cast<int64_t>(*workers);
  record.bits_per_second = *rate;
  if (const auto repeat = amount_in(json, "repeat")) record.repeat = static_cast<int64_t>(*repeat);
  if (const auto parameters = amount_in(json, "parameters")) record.parameters = *parameters;
  auto measured = measured_in(json);
  if (!measured) return measured.error();
  record.measured = *measured;
  return record;
}

bool is_good_resource(const ResourceJson& json) {
  const auto is = [&](const char* field, const char* value) {
    const auto found = json.find(field);
    return found != json.end() && found->is_string() && *found == value;
  };
  return is("schema", "resources/1") && is("status", "ok") && json.contains("setting");
}

}  // namespace

std::string table_setting(const ResourceRecord& record) {
  return record.setting + (record.tcp == "default" ? "-default" : "");
}

std::string divided_setting(const ResourceRecord& record) {
  if (record.tcp == "default") return table_setting(record);
  constexpr const char* kSuffixes[] = {"", "-even", "-first", "-last"};
  return record.setting + kSuffixes[static_cast<size_t>(record.links)];
}

Result<ResourceRecord> ResourceReader::decode(std::string_view line) {
  const ResourceJson json = ResourceJson::parse(line, nullptr, false);
  if (!json.is_object()) return broken_resource("is no JSON object");
  return record_in(json, decoder_);
}

Status ResourceReader::read(const std::string& path, const std::function<void(ResourceRecord&&)>& record,
                            const std::function<void(const Error&)>& bad_record) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  while (true) {
    const auto line = lines->next();
    if (!line) return line.error();
    if (!*line) return {};
    if (is_blank(**line)) continue;
    const std::string where = path + ", line " + std::to_string(lines->line_number());
    const ResourceJson json = ResourceJson::parse(**line, nullptr, false);
    if (!json.is_object()) {
      bad_record(broken_resource("is no JSON object").within(where));
      continue;
    }
    if (!is_good_resource(json)) continue;
    auto read = record_in(json, decoder_);
    if (read) {
      record(std::move(*read));
    } else {
      bad_record(read.error().within(where));
    }
  }
}

}  // namespace forerun
