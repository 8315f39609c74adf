#include "lab/learn/few_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "base/provenance.h"
#include "lab/dataset/known_devices.h"
#include "lab/dataset/metrics.h"
#include "lab/dataset/weights_files.h"
#include "lab/learn/predictors.h"

namespace forerun::learn {
namespace {

constexpr int64_t kEpochs = 50;
constexpr int64_t kFew[] = {5, 10, 20, 50};

std::vector<int64_t> epochs_of(const FewRequest& request) {
  const int64_t last = request.options.epochs.value_or(kEpochs);
  std::vector<int64_t> epochs = {0};
  for (const int64_t fewer : {1, 10}) {
    if (fewer < last) epochs.push_back(fewer);
  }
  epochs.push_back(last);
  return epochs;
}

// What the weights of a folder are, as far as the study asks.
struct FewStart {
  std::string name;    // kMetaStart, kJointStart, kScratchStart
  std::string folder;  // empty: from nothing
  std::vector<std::string> gpus;
  Settings settings;
};

Result<FewStart> start_from(const std::string& folder, const FewRequest& request) {
  if (folder == kScratchStart) return FewStart{kScratchStart, "", {}, request.options.settings};
  const auto card = read_json(folder, "card.json", {"predictor", "gpus", "settings"});
  if (!card) return card.error();
  FewStart start{
      .name = card->contains("meta") ? kMetaStart : kJointStart, .folder = folder, .gpus = {}, .settings = {}};
  const nlohmann::json& gpus = card->at("gpus");
  const bool listed =
      gpus.is_array() && std::all_of(gpus.begin(), gpus.end(), [](const auto& gpu) { return gpu.is_string(); });
  if (card->at("predictor") != request.predictor || !listed) {
    return Error{"no start for " + request.predictor, folder, "name a folder that its training wrote"};
  }
  gpus.get_to(start.gpus);
  auto settings = settings_from(*card);
  if (!settings) return settings.error().within(folder);
  start.settings = std::move(*settings);
  return start;
}

bool is_timed(const Example& example) { return !example.targets.op_us.empty(); }

// The GPU that all examples ran on.
Result<std::string> only_gpu(const DataSet& data) {
  std::set<std::string> gpus;
  for (const Example& example : data.examples()) gpus.insert(example.device);
  if (gpus.size() == 1) return *gpus.begin();
  return Error{fmt::format("the new GPU is one, and here are {}", gpus.size()), data.source,
               "give the data of one GPU"};
}

// These examples of the data alone.
DataSet part_of(const DataSet& data, const Selection& examples) {
  DataSet part = data;
  part.examples().clear();
  for (const uint32_t i : examples) part.add(data.examples()[i]);
  return part;
}

class FewStudy {
 public:
  FewStudy(const FewRequest& request, const DataSet& data, std::string gpu)
      : request_(request), data_(data), test_(part_of(data, select(data, Split::test))), gpu_(std::move(gpu)) {}

  Result<std::vector<FewRow>> rows_of(const FewStart& start) {
    std::vector<FewRow> rows;
    for (const int64_t few : request_.few) {
      auto row = row_of(start, few);
      if (!row) return row.error();
      rows.push_back(std::move(*row));
    }
    return rows;
  }

 private:
  Result<FewRow> row_of(const FewStart& start, int64_t few) {
    FewRow row{.predictor = request_.predictor,
               .start = start.name,
               .gpu = gpu_,
               .learned_from = start.gpus,
               .few = few,
               .draws = request_.draws,
               .test = static_cast<int64_t>(test_.examples().size()),
               .settings = start.settings,
               .rate = request_.options.learning_rate.value_or(0),
               .batch = request_.options.batch.value_or(0),
               .seed = request_.options.seed,
               .date = today_utc(),
               .data = data_.source};
    for (const int64_t epochs : epochs_of(request_)) {
      if (epochs == 0 && start.folder.empty()) continue;  // weights at random say nothing
      FewError error{.epochs = epochs};
      for (int64_t draw = 0; draw < request_.draws; ++draw) {
        const auto mre = error_of(start, few, epochs, draw, row);
        if (!mre) return mre.error();
        error.mre += *mre / static_cast<double>(request_.draws);
        error.least = draw == 0 ? *mre : std::min(error.least, *mre);
        error.most = std::max(error.most, *mre);
        if (epochs == 0) {  // whatever is drawn
          error.mre = error.least;
          break;
        }
      }
      row.errors.push_back(error);
      if (request_.progress) {
        request_.progress(
            fmt::format("{} start, {} traces, {} epochs: {:.1f} %", start.name, few, epochs, 100 * error.mre));
      }
    }
    return row;
  }

  Result<double> error_of(const FewStart& start, int64_t few, int64_t epochs, int64_t draw, FewRow& row) {
    auto predictor = make_predictor(request_.predictor);
    if (!predictor) return predictor.error();
    if (epochs == 0) {
      if (const Status status = (*predictor)->load(start.folder); !status.ok()) return status.error();
    } else {
      const uint64_t seed = request_.options.seed + static_cast<uint64_t>(draw);
      TrainOptions options = request_.options;
      options.seed = seed;
      options.start = start.folder;
      options.epochs = epochs;
      options.validation = 0;
      const auto log = (*predictor)->train(part_of(data_, few_traces(data_, few, seed)), options);
      if (!log) return log.error();
      row.seconds += log->seconds;
      row.device = fmt::format("{}, {}", this_machine(), log->device);
    }
    const Selection all = select(test_, Split::test);
    return evaluate(test_, all, (*predictor)->predict(test_, all), Target::iteration_ms).all.mre;
  }

  const FewRequest& request_;
  const DataSet& data_;
  DataSet test_;
  std::string gpu_;
};

}  // namespace

Selection few_traces(const DataSet& data, int64_t count, uint64_t seed) {
  Selection all = select(data, Split::train);
  std::erase_if(all, [&](uint32_t i) { return !is_timed(data.examples()[i]); });
  std::mt19937_64 random(seed);
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
  std::map<std::string, std::pair<int64_t, int64_t>> families;  // how many there were, when the first came
  std::vector<std::tuple<int64_t, int64_t, uint32_t>> turns;
  for (const uint32_t i : all) {
    auto& [taken, first] = families.try_emplace(data.examples()[i].group, 0, std::ssize(families)).first->second;
    turns.emplace_back(taken++, first, i);
  }
  std::sort(turns.begin(), turns.end());
  Selection few;
  for (const auto& [turn, family, i] : turns) {
    if (std::ssize(few) < count) few.push_back(i);
  }
  std::sort(few.begin(), few.end());
  return few;
}

Result<std::vector<FewRow>> run_few_study(const FewRequest& given, const DataSet& data) {
  FewRequest request = given;
  if (request.few.empty()) request.few.assign(std::begin(kFew), std::end(kFew));
  const auto gpu = only_gpu(data);
  if (!gpu) return gpu.error();
  const int64_t most = *std::max_element(request.few.begin(), request.few.end());
  const auto there = std::ssize(few_traces(data, most, 1));
  if (there < most || select(data, Split::test).empty()) {
    return Error{
        fmt::format("there are {} traces to learn from and {} to test on", there, select(data, Split::test).size()),
        data.source, fmt::format("the study takes {} and some; ask for fewer with --few", most)};
  }
  const KnownDevices devices;
  std::vector<FewStart> starts;
  for (const std::string& folder : request.starts) {
    auto start = start_from(folder, request);
    if (!start) return start.error();
    for (const std::string& seen : start->gpus) {
      const std::string name = devices.find(seen).name;
      if (seen != *gpu && (name.empty() || name != devices.find(*gpu).name)) continue;
      return Error{"this start has seen the GPU that is to be new, " + *gpu, folder, "train it without that one"};
    }
    starts.push_back(std::move(*start));
  }
  FewStudy study(request, data, *gpu);
  std::vector<FewRow> rows;
  for (const FewStart& start : starts) {
    auto more = study.rows_of(start);
    if (!more) return more.error();
    rows.insert(rows.end(), more->begin(), more->end());
  }
  return rows;
}

}  // namespace forerun::learn
