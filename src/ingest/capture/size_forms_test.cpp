#include "ingest/capture/size_forms.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/line_reader.h"
#include "ingest/capture/run_record.h"

namespace forerun {
namespace {

using nlohmann::json;

// Two products and a view between them, captured at batch 2 and length 3: [2, 3, 4] x [4, 4], as [6, 4].
json moving_record() {
  return json::parse(R"({
    "schema": "run/2", "id": "hand/moving", "backend": "cuda", "family": "capture", "args": {},
    "input": ["tokens", 2, 3, 50, "lm"],
    "run": {"precision": "fp32", "channels_last": false, "optimizer": {"name": "SGD", "impl": "foreach", "lr": 0.1}},
    "warnings": ["half of it is missing"], "assumed": ["nothing is not a number"],
    "params": 16, "param_tensors": 1, "op_names": ["aten.view.default", "aten.mm.default"], "modules": ["", "fc"],
    "dtypes": ["float32"], "shapes": [[2, 3, 4], [6, 4], [4, 4]],
    "attributes": [{"size": [6, 4]}, {}], "nodes": [],
    "tensors": {"storage": [0, 0, 1, 2], "dtype": [0, 0, 0, 0], "shape": [0, 1, 2, 1], "strides": [-1, -1, -1, -1],
                "offset": [0, 0, 0, 0]},
    "ops": {"name": [0, 1], "phase": "ff", "module": [0, 1], "inputs": [[0], [1, 2]], "outputs": [[1], [3]],
            "attributes": [0, 1], "sequence": [1, 2], "node": [-1, -1]},
    "storages": {"bytes": [96, 64, 96], "host": []}, "frees": {"op": [], "storage": []},
    "roots": {"storage": [0, 1], "kind": "ip", "name": ["x", "fc.weight"]},
    "parametric": {"dimensions": ["batch", "length"], "recorded": [2, 3],
                   "terms": [[0, 0], [0, 1], [1, 0], [1, 1]],
                   "forms": [[0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 16]],
                   "input": {"entry": [1, 2], "form": [0, 1]},
                   "shapes": {"entry": [0, 0, 1], "place": [0, 1, 0], "form": [0, 1, 2]},
                   "storages": {"entry": [0, 2], "form": [3, 3]}, "offsets": {"entry": [], "form": []},
                   "attributes": {"entry": [0], "text": [["{\"size\":[", 2, ",4]}"]]}}
  })");
}

Result<RunRecord> decoded(const json& record, const RecordSizes& sizes) {
  std::string line = record.dump();
  line.reserve(line.size() + LineReader::kPadding);
  RunDecoder decoder;
  return decoder.decode(line, Fields::inputs, sizes);
}

std::string refusal(const json& record, const RecordSizes& sizes) {
  const auto read = decoded(record, sizes);
  return read ? "" : read.error().message();
}

TEST(SizeForms, MoveShapesBytesAttributesAndInput) {
  const auto read = decoded(moving_record(), {.batch = 5, .length = 7});
  ASSERT_TRUE(read.ok()) << read.error().message();
  const TrainingRun& run = read->run;
  EXPECT_EQ(run.input.batch, 5);
  EXPECT_EQ(run.input.size, 7);
  const Graph& graph = run.graph;
  EXPECT_EQ(graph.storages()[0].bytes, Bytes(5 * 7 * 16));
  EXPECT_EQ(graph.storages()[1].bytes, Bytes(64));
  const Op& view = graph.ops()[0];
  const auto extents = graph.shape(graph.outputs(view)[0]);
  EXPECT_EQ(std::vector<int64_t>(extents.begin(), extents.end()), (std::vector<int64_t>{35, 4}));
  EXPECT_EQ(graph.attributes(view).to_json(), R"({"size": [35, 4]})");
}

TEST(SizeForms, OneSizeAloneMoves) {
  EXPECT_EQ(decoded(moving_record(), {.batch = 9})->run.graph.storages()[2].bytes, Bytes(9 * 3 * 16));
  EXPECT_EQ(decoded(moving_record(), {.length = 9})->run.graph.storages()[2].bytes, Bytes(2 * 9 * 16));
  EXPECT_EQ(decoded(moving_record(), {})->run.graph.storages()[2].bytes, Bytes(96));
}

TEST(SizeForms, WhatCannotMoveSaysWhy) {
  json fixed = moving_record();
  fixed["parametric"] = {{"dimensions", {"batch"}}, {"recorded", {2}}, {"fixed", "op 3, aten.split.Tensor: odd"}};
  EXPECT_NE(refusal(fixed, {.batch = 5}).find("op 3, aten.split.Tensor: odd"), std::string::npos);
  EXPECT_EQ(refusal(fixed, {}), "");

  json single = moving_record();
  single.erase("parametric");
  EXPECT_NE(refusal(single, {.batch = 5}).find("captured at one size"), std::string::npos);
  EXPECT_NE(refusal(single, {.batch = 5}).find("--batch-sizes"), std::string::npos);
  EXPECT_EQ(refusal(single, {.batch = 2}), "") << "the size it has";
  EXPECT_NE(refusal(moving_record(), {.batch = 0}).find("the batch cannot be 0"), std::string::npos);

  json batch_alone = moving_record();
  batch_alone["parametric"]["dimensions"] = {"batch"};
  batch_alone["parametric"]["recorded"] = {2};
  batch_alone["parametric"]["terms"] = json::array({{0}, {1}, {1}, {1}});
  EXPECT_NE(refusal(batch_alone, {.length = 5}).find("one length only"), std::string::npos);
}

TEST(SizeForms, BrokenFormsAreRefused) {
  const std::vector<std::pair<const char*, json>> broken = {
      {"/parametric/shapes/entry/0", 99},
      {"/parametric/shapes/place/0", 3},
      {"/parametric/shapes/form/0", 4},
      {"/parametric/storages/entry/0", 3},
      {"/parametric/attributes/entry/0", 2},
      {"/parametric/attributes/text/0/1", 9},
      {"/parametric/forms/3/3", int64_t{1} << 60},
      {"/parametric/forms/3/3", -16},
      {"/parametric/terms/3/0", 9},
      {"/parametric/recorded", json::array({2})},
      {"/parametric/input/entry/0", 4},
      {"/parametric/forms/3/3", 15},  // too few bytes for the shape
      {"/parametric/attributes/text/0", "{}"},
      {"/parametric/dimensions", 1},
  };
  for (const auto& [place, value] : broken) {
    json record = moving_record();
    record[json::json_pointer(place)] = value;
    EXPECT_NE(refusal(record, {.batch = 5, .length = 7}), "") << place << " " << value;
  }
}

TEST(SizeForms, WarningsAndAssumptionsComeWithTheRun) {
  const auto read = decoded(moving_record(), {});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->run.warnings, std::vector<std::string>{"half of it is missing"});
  EXPECT_EQ(read->run.assumed, std::vector<std::string>{"nothing is not a number"});
  json wrong = moving_record();
  wrong["warnings"] = "a sentence";
  EXPECT_NE(refusal(wrong, {}).find("warnings is not a list"), std::string::npos);
}

}  // namespace
}  // namespace forerun
