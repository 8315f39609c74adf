#include "lab/learn/blend/blend_predictor.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "lab/dataset/weights_files.h"

namespace forerun::learn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTrees = "trees.";
constexpr std::string_view kEts = "ets.";

// Settings of a blend as those of its members.
struct BlendSettings {
  BlendShares shares;
  Settings trees;
  Settings ets;
};

Result<BlendSettings> parted(const Settings& settings, BlendShares shares) {
  BlendSettings parts{.shares = shares};
  for (const auto& [key, value] : settings) {
    if (key.rfind(kTrees, 0) == 0) {
      parts.trees[key.substr(kTrees.size())] = value;
    } else if (key.rfind(kEts, 0) == 0) {
      parts.ets[key.substr(kEts.size())] = value;
    } else if (key == "share" || key == "gap_share") {
      double share = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), share);
      if (error != std::errc() || end != value.data() + value.size() || !(share >= 0 && share <= 1)) {
        return Error{"'" + value + "' is no value of '" + key + "'", "settings of blend", "use a number from 0 to 1"};
      }
      if (key == "gap_share" || !settings.contains("gap_share")) parts.shares.gaps = share;
      if (key == "share") parts.shares.times = share;
    } else {
      return Error{"there is no setting '" + key + "'", "settings of blend",
                   "use share, gap_share, or a member's setting, such as trees.rounds or ets.nets"};
    }
  }
  return parts;
}

float between(float a, float b, double share) {
  return static_cast<float>((1 - share) * double{a} + share * double{b});
}

std::optional<double> between(std::optional<double> a, std::optional<double> b, double share) {
  if (!a || !b) return std::nullopt;
  return (1 - share) * *a + share * *b;
}

}  // namespace

std::vector<Prediction> mean_of(const std::vector<Prediction>& a, const std::vector<Prediction>& b,
                                BlendShares shares) {
  CHECK(a.size() == b.size(), "two predictions of the same examples");
  const auto idle = [](const Prediction& one) { return *one.iteration_ms - *one.gpu_busy_ms; };
  std::vector<Prediction> mean(a.size());
  for (size_t e = 0; e < a.size(); ++e) {
    mean[e].iteration_ms = between(a[e].iteration_ms, b[e].iteration_ms, shares.times);
    mean[e].gpu_busy_ms = between(a[e].gpu_busy_ms, b[e].gpu_busy_ms, shares.times);
    if (mean[e].iteration_ms && mean[e].gpu_busy_ms) {
      mean[e].iteration_ms = *mean[e].gpu_busy_ms + (1 - shares.gaps) * idle(a[e]) + shares.gaps * idle(b[e]);
    }
    CHECK(a[e].op_us.size() == b[e].op_us.size() && a[e].gap_us.size() == b[e].gap_us.size(), "a time for each op");
    for (size_t i = 0; i < a[e].op_us.size(); ++i) {
      mean[e].op_us.push_back(between(a[e].op_us[i], b[e].op_us[i], shares.times));
      mean[e].gap_us.push_back(between(a[e].gap_us[i], b[e].gap_us[i], shares.gaps));
    }
  }
  return mean;
}

Settings BlendPredictor::settings() const {
  Settings all = {{"share", fmt::format("{}", shares_.times)}, {"gap_share", fmt::format("{}", shares_.gaps)}};
  for (const auto& [key, value] : trees_.settings()) all[std::string(kTrees) + key] = value;
  for (const auto& [key, value] : ets_.settings()) all[std::string(kEts) + key] = value;
  return all;
}

Result<TrainingLog> BlendPredictor::train(const DataSet& data, const TrainOptions& options) {
  auto parts = parted(options.settings, shares_);
  if (!parts) return parts.error();
  shares_ = parts->shares;
  TrainOptions of_trees = options;
  of_trees.settings = parts->trees;
  TrainOptions of_ets = options;
  of_ets.settings = parts->ets;
  const auto grown = trees_.train(data, of_trees);
  if (!grown) return grown.error();
  auto log = ets_.train(data, of_ets);
  if (!log) return log.error();
  log->seconds += grown->seconds;
  return log;
}

std::vector<Prediction> BlendPredictor::predict(const DataSet& data, const Selection& examples) {
  return mean_of(trees_.predict(data, examples), ets_.predict(data, examples), shares_);
}

Status BlendPredictor::save(const std::string& folder) const {
  for (const char* member : {"trees", "ets"}) {
    std::error_code failed;
    fs::create_directories(fs::path(folder) / member, failed);
    if (failed) return Error{"cannot be made: " + failed.message(), folder, "check the path"};
  }
  if (Status status = trees_.save((fs::path(folder) / "trees").string()); !status.ok()) return status;
  if (Status status = ets_.save((fs::path(folder) / "ets").string()); !status.ok()) return status;
  const Settings shares = {{"share", fmt::format("{}", shares_.times)}, {"gap_share", fmt::format("{}", shares_.gaps)}};
  return write_json(folder, "predictor.json", {{"settings", shares}, {"trees", "trees"}, {"ets", "ets"}});
}

Status BlendPredictor::load(const std::string& folder) {
  const auto described = read_json(folder, "predictor.json", {"settings", "trees", "ets"});
  if (!described) return described.error();
  auto settings = settings_from(*described);
  if (!settings) return settings.error().within(folder);
  auto parts = parted(*settings, shares_);
  if (!parts) return parts.error().within(folder);
  shares_ = parts->shares;
  const auto member = [&](const char* name) -> Result<std::string> {
    const auto& place = described->at(name);
    if (!place.is_string()) return Error{"the members of these weights are not named", folder, "train it again"};
    return (fs::path(folder) / place.get<std::string>()).lexically_normal().string();
  };
  const auto trees = member("trees");
  if (!trees) return trees.error();
  const auto ets = member("ets");
  if (!ets) return ets.error();
  if (Status status = trees_.load(*trees); !status.ok()) return status;
  return ets_.load(*ets);
}

}  // namespace forerun::learn
