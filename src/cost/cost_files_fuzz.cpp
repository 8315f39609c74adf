// Fuzzes the files of cost models: the first byte picks the file, the rest is it. A forest that is read must be written
// as it was, and must answer.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fuzz_file.h"
#include "cost/analytic/constants.h"
#include "cost/generated/generated.h"
#include "cost/host/host.h"
#include "cost/hybrid/device_scale.h"
#include "cost/hybrid/prediction_intervals.h"
#include "cost/hybrid/whatif_intervals.h"
#include "cost/trees/forest.h"

namespace {

template <class T>
void check_error(const forerun::Result<T>& read) {
  CHECK(read.ok() || !read.error().what.empty(), "an error without what");
}

void read_forest(std::string_view bytes) {
  std::string_view rest = bytes;
  const auto forest = forerun::Forest::read(rest);
  check_error(forest);
  if (!forest.ok()) return;
  std::string written;
  forest->write(written);
  CHECK(written == bytes.substr(0, bytes.size() - rest.size()), "a forest is written otherwise than it was read");
  const size_t width = std::max<size_t>(forest->columns(), 1);
  std::vector<float> rows(5 * width, 0.5F);
  const std::vector<float> many = forest->predict_all(rows, width);
  CHECK(many.size() == 5, "rows without an answer");
  for (size_t i = 0; i < many.size(); ++i) {
    const float one = forest->predict(std::span(rows).subspan(i * width, width));
    CHECK(one == many[i] || (one != one && many[i] != many[i]), "one row is answered otherwise than many");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 5 == 0) {
    read_forest(bytes);
    return 0;
  }
  const FuzzFile file(bytes.data(), bytes.size());
  switch (data[0] % 5) {
    case 1: check_error(load_analytic_constants(file.path())); break;
    case 2: check_error(load_host_constants(file.path())); break;
    case 3: check_error(hybrid::load_device_scale(file.path())); break;
    default:
      check_error(load_prediction_intervals(file.path()));
      check_error(load_whatif_intervals(file.path()));
      check_error(load_compile_constants(file.path()));
      break;
  }
  return 0;
}
