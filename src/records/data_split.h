// The split of a data set into what models are fitted to and what they are judged on: split.json beside its files.
//
//   {"train": ["resnet", "rnn"], "test": ["vgg"], "ood": ["randwire"],
//    "ids": {"whatif": ["pairs/"], "twin": ["starter/00105-resnet"]}}
//
// Parts list families. `ids` lists the beginnings of ids of records that belong to another part than their family does: a model
// that is judged though others of its family are trained on, and near twins of such a model, which nobody trains on.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/training_run.h"

namespace forerun {

class DataSplit {
 public:
  static constexpr const char* kFile = "split.json";
  static constexpr const char* kTrain = "train";
  static constexpr const char* kIds = "ids";

  // From the split.json beside any of the files; names nothing where there is none.
  static Result<DataSplit> beside(const std::vector<std::string>& files);

  // The same of families alone, each with its part.
  static DataSplit of_families(std::map<std::string, std::string, std::less<>> parts);

  // Empty where nothing names it.
  [[nodiscard]] std::string part_of_family(std::string_view family) const;
  [[nodiscard]] std::string part_of(std::string_view id, std::string_view family) const;
  [[nodiscard]] std::string part_of(const TrainingRun& run) const { return part_of(run.id, run.family); }

  [[nodiscard]] bool trains_on_family(std::string_view family) const { return part_of_family(family) == kTrain; }
  [[nodiscard]] std::set<std::string> training_families() const;

 private:
  Status read(const std::string& path);

  std::map<std::string, std::string, std::less<>> families_;  // -> part
  std::map<std::string, std::string, std::less<>> ids_;       // beginning of an id -> part
};

// The records that models are fitted to: those of the part `train`, but for families that are left out.
class TrainingPart {
 public:
  // A family of `without` that is not trained on is an Error, which names the nearest.
  static Result<TrainingPart> beside(const std::vector<std::string>& files, const std::set<std::string>& without = {});

  [[nodiscard]] bool contains(const TrainingRun& run) const;
  // Single ops of a family's iterations; of one that the split does not name they are learned from.
  [[nodiscard]] bool contains_ops_of(std::string_view family) const;
  [[nodiscard]] const std::set<std::string>& families() const { return families_; }

 private:
  TrainingPart(DataSplit split, std::set<std::string> families)
      : split_(std::move(split)), families_(std::move(families)) {}

  DataSplit split_;
  std::set<std::string> families_;
};

}  // namespace forerun
