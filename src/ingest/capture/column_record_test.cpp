// run/2 and run/3: what the columns become, what is wrong with broken ones, and records turned into run/3.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "base/line_reader.h"
#include "ingest/capture/op_sample.h"
#include "ingest/capture/record_compactor.h"
#include "ingest/capture/record_decoder.h"
#include "ingest/capture/run_record.h"
#include "ingest/capture/test_records.h"

namespace forerun {
namespace {

using nlohmann::json;

Result<std::optional<RunRecord>> read_one_run2(const std::string& line, Fields fields = Fields::everything) {
  return RunRecordReader::from_text(line, "runs.jsonl", fields).next();
}

std::string padded(std::string text) {
  text.reserve(text.size() + LineReader::kPadding);
  return text;
}

Result<std::string> compacted(const std::string& line) {
  const std::string text = padded(line);
  return RecordCompactor().compact_run(text);
}

TEST(RecordCompactor, RoundsTheSpreadAndSumsTheKernelsOfASample) {
  const std::string line = padded(
      R"({"schema":"op/1","id":"a","op":"aten.mm.default","us":7.5,"spread":0.0163,"kernels":[["gemm",4.25],["splitk",3,2]]})");
  const auto packed = RecordCompactor().compact_sample(line);
  ASSERT_TRUE(packed.ok()) << packed.error().message();
  EXPECT_EQ(*packed, R"({"schema":"op/1","op":"aten.mm.default","us":7.5,"spread":0.02,"kernels":[["",7.250,3]]})");
  const std::string odd = padded(R"({"schema":"op/1","id":"a","kernels":[["gemm","long"]]})");
  EXPECT_FALSE(RecordCompactor().compact_sample(odd).ok());
}

TEST(Run2Record, ReadsWhatTheRunIs) {
  const auto record = read_one_run2(small_record_2().dump());
  ASSERT_TRUE(record.ok()) << record.error().message();
  const TrainingRun& run = (*record)->run;
  EXPECT_EQ(run.id, "hand/00002");
  EXPECT_EQ(run.backend, Backend::generic);
  EXPECT_EQ(run.setup.precision, Precision::amp_bf16);
  EXPECT_EQ(run.setup.accumulate, 2);
  EXPECT_EQ(run.environment.host, "a1b2");
  EXPECT_EQ(run.environment.date, "2026-01-01");
  EXPECT_EQ(run.graph.parameter_count(), 21);
}

TEST(Run2Record, BuildsTheGraphWithStrides) {
  const auto record = read_one_run2(small_record_2().dump());
  ASSERT_TRUE(record.ok()) << record.error().message();
  const Graph& graph = (*record)->run.graph;
  ASSERT_EQ(graph.op_count(), 3U);
  const Op& forward = graph.ops()[0];
  EXPECT_EQ(graph.name(forward), "aten.mm.default");
  EXPECT_EQ(graph.module(forward), "fc");
  EXPECT_EQ(graph.attributes(forward).get_double("p", 0), 0.5);
  EXPECT_TRUE(std::ranges::equal(graph.strides(graph.inputs(forward)[0]), Shape{3, 1})) << "contiguous";
  EXPECT_TRUE(std::ranges::equal(graph.strides(graph.inputs(forward)[1]), Shape{1, 3}));
  EXPECT_EQ(graph.ops()[1].phase, Phase::backward);
  EXPECT_EQ(graph.ops()[1].sequence, RecordLimits::kNoSequence);
  EXPECT_EQ(graph.names()[graph.ops()[1].autograd_node], "MmBackward0");
  EXPECT_EQ(graph.names()[forward.autograd_node], "");
  EXPECT_EQ(graph.module(graph.ops()[2]), "");
  EXPECT_EQ(graph.ops()[2].output_count, 0U);
  EXPECT_EQ(graph.storages()[2].freed_before, OpId(2));
  EXPECT_EQ(graph.storages()[1].root, Root::parameter);
  EXPECT_FALSE(graph.storages()[4].on_gpu);
}

TEST(Run2Record, ReadsWhatWasMeasured) {
  const auto record = read_one_run2(small_record_2().dump());
  ASSERT_TRUE(record.ok()) << record.error().message();
  const Measurement& m = *(*record)->measured;
  EXPECT_EQ(m.op_gpu_us, (std::vector<double>{10.5, 5, 0}));
  EXPECT_EQ(m.op_kernels, (std::vector<uint32_t>{1, 2, 0}));
  EXPECT_EQ(m.gpu_busy_us, 16.5);
  EXPECT_EQ(m.unmatched_us, 1.0);
  EXPECT_EQ(m.kernel_count, 4);
  EXPECT_EQ(m.pipelined_median_ms, 1.5);
  EXPECT_EQ(m.synced_median_ms, 2.5);
  EXPECT_EQ((*record)->run.environment.calibration.forward,
            (std::vector<std::pair<std::string, double>>{{"add", 9}, {"view", 3.5}}));
  EXPECT_EQ((*record)->run.environment.calibration.backward,
            (std::vector<std::pair<std::string, double>>{{"view", 7.25}}));
  EXPECT_EQ(m.device_used, Bytes(9000));
  EXPECT_EQ(m.device_total, Bytes(10000));
  EXPECT_EQ(m.segments, 3);
  EXPECT_EQ(m.retries, 1);
  EXPECT_EQ(m.initial, Bytes(84));
  const AllocatorTrace& trace = *(*record)->allocator;
  ASSERT_EQ(trace.events.size(), 6U);
  EXPECT_EQ(trace.events[2].action, 'a');
  EXPECT_EQ(trace.events[2].address, 4);
  EXPECT_EQ(trace.address_base, 140000000000000);
  EXPECT_EQ(trace.marks[1].name, "forward");
  EXPECT_TRUE(check(trace, false).ok());
}

TEST(Run2Record, ReadsNoMoreThanIsAskedFor) {
  json nonsense = small_record_2();
  nonsense["alloc_trace"] = "nonsense";
  EXPECT_FALSE(read_one_run2(nonsense.dump(), Fields::everything).ok());
  EXPECT_TRUE(read_one_run2(nonsense.dump(), Fields::inputs_and_measurements).ok());
  nonsense["ops"] = "nonsense";
  const auto described = read_one_run2(nonsense.dump(), Fields::description);
  ASSERT_TRUE(described.ok()) << described.error().message();
  EXPECT_FALSE((*described)->has_graph);
  EXPECT_EQ((*described)->measured->gpu_busy_us, 16.5);
  nonsense = small_record_2();
  for (const char* field : {"status", "mem", "mem_init", "time_ms", "kernels", "profile", "alloc_trace"}) {
    nonsense[field] = json::array({"nonsense"});
  }
  const auto inputs = read_one_run2(nonsense.dump(), Fields::inputs);
  ASSERT_TRUE(inputs.ok()) << inputs.error().message();
  EXPECT_FALSE((*inputs)->measured);
}

TEST(Run2Record, TakesTensorsWithoutStrides) {
  json record = small_record_2();
  record["tensors"].erase("strides");
  record["tensors"].erase("offset");
  const auto read = read_one_run2(record.dump());
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_FALSE((*read)->run.graph.tensors()[0].strides.valid());

  json resized = small_record_2();
  resized["storages"]["bytes"][2] = 0;
  const auto unknown = read_one_run2(resized.dump());
  ASSERT_TRUE(unknown.ok()) << "a storage that is recorded before it is resized: " << unknown.error().message();
}

TEST(Run2Record, TakesRunsThatDidNotFinish) {
  json oom = small_record_2();
  for (const char* field : {"ops", "tensors", "kernels", "mem", "time_ms", "params", "alloc_trace"}) oom.erase(field);
  oom["status"] = "oom";
  oom["tried"] = {{"phase", "backward"}, {"requested", 5}, {"reserved", 7}, {"allocated", nullptr}};
  const auto read = read_one_run2(oom.dump());
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_FALSE((*read)->has_graph);
  EXPECT_TRUE((*read)->measured->out_of_memory);
  EXPECT_EQ((*read)->measured->tried->phase, "backward");
  EXPECT_EQ((*read)->measured->tried->reserved, Bytes(7));

  json failed = oom;
  failed["status"] = "failed";
  failed["error"] = "RuntimeError: no";
  const auto broken = read_one_run2(failed.dump());
  ASSERT_TRUE(broken.ok()) << broken.error().message();
  EXPECT_EQ((*broken)->measured->status, RunStatus::failed);
  EXPECT_EQ((*broken)->measured->error, "RuntimeError: no");
  failed["status"] = "ok";
  EXPECT_FALSE(read_one_run2(failed.dump()).ok());
}

TEST(Run2Record, PassesOverOtherSchemas) {
  const std::string text = R"({"schema":"env/1","gpu":"NVIDIA H200"})"
                           "\n" +
                           small_sample().dump() + "\n" + small_record_2().dump() + "\n" +
                           R"({"id":"late","schema":"op/1","kernels":[["a",1]]})" + "\n";
  auto reader = RunRecordReader::from_text(text, "mixed.jsonl", Fields::everything);
  const auto first = reader.next();
  ASSERT_TRUE(first.ok()) << first.error().message();
  EXPECT_EQ((*first)->run.id, "hand/00002");
  const auto end = reader.next();
  ASSERT_TRUE(end.ok()) << end.error().message();
  EXPECT_FALSE(end->has_value());
}

struct Run2Fault {
  std::string what;
  std::function<void(json&)> make;
};

const std::vector<Run2Fault>& run2_faults() {
  static const std::vector<Run2Fault> list = {
      {"ops: column phase has 2 entries, but attributes has 3", [](json& r) { r["ops"]["phase"] = "fb"; }},
      {"ops: column outputs has 2 entries, but", [](json& r) { r["ops"]["outputs"].erase(0); }},
      {"ops lacks the column sequence", [](json& r) { r["ops"].erase("sequence"); }},
      {"op 1: its phase is \"x\"; known: f, b, u", [](json& r) { r["ops"]["phase"] = "fxu"; }},
      {"ops.name: entry 1 is not a whole number", [](json& r) { r["ops"]["name"][1] = "mm"; }},
      {"op 2 names entry 9 of 2 op_names", [](json& r) { r["ops"]["name"][2] = 9; }},
      {"op 0 (aten.mm.default): it names entry 9 of 2 modules", [](json& r) { r["ops"]["module"][0] = 9; }},
      {"ops.module: entry 0 is -2, not between -1", [](json& r) { r["ops"]["module"][0] = -2; }},
      {"op 0 names tensor 5 of 5", [](json& r) { r["ops"]["inputs"][0][1] = 5; }},
      {"ops.inputs, op 0: an entry is not a whole number of 0 or more", [](json& r) { r["ops"]["inputs"][0][1] = -1; }},
      {"ops.inputs, op 1: ops.inputs is not a list", [](json& r) { r["ops"]["inputs"][1] = 3; }},
      {"op 2 names entry 3 of 3 attributes", [](json& r) { r["ops"]["attributes"][2] = 3; }},
      {"op 1 names entry 1 of 1 nodes", [](json& r) { r["ops"]["node"][1] = 1; }},
      {"an entry of ops.sequence is not a whole number", [](json& r) { r["ops"]["sequence"][0] = 0.5; }},
      {"tensors: column strides has 4 entries, but", [](json& r) { r["tensors"]["strides"].erase(0); }},
      {"tensors lacks the column dtype", [](json& r) { r["tensors"].erase("dtype"); }},
      {"tensor 3 names entry 7 of 5 shapes", [](json& r) { r["tensors"]["shape"][3] = 7; }},
      {"tensor 3 names entry 7 of 5 shapes", [](json& r) { r["tensors"]["strides"][3] = 7; }},
      {"tensor 0 names entry 1 of 1 dtypes", [](json& r) { r["tensors"]["dtype"][0] = 1; }},
      {"dtypes has \"float7\"; known: float32", [](json& r) { r["dtypes"][0] = "float7"; }},
      {"entry 1 of shapes: it has a negative extent (-3)", [](json& r) { r["shapes"][1][0] = -3; }},
      {"op 0 (aten.mm.default): input 1: its shape has more than 2^46 elements",
       [](json& r) {
         r["shapes"][1] = {1 << 24, 1 << 24};
       }},
      {"op 0 (aten.mm.default): input 0 names storage 9 of 5", [](json& r) { r["tensors"]["storage"][0] = 9; }},
      {"op 0 (aten.mm.default): input 1: its shape has 2 extents, but it has 1 strides",
       [](json& r) {
         r["shapes"].push_back({1});
         r["tensors"]["strides"][1] = 5;
       }},
      {"op 0 (aten.mm.default): input 0: its element 7 lies outside storage 0, which has 7",
       [](json& r) { r["tensors"]["offset"][0] = 2; }},
      {"storages.host names storage 5 of 5", [](json& r) { r["storages"]["host"] = {5}; }},
      {"storages.bytes: entry 0 is -1, not between 0", [](json& r) { r["storages"]["bytes"][0] = -1; }},
      {"frees names op 4 of 3", [](json& r) { r["frees"]["op"][0] = 4; }},
      {"frees: column storage has 2 entries, but", [](json& r) { r["frees"]["storage"].push_back(0); }},
      {"without profiler marks, op 1 (aten.mm.default): input 1 uses storage 2, freed before op 1",
       [](json& r) { r["frees"]["op"][0] = 1; }},
      {"roots names storage 9 of 5", [](json& r) { r["roots"]["storage"][0] = 9; }},
      {"roots.kind has 'q'; known: p, b, s, i", [](json& r) { r["roots"]["kind"] = "iq"; }},
      {"roots: column", [](json& r) { r["roots"]["kind"] = "i"; }},
      {"backend is \"tpu\"; known: cuda, generic", [](json& r) { r["backend"] = "tpu"; }},
      {"run.accumulate is 0", [](json& r) { r["run"]["accumulate"] = 0; }},
      {"a kernel names op 3 of 3", [](json& r) { r["kernels"]["op"][0] = 3; }},
      {"kernels: column op has 3 entries, but", [](json& r) { r["kernels"]["op"].erase(0); }},
      {"kernels: column launch has 4 entries, but captured_ns has 3",
       [](json& r) { r["kernels"]["captured_ns"].erase(0); }},
      {"kernels.ns: entry 2 is -1, not between 0", [](json& r) { r["kernels"]["ns"][2] = -1; }},
      {"kernel 0 names entry 1 of 1 kernel_names", [](json& r) { r["kernels"]["name"][0] = 1; }},
      {"kernels lacks the column launch", [](json& r) { r["kernels"].erase("launch"); }},
      {"host_us.add is negative (-1)", [](json& r) { r["host_us"]["add"] = -1; }},
      {"alloc_trace: an action is \"z\"; known", [](json& r) { r["alloc_trace"]["action"] = "Saarfz"; }},
      {"alloc_trace: column", [](json& r) { r["alloc_trace"]["action"] = "Saarf"; }},
  };
  return list;
}

TEST(Run2Record, SaysWhatIsWrongAndWhere) {
  for (const Run2Fault& fault : run2_faults()) {
    json record = small_record_2();
    fault.make(record);
    const auto read = read_one_run2(record.dump());
    ASSERT_FALSE(read.ok()) << fault.what;
    EXPECT_TRUE(read.error().what.starts_with(fault.what)) << read.error().what << "\n  instead of: " << fault.what;
    EXPECT_TRUE(read.error().where.starts_with("runs.jsonl, record 1")) << read.error().where;
  }
}

TEST(Run2Record, SurvivesHostileMixtures) {
  const std::string record = small_record_2().dump();
  const std::string old = small_record().dump();
  const auto with = [](std::string text, const std::string& more) { return text.insert(text.size() - 1, "," + more); };
  const std::string columns = small_record_2()["ops"].dump();
  const std::string rows = small_record()["ops"].dump();
  // A field twice, once in each form: an error or a graph that verifies.
  for (const std::string& text :
       {with(record, "\"ops\":" + rows), with(old, "\"ops\":" + columns), with(old, "\"shapes\":[[1]]"),
        with(record, "\"shapes\":[[1]]"), with(record, R"("tensors":{"storage":[],"dtype":[],"shape":[]})"),
        with(record, R"("roots":{"storage":[0],"kind":"i","name":["x"],"5":["param","w"]})"),
        with(record, R"("roots":{})"), with(old, R"("kernels":{"ns":[],"op":[]})")}) {
    for (const Fields fields : {Fields::inputs, Fields::inputs_and_measurements, Fields::everything}) {
      const auto read = read_one_run2(text, fields);
      if (read.ok()) {
        EXPECT_TRUE(verify((*read)->run.graph).ok());
      } else {
        EXPECT_FALSE(read.error().what.empty());
      }
    }
  }
}

TEST(Run2Record, SurvivesRandomDamage) {
  const std::string good = small_record_2().dump();
  std::mt19937 random(5);
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
    const auto read = read_one_run2(text);
    if (!read.ok()) ++refused;
    if (read.ok() && read->has_value()) {
      EXPECT_TRUE(verify((*read)->run.graph).ok());
      if ((*read)->allocator) std::ignore = check(*(*read)->allocator, false);
    }
  }
  EXPECT_GT(refused, 1000);
}

void expect_same(const RunRecord& a, const RunRecord& b) {
  EXPECT_EQ(difference(a.run.graph, b.run.graph), "");
  EXPECT_EQ(a.run.id, b.run.id);
  EXPECT_EQ(a.run.arguments, b.run.arguments);
  EXPECT_EQ(a.run.environment.torch, b.run.environment.torch);
  EXPECT_EQ(a.run.setup.optimizer.impl, b.run.setup.optimizer.impl);
  ASSERT_EQ(a.measured.has_value(), b.measured.has_value());
  if (!a.measured) return;
  const Measurement& x = *a.measured;
  const Measurement& y = *b.measured;
  EXPECT_EQ(x.op_gpu_us, y.op_gpu_us);
  EXPECT_EQ(x.op_kernels, y.op_kernels);
  EXPECT_EQ(x.op_span_us, y.op_span_us);
  EXPECT_EQ(x.op_gap_us, y.op_gap_us);
  EXPECT_EQ(x.gpu_busy_us, y.gpu_busy_us);
  EXPECT_EQ(x.unmatched_us, y.unmatched_us);
  EXPECT_EQ(x.pipelined_median_ms, y.pipelined_median_ms);
  EXPECT_EQ(x.host_us, y.host_us);
  EXPECT_EQ(x.aligned, y.aligned);
  EXPECT_EQ(x.peak_allocated, y.peak_allocated);
  EXPECT_EQ(x.peak_reserved, y.peak_reserved);
  EXPECT_EQ(x.device_used, y.device_used);
  EXPECT_EQ(x.segments, y.segments);
  ASSERT_EQ(a.allocator.has_value(), b.allocator.has_value());
  if (!a.allocator) return;
  ASSERT_EQ(a.allocator->events.size(), b.allocator->events.size());
  EXPECT_EQ(a.allocator->address_base, b.allocator->address_base);
  EXPECT_EQ(a.allocator->marks.size(), b.allocator->marks.size());
  for (size_t i = 0; i < a.allocator->events.size(); ++i) {
    const AllocatorEvent& e = a.allocator->events[i];
    const AllocatorEvent& f = b.allocator->events[i];
    ASSERT_TRUE(e.action == f.action && e.address == f.address && e.size == f.size && e.stream == f.stream) << i;
  }
}

TEST(RecordCompactor, GivesTheSameRecordInColumns) {
  json record = small_record();
  record["alloc_trace"] = {{"S", 0, 2097152, 0}, {"a", 0, 100, 0}, {"r", 0, 100, 0}, {"f", 0, 100, 0}};
  record["kernels"][0][1] = -1.25;
  record["novel"] = {{"deep", {1, 2.5, "x\"y"}}};
  record["ops"][1][5] = {{"text", "x\ty \\ \u00e9"}, {"big", 18446744073709551615ULL}, {"nested", {{1, "a"}}}};
  const auto line = compacted(record.dump());
  ASSERT_TRUE(line.ok()) << line.error().message();
  EXPECT_TRUE(line->starts_with(R"({"schema":"run/3","id":"hand/00001","status":"ok","backend":"cuda",)")) << *line;
  const json columns = json::parse(*line);
  EXPECT_EQ(columns["novel"], record["novel"]) << "unknown fields pass";
  EXPECT_EQ(columns["env"], record["env"]);
  EXPECT_EQ(columns["mem"], record["mem"]);
  EXPECT_EQ(columns["kernels"]["start"]["gaps"], (json{-1250, -9250, -2000, -3000}))
      << "behind the end of the one before";
  EXPECT_FALSE(columns["kernels"].contains("launch"));
  EXPECT_EQ(columns["launches"],
            (json{{"count", 4}, {"ns", 4000}, {"p10_ns", 1000}, {"p50_ns", 1000}, {"p90_ns", 1000}}));
  EXPECT_EQ(columns["kernels"]["ns"], (json{10500, 2000, 3000, 1000}));
  EXPECT_EQ(columns["ops"]["phase"], "ufbbuu");
  EXPECT_EQ(columns["ops"]["sequence"]["differences"], json::parse("[0,1,-1,null,0,0]")) << "of 0, 1, 0, none, 0, 0";
  EXPECT_EQ(columns["ops"]["inputs"]["back"], json::parse("[[],[0,0],[],[0,2],[4,1],[]]"));
  EXPECT_FALSE(columns["tensors"].contains("strides"));
  EXPECT_EQ(columns["alloc_trace"]["action"], "Sarf");
  EXPECT_FALSE(columns["alloc_trace"].contains("address_base"));
  for (const Fields fields : {Fields::inputs, Fields::inputs_and_measurements, Fields::everything}) {
    const auto before = read_one_run2(record.dump(), fields);
    const auto after = read_one_run2(*line, fields);
    ASSERT_TRUE(before.ok()) << before.error().message();
    ASSERT_TRUE(after.ok()) << after.error().message();
    expect_same(**before, **after);
  }
}

TEST(RecordCompactor, KeepsRunsWithoutOpsAndRefusesBrokenOnes) {
  json oom = small_record();
  for (const char* field : {"ops", "kernels", "mem", "time_ms", "storages", "frees", "roots"}) oom.erase(field);
  oom["status"] = "oom";
  const auto line = compacted(oom.dump());
  ASSERT_TRUE(line.ok()) << line.error().message();
  EXPECT_FALSE(json::parse(*line).contains("ops"));
  EXPECT_FALSE(compacted("{").ok());
  EXPECT_FALSE(compacted(R"({"ops": 7})").ok());
}

TEST(RecordCompactor, PacksColumnsWithoutLoss) {
  const json record = small_record_2();
  const auto line = compacted(record.dump());
  ASSERT_TRUE(line.ok()) << line.error().message();
  const json packed = json::parse(*line);
  EXPECT_EQ(packed["ops"]["inputs"]["back"], json::parse("[[0,0],[0,2],[4,1]]"));
  EXPECT_EQ(packed["ops"]["outputs"]["back"], json::parse("[[0],[0],[]]"));
  EXPECT_EQ(packed["frees"]["storage"]["differences"], json{2});
  EXPECT_EQ(packed["alloc_trace"]["address"], json::parse(R"({"recency":[0,1,0,1,1,2],"new":{"differences":[0,4]}})"));
  EXPECT_EQ(packed["alloc_trace"]["size"]["told"], (json{2097152, 1000, 512})) << "frees take what they allocated";
  EXPECT_EQ(packed["alloc_trace"]["marks"], record["alloc_trace"]["marks"]);
  EXPECT_EQ(packed["alloc_trace"]["address_base"], record["alloc_trace"]["address_base"]);
  EXPECT_EQ(packed["launches"]["ns"], 200);
  for (const Fields fields : {Fields::inputs, Fields::inputs_and_measurements, Fields::everything}) {
    const auto before = read_one_run2(record.dump(), fields);
    const auto after = read_one_run2(*line, fields);
    ASSERT_TRUE(before.ok()) << before.error().message();
    ASSERT_TRUE(after.ok()) << after.error().message();
    expect_same(**before, **after);
  }
  const auto again = compacted(*line);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(json::parse(*again), packed) << "packing what is packed changes nothing";
}

// The pair of lines that python/tests/test_packed_records.py unpacks.
TEST(RecordCompactor, PacksAsThePythonPackageUnpacks) {
  auto lines = LineReader::open(FORERUN_SOURCE_DIR "/tests/data/packed_record.jsonl");
  ASSERT_TRUE(lines.ok()) << lines.error().message();
  const std::string plain(**lines->next());
  const std::string packed(**lines->next());
  const auto line = compacted(plain);
  ASSERT_TRUE(line.ok()) << line.error().message();
  EXPECT_EQ(*line, packed);
}

// Every row of a record in words, tensors by what they are and not by their number.
std::vector<std::string> rows_of(const RecordColumns& columns) {
  std::vector<std::string> rows;
  const auto extents = [&](uint32_t shape) {
    const ExtentsRow& row = columns.shapes[shape];
    return json(std::vector(columns.extents.begin() + row.first, columns.extents.begin() + row.first + row.rank))
        .dump();
  };
  for (const OpRow& op : columns.ops) {
    std::string& text = rows.emplace_back();
    text = fmt::format("{} {} {} {} {} {} {}:", op.name, name_of(op.phase), op.module, op.sequence, op.attributes,
                       op.autograd_node, op.input_count);
    for (uint32_t k = op.first_operand; k < op.first_operand + op.input_count + op.output_count; ++k) {
      const TensorRow& row = columns.tensors[columns.operands[k]];
      text += fmt::format(" {} {} {} {} {}", row.storage, name_of(row.dtype), extents(row.shape),
                          row.strides < 0 ? std::to_string(row.strides) : extents(static_cast<uint32_t>(row.strides)),
                          row.offset);
    }
  }
  for (const FreeRow& row : columns.frees) rows.push_back(fmt::format("free {} {}", row.op, row.storage));
  for (const RootRow& row : columns.roots) rows.push_back(fmt::format("root {} {}", row.storage, row.name));
  for (const StorageRow& row : columns.storages) rows.push_back(fmt::format("storage {}", row.bytes.value));
  for (const KernelRow& row : columns.kernels) {
    rows.push_back(fmt::format("kernel {} {} {} {} {}", row.name, row.start_ns, row.ns, row.stream, row.op));
  }
  for (const AllocatorEvent& event : columns.trace.events) {
    rows.push_back(fmt::format("{} {} {} {}", event.action, event.address, event.size, event.stream));
  }
  return rows;
}

// Random records of many tensors, kernels and addresses: read back, the packed line says the same.
TEST(RecordCompactor, KeepsRandomRecords) {
  std::mt19937 random(7);
  const auto below = [&](int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(random); };
  for (int trial = 0; trial < 200; ++trial) {
    json record = small_record_2();
    json inputs = json::array(), outputs = json::array(), sequence = json::array(), names = json::array();
    json attributes = json::array(), nodes = json::array(), modules = json::array();
    const int64_t ops = below(30) + 1;
    for (int64_t op = 0; op < ops; ++op) {
      json in = json::array(), out = json::array();
      for (int64_t k = below(4); k > 0; --k) in.push_back(below(5));
      for (int64_t k = below(3); k > 0; --k) out.push_back(below(5));
      inputs.push_back(in);
      outputs.push_back(out);
      sequence.push_back(below(100) - 1);
      names.push_back(below(2));
      attributes.push_back(below(3));
      nodes.push_back(below(2) - 1);
      modules.push_back(below(3) - 1);
    }
    record["ops"] = {{"name", names},        {"phase", std::string(static_cast<size_t>(ops), 'f')},
                     {"module", modules},    {"inputs", inputs},
                     {"outputs", outputs},   {"attributes", attributes},
                     {"sequence", sequence}, {"node", nodes}};
    record["frees"] = {{"op", {below(ops), ops}}, {"storage", {2, 3}}};
    for (const char* column : {"start", "launch"}) {
      for (json& value : record["kernels"][column]) value = below(100'000) - 20'000;
    }
    for (json& value : record["kernels"]["op"]) value = below(ops + 1) - 1;
    json& trace = record["alloc_trace"];
    trace = {{"action", ""}, {"address", json::array()}, {"size", json::array()}, {"stream", json::array()}};
    for (int64_t event = below(40); event > 0; --event) {
      trace["action"] = trace["action"].get<std::string>() + "arfSXMUO"[below(8)];
      trace["address"].push_back(below(12) * 1'000'000'007);
      trace["size"].push_back(below(1 << 20));
      trace["stream"].push_back(below(2));
    }
    const std::string text = padded(record.dump());
    auto line = compacted(text);
    ASSERT_TRUE(line.ok()) << line.error().message();
    const std::string packed = padded(std::move(*line));
    RecordColumns before, after;
    RecordDecoder reader, other;
    ASSERT_TRUE(reader.decode(text, Fields::everything, before).ok());
    ASSERT_TRUE(other.decode(packed, Fields::everything, after).ok());
    ASSERT_EQ(rows_of(before), rows_of(after)) << "trial " << trial;
  }
}

TEST(RecordCompactor, TakesIdAndNamesOffASample) {
  const std::string text = padded(small_sample().dump());
  const auto line = RecordCompactor().compact_sample(text);
  ASSERT_TRUE(line.ok()) << line.error().message();
  json expected = small_sample();
  expected.erase("id");
  if (expected.contains("spread")) expected["spread"] = std::round(expected["spread"].get<double>() * 100) / 100;
  expected["kernels"] = json::parse(R"([["", 4.25, 2]])");
  EXPECT_EQ(json::parse(*line), expected);
  const auto sample = OpSampleReader::from_text(*line, "ops.jsonl").next();
  ASSERT_TRUE(sample.ok()) << sample.error().message();
  EXPECT_EQ((*sample)->id, "");
  EXPECT_EQ((*sample)->us, 4.25);
}

TEST(Run3Record, NamesWhatIsWrongWithPackedColumns) {
  const auto packed = compacted(small_record_2().dump());
  ASSERT_TRUE(packed.ok()) << packed.error().message();
  const json good = json::parse(*packed);
  const auto complaint = [&](const char* group, const char* column, const char* value) {
    json record = good;
    record[group][column] = json::parse(value);
    const auto read = read_one_run2(record.dump());
    return read.ok() ? std::string("none") : read.error().what;
  };
  EXPECT_EQ(complaint("ops", "inputs", R"({"back": [[1], [], []]})"), "op 0 goes 1 tensors back, of 0");
  EXPECT_EQ(complaint("ops", "inputs", "[[0, 1], [3, 2], [1, 4]]"),
            "one of ops.inputs and ops.outputs is packed, the other is not");
  EXPECT_EQ(complaint("ops", "inputs", R"({"forward": []})"),
            "ops.inputs: it is packed as \"forward\"; known: back, once");
  EXPECT_EQ(complaint("ops", "sequence", R"({"differences": [1, 9223372036854775807, 1]})"),
            "ops.sequence: its differences add up to more than 2^63");
  EXPECT_EQ(complaint("tensors", "storage", R"({"differences": [-1, 0, 0, 0, 0]})"),
            "tensors.storage: entry 0 is -1, not between 0 and 2147483647");
  EXPECT_EQ(complaint("tensors", "storage", "{}"), "tensors.storage: it is an object without differences");
  EXPECT_EQ(complaint("kernels", "start", R"({"gaps": [0, 0, 0]})"),
            "kernels: column start has 3 entries, but name has 4");
  EXPECT_EQ(complaint("alloc_trace", "address", R"({"recency": [1], "new": []})"),
            "alloc_trace: event 0 has address 1 of 0 seen");
  EXPECT_EQ(complaint("alloc_trace", "address", R"({"recency": [0, 0], "new": [4]})"),
            "alloc_trace: address has 1 new ones, too few");
  EXPECT_EQ(complaint("alloc_trace", "size", R"({"told": [2097152]})"), "alloc_trace: size tells 1, too few");
  EXPECT_EQ(complaint("alloc_trace", "size", R"({"told": [1, 2, 3, 4]})"),
            "alloc_trace: size tells 4, of which 3 are used");
  EXPECT_EQ(complaint("alloc_trace", "address", R"({"recency": [0, 1], "new": [4, 5]})"),
            "alloc_trace: address has 2 new ones, of which 1 are used");
}

TEST(RecordCompactor, KeepsGraphAndMeasurementOfRealRecords) {
  auto lines = LineReader::open(FORERUN_SOURCE_DIR "/tests/data/run1.jsonl.zst");
  ASSERT_TRUE(lines.ok());
  RecordCompactor compactor;
  RunDecoder decoder;
  size_t records = 0;
  while (true) {
    const auto line = lines->next();
    ASSERT_TRUE(line.ok());
    if (!line->has_value()) break;
    ++records;
    auto compact = compactor.compact_run(**line);
    ASSERT_TRUE(compact.ok()) << compact.error().message();
    const auto before = decoder.decode(**line, Fields::everything);
    const std::string text = padded(std::move(*compact));
    const auto after = decoder.decode(text, Fields::everything);
    ASSERT_TRUE(before.ok()) << before.error().message();
    ASSERT_TRUE(after.ok()) << after.error().message();
    expect_same(*before, *after);
    ASSERT_TRUE(!after->allocator || check(*after->allocator, false).ok());
    if (HasFailure()) FAIL() << before->run.id;
  }
  EXPECT_EQ(records, 15U);
}

}  // namespace
}  // namespace forerun
