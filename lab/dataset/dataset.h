// DataSet: training iterations as the learned predictors see them, with what was measured beside them.
//
// An op is described by an OpRow: its name, phase, type and class, raw amounts (FLOPs, bytes, elements) and up to 30 raw
// hyper-parameters. Equal rows are kept once; an Example lists its ops as indices of rows, in program order. Predictors
// turn rows into features (lab/dataset/features.h) once each, which is cheap: a layer that repeats is one row. An edge runs from
// the op that last wrote a storage to each op that reads it.
//
// Both run records (lab/dataset/record_example.h) and the ETS authors' traces (lab/training_data/learning_data.h) become this, and `save`
// writes it as one compact binary file, so that a machine without any of the readers' libraries can train on it.
// What was measured stands in Targets alone; nothing else of an Example may depend on it.
// Nothing here needs LibTorch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/interner.h"
#include "base/result.h"
#include "derive/op_class.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun::learn {

// Raw amounts of an op, 0 where not known. Bytes of weights are those of parameters among the inputs (of their gradients
// among a backward op's outputs); temporaries are bytes an op is known to need beyond its operands.
enum class Amount : uint8_t {
  flops,
  bytes_read,
  bytes_written,
  input_elements,
  output_elements,
  weight_bytes,
  input_bytes,   // without weights
  output_bytes,  // without weights' gradients
  temporary_bytes,
  tensors,  // that are updated: entries of a foreach list
};
inline constexpr size_t kAmountCount = 10;
inline constexpr size_t kHyperParameterCount = 30;

// One distinct op: all that is known of it without running it.
struct OpRow {
  NameId name;  // of DataSet::names: "aten.addmm.default"; of ETS traces the authors' number of the op, "203"
  Phase phase = Phase::forward;
  DType dtype = DType::float32;  // that it computes in
  OpClass cls = OpClass::opaque;
  bool on_gpu = true;                            // false: it has no kernels
  std::array<float, kAmountCount> amounts = {};  // by Amount
  std::array<float, kHyperParameterCount> hyper = {};

  [[nodiscard]] float amount(Amount which) const { return amounts[static_cast<size_t>(which)]; }
  void set(Amount which, double value) { amounts[static_cast<size_t>(which)] = static_cast<float>(value); }
  bool operator==(const OpRow&) const = default;
};

struct DataEdge {
  uint32_t source = 0;  // op that wrote
  uint32_t target = 0;  // op that reads
  float bytes = 0;      // of the tensors of that storage that it reads
  bool operator==(const DataEdge&) const = default;
};

// ood: out of distribution, neither trained on nor counted among the tests.
enum class Split : uint8_t { train, test, ood };
std::string_view name_of(Split split);
std::optional<Split> split_named(std::string_view name);

// How examples were divided into those parts: by family, or at random by configuration, as in a study of models that are like
// those that were trained on. Weights of one division must not be judged on another: they may have been trained on what it judges.
struct Division {
  bool random = false;
  uint64_t seed = 1;  // of a random one
  bool operator==(const Division&) const = default;
};
std::string to_text(const Division& division);           // "families", "random:1"
Result<Division> parse_division(std::string_view text);  // the same words; "random" is "random:1"

// Which lane bounds a measured iteration: the GPU where it is busy for more than nine tenths of it.
enum class Bound : uint8_t { unknown, gpu, host };
std::string_view name_of(Bound bound);

// What was measured; 0 or empty where it was not.
struct Targets {
  double iteration_ms = 0;
  double gpu_busy_ms = 0;
  double peak_bytes = 0;       // allocated
  double reserved_bytes = 0;   // peak
  std::vector<float> op_us;    // GPU time by op
  std::vector<float> gap_us;   // idle GPU time behind the op, by op: op_us and gap_us add up to iteration_ms
  std::vector<float> host_us;  // the host's time to issue the op, by op; what it has to do besides is with the first
  bool operator==(const Targets&) const = default;

  [[nodiscard]] Bound bound() const {
    if (iteration_ms <= 0 || gpu_busy_ms <= 0) return Bound::unknown;
    return gpu_busy_ms > 0.9 * iteration_ms ? Bound::gpu : Bound::host;
  }
};

// One iteration.
struct Example {
  std::string id;
  std::string group;  // the model family; of ETS traces the model. Splits are by group
  Split split = Split::train;
  // Model, input and precision in words: what a random division keeps together, so that repeats and runs that differ in the
  // optimizer or the layout alone are all trained on or all judged. Empty: not measured here (simulated, others' traces).
  std::string configuration;
  bool kept_back =
      false;  // a what-if model or a near twin of one: nobody trains on it, and no random division judges it
  // What holds for the whole iteration.
  double batch = 1;
  double size = 0;  // height of images, length of token sequences
  Precision precision = Precision::fp32;
  OptimizerSpec optimizer;
  bool channels_last = false;
  std::string device;  // "NVIDIA H200"; "T4"
  double parameters = 0;
  double parameter_tensors = 0;
  double host_slowness = 0;  // of the host beside the usual one, by a calibration taken beside the run; 0: not known

  std::vector<uint32_t> ops;    // rows of the DataSet, in program order
  std::vector<DataEdge> edges;  // by target, then source; each pair once
  Targets targets;
};

class DataSet {
 public:
  // Adds a row where there is no equal one; gives its index.
  uint32_t intern(const OpRow& row);
  NameId intern_name(std::string_view name) { return names_.intern(name); }
  void add(Example example);
  // Adds the examples of another data set; its source is not told.
  void append(const DataSet& other);

  [[nodiscard]] const std::vector<OpRow>& rows() const { return rows_; }
  [[nodiscard]] const std::vector<Example>& examples() const { return examples_; }
  [[nodiscard]] std::vector<Example>& examples() { return examples_; }
  [[nodiscard]] const StringTable& names() const { return names_; }
  [[nodiscard]] const std::string& name_of_row(const OpRow& row) const { return names_[row.name]; }

  // Where it came from, in a sentence; goes into the card of what is trained on it.
  std::string source;
  // How it is divided: `divide` changes it. A file always holds the division by family.
  Division division;

  // Writes the compact binary form (its file header stands in dataset_file.cpp); replaces the file when whole.
  [[nodiscard]] Status save(const std::string& path) const;
  [[nodiscard]] std::string to_bytes() const;  // the same in memory
  static Result<DataSet> load(const std::string& path);
  // Several as one; their sources are told one after the other.
  static Result<DataSet> load(const std::vector<std::string>& paths);
  // The same from memory; `name` stands for the file in errors.
  static Result<DataSet> from_bytes(std::string_view bytes, const std::string& name);

 private:
  StringTable names_;
  std::vector<OpRow> rows_;
  std::unordered_multimap<uint64_t, uint32_t> index_;  // hash of a row -> where it stands
  std::vector<Example> examples_;
};

// Indices of examples, in the order of the data set.
using Selection = std::vector<uint32_t>;
Selection select(const DataSet& data, Split split);

// Divides a data set that is divided by family at random: configurations go to Split::test by a hash of configuration and seed,
// about a fifth of them, whatever else is there; the others to Split::train, what is kept back to Split::ood. Simulated examples
// stay to be trained on. An Error where examples that are judged by family have no configuration, or none is measured.
Status divide(DataSet& data, const Division& division);
inline constexpr double kRandomlyJudged = 0.2;

// The training examples as two: whole groups go to validation, chosen by a hash of group and seed, until they hold about
// `fraction` of the examples. Test examples are in neither. Of a random division groups are configurations, and the fraction is
// that of measured examples: simulated ones are all trained on.
struct Fold {
  Selection train;
  Selection validation;
};
Fold split_for_validation(const DataSet& data, double fraction, uint64_t seed);
// The same with the groups whose names begin with one of these.
Fold split_by_groups(const DataSet& data, std::span<const std::string> beginnings);

}  // namespace forerun::learn
