#include "lab/calibrate/device_ops.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "cost/analytic/analytic.h"
#include "cost/hybrid/lane_convolution.h"
#include "lab/papers/ets/ets_trace.h"
#include "lab/papers/neusight/model_ops.h"
#include "lab/papers/neusight/op_latency.h"
#include "lab/training_data/measured_ops.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr double kShortestUs = 50;
constexpr double kOverLaunching = 2;         // NeuSight's latencies hold tens of microseconds of launching
constexpr double kShortestInModelsUs = 100;  // how much of these is launching, their tables do not tell
constexpr int32_t kEtsConvolution = 203;

std::string kind_name(const std::string& kind) {
  if (kind == "bmm" || kind == "linear") return kMatrixProduct;
  if (kind == "conv") return "convolution";
  if (kind == "conv, backward") return "convolution, backward";
  if (kind == "ln") return "layer norm";
  return kind == "softmax" ? "softmax" : kElementwise;
}

std::string kind_in_models(const std::string& kind) { return kind_name(kind) + std::string(hybrid::kInModels); }

// Every so many, so that `most` remain, in their order.
template <class Item>
std::vector<Item> thinned(std::vector<Item> items, size_t most) {
  if (items.size() <= most) return items;
  std::vector<Item> kept;
  for (size_t i = 0; i < most; ++i) kept.push_back(std::move(items[i * items.size() / most]));
  return kept;
}

std::optional<SampleTensor> tensor(Shape shape) { return SampleTensor{DType::float32, std::move(shape), std::nullopt}; }

// N, C, H, W, channels out, height and width out, window, padding, stride and dilation (two each), groups.
std::optional<DeviceOp> convolution_of(const EtsOp& op, const std::string& gpu) {
  if (op.type != kEtsConvolution || op.dtype != DType::float32 || op.gpu_us < kShortestUs) return std::nullopt;
  Shape p;
  for (const float value : op.parameters) p.push_back(static_cast<int64_t>(value));
  if (std::any_of(p.begin(), p.begin() + 9, [](int64_t extent) { return extent < 1; }) || p[15] < 1 ||
      p[1] % p[15] != 0)
    return std::nullopt;
  const bool backward = op.phase == Phase::backward;
  if (backward && p[1] <= 3) return std::nullopt;  // the first layer has no gradient of its input
  const auto x = tensor({p[0], p[1], p[2], p[3]});
  const auto w = tensor({p[4], p[1] / p[15], p[7], p[8]});
  const auto y = tensor({p[0], p[4], p[5], p[6]});
  DeviceOp result{.gpu = gpu, .kind = kind_in_models(backward ? "conv, backward" : "conv"), .sample = {}};
  OpSample& sample = result.sample;
  sample.us = op.gpu_us;
  sample.attributes.set("stride", Shape{p[11], p[12]});
  sample.attributes.set("padding", Shape{p[9], p[10]});
  sample.attributes.set("dilation", Shape{p[13], p[14]});
  sample.attributes.set("groups", p[15]);
  sample.attributes.set("transposed", false);
  if (backward) {
    sample.op = "aten.convolution_backward.default";
    sample.inputs = {y, x, w};
    sample.outputs = {x, w};
    sample.attributes.set("output_mask", std::vector<bool>{true, true, false});
  } else {
    sample.op = "aten.convolution.default";
    sample.inputs = {x, w};
    sample.outputs = {y};
  }
  return result;
}

// The board as it was measured: without TF32.
struct Board {
  Device device;
  Device sustaining;  // without its cache
};

Board board_of(const Device& device, const hybrid::DeviceScale& scale) {
  Board board{device, {}};
  board.device.peak.tf32_tensor = 0;
  board.sustaining = hybrid::without_cache(scale.sustaining(board.device));
  return board;
}

}  // namespace

std::string chip_of(const Device& device) { return device.architecture + " " + std::to_string(device.sm_count); }

Result<std::vector<DeviceOp>> load_neusight_ops(const std::string& neusight, const DeviceCatalogue& devices,
                                                size_t most) {
  std::vector<std::string> files;
  std::error_code code;
  for (const auto& entry : fs::recursive_directory_iterator(neusight, code)) {
    // One folder for each version of PyTorch, one file for each GPU; those beside them hold the same once more.
    if (entry.path().extension() == ".csv" && entry.path().parent_path().filename().string().starts_with("p2"))
      files.push_back(entry.path().string());
  }
  if (code || files.empty()) {
    return Error{"NeuSight's op latencies are not there", neusight,
                 "unpack them (tar -xJf op_latency_train.tar.xz -C FOLDER) and name the folder with --data"};
  }
  std::sort(files.begin(), files.end());
  std::vector<DeviceOp> ops;
  for (const std::string& file : files) {
    auto latencies = read_op_latencies(file);
    if (!latencies) return latencies.error();
    std::map<std::string, double> least;  // by GPU, of which a file has one
    for (const OpLatency& op : *latencies) {
      double& us = least.try_emplace(op.gpu, op.sample.us).first->second;
      us = std::min(us, op.sample.us);
    }
    std::erase_if(*latencies, [&](const OpLatency& op) {
      return op.sample.us < std::max(kShortestUs, kOverLaunching * least[op.gpu]);
    });
    for (OpLatency& latency : thinned(std::move(*latencies), most)) {
      const auto device = devices.find(latency.gpu);
      if (!device) return device.error().within(file);
      ops.push_back({device->name, kind_name(latency.kind), std::move(latency.sample), least[latency.gpu]});
    }
  }
  return ops;
}

Result<std::vector<DeviceOp>> load_neusight_model_ops(const std::string& neusight, const DeviceCatalogue& devices) {
  std::vector<fs::path> files;
  std::error_code code;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(neusight) / "label", code)) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  }
  if (code || files.empty()) return Error{"NeuSight's labels are not there", neusight, "name their folder"};
  std::sort(files.begin(), files.end());
  std::vector<DeviceOp> ops;
  for (const fs::path& file : files) {
    const auto device = devices.find(file.parent_path().filename().string());
    if (!device) continue;
    auto latencies = read_model_ops(file.string());
    if (!latencies) return latencies.error();
    for (OpLatency& latency : *latencies) {
      if (latency.sample.us < kShortestInModelsUs) continue;
      ops.push_back({device->name, kind_in_models(latency.kind), std::move(latency.sample)});
    }
  }
  return ops;
}

Result<std::vector<DeviceOp>> load_ets_convolutions(const std::string& ets, const DeviceCatalogue& devices,
                                                    size_t most) {
  std::vector<DeviceOp> ops;
  for (const char* gpu : {"T4", "2080Ti"}) {
    const auto device = devices.find(gpu);
    if (!device) return device.error();
    auto reader = EtsTraceReader::open((fs::path(ets) / (std::string("ets_") + gpu + "_train.csv.gz")).string());
    if (!reader) return reader.error();
    std::vector<DeviceOp> found;
    while (true) {
      const auto trace = reader->next();
      if (!trace) return trace.error();
      if (!*trace) break;
      for (const EtsOp& op : (*trace)->ops) {
        if (auto convolution = convolution_of(op, device->name)) found.push_back(std::move(*convolution));
      }
    }
    for (DeviceOp& op : thinned(std::move(found), most)) ops.push_back(std::move(op));
  }
  return ops;
}

std::vector<hybrid::CarriedOp> carried_ops(const std::vector<DeviceOp>& ops, const CostModels& cost_models,
                                           const hybrid::DeviceScale& scale) {
  CHECK(cost_models.residual_model.has_value(), "trees are needed");
  const Result<Device> measured = cost_models.devices.find(cost_models.residual_model->gpu);
  CHECK(measured.ok(), "the catalogue has the GPU that was measured");
  const TrainingSetup setup;
  const hybrid::OtherGpu other{*measured, scale};
  const Device plain = hybrid::without_cache(*measured);
  std::map<std::string, Board> boards;
  std::vector<hybrid::CarriedOp> list;
  for (const DeviceOp& op : ops) {
    auto board = boards.find(op.gpu);
    if (board == boards.end()) {
      board = boards.emplace(op.gpu, board_of(*cost_models.devices.find(op.gpu), scale)).first;
    }
    const Graph graph = graph_of(op.sample);
    const Op& only = graph.ops()[0];
    const OpWork work = work_of(graph, only);
    const LayoutTracker layouts(graph, false);
    std::vector<hybrid::RowWork> works;
    const auto featurized = [&](const Device& device) {
      works.clear();
      return hybrid::featurize(graph, only, work, layouts, device, setup, cost_models.analytic, &works);
    };
    const auto asked = featurized(*measured);
    const auto known = featurized(plain);
    const auto there = featurized(board->second.sustaining);
    if (asked.empty()) continue;
    // Of several feature rows, the sum: they are of one kind.
    hybrid::MeasuredRow sum;
    hybrid::FeatureRow whole = there[0];
    whole.analytic_us = whole.memory_us = whole.compute_us = 0;
    for (size_t i = 0; i < asked.size(); ++i) {
      sum.us += cost_models.residual_model->cost(asked[i]).us;
      sum.analytic_us += known[i].analytic_us;
      sum.compute_us += known[i].compute_us;
      sum.memory_us += known[i].memory_us;
      whole.analytic_us += hybrid::lane_convolution_us(works[i], *measured, board->second.sustaining, scale)
                               .value_or(there[i].analytic_us);
      whole.memory_us += there[i].memory_us;
      whole.compute_us += there[i].compute_us * scale.sustained(board->second.device);  // at the peak rate
    }
    list.push_back(
        {.gpu = op.gpu,
         .chip = chip_of(board->second.device),
         .kind = op.kind,
         .row = hybrid::carried_row(sum, whole, product_unit(work, setup.precision), other, board->second.device),
         .us = op.sample.us,
         .moved_us = whole.memory_us,
         .roofline_us = std::max(whole.memory_us, whole.compute_us),
         .least_us = op.least_us});
  }
  return list;
}

}  // namespace forerun
