#include "lab/accuracy/published.h"

#include <sstream>

namespace forerun {
namespace {

using learn::Target;
constexpr Target kTime = Target::iteration_ms;
constexpr Target kMemory = Target::peak_bytes;
constexpr const char* kEtsT4 = "ETS, its evaluation models on a T4";
constexpr const char* kEtsUnseen = "ETS, unseen models on older GPUs";
constexpr const char* kDnnPerf = "DNNPerf, all test configurations";
constexpr const char* kEtsAblation = "ETS's ablation on a 2080Ti, best epoch on its evaluation set";
constexpr const char* kDnnPerfAblation = "DNNPerf's ablation";

}  // namespace

// The result files of the ETS authors divide by the prediction, ours by the measurement.
const std::vector<PublishedFigure>& published_figures() {
  static const std::vector<PublishedFigure> figures = {
      {"ets-t4", "ets", "ets", "", "ETS", kTime, 0.073, 0, 0, kEtsT4},
      {"ets-t4", "op-mlp", "op-mlp", "", "op-based", kTime, 0.175, 0, 0, kEtsT4},
      {"ets-t4", "grouping-gcn", "grouping-gcn", "", "grouping GCN", kTime, 0.368, 0, 0, kEtsT4},
      {"h200", "ets", "ets", "", "ETS", kTime, 0.059, 0, 0.059, kEtsUnseen},
      {"h200", "habitat", "habitat", "", "Habitat", kTime, 0.119, 0, 0.119, kEtsUnseen},
      {"h200", "dnnperf-time", "dnnperf-time", "", "DNNPerf", kTime, 0.074, 58.5, 0.077, kDnnPerf},
      {"h200", "birnn-time", "birnn-time", "", "BiRNN", kTime, 0.208, 151.4, 0.198, kDnnPerf},
      {"h200", "arnn-time", "arnn-time", "", "ARNN", kTime, 0.209, 113.9, 0.198, kDnnPerf},
      {"h200", "mlp-time", "mlp-time", "", "MLP", kTime, 0.180, 106.2, 0.186, kDnnPerf},
      {"h200", "gbdt", "gbdt", "", "GBDT", kTime, 0.310, 122.6, 0.345, kDnnPerf},
      {"h200", "brp-nas-time", "brp-nas-time", "", "BRP-NAS", kTime, 0.952, 335.4, 0.912, kDnnPerf},
      {"h200", "dnnperf-memory", "dnnperf-memory", "", "DNNPerf", kMemory, 0.137, 1.8, 0.133, kDnnPerf},
      {"h200", "birnn-memory", "birnn-memory", "", "BiRNN", kMemory, 0.223, 2.8, 0.216, kDnnPerf},
      {"h200", "arnn-memory", "arnn-memory", "", "ARNN", kMemory, 0.255, 2.9, 0.257, kDnnPerf},
      {"h200", "mlp-memory", "mlp-memory", "", "MLP", kMemory, 0.215, 2.3, 0.231, kDnnPerf},
      {"h200", "gbdt", "gbdt", "", "GBDT", kMemory, 0.156, 2.2, 0.135, kDnnPerf},
      {"h200", "brp-nas-memory", "brp-nas-memory", "", "BRP-NAS", kMemory, 0.337, 4.1, 0.235, kDnnPerf},
  };
  return figures;
}

const std::vector<PublishedFigure>& published_ablations() {
  static const std::vector<PublishedFigure> figures = {
      {"ets-t4", "ets-paper", "ets", "", "4 layers, window 12, stride 3, L1", kTime, 0.035, 0, 0, kEtsAblation},
      {"ets-t4", "ets-gru", "ets", "cell=gru", "GRU", kTime, 0.046, 0, 0, kEtsAblation},
      {"ets-t4", "ets-rnn", "ets", "cell=rnn", "RNN", kTime, 0.079, 0, 0, kEtsAblation},
      {"ets-t4", "ets-transformer", "ets", "cell=transformer", "Transformer", kTime, 0.073, 0, 0, kEtsAblation},
      {"ets-t4", "ets-gcn", "ets", "cell=gcn", "GCN", kTime, 0.164, 0, 0, kEtsAblation},
      {"ets-t4", "ets-one-direction", "ets", "direction=one", "one direction", kTime, 0.062, 0, 0, kEtsAblation},
      {"ets-t4", "ets-layers-1", "ets", "layers=1", "1 layer", kTime, 0.060, 0, 0, kEtsAblation},
      {"ets-t4", "ets-layers-2", "ets", "layers=2", "2 layers", kTime, 0.045, 0, 0, kEtsAblation},
      {"ets-t4", "ets-layers-3", "ets", "layers=3", "3 layers", kTime, 0.037, 0, 0, kEtsAblation},
      {"ets-t4", "ets-layers-5", "ets", "layers=5", "5 layers", kTime, 0.036, 0, 0, kEtsAblation},
      {"ets-t4", "ets-layers-6", "ets", "layers=6", "6 layers", kTime, 0.039, 0, 0, kEtsAblation},
      {"ets-t4", "ets-width-1", "ets", "width=1 stride=1", "window of 1", kTime, 0.086, 0, 0, kEtsAblation},
      {"ets-t4", "ets-width-2", "ets", "width=2 stride=1", "window of 2", kTime, 0.052, 0, 0, kEtsAblation},
      {"ets-t4", "ets-width-4", "ets", "width=4 stride=2", "window of 4", kTime, 0.046, 0, 0, kEtsAblation},
      {"ets-t4", "ets-width-6", "ets", "width=6 stride=3", "window of 6", kTime, 0.051, 0, 0, kEtsAblation},
      {"ets-t4", "ets-width-8", "ets", "width=8 stride=4", "window of 8", kTime, 0.053, 0, 0, kEtsAblation},
      {"ets-t4", "ets-width-10", "ets", "width=10 stride=5", "window of 10", kTime, 0.044, 0, 0, kEtsAblation},
      {"ets-t4", "ets-width-14", "ets", "width=14 stride=7", "window of 14", kTime, 0.042, 0, 0, kEtsAblation},
      {"ets-t4", "ets-width-16", "ets", "width=16 stride=8", "window of 16", kTime, 0.043, 0, 0, kEtsAblation},
      {"ets-t4", "ets-stride-1", "ets", "stride=1", "stride 1", kTime, 0.029, 0, 0, kEtsAblation},
      {"ets-t4", "ets-stride-2", "ets", "stride=2", "stride 2", kTime, 0.035, 0, 0, kEtsAblation},
      {"ets-t4", "ets-stride-4", "ets", "stride=4", "stride 4", kTime, 0.041, 0, 0, kEtsAblation},
      {"ets-t4", "ets-stride-6", "ets", "stride=6", "stride 6", kTime, 0.043, 0, 0, kEtsAblation},
      {"ets-t4", "ets-stride-12", "ets", "stride=12", "stride 12", kTime, 0.049, 0, 0, kEtsAblation},
      {"ets-t4", "ets-mse", "ets", "loss=mse", "squared loss", kTime, 0.071, 0, 0, kEtsAblation},
      {"h200", "dnnperf-time-paper", "dnnperf-time", "", "DNNPerf", kTime, 0.074, 58.5, 0, kDnnPerfAblation},
      {"h200", "dnnperf-time-gat", "dnnperf-time", "encoder=gat", "GAT", kTime, 0.117, 101.3, 0, kDnnPerfAblation},
      {"h200", "dnnperf-time-standard", "dnnperf-time", "scaler=standard", "StandardScaler", kTime, 0.118, 56.0, 0,
       kDnnPerfAblation},
      {"h200", "dnnperf-time-no-cost", "dnnperf-time", "tensor_cost=no", "NoTensorCost", kTime, 0.159, 91.7, 0,
       kDnnPerfAblation},
      {"h200", "dnnperf-time-concat", "dnnperf-time", "encoder=concat", "ConcatEdge", kTime, 0.080, 60.5, 0,
       kDnnPerfAblation},
      {"h200", "dnnperf-time-mean", "dnnperf-time", "readout=mean", "AvgReadout", kTime, 0.209, 100.9, 0,
       kDnnPerfAblation},
      {"h200", "dnnperf-memory-paper", "dnnperf-memory", "", "DNNPerf", kMemory, 0.137, 1.8, 0, kDnnPerfAblation},
      {"h200", "dnnperf-memory-gat", "dnnperf-memory", "encoder=gat", "GAT", kMemory, 0.171, 2.0, 0, kDnnPerfAblation},
      {"h200", "dnnperf-memory-standard", "dnnperf-memory", "scaler=standard", "StandardScaler", kMemory, 0.150, 2.0, 0,
       kDnnPerfAblation},
      {"h200", "dnnperf-memory-no-cost", "dnnperf-memory", "tensor_cost=no", "NoTensorCost", kMemory, 0.244, 3.3, 0,
       kDnnPerfAblation},
      {"h200", "dnnperf-memory-concat", "dnnperf-memory", "encoder=concat", "ConcatEdge", kMemory, 0.152, 1.9, 0,
       kDnnPerfAblation},
      {"h200", "dnnperf-memory-mean", "dnnperf-memory", "readout=mean", "AvgReadout", kMemory, 0.198, 2.4, 0,
       kDnnPerfAblation},
  };
  return figures;
}

std::string training_command(const PublishedFigure& figure) {
  std::string command = std::string("forerun train ") + figure.predictor + " --suite " + figure.suite;
  std::istringstream settings(figure.settings);
  for (std::string setting; settings >> setting;) command += " --set " + setting;
  return command + " --out data/weights/" + figure.suite + "/" + figure.label;
}

}  // namespace forerun
