// What the papers published for their systems and ablations: the columns that `forerun eval --suite papers` prints
// beside ours. Figures are the papers' own, on their own data and GPUs; ours stand on the data of the suite.
#pragma once

#include <string>
#include <vector>

#include "lab/dataset/metrics.h"

namespace forerun {

// One figure of a paper, as a share of 1; 0 where the paper gives none.
struct PublishedFigure {
  const char* suite;      // of ours that comes nearest
  const char* label;      // of our weights that re-implement it: their folder below data/weights/SUITE
  const char* predictor;  // that they are weights of; null: it is not trained (forerun's own)
  const char* settings;   // of that predictor, as `--set` takes them; of ablations
  const char* system;     // as the paper calls it
  learn::Target quantity;
  double mre;
  double rmse;         // milliseconds or gigabytes
  double unseen;       // MRE on models that it was not trained on
  const char* source;  // which paper, which data
};

// The systems that the papers compare, and the ablations of them.
const std::vector<PublishedFigure>& published_figures();
const std::vector<PublishedFigure>& published_ablations();

// "forerun train dnnperf-time --suite h200 --out data/weights/h200/dnnperf-time"
std::string training_command(const PublishedFigure& figure);

}  // namespace forerun
