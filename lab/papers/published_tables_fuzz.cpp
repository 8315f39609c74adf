// Fuzzes the readers of what others measured: the first byte picks the format, the rest is the file.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "ingest/resources/resource_record.h"
#include "lab/papers/ddl_benchmark/throughput_table.h"
#include "lab/papers/ets/ets_trace.h"
#include "lab/papers/neusight/model_ops.h"
#include "lab/papers/neusight/op_latency.h"
#include "lab/papers/published_runs.h"
#include "lab/papers/vtrain/megatron_rows.h"

namespace {

using namespace forerun;

void read_ets(std::string_view text) {
  auto reader = EtsTraceReader::from_text(text, "fuzz");
  if (!reader.ok()) {
    CHECK(!reader.error().what.empty(), "an error without what");
    return;
  }
  while (true) {
    const auto trace = reader->next();
    if (!trace.ok()) CHECK(!trace.error().what.empty(), "an error without what");
    if (!trace.ok() || !*trace) return;
    CHECK(!(*trace)->ops.empty(), "a trace without ops");
  }
}

void read_resources(std::string_view text) {
  ResourceReader reader;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto record = reader.decode(text.substr(0, end));
    if (record.ok()) {
      static_cast<void>(table_setting(*record));
    } else {
      CHECK(!record.error().what.empty(), "an error without what");
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void read_foundry(std::string_view text) {
  const scale::MptModels models{.vocab = 50368, .shapes = {{.name = "7b", .hidden = 4096, .layers = 32, .heads = 32}}};
  const auto runs = scale::foundry_runs_from_text(text, "fuzz", models);
  if (!runs.ok()) {
    CHECK(!runs.error().what.empty(), "an error without what");
    return;
  }
  for (const scale::FoundryRun& run : runs->runs) {
    const auto shape = scale::transformer_of(run, models);
    CHECK(shape.ok() || !shape.error().what.empty(), "an error without what");
  }
}

void read_papers(std::string_view text) {
  const auto file = JsonObject::parse(std::string(text), "fuzz");
  if (!file.ok()) return;
  const auto table = scale::megatron_table(*file);
  CHECK(table.ok() || !table.error().what.empty(), "an error without what");
  const auto models = scale::mpt_models(*JsonObject::parse(std::string(text), "fuzz"));
  CHECK(models.ok() || !models.error().what.empty(), "an error without what");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto check_error = [](const auto& read) {
    CHECK(read.ok() || !read.error().what.empty(), "an error without what");
  };
  switch (data[0] % 8) {
    case 0: read_ets(text); break;
    case 1: check_error(throughputs_from_text(text, "fuzz")); break;
    case 2: check_error(op_latencies_from_text(text, "fuzz")); break;
    case 3: check_error(megatron_rows_from_text(text, "fuzz")); break;
    case 4: read_resources(text); break;
    case 5: read_foundry(text); break;
    case 6: check_error(model_ops_from_text(text, "fuzz")); break;
    default: read_papers(text); break;
  }
  return 0;
}
