#include "lab/cli/trainers/suite_data.h"

#include "lab/cli/answer.h"
#include "lab/cli/trainers/trainers.h"

namespace forerun::cli {
namespace {

int write_data_cache(const SuiteData& data) {
  const auto loaded = load_suite_data(data);
  return loaded ? kDone : fail(loaded.error());
}

Run add_data_cache(CLI::App& app) {
  auto data = std::make_shared<SuiteData>();
  add_suite_data(app, *data);
  app.get_option("--write-cache")->required();
  return [data] { return write_data_cache(*data); };
}

}  // namespace

void add_suite_data(CLI::App& app, SuiteData& data) {
  data.options.problem = tell_problem;
  app.add_option("--suite", data.suite, "What to train on: ets-t4, ets-2080ti or h200 (default)");
  app.add_option("--traces", data.options.traces, "Folder of the ETS authors' traces");
  app.add_option("--data", data.options.records, "Record files or folders, in place of data/h200");
  app.add_option("--cache", data.options.caches, "Data sets that --write-cache wrote, in place of all those");
  app.add_option("--write-cache", data.write_cache, "Write the data set as one file");
  app.add_option("--most", data.options.most_a_group, "Read at most so many ETS traces of a model")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
}

Result<learn::DataSet> load_suite_data(const SuiteData& data) {
  auto loaded = load_suite(data.suite, data.options);
  if (!loaded) return loaded.error();
  tell(fmt::format("{}: {} iterations, {} distinct ops", loaded->source, loaded->examples().size(),
                   loaded->rows().size()));
  if (data.write_cache.empty()) return loaded;
  if (const Status status = loaded->save(data.write_cache); !status) return status.error();
  return loaded;
}

Trainer data_cache_writer() {
  return {.name = "",
          .summary = "Write the data of a suite as one file, and train nothing",
          .add = add_data_cache,
          .examples = {
              {"forerun train --suite ets-t4 --write-cache ets_t4.bin", "for forerun-train on a machine with a GPU"}}};
}

}  // namespace forerun::cli
