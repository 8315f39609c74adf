// Where the iteration of a request comes from: built anew, or kept from a question before.
//
// Who answers many questions derives the same iteration again and again: of another GPU, of its ops, of its memory, of what would
// take away a bound by the host. KeptRuns keeps those of the zoo's models that were asked for last, as many as have so many ops
// together. A run follows from the request and from what the device makes of it (derive::DispatchTarget), which are its key; it
// does not name the GPU that it was first built for.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "predict/predict.h"

namespace forerun {

using SharedTrainingRun = std::shared_ptr<const TrainingRun>;
using RunSource = std::function<Result<SharedTrainingRun>(const ModelRequest& request, const Device& device)>;

// Builds each one anew.
RunSource built_anew(RunBuilder* build);

// For several threads at once.
class KeptRuns {
 public:
  static constexpr size_t kMostOps = 64'000;  // about 25 MB

  explicit KeptRuns(RunBuilder* build, size_t most_ops = kMostOps) : build_(build), most_ops_(most_ops) {}

  // What the builder gives, to the bit. An Error is not kept, nor is what was read from a file or compiled.
  Result<SharedTrainingRun> get(const ModelRequest& request, const Device& device);
  RunSource source();

  [[nodiscard]] size_t ops();  // of all that are kept

 private:
  struct Entry {
    ModelRequest request;
    bool cudnn_attention = false;
    SharedTrainingRun run;
  };
  SharedTrainingRun find(const ModelRequest& request, bool cudnn_attention);
  void keep(Entry entry);

  RunBuilder* build_;
  size_t most_ops_;
  std::mutex busy_;
  std::list<Entry> entries_;  // guarded by busy_; asked for last comes first
  size_t ops_ = 0;            // guarded by busy_
};

}  // namespace forerun
