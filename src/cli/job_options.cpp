#include "cli/job_options.h"

namespace forerun::cli {
namespace {

// "115M" -> "115000000"; what is no number stays for CLI11 to refuse.
std::string without_unit(std::string text) {
  if (text.empty()) return text;
  const std::string_view zeros = text.back() == 'k'   ? "000"
                                 : text.back() == 'M' ? "000000"
                                 : text.back() == 'G' ? "000000000"
                                                      : "";
  if (!zeros.empty()) text.replace(text.size() - 1, 1, zeros);
  return text;
}

}  // namespace

void add_job_options(CLI::App& verb, JobLength& length) {
  const auto range = CLI::Range(int64_t{1}, JobLength::kMost);
  CLI::Option* iterations = verb.add_option("--iterations", length.iterations,
                                            "Of the whole job: tells its hours and what they are spent on");
  CLI::Option* samples =
      verb.add_option("--samples", length.samples, "The same, told in samples: epochs times the data set, as 115M");
  for (CLI::Option* option : {iterations, samples}) {
    option->transform([](const std::string& text) { return without_unit(text); })->check(range);
  }
  samples->excludes(iterations);
}

}  // namespace forerun::cli
