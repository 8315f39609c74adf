// The field `dynamo` of a record, as captures write it and as nobody should.
#include "ingest/capture/dynamo_decoder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/line_reader.h"
#include "ingest/capture/run_record.h"

namespace forerun {
namespace {

using nlohmann::json;

// Three products one after the other, without a GPU.
json record_with(const std::string& dynamo) {
  json record = json::parse(R"({
    "schema": "run/2", "id": "hand/pieces", "backend": "generic", "family": "capture", "args": {},
    "input": ["flat", 2, 4, 0, 1],
    "run": {"precision": "fp32", "channels_last": false, "optimizer": {"name": "SGD", "impl": "foreach", "lr": 0.1}},
    "params": 16, "param_tensors": 1, "op_names": ["aten.mm.default"], "modules": ["", "fc"],
    "dtypes": ["float32"], "shapes": [[2, 4], [4, 4]], "attributes": [{}], "nodes": [],
    "tensors": {"storage": [0, 1, 2, 3, 4], "dtype": [0, 0, 0, 0, 0], "shape": [0, 1, 0, 0, 0],
                "strides": [-1, -1, -1, -1, -1], "offset": [0, 0, 0, 0, 0]},
    "ops": {"name": [0, 0, 0], "phase": "fff", "module": [1, 1, 1], "inputs": [[0, 1], [2, 1], [3, 1]],
            "outputs": [[2], [3], [4]], "attributes": [0, 0, 0], "sequence": [1, 2, 3], "node": [-1, -1, -1]},
    "storages": {"bytes": [32, 64, 32, 32, 32], "host": []}, "frees": {"op": [], "storage": []},
    "roots": {"storage": [0, 1], "kind": "ip", "name": ["x", "fc.weight"]}
  })");
  record["dynamo"] = json::parse(dynamo);
  return record;
}

Result<RunRecord> decoded(const json& record) {
  std::string line = record.dump();
  line.reserve(line.size() + LineReader::kPadding);
  RunDecoder decoder;
  return decoder.decode(line, Fields::inputs, {});
}

std::vector<int> pieces_of(const Graph& graph) {
  std::vector<int> pieces;
  for (const Op& op : graph.ops()) pieces.push_back(op.piece);
  return pieces;
}

constexpr const char* kTwoPieces = R"({"torch": "2.13.0", "graphs": 2,
    "traced": {"first": [0, 2], "end": [1, 3], "piece": [1, 2]},
    "breaks": [{"module": "fc", "op": "aten.mm.default", "why": "a logger", "where": "net.py:7"}]})";

TEST(DynamoDecoder, OpsHaveTheirPieces) {
  const auto read = decoded(record_with(kTwoPieces));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(pieces_of(read->run.graph), (std::vector<int>{1, 0, 2}));
  ASSERT_NE(read->run.dynamo, nullptr);
  EXPECT_EQ(read->run.dynamo->torch, "2.13.0");
  EXPECT_EQ(read->run.dynamo->graphs, 2);
  ASSERT_EQ(read->run.dynamo->breaks.size(), 1u);
  EXPECT_EQ(read->run.dynamo->breaks[0].why, "a logger");
  EXPECT_EQ(read->run.dynamo->breaks[0].where, "net.py:7");
}

TEST(DynamoDecoder, AttentionHasItsMasks) {
  json masked = json::parse(kTwoPieces);
  masked["masks"] = {1, 0, 1};
  const auto read = decoded(record_with(masked.dump().c_str()));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->run.dynamo->masks, (std::vector<bool>{true, false, true}));
  masked["masks"] = {"yes"};
  const auto broken = decoded(record_with(masked.dump().c_str()));
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().message().find("dynamo.masks"), std::string::npos) << broken.error().message();
}

TEST(DynamoDecoder, ARecordWithoutItKnowsNothing) {
  json record = record_with(kTwoPieces);
  record.erase("dynamo");
  const auto read = decoded(record);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->run.dynamo, nullptr);
}

TEST(DynamoDecoder, AProblemStandsForAll) {
  const auto read = decoded(record_with(R"({"torch": "2.4.0", "problem": "RuntimeError: no"})"));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->run.dynamo->problem, "RuntimeError: no");
}

TEST(DynamoDecoder, BrokenOnesAreRefusedByWhatIsWrong) {
  const std::vector<std::pair<const char*, const char*>> broken = {
      {R"({"torch": "2.13.0"})", "dynamo has neither traced nor problem"},
      {R"({"traced": {"first": [0], "end": [4], "piece": [1]}})", "dynamo.traced has ops 0 to 4 of 3"},
      {R"({"traced": {"first": [1, 0], "end": [2, 1], "piece": [1, 2]}})",
       "dynamo.traced has ops 0 to 1 of 3, behind op 2"},
      {R"({"traced": {"first": [1], "end": [1], "piece": [1]}})", "dynamo.traced has ops 1 to 1"},
      {R"({"traced": {"first": [0], "end": [1], "piece": [0]}})", "entry 0 is 0, not between 1 and 65535"},
      {R"({"traced": {"first": [0], "end": [1]}})", "dynamo.traced lacks the column piece"},
      {R"({"traced": {"first": [0], "end": [1, 2], "piece": [1]}})", "column first has 1 entries, but end has 2"},
      {R"({"traced": [], "graphs": 1})", "dynamo.traced is not an object"},
      {R"({"traced": {"first": [], "end": [], "piece": []}, "graphs": "two"})", "dynamo.graphs is not a whole number"},
      {R"({"traced": {"first": [], "end": [], "piece": []}, "breaks": [3]})",
       "an entry of dynamo.breaks is not an object"},
      {R"([])", "dynamo is not an object"},
  };
  for (const auto& [dynamo, complaint] : broken) {
    const auto read = decoded(record_with(dynamo));
    ASSERT_FALSE(read.ok()) << dynamo;
    EXPECT_NE(read.error().message().find(complaint), std::string::npos) << read.error().message();
  }
}

}  // namespace
}  // namespace forerun
