#include "lab/ask/ask_resources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "base/nearest.h"
#include "ingest/resources/link_state.h"
#include "lab/dataset/driple/resource_predictor.h"
#include "lab/dataset/weights_files.h"
#include "lab/training_data/driple_builder.h"
#include "lab/training_data/driple_data.h"
#include "records/data_split.h"
#include "testbed/resource_setting.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMeasuredGpu = "NVIDIA H200";
constexpr const char* kClocksNote =
    "it learned from records whose GPU times come from the workers' clocks: memory's idle and burst it learned from "
    "the "
    "simulation, and memory's error is that of the amount (in P2w2-10G and P1w2-40G of all three)";
constexpr const char* kLinksNote =
    "it tells the mean over how links come to be shared, which nobody knows before a run; the simulation above has one "
    "worker favoured";

struct DripleCard {
  std::vector<std::string> knows;  // settings
  std::string trained_on;
  std::map<std::string, std::vector<double>> judged;  // by setting: mean errors of the four resources
};

Result<DripleCard> read_card(const std::string& folder) {
  const auto json = learn::read_json(folder, "card.json", {"knows", "trained_on", "judged"});
  if (!json) return json.error();
  try {
    return DripleCard{json->at("knows").get<std::vector<std::string>>(), json->at("trained_on").get<std::string>(),
                      json->at("judged").get<std::map<std::string, std::vector<double>>>()};
  } catch (const nlohmann::json::exception& error) {
    return Error{std::string("the card of the weights makes no sense: ") + error.what(), folder,
                 "name a folder that `forerun train driple` wrote"};
  }
}

// Settings that can be asked about: others are told apart in records alone ("P1w2-10G-default").
std::vector<std::string> askable_settings(const DripleCard& card) {
  std::vector<std::string> settings;
  std::copy_if(card.knows.begin(), card.knows.end(), std::back_inserter(settings),
               [](const std::string& name) { return scale::resource_setting(name).ok(); });
  return settings;
}

// What the weights cannot tell.
Status check_question(const ResourceQuestion& question, const DripleCard& card, const Device& gpu) {
  if (gpu.name != kMeasuredGpu) {
    return Error{
        fmt::format("driple was trained on an {} and cannot tell how training goes on '{}'", kMeasuredGpu, gpu.name),
        "--gpu", "ask about an h200, or without --with, for the simulation"};
  }
  if (question.own_gpus || question.overlap) {
    return Error{"driple was trained on workers that share one GPU and exchange gradients after computing",
                 "--own-gpus", "leave it out, or ask without --with"};
  }
  if (std::find(card.knows.begin(), card.knows.end(), question.setting) == card.knows.end()) {
    return Error{
        fmt::format("driple was not trained on the setting '{}'", question.setting), "--testbed",
        fmt::format("it knows {}; without --with the simulation answers", fmt::join(askable_settings(card), ", "))};
  }
  return {};
}

// The workload as a record would name it.
Result<ResourceRecord> asked_record(const ResourceQuestion& question, const Device& gpu) {
  const auto setting = scale::resource_setting(question.setting);
  if (!setting) return setting.error();
  auto run = worker_run(question, gpu);
  if (!run) return run.error();
  ResourceRecord record;
  record.id = record.model = question.model;
  record.setting = question.setting;
  record.mode = setting->servers == 0 ? "allreduce" : question.async ? "async" : "sync";
  record.tcp = "reno";
  record.servers = setting->servers;
  record.workers = setting->workers;
  record.bits_per_second = setting->bits_per_second;
  record.parameters = static_cast<double>(run->graph.parameter_count());
  record.described.run = std::move(*run);
  record.described.has_graph = true;
  return record;
}

// The workload, and whether its setting's links are shared now in one way and now in another.
struct AskedWorkload {
  learn::ResourceData data;
  bool links_differ = false;
};

Result<AskedWorkload> data_of(const ResourceRecord& record, const Device& gpu, const CostModels& cost_models,
                              const fs::path& data) {
  const auto rates = testbed_rates();
  if (!rates) return rates.error();
  auto split = DataSplit::beside({(data / "h200" / DataSplit::kFile).string()});
  if (!split) return split.error();
  DripleWorkloadBuilder builder(cost_models, gpu, *rates, std::move(*split));
  auto records = driple_records({});  // which tell how links come to be shared
  if (records) {
    mark_links(*records, [&](const std::string& family) { return builder.trains_on(family); });
    builder.learn_link_states(*records);
  }
  if (const Status status = builder.add_asked(record); !status.ok()) return status.error();
  const bool differ = builder.links_differ(record);
  return AskedWorkload{std::move(builder).finish(), differ};
}

}  // namespace

const std::vector<std::string>& askable_resource_predictors() {
  static const std::vector<std::string> names = {"driple", "driple+simulation"};
  return names;
}

Result<LearnedResources> ask_resources(const std::string& name, const std::string& weights,
                                       const ResourceQuestion& question, const CostModels& cost_models) {
  const std::vector<std::string>& known = askable_resource_predictors();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    return Error{"there is no learned predictor of resources '" + name + "' to ask", "--with",
                 did_you_mean(name, known)};
  }
  const auto data = data_dir();
  if (!data) return data.error();
  const std::string folder = weights.empty() ? (*data / "weights" / name).string() : weights;
  auto driple = learn::make_driple();
  if (!driple) return driple.error();
  const auto card = read_card(folder);
  if (!card) return card.error();
  const auto gpu = asked_gpu(question.gpu, cost_models);
  if (!gpu) return gpu.error();
  if (const Status status = check_question(question, *card, *gpu); !status.ok()) return status.error();
  if (const Status status = (*driple)->load(folder); !status.ok()) return status.error();
  const auto record = asked_record(question, *gpu);
  if (!record) return record.error();
  const auto workload = data_of(*record, *gpu, cost_models, *data);
  if (!workload) return workload.error();
  LearnedResources answer{.predictor = name};
  answer.figures = (*driple)->predict(workload->data, {0})[0];
  answer.trained_on = card->trained_on;
  answer.notes = {kClocksNote};
  if (workload->links_differ) answer.notes.emplace_back(kLinksNote);
  if (const auto judged = card->judged.find(question.setting); judged != card->judged.end()) {
    answer.judged = judged->second;
  }
  return answer;
}

}  // namespace forerun
