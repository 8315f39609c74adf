#include "lab/eval/other_gpus_training.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/data_dir.h"
#include "base/datasets.h"
#include "device/catalogue.h"
#include "lab/dataset/weights_files.h"
#include "lab/eval/other_gpus_judging.h"
#include "lab/training_data/other_gpu_tables.h"

namespace forerun {
namespace {

Result<std::vector<std::string>> names_of(const std::vector<std::string>& gpus, const DeviceCatalogue& devices) {
  std::vector<std::string> names;
  for (const std::string& gpu : gpus) {
    const auto device = devices.find(gpu);
    if (!device) return device.error().within("--without");
    names.push_back(device->name);
  }
  return names;
}

learn::ErrorSummary error_on(const std::vector<std::string>& left_out, const learn::TimedWorkTable& table,
                             learn::OtherGpuPredictor& predictor) {
  const SharedOps shared(table);
  const std::vector<bool> used = learn::gpus_used(table, left_out);
  std::vector<size_t> origins;
  for (size_t gpu = 0; gpu < used.size(); ++gpu) {
    if (used[gpu]) origins.push_back(gpu);
  }
  std::vector<learn::PredictedPair> all;
  for (size_t gpu = 0; gpu < used.size(); ++gpu) {
    if (used[gpu]) continue;
    std::vector<JudgedOp> ops;
    for (const learn::TimedWork& row : table.rows) {
      if (row.gpu == gpu && row.us >= kShortestJudgedUs) ops.push_back({"all", row.op, row.work, row.us});
    }
    for (const auto& [kind, pairs] : judge_ops(predictor, ops, table.devices[gpu], table, shared, origins)) {
      all.insert(all.end(), pairs.begin(), pairs.end());
    }
  }
  return learn::summarize(all);
}

Status keep(const OtherGpuTraining& request, const OtherGpuTrainingOutcome& outcome,
            const learn::OtherGpuPredictor& predictor) {
  std::error_code code;
  std::filesystem::create_directories(request.out, code);
  if (code) return Error{"the folder cannot be made", request.out, code.message()};
  if (Status status = predictor.save(request.out); !status.ok()) return status;
  nlohmann::json card = {{"predictor", request.predictor},
                         {"trained_on", outcome.source},
                         {"seed", request.options.seed},
                         {"training_seconds", outcome.seconds}};
  if (outcome.left_out.count > 0) card["left_out"] = {{"gpus", request.without}, {"mre", outcome.left_out.mre}};
  return learn::write_json(request.out, "card.json", card);
}

}  // namespace

Result<OtherGpuTrainingOutcome> train_other_gpus(const OtherGpuTraining& request, const WorkControl& control) {
  auto predictor = learn::make_other_gpu_predictor(request.predictor);
  if (!predictor) return predictor.error();
  const auto data = data_dir();
  if (!data) return data.error();
  const auto devices = load_devices(*data / "devices");
  if (!devices) return devices.error();
  std::string folder = request.ops;
  if (folder.empty()) {
    const auto found = dataset("neusight");
    if (!found) return found.error();
    folder = found->string();
  }
  const auto without = names_of(request.without, *devices);
  if (!without) return without.error();
  const auto table = load_other_gpu_tables(folder, *devices, control);
  if (!table) return table.error();
  const auto log = (*predictor)->train(*table, *without, request.options);
  if (!log) return log.error();
  OtherGpuTrainingOutcome outcome{.predictor = request.predictor,
                                  .source = table->source,
                                  .out = request.out,
                                  .ops = static_cast<int64_t>(table->rows.size()),
                                  .seconds = log->seconds};
  for (const std::string& gpu : *without) outcome.source += ", without " + gpu;
  if (!without->empty()) outcome.left_out = error_on(*without, *table, **predictor);
  if (!request.out.empty()) {
    if (const Status status = keep(request, outcome, **predictor); !status.ok()) return status.error();
  }
  return outcome;
}

std::string to_text(const OtherGpuTrainingOutcome& outcome) {
  std::string text = fmt::format("{}: trained on {} in {:.0f} s\n", outcome.predictor, outcome.source, outcome.seconds);
  if (outcome.left_out.count > 0) {
    text += fmt::format("  GPUs left out: MRE {:.1f} %, median {:.1f} %, bias {:+.1f} %, over {} cases\n",
                        100 * outcome.left_out.mre, 100 * outcome.left_out.median, 100 * outcome.left_out.bias,
                        outcome.left_out.count);
  }
  if (!outcome.out.empty()) text += fmt::format("  kept in {}\n", outcome.out);
  return text;
}

std::string to_json(const OtherGpuTrainingOutcome& outcome) {
  nlohmann::ordered_json json = {{"predictor", outcome.predictor},
                                 {"trained_on", outcome.source},
                                 {"ops", outcome.ops},
                                 {"seconds", outcome.seconds},
                                 {"out", outcome.out}};
  if (outcome.left_out.count > 0) json["left_out"] = {{"cases", outcome.left_out.count}, {"mre", outcome.left_out.mre}};
  return json.dump();
}

}  // namespace forerun
