// Settings of ETS as text, for ablations on the command line and for the card.
#include <fmt/format.h>

#include <charconv>

#include "base/nearest.h"
#include "lab/learn/ets/ets_predictor.h"

namespace forerun::learn {
namespace {

Error bad(const std::string& key, const std::string& value, const std::string& allowed) {
  return {"'" + value + "' is no value of '" + key + "'", "settings of ets", "use " + allowed};
}

std::optional<int64_t> whole(const std::string& text, int64_t least, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) return std::nullopt;
  return value;
}

std::optional<double> decimal(const std::string& text, double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= most)) return std::nullopt;
  return value;
}

bool one_of(const std::string& value, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), value) != names.end();
}

// Sets one option; an Error where the name or the value is unknown.
Status set(EtsOptions& options, const std::string& key, const std::string& value) {
  const auto number = [&](int64_t& into, int64_t least, int64_t most) -> Status {
    const auto parsed = whole(value, least, most);
    if (!parsed) return bad(key, value, "a number from " + std::to_string(least) + " to " + std::to_string(most));
    into = *parsed;
    return {};
  };
  const auto share = [&](double& into, double most) -> Status {
    const auto parsed = decimal(value, most);
    if (!parsed) return bad(key, value, fmt::format("a number from 0 to {}", most));
    into = *parsed;
    return {};
  };
  if (key == "layers") return number(options.net.layers, 1, 16);
  if (key == "hidden") return number(options.hidden, 0, 4096);
  if (key == "width") return number(options.net.width, 1, 256);
  if (key == "stride") return number(options.stride, 1, 256);
  if (key == "nets") return number(options.nets, 1, 16);
  if (key == "sums") return share(options.sums, 100);
  if (key == "balance") return share(options.balance, 1);
  if (key == "logs") return share(options.logs, 100);
  if (key == "dropout") return share(options.net.dropout, 0.9);
  if (key == "cell") {
    const auto cell = ets_cell_named(value);
    if (!cell) return bad(key, value, "rnn, gru, lstm, transformer, gcn or mlp");
    options.net.cell = *cell;
  } else if (key == "direction") {
    if (!one_of(value, {"one", "both"})) return bad(key, value, "one or both");
    options.net.bidirectional = value == "both";
  } else if (key == "loss") {
    if (!one_of(value, {"l1", "smooth_l1", "huber", "mse"})) return bad(key, value, "l1, smooth_l1, huber or mse");
    options.loss = value;
  } else if (key == "target") {
    if (!one_of(value, {"ms", "log", "ratio", "lanes"})) return bad(key, value, "ms, log, ratio or lanes");
    options.target = value;
  } else if (key == "features") {
    if (!one_of(value, {"own", "shared"})) return bad(key, value, "own or shared");
    options.features = value;
  } else {
    std::vector<std::string> known;
    for (const auto& [name, unused] : EtsOptions().to_settings()) known.push_back(name);
    return Error{"there is no setting '" + key + "'", "settings of ets", did_you_mean(key, known)};
  }
  return {};
}

}  // namespace

Settings EtsOptions::to_settings() const {
  return {{"cell", std::string(name_of(net.cell))},
          {"layers", std::to_string(net.layers)},
          {"direction", net.bidirectional ? "both" : "one"},
          {"hidden", std::to_string(hidden)},
          {"width", std::to_string(net.width)},
          {"stride", std::to_string(stride)},
          {"loss", loss},
          {"target", target},
          {"features", features},
          {"sums", fmt::format("{}", sums)},
          {"balance", fmt::format("{}", balance)},
          {"logs", fmt::format("{}", logs)},
          {"dropout", fmt::format("{}", net.dropout)},
          {"nets", std::to_string(nets)}};
}

EtsOptions op_mlp_options() {
  EtsOptions options;
  options.net.cell = EtsCell::mlp;
  options.net.layers = 3;
  options.net.width = 1;
  options.stride = 1;
  options.hidden = 256;
  return options;
}

Result<EtsOptions> EtsOptions::from_settings(const Settings& settings, const EtsOptions& defaults) {
  EtsOptions options = defaults;
  for (const auto& [key, value] : settings) {
    if (const Status status = set(options, key, value); !status.ok()) return status.error();
  }
  if (options.stride > options.net.width) {
    return Error{"windows further apart than they are wide leave ops out", "settings of ets",
                 "use a stride of at most the width"};
  }
  if (options.features == "shared" && options.target == "lanes") {
    return Error{"lanes need times of the host, which the authors' traces do not have", "settings of ets",
                 "use another target with features=shared, such as ratio"};
  }
  return options;
}

}  // namespace forerun::learn
