#include "cli/job_options.h"

namespace forerun::cli {

void add_job_options(CLI::App& verb, JobLength& length) {
  const auto range = CLI::Range(int64_t{1}, JobLength::kMost);
  CLI::Option* iterations = verb.add_option("--iterations", length.iterations,
                                            "Of the whole run: tells its hours, energy and, by a price, cost");
  CLI::Option* samples = verb.add_option("--samples", length.samples, "The same, told in samples seen, as 115M");
  CLI::Option* tokens = verb.add_option("--tokens", length.tokens, "The same, told in tokens seen, as 15B or 2T");
  CLI::Option* epochs = verb.add_option("--epochs", length.epochs, "The same, told in passes over --dataset-size");
  CLI::Option* dataset = verb.add_option("--dataset-size", length.dataset_size, "Samples of the data set, as 1.28M");
  for (CLI::Option* option : {iterations, samples, tokens, dataset}) {
    option->transform([](const std::string& text) { return count_text(text); })->check(range);
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
