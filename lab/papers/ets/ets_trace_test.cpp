#include "lab/papers/ets/ets_trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/needs_dataset.h"

namespace forerun {
namespace {

constexpr const char* kHeading = "trace,op,dir,params,flops,bytes,space,seq,kduration,batch,h,input_type\n";

Result<std::vector<EtsTrace>> read(const std::string& text) {
  auto reader = EtsTraceReader::from_text(text, "traces.csv");
  if (!reader) return reader.error();
  std::vector<EtsTrace> traces;
  while (true) {
    auto trace = reader->next();
    if (!trace) return trace.error();
    if (!*trace) return traces;
    traces.push_back(std::move(**trace));
  }
}

TEST(EtsTraces, OpsOfATraceStandTogetherAndTheOptimizerIsLeftOut) {
  const auto traces = read(std::string(kHeading) +
                           "resnet18.7,203,1,16|3|7,19.5,8.0,5000,10,75000,16,64,2\n"
                           "resnet18.7,203,2,,19.5,8.0,-300,10,25000,16,64,2\n"
                           "resnet18.7,12,3,,0,0,9000,-1,9000,16,64,2\n"
                           "empty.1,12,3,,0,0,9000,-1,9000,16,64,2\n"
                           "vgg16.bn.12,152,1,4,1,1,0,1,1000,8,32,3\n");
  ASSERT_TRUE(traces.ok()) << traces.error().message();
  ASSERT_EQ(traces->size(), 2U);
  const EtsTrace& first = (*traces)[0];
  EXPECT_EQ(first.id, "resnet18.7");
  EXPECT_EQ(first.model, "resnet18");
  EXPECT_EQ(first.batch, 16);
  EXPECT_EQ(first.height, 64);
  ASSERT_EQ(first.ops.size(), 2U);
  EXPECT_EQ(first.ops[0].parameters[2], 7);
  EXPECT_EQ(first.ops[0].parameters[3], 0);
  EXPECT_EQ(first.ops[0].dtype, DType::float16);
  EXPECT_EQ(first.ops[1].phase, Phase::backward);
  EXPECT_EQ(first.ops[1].gap_us, 0);  // negative
  EXPECT_DOUBLE_EQ(first.iteration_ms(), 0.105);
  EXPECT_EQ((*traces)[1].model, "vgg16.bn");
  EXPECT_EQ((*traces)[1].ops[0].dtype, DType::float64);
}

TEST(EtsTraces, LongParameterListsAreCut) {
  std::string list = "1";
  for (int i = 2; i <= 200; ++i) list += "|" + std::to_string(i);
  const auto traces = read(std::string(kHeading) + "a.1,213,1," + list + ",0,0,0,1,1,1,1,1");
  ASSERT_TRUE(traces.ok());
  EXPECT_EQ((*traces)[0].ops[0].parameters[29], 30);
}

TEST(EtsTraces, BrokenRowsNameTheirLine) {
  const std::string good = "a.1,203,1,1,1,1,1,1,1,1,1,1\n";
  const char* broken[] = {
      "a.1,203,1,1,1,1,1,1,1,1,1\n",        // too few cells
      "a.1,203,1,1,1,1,1,1,1,1,1,1,1\n",    // too many
      "a.1,203,4,1,1,1,1,1,1,1,1,1\n",      // direction
      "a.1,203,1,1,1,1,1,1,1,1,1,0\n",      // type
      "a.1,203,1,1|x,1,1,1,1,1,1,1,1\n",    // parameters
      "a.1,203,1,1,nan,1,1,1,1,1,1,1\n",    // no number
      "a.1,203,1,1,1e999,1,1,1,1,1,1,1\n",  // beyond a double
      "a.1,203,1,1,1,1,1,1,-5,1,1,1\n",     // negative duration
      "a.1,,1,1,1,1,1,1,1,1,1,1\n",         // empty
      ",203,1,1,1,1,1,1,1,1,1,1\n",         // no name
      "\n",
  };
  for (const char* line : broken) {
    const auto traces = read(kHeading + good + line + good);
    ASSERT_FALSE(traces.ok()) << line;
    EXPECT_NE(traces.error().message().find("traces.csv, line 3"), std::string::npos) << traces.error().message();
  }
}

TEST(EtsTraces, AHeadingWithoutTheColumnsIsRefused) {
  EXPECT_FALSE(read("").ok());
  const auto traces = read("trace,op,dir\na,1,1\n");
  ASSERT_FALSE(traces.ok());
  EXPECT_NE(traces.error().message().find("params"), std::string::npos);
}

// The label of every published trace, from the authors' own table.
TEST(EtsTraces, SumsEqualTheAuthorsLabels) {
  NEEDS_DATASET(folder, "ets");
  const std::string file = folder + "/ets_T4_eval.csv.gz";
  std::multimap<std::string, double> labels;  // by "model.config"
  std::ifstream table(folder + "/ets_iterations.csv");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == ',')
        cells.emplace_back();
      else
        cells.back() += c;
    }
    if (cells.size() > 22 && cells[0] == "T4") labels.emplace(cells[1] + "." + cells[2], std::stod(cells[22]));
  }
  auto reader = EtsTraceReader::open(file);
  ASSERT_TRUE(reader.ok());
  int traces = 0;
  int equal = 0;
  while (true) {
    const auto trace = reader->next();
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    if (!*trace) break;
    ++traces;
    const auto [first, last] = labels.equal_range((*trace)->id);
    for (auto label = first; label != last; ++label) {
      if (std::abs(label->second - (*trace)->iteration_ms()) < 1e-3 * label->second) {
        ++equal;
        break;
      }
    }
  }
  EXPECT_EQ(traces, 176);
  EXPECT_EQ(equal, traces);
}

}  // namespace
}  // namespace forerun
