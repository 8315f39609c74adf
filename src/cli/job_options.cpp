#include "cli/job_options.h"

#include <fmt/format.h>

#include <cmath>

#include "base/options_text.h"

namespace forerun::cli {
namespace {

// "115M" -> "115000000", "1.28M" -> "1280000"; what is no whole number stays for CLI11 to refuse.
std::string without_unit(const std::string& text) {
  if (text.empty()) return text;
  const char unit = text.back();
  const double factor = unit == 'k'                  ? 1e3
                        : unit == 'M'                ? 1e6
                        : unit == 'G' || unit == 'B' ? 1e9
                        : unit == 'T'                ? 1e12
                                                     : 0;
  const auto number = factor > 0 ? number_in(text.substr(0, text.size() - 1)) : std::nullopt;
  if (!number) return text;
  const double count = *number * factor;
  const double whole = std::round(count);
  const bool is_whole = std::abs(count - whole) < 1e-6 && std::abs(whole) <= static_cast<double>(JobLength::kMost);
  return is_whole ? fmt::format("{:.0f}", whole) : text;
}

}  // namespace

void add_job_options(CLI::App& verb, JobLength& length) {
  const auto range = CLI::Range(int64_t{1}, JobLength::kMost);
  CLI::Option* iterations = verb.add_option("--iterations", length.iterations,
                                            "Of the whole run: tells its hours, energy and, by a price, cost");
  CLI::Option* samples = verb.add_option("--samples", length.samples, "The same, told in samples seen, as 115M");
  CLI::Option* tokens = verb.add_option("--tokens", length.tokens, "The same, told in tokens seen, as 15B or 2T");
  CLI::Option* epochs = verb.add_option("--epochs", length.epochs, "The same, told in passes over --dataset-size");
  CLI::Option* dataset = verb.add_option("--dataset-size", length.dataset_size, "Samples of the data set, as 1.28M");
  for (CLI::Option* option : {iterations, samples, tokens, dataset}) {
    option->transform([](const std::string& text) { return without_unit(text); })->check(range);
  }
  epochs->check(CLI::Range(1e-6, 1e9))->needs(dataset);
  dataset->needs(epochs);
  for (CLI::Option* option : {samples, tokens, epochs}) option->excludes(iterations);
  for (CLI::Option* option : {tokens, epochs}) option->excludes(samples);
  epochs->excludes(tokens);
}

void add_price_options(CLI::App& verb, PriceOptions& options) {
  verb.add_option("--prices", options.file,
                  "Your price file, TOML: what an hour of one GPU costs (examples/prices.toml shows the form)");
  verb.add_option("--price", options.given,
                  "GPU=PRICE of one GPU an hour, as h100=2.5,a100=1.2, before those of --prices; repeatable")
      ->allow_extra_args(false);
}

Result<Prices> asked_prices(const PriceOptions& options, const DeviceCatalogue& devices) {
  return forerun::asked_prices(options.file, options.given, devices);
}

}  // namespace forerun::cli
