#include "ingest/capture/run_record.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "base/line_reader.h"
#include "graph/graph_builder.h"
#include "ingest/capture/run_record_writer.h"
#include "ingest/capture/test_records.h"

namespace forerun {
namespace {

using nlohmann::json;

Result<std::optional<RunRecord>> read_one(const std::string& line, Fields fields = Fields::inputs) {
  return RunRecordReader::from_text(line, "runs.jsonl", fields).next();
}

TEST(RunRecord, ReadsWhatTheRunIs) {
  const auto record = read_one(small_record().dump());
  ASSERT_TRUE(record.ok()) << record.error().message();
  const TrainingRun& run = (*record)->run;
  EXPECT_EQ(run.id, "hand/00001");
  EXPECT_EQ(run.family, "mlp");
  EXPECT_EQ(run.arguments, R"({"h": 7})");
  EXPECT_EQ(run.input.kind, InputKind::flat);
  EXPECT_EQ(run.input.batch, 2);
  EXPECT_EQ(run.input.channels, 3);
  EXPECT_EQ(run.input.classes, 7);
  EXPECT_EQ(run.setup.precision, Precision::amp_bf16);
  EXPECT_TRUE(run.setup.channels_last);
  EXPECT_EQ(run.setup.optimizer.kind, OptimizerKind::sgd);
  EXPECT_EQ(run.setup.optimizer.impl, OptimizerImpl::fused);
  EXPECT_EQ(run.setup.optimizer.momentum, 0.9);
  EXPECT_EQ(run.environment.gpu, "NVIDIA H200");
  EXPECT_EQ(run.environment.cudnn, 91900);
  EXPECT_FALSE((*record)->measured);

  json novel = small_record();
  novel["run"]["optimizer"]["name"] = "Sophia";
  EXPECT_EQ((*read_one(novel.dump()))->run.setup.optimizer.kind, OptimizerKind::other);

  json tokens = small_record();
  tokens["input"] = {"tokens", 4, 128, 32000, "lm"};
  const auto spec = (*read_one(tokens.dump()))->run.input;
  EXPECT_EQ(spec.kind, InputKind::tokens);
  EXPECT_EQ(spec.size, 128);
  EXPECT_EQ(spec.classes, 32000);
  EXPECT_EQ(spec.flavour, "lm");
}

TEST(RunRecord, LeavesOutMarksAndMovesWhatNamesOps) {
  const auto record = read_one(small_record().dump(), Fields::inputs_and_measurements);
  ASSERT_TRUE(record.ok()) << record.error().message();
  const Graph& graph = (*record)->run.graph;
  ASSERT_EQ(graph.op_count(), 3U);
  EXPECT_EQ(graph.name(graph.ops()[0]), "aten.mm.default");
  EXPECT_EQ(graph.ops()[1].phase, Phase::backward);
  EXPECT_EQ(graph.ops()[1].sequence, RecordLimits::kNoSequence);
  EXPECT_EQ(graph.names()[graph.ops()[1].autograd_node], "MmBackward0");
  EXPECT_EQ(graph.parameter_count(), 21);
  EXPECT_EQ(graph.parameter_tensors(), 1);
  EXPECT_EQ(graph.storages()[2].freed_before, OpId(3)) << "freed before a mark behind the last op: at the end";
  EXPECT_FALSE(graph.storages()[0].freed_before.valid()) << "roots outlive the capture's end";
  EXPECT_FALSE(graph.storages()[4].on_gpu);

  const Measurement& measured = *(*record)->measured;
  EXPECT_EQ(measured.op_gpu_us, (std::vector<double>{10.5, 5, 0}));
  EXPECT_EQ(measured.op_kernels, (std::vector<uint32_t>{1, 2, 0}));
  EXPECT_EQ(measured.gpu_busy_us, 16.5);
  EXPECT_EQ(measured.pipelined_median_ms, 1.5);
  EXPECT_EQ(measured.peak_reserved, Bytes(2000));
  EXPECT_EQ(measured.allocated, Bytes(500));
  EXPECT_EQ(measured.host_us, (std::array<double, 3>{5, 10, 20.5}));
  EXPECT_FALSE(measured.aligned);
  EXPECT_FALSE(measured.out_of_memory);

  json moved = small_record();
  moved["frees"] = {{2, 2}};
  moved["ops"][3][3][1] = {0, "float32", {2, 3}};
  EXPECT_EQ((*read_one(moved.dump()))->run.graph.storages()[2].freed_before, OpId(1))
      << "a mark's free moves to the next op";
}

TEST(RunRecord, TakesInputsAloneInAnyOrder) {
  const auto whole = read_one(small_record().dump());
  json stripped = small_record();
  for (const char* field :
       {"status", "mem", "time_ms", "kernel_names", "kernels", "profile", "id", "schema", "module_types"}) {
    stripped.erase(field);
  }
  EXPECT_EQ(difference((*whole)->run.graph, (*read_one(stripped.dump()))->run.graph), "");

  json nonsense = small_record();
  for (const char* field : {"status", "mem", "time_ms", "kernels", "profile"}) nonsense[field] = "nonsense";
  const auto unread = read_one(nonsense.dump());
  ASSERT_TRUE(unread.ok()) << unread.error().message();
  EXPECT_EQ(difference((*whole)->run.graph, (*unread)->run.graph), "");
  EXPECT_FALSE(read_one(nonsense.dump(), Fields::inputs_and_measurements).ok());

  const auto stripped_run = read_one(stripped.dump(), Fields::inputs_and_measurements);
  ASSERT_TRUE(stripped_run.ok());
  EXPECT_FALSE((*stripped_run)->measured);
}

TEST(RunRecord, TakesARunWithoutOpsIfItDidNotFitOrIsOnlyDescribed) {
  json record = small_record();
  for (const char* field : {"ops", "storages", "frees", "roots", "op_names", "modules", "kernels", "time_ms"})
    record.erase(field);
  record["status"] = "oom";
  for (const Fields fields : {Fields::inputs, Fields::inputs_and_measurements}) {
    const auto read = read_one(record.dump(), fields);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_FALSE((*read)->has_graph);
    EXPECT_EQ((*read)->measured && (*read)->measured->out_of_memory, fields == Fields::inputs_and_measurements);
  }
  record["status"] = "ok";
  EXPECT_FALSE(read_one(record.dump(), Fields::inputs_and_measurements).ok());
  record["ops"] = json::array();
  EXPECT_EQ(read_one(record.dump()).error().what, "the record has no ops");
}

struct Fault {
  const char* what;  // the complaint, or its beginning
  std::function<void(json&)> make;
};

const std::vector<Fault>& faults() {
  static const std::vector<Fault> list = {
      {"op 1 (aten.mm.default): input 1 names storage 999 of 5", [](json& r) { r["ops"][1][3][1][0] = 999; }},
      {"op 1 (aten.mm.default): input 1: its storage is not", [](json& r) { r["ops"][1][3][1][0] = -1; }},
      {"op 1 (aten.mm.default): output 0: its shape has a negative extent (-3)",
       [](json& r) { r["ops"][1][4][0][2][0] = -3; }},
      {"op 1 (aten.mm.default): output 0: its shape has more than 2^46",
       [](json& r) {
         r["ops"][1][4][0][2] = {1 << 24, 1 << 24};
       }},
      {"op 1 (aten.mm.default): output 0: an extent of its shape is not",
       [](json& r) { r["ops"][1][4][0][2][0] = 1e300; }},
      {"op 1 (aten.mm.default): output 0: its shape has more than 64",
       [](json& r) { r["ops"][1][4][0][2] = std::vector<int>(65, 1); }},
      {"op 1 (aten.mm.default): output 0: its dtype is \"float99\"; known: float32, float64",
       [](json& r) { r["ops"][1][4][0][1] = "float99"; }},
      {"op 1 (aten.mm.default): output 0: is not [storage, dtype, shape]", [](json& r) { r["ops"][1][4][0].erase(2); }},
      {"op 1 (aten.mm.default): output 0: it is not a list", [](json& r) { r["ops"][1][4][0] = "x"; }},
      {"op 1 (aten.mm.default): has 7 entries instead of 8", [](json& r) { r["ops"][1].erase(7); }},
      {"op 1 (aten.mm.default): its phase is \"z\"; known: f, b, u", [](json& r) { r["ops"][1][1] = "z"; }},
      {"op 1 (aten.mm.default): it names entry 2 of 2 modules", [](json& r) { r["ops"][1][2] = 2; }},
      {"op 1 (aten.mm.default): its attributes is not an object", [](json& r) { r["ops"][1][5] = json::array(); }},
      {"op 1 names entry 3 of 3 op_names", [](json& r) { r["ops"][1][0] = 3; }},
      {"op 1: it is not a list", [](json& r) { r["ops"][1] = 5; }},
      {"ops is not a list", [](json& r) { r["ops"] = "many"; }},
      {"the record has no ops", [](json& r) { r["ops"] = json::array(); }},
      {"the record has no ops but profiler marks",
       [](json& r) {
         r["op_names"] = {"profiler.a", "profiler.b", "profiler.c"};
       }},
      {"the record lacks storages", [](json& r) { r.erase("storages"); }},
      {"the record lacks input", [](json& r) { r.erase("input"); }},
      {"the record lacks params", [](json& r) { r.erase("params"); }},
      {"schema is \"run/9\"; known: run/1, run/2, run/3", [](json& r) { r["schema"] = "run/9"; }},
      {"storage 2 has -56 bytes", [](json& r) { r["storages"][2][0] = -56; }},
      {"storage 2 has 1152921504606846977 bytes", [](json& r) { r["storages"][2][0] = (int64_t{1} << 60) + 1; }},
      {"the storages have more than 2^60 bytes together",
       [](json& r) { r["storages"][2][0] = r["storages"][3][0] = int64_t{1} << 60; }},
      {"storage 2 is not [bytes, device]", [](json& r) { r["storages"][2].erase(1); }},
      {"frees names op 7 of 6", [](json& r) { r["frees"][0][0] = 7; }},
      {"frees names storage 5 of 5", [](json& r) { r["frees"][0][1] = 5; }},
      {"storage 2 is freed twice",
       [](json& r) {
         r["frees"][1] = {5, 2};
       }},
      {"without profiler marks, op 1 (aten.mm.default): input 1 uses storage 2, freed before op 1",
       [](json& r) { r["frees"][0][0] = 2; }},
      {"roots names storage 77 of 5",
       [](json& r) {
         r["roots"]["77"] = {"param", "w"};
       }},
      {"roots names storage \"-1\", which is no number",
       [](json& r) {
         r["roots"]["-1"] = {"param", "w"};
       }},
      {"a root's kind is \"alien\"; known: param", [](json& r) { r["roots"]["1"][0] = "alien"; }},
      {"run.precision is \"fp4\"; known: fp32", [](json& r) { r["run"]["precision"] = "fp4"; }},
      {"run lacks optimizer", [](json& r) { r["run"].erase("optimizer"); }},
      {"the kind of input is \"video\"; known: image", [](json& r) { r["input"][0] = "video"; }},
      {"input's batch is -4, not between", [](json& r) { r["input"][1] = -4; }},
      {"input has 2 entries instead of 5",
       [](json& r) {
         r["input"] = {"image", 4};
       }},
      {"args is not an object", [](json& r) { r["args"] = 4; }},
      {"params is -1, not between", [](json& r) { r["params"] = -1; }},
  };
  return list;
}

TEST(RunRecord, SaysWhatIsWrongAndWhere) {
  for (const Fault& fault : faults()) {
    json record = small_record();
    fault.make(record);
    const auto read = read_one(record.dump());
    ASSERT_FALSE(read.ok()) << fault.what;
    EXPECT_TRUE(read.error().what.starts_with(fault.what)) << read.error().what << "\n  instead of: " << fault.what;
    EXPECT_TRUE(read.error().where.starts_with("runs.jsonl, record 1")) << read.error().where;
    EXPECT_FALSE(read.error().remedy.empty());
  }
  json named = small_record();
  named["roots"]["77"] = {"param", "w"};
  EXPECT_EQ(read_one("\n\n" + named.dump()).error().where, "runs.jsonl, record 3 (hand/00001)");
}

TEST(RunRecord, SaysWhatIsWrongWithMeasurements) {
  const auto complaint = [](const std::function<void(json&)>& make) {
    json record = small_record();
    make(record);
    const auto read = read_one(record.dump(), Fields::inputs_and_measurements);
    return read.ok() ? "" : read.error().what;
  };
  EXPECT_EQ(complaint([](json& r) { r["kernels"][0][7] = 6; }), "a kernel names op 6 of 6");
  EXPECT_EQ(complaint([](json& r) { r["kernels"][0].erase(7); }), "kernel 0 has 7 entries instead of 8");
  EXPECT_EQ(complaint([](json& r) { r.erase("time_ms"); }), "status is ok, but time_ms is missing");
  EXPECT_EQ(complaint([](json& r) { r["status"] = "odd"; }), "status is \"odd\"; known: ok, oom, failed");
}

TEST(RunRecord, RefusesTextThatIsNoRecord) {
  const std::string good = small_record().dump();
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  std::vector<std::string> bad = {"{",
                                  "[]",
                                  "null",
                                  "7",
                                  "{}",
                                  "{\"ops\"",
                                  good + good,
                                  good + "x",
                                  good.substr(0, good.size() - 1),
                                  "\xff\xfe",
                                  deep,
                                  "{\"ops\": " + deep + "}",
                                  "{\"args\": {\"a\": " + deep + "}}"};
  for (const size_t cut : {size_t{10}, good.size() / 3, good.size() / 2}) bad.push_back(good.substr(0, cut));
  std::string attributes = good;
  attributes.replace(attributes.find("\"d\":[1,2]"), 9, "\"d\":" + deep);
  bad.push_back(attributes);
  for (const std::string& text : bad) {
    const auto read = read_one(text);
    ASSERT_FALSE(read.ok()) << text.substr(0, 100);
    EXPECT_FALSE(read.error().what.empty());
    EXPECT_LT(read.error().message().size(), 500U);
  }
}

TEST(RunRecord, GoesOnAfterABrokenRecord) {
  const std::string good = small_record().dump();
  json fault = small_record();
  fault["ops"][1][3][1][0] = 999;
  auto reader = RunRecordReader::from_text(good + "\n" + fault.dump() + "\n\n{\n" + good, "runs.jsonl", Fields::inputs);
  EXPECT_TRUE(reader.next().ok());
  EXPECT_EQ(reader.next().error().where, "runs.jsonl, record 2 (hand/00001)");
  EXPECT_EQ(reader.next().error().where, "runs.jsonl, record 4");
  EXPECT_FALSE(reader.file_broken());
  EXPECT_TRUE((*reader.next()).has_value());
  EXPECT_FALSE((*reader.next()).has_value());
}

// Bytes changed, removed and doubled at random: an error or a graph that verifies, nothing else.
TEST(RunRecord, SurvivesRandomDamage) {
  const std::string good = small_record().dump();
  std::mt19937 random(11);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = "0123456789-[]{},:\"eE.\\naf"[random() % 25]; break;
        case 1: text.erase(at, 1 + random() % 8); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 12)); break;
      }
    }
    auto reader = RunRecordReader::from_text(text, "damaged", Fields::inputs_and_measurements);
    const auto read = reader.next();
    if (!read.ok()) ++refused;
    if (read.ok() && read->has_value()) {
      EXPECT_TRUE(verify((*read)->run.graph).ok());
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(RunRecordWriter, ReadsBackWhatItWrote) {
  json odd = small_record();
  odd["modules"][1] = "a \"quoted\" \\ module\n\u00e9";
  odd["ops"][1][5] = {
      {"none", nullptr},        {"flags", {true, false}}, {"floats", {1.5, 1e-20}},         {"mixed", {1, "a", {2}}},
      {"empty", json::array()}, {"text", "x\ty"},         {"big", 18446744073709551615ULL}, {"whole", 3.0}};
  for (const json& record : {small_record(), odd}) {
    const auto first = read_one(record.dump());
    ASSERT_TRUE(first.ok()) << first.error().message();
    const std::string line = to_run_record((*first)->run);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto second = read_one(line);
    ASSERT_TRUE(second.ok()) << second.error().message();
    EXPECT_EQ(difference((*first)->run.graph, (*second)->run.graph), "");
    EXPECT_EQ(to_run_record((*second)->run), line);
  }
}

// Recorded on an H200 in the form run/1: one of each of 15 families.
const std::string kRun1Sample = FORERUN_SOURCE_DIR "/tests/data/run1.jsonl.zst";

TEST(Run1Records, AllReadVerifyAndRoundTrip) {
  auto reader = RunRecordReader::open(kRun1Sample, Fields::inputs);
  ASSERT_TRUE(reader.ok()) << reader.error().message();
  size_t records = 0;
  while (true) {
    const auto record = reader->next();
    ASSERT_TRUE(record.ok()) << record.error().message();
    if (!record->has_value()) break;
    ++records;
    const Graph& graph = (*record)->run.graph;
    const Status status = verify(graph);
    ASSERT_TRUE(status.ok()) << status.error().message();
    const auto again = read_one(to_run_record((*record)->run));
    ASSERT_TRUE(again.ok()) << again.error().message();
    ASSERT_EQ(difference(graph, (*again)->run.graph), "") << (*record)->run.id;
  }
  EXPECT_EQ(records, 15U);
}

// The same records without what was measured, their fields in another order.
TEST(Run1Records, GiveTheSameGraphsWithoutMeasurements) {
  auto lines = LineReader::open(kRun1Sample);
  ASSERT_TRUE(lines.ok());
  while (true) {
    const auto line = lines->next();
    ASSERT_TRUE(line.ok());
    if (!line->has_value()) break;
    const auto whole = read_one(std::string(**line), Fields::inputs_and_measurements);
    ASSERT_TRUE(whole.ok()) << whole.error().message();
    ASSERT_TRUE((*whole)->measured);
    EXPECT_GT((*whole)->measured->gpu_busy_us, 0);
    const auto full = nlohmann::ordered_json::parse(**line);  // the order of attributes is part of the graph
    nlohmann::ordered_json stripped;
    for (const char* field : {"roots", "frees", "ops", "storages", "modules", "op_names", "params", "param_tensors",
                              "env", "run", "input", "args", "family"}) {
      stripped[field] = full.at(field);
    }
    const auto inputs = read_one(stripped.dump());
    ASSERT_TRUE(inputs.ok()) << inputs.error().message();
    EXPECT_EQ(difference((*whole)->run.graph, (*inputs)->run.graph), "") << (*whole)->run.id;
  }
}

}  // namespace
}  // namespace forerun
