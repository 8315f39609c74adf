// What the papers published for their systems and ablations: the columns that `forerun eval --suite papers` prints beside
// ours. Figures are the papers' own, on their own data and GPUs; ours stand on the data of the suite. They lie in
// data/papers, whose README.md names paper, table and unit of each.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json_file.h"
#include "lab/accuracy/driple_accuracy.h"
#include "lab/dataset/metrics.h"

namespace forerun {

// One figure of a paper, as a share of 1; 0 where the paper gives none.
struct PublishedFigure {
  std::string suite;                  // of ours that comes nearest
  std::string label;                  // of our weights that re-implement it: their folder below data/weights/SUITE
  std::string predictor;              // that they are weights of
  std::vector<std::string> settings;  // of that predictor, as `--set` takes them; of ablations
  std::string system;                 // as the paper calls it
  learn::Target quantity = learn::Target::iteration_ms;
  double mre = 0;
  double rmse = 0;     // milliseconds or gigabytes
  double unseen = 0;   // MRE on models that it was not trained on
  bool seen = false;   // mre and rmse are of a random split: models like those that it was trained on
  std::string source;  // which paper, which data
};

// The systems that the papers compare, and the ablations of them.
struct PublishedFigures {
  std::vector<PublishedFigure> systems;
  std::vector<PublishedFigure> ablations;
};

// Reads one paper's figures:
//   {"schema": "forerun.papers.figures/1", "paper": "Gao et al.", "tables": [
//     {"kind": "systems", "suite": "h200", "split": "random", "source": "DNNPerf, all test configurations", "rows": [...]},
//     {"kind": "ablations", "suite": "h200", "source": "DNNPerf's ablation", "rows": [
//       {"label": "dnnperf-time-gat", "predictor": "dnnperf-time", "settings": ["encoder=gat"], "system": "GAT",
//        "quantity": "iteration_ms", "mre": 0.117, "rmse_ms": 101.3}]}]}
Result<PublishedFigures> figures_of_paper(JsonObject paper);

// Those of data/papers that belong to a suite.
Result<PublishedFigures> published_figures(const std::string& suite);
// The same with the folder given.
Result<PublishedFigures> published_figures(const std::string& suite, const std::filesystem::path& folder);

// What Driple's paper says of its network: data/papers/driple.json.
Result<DriplePublished> published_driple();
Result<DriplePublished> published_driple(JsonObject paper);

// "forerun train dnnperf-time --suite h200 --out data/weights/h200/dnnperf-time"; of a random division with --split, below
// data/weights/h200-random.
std::string training_command(const PublishedFigure& figure, const learn::Division& division = {});
// The folder below data/weights that holds the weights of a suite divided so: "h200", "h200-random".
std::string weights_folder(const std::string& suite, const learn::Division& division);

}  // namespace forerun
