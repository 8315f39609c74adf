// Fuzzes what `merge` reads: the first byte picks a whole part, or a row or heading of one; the rest is its text. What is taken
// can be written again.
#include <cstdint>
#include <string>

#include "base/fuzz_file.h"
#include "base/part_set.h"
#include "report/schedule_runs.h"
#include "report/sweep.h"

namespace {

using namespace forerun;

void read_part(const std::string& bytes) {
  const FuzzFile file(bytes.data(), bytes.size());
  const auto parts = PartSet::open({file.path()}, "sweep");
  if (!parts) {
    CHECK(!parts.error().what.empty(), "an error without what");
    return;
  }
  for (size_t number = 0; number < parts->size(); ++number) CHECK(parts->row(number).ok(), "a row that is not there");
}

void read_row(const std::string& text) {
  const auto line = read_sweep_json({"batch"}, text, "fuzz");
  if (!line) return;
  SweepTable table({"batch"});
  table.add(line->values, line->prediction);
  CHECK(!table.text().empty(), "a table without text");
  if (line->prediction) CHECK(!sweep_csv({"batch"}, line->values, *line->prediction).empty(), "a row without cells");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {  // '0' is 0
    case 0: read_part(text); break;
    case 1: read_row(text); break;
    case 2: {
      const auto heading = read_schedule_heading(text, "fuzz");
      if (heading) CHECK(!to_json(*heading).empty(), "a heading without text");
      break;
    }
    default: {
      const auto run = read_simulated_run(text, "fuzz");
      if (run) CHECK(read_simulated_run(to_json(*run), "fuzz").ok(), "a run that cannot be read again");
      break;
    }
  }
  return 0;
}
