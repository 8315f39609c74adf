// The host model: what the CPU needs to issue ops, by least squares over iterations that the host bounds.
#include <nlohmann/json.hpp>

#include "lab/calibrate/calibrate_host.h"
#include "lab/cli/answer.h"
#include "lab/cli/calibrations/calibrations.h"
#include "lab/cli/measured_files.h"
#include "report/table.h"

namespace forerun::cli {
namespace {

struct HostCall {
  std::vector<std::string> records;
  std::vector<std::string> without;
  std::string out;
  bool json = false;
};

std::string host_json(const HostOutcome& outcome) {
  nlohmann::ordered_json families = nlohmann::ordered_json::array();
  for (const HeldOutFamily& row : outcome.held_out) {
    families.push_back({{"family", row.family}, {"iterations", row.samples}, {"mre", row.error}, {"bias", row.bias}});
  }
  return nlohmann::ordered_json{{"file", outcome.file},
                                {"iterations", outcome.fit.samples},
                                {"mre", outcome.fit.error},
                                {"held_out_mre", outcome.held_out_error},
                                {"families", families}}
             .dump() +
         "\n";
}

std::string host_text(const HostOutcome& outcome) {
  Table table({"family left out", "iterations", "MRE", "bias"});
  for (const HeldOutFamily& row : outcome.held_out) {
    table.add({row.family, grouped(static_cast<int64_t>(row.samples)), fmt::format("{:.1f} %", 100 * row.error),
               fmt::format("{:+.1f} %", 100 * row.bias)});
  }
  return fmt::format("{}: fitted to {} host-bound iterations, MRE {:.1f} %; {:.1f} % with each family left out\n{}",
                     outcome.file, outcome.fit.samples, 100 * outcome.fit.error, 100 * outcome.held_out_error,
                     table.text());
}

int calibrate_host_model(const HostCall& call) {
  const auto files = measured_files(call.records);
  if (!files) return fail(files.error());
  const auto outcome = calibrate_host({.files = *files,
                                       .without = {call.without.begin(), call.without.end()},
                                       .out = call.out,
                                       .options = {},
                                       .problem = tell_problem});
  if (!outcome) return fail(outcome.error());
  fmt::print("{}", call.json ? host_json(*outcome) : host_text(*outcome));
  return kDone;
}

Run add_host_calibration(CLI::App& app) {
  auto call = std::make_shared<HostCall>();
  app.add_option("--data", call->records, "Record files or folders, in place of data/h200");
  app.add_option("--without", call->without, "Families to leave out, to validate on");
  app.add_option("--out", call->out, "File for the constants, in place of data/host/default.json");
  app.add_flag("--json", call->json, "Print one JSON object");
  return [call] { return calibrate_host_model(*call); };
}

}  // namespace

Calibration host_calibration() {
  return {.name = "host",
          .summary = "What the CPU needs to issue ops",
          .add = add_host_calibration,
          .examples = {{"forerun calibrate host --without bert --out host.json", "leave a family out"}}};
}

}  // namespace forerun::cli
