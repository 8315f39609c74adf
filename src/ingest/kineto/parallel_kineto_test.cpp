// Several threads read what one reads: the same trace to the bit, the same error to the letter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "base/data_dir.h"
#include "ingest/kineto/kineto_reader.h"
#include "ingest/trace/trace_difference.h"

namespace forerun {
namespace {

// What hides where events begin and end, and what names really are.
constexpr const char* kNames[] = {
    "aten::add",
    "aten::conv2d",
    R"(said \"hi\")",
    R"(path\\)",
    R"(\\\")",
    R"(\u00e9\ud83d\ude00)",
    R"(}, {\"ph\": \"X\")",
    "}, { ph",
    "]}",
    "[[{{",
    R"(void k<int, (a)[3]>(T*)::{lambda()#1})",
    "ProfilerStep#3",
    "nn.Module: Linear_0",
    "",
};
// What profilers write that is no JSON.
constexpr const char* kBroken[] = {R"(say "hi")", R"(C:\new\table)", "bad \xff byte",
                                   "line\nfeed",  R"(open\)",        R"(x", {"a": )"};

class Texts {
 public:
  explicit Texts(uint32_t seed) : random_(seed) {}

  std::string file() {
    const bool list = one_in(8);
    std::string text = list        ? "["
                       : one_in(2) ? R"({"schemaVersion": 1, "traceEvents": [)"
                                   : "{\n  \"traceEvents\": [\n  ";
    const size_t events = below(60);
    broken_ = one_in(2);
    for (size_t i = 0; i < events; ++i) text += (i == 0 ? "" : one_in(2) ? "," : ",\n  ") + event();
    text += "]";
    if (!list) text += tail();
    if (one_in(6)) text.resize(below(text.size()) + 1);
    if (one_in(12)) text += R"({"traceEvents": []})";
    return text;
  }

  size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  bool one_in(size_t count) { return below(count) == 0; }

 private:
  std::string name() {
    if (broken_ && one_in(10)) return kBroken[below(std::size(kBroken))];
    if (one_in(30)) return std::string(below(700), 'n');  // longer than a block
    return kNames[below(std::size(kNames))];
  }
  std::string thread() {
    switch (below(5)) {
      case 0: return R"("Spans")";
      case 1: return fmt::format(R"("{}")", name());
      case 2: return fmt::format(R"("stream {}")", below(9));
      default: return fmt::format("{}", static_cast<int64_t>(below(4)) - (one_in(5) ? 1002 : 0));
    }
  }
  std::string event() {
    if (one_in(10)) {
      return fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", thread(),
                         thread(), name());
    }
    if (one_in(12)) return fmt::format(R"({{"ph":"f","id":{},"ts":{},"name":"{}"}})", below(99), below(99), name());
    constexpr const char* kCategories[] = {"cpu_op",    "kernel",          "cuda_runtime",    "gpu_memcpy",
                                           "cuda_sync", "python_function", "user_annotation", "odd"};
    std::string text =
        fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{}.{:03})",
                    kCategories[below(std::size(kCategories))], name(), thread(), thread(), below(500), below(1000));
    if (!broken_ || !one_in(15)) text += fmt::format(R"(,"dur":{})", below(50));
    text += fmt::format(R"(,"args":{{"correlation":{},"External id":{})", below(40),
                        one_in(20) ? int64_t{1} << 40 : static_cast<int64_t>(below(40)));
    if (one_in(3))
      text += fmt::format(R"(,"device":0,"stream":{},"grid":[{},1,1],"block":[32,1,1])", below(3), below(4));
    if (one_in(3)) text += fmt::format(R"(,"Input Dims":[[{},3],[]],"Input type":["float",""])", below(5));
    if (one_in(9)) text += fmt::format(R"(,"Collective name":"allreduce","Process Group Name":"{}")", below(3));
    if (one_in(9)) text += R"(,"wait_on_stream":1,"cuda_sync_kind":"Stream Wait Event")";
    if (one_in(30)) text += R"(,"other":{"deep":[{"ph":"X"},{"name":1}]})";  // which reads like two events
    return text + (broken_ && one_in(40) ? "}" : "}}");
  }
  std::string tail() {
    std::string text;
    if (one_in(3)) text += R"(,"baseTimeNanoseconds": 1000000000000)";
    if (one_in(3)) text += R"(,"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2})";
    // Looks like events, and is behind them.
    for (size_t i = below(12); i > 0; --i) text += fmt::format(R"(,"k{}":[{{"a":1}}, {{"ph":"X","ts":{}}}])", i, i);
    return text + "}";
  }

  std::mt19937 random_;
  bool broken_ = false;
};

void expect_same(const std::string& text, KinetoOptions options) {
  options.threads = 1;
  const auto alone = read_kineto_text(text, "trace.json", options);
  for (const size_t threads : {2U, 3U, 5U}) {
    options.threads = threads;
    const auto apart = read_kineto_text(text, "trace.json", options);
    ASSERT_EQ(apart.ok(), alone.ok()) << text;
    if (alone.ok()) {
      ASSERT_EQ(difference(*alone, *apart), "") << threads << " threads, blocks of " << options.block_bytes << "\n"
                                                << text;
    } else {
      ASSERT_EQ(apart.error().message(), alone.error().message()) << text;
    }
  }
}

TEST(ParallelKinetoReader, ReadsWhatOneThreadReads) {
  size_t traces = 0, mended = 0, refused = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    Texts texts(seed);
    const std::string text = texts.file();
    KinetoOptions options;
    options.block_bytes = std::array<size_t, 4>{64, 200, 700, 4096}[texts.below(4)];
    options.largest_event = texts.one_in(3) ? 512 : size_t{1} << 20;
    options.partial = texts.one_in(2);
    expect_same(text, options);
    if (HasFatalFailure()) return;
    options.threads = 1;
    const auto trace = read_kineto_text(text, "trace.json", options);
    traces += trace.ok() ? 1 : 0;
    refused += trace.ok() ? 0 : 1;
    mended += trace.ok() && trace->counts.repaired + trace->counts.skipped > 0 ? 1 : 0;
  }
  // The texts are of all kinds.
  EXPECT_GT(traces, 200U);
  EXPECT_GT(mended, 50U);
  EXPECT_GT(refused, 20U);
}

TEST(ParallelKinetoReader, SaysAlikeWhereAFileWasCut) {
  Texts texts(7);
  const std::string text = texts.file() + texts.file();
  KinetoOptions options;
  options.block_bytes = 300;
  for (size_t size = 1; size < text.size(); size += 37) {
    options.partial = size % 2 == 0;
    expect_same(text.substr(0, size), options);
    if (HasFatalFailure()) return;
  }
}

TEST(ParallelKinetoReader, ReadsARealTraceAlike) {
  const auto data = data_dir();
  ASSERT_TRUE(data.ok());
  const std::string path = (*data / "h200/whatif_traces/vgg19.base.trace.json.zst").string();
  KinetoOptions options;
  options.threads = 1;
  const auto alone = read_kineto(path, options);
  ASSERT_TRUE(alone.ok()) << alone.error().message();
  for (const size_t block : {size_t{3000}, options.block_bytes}) {
    options.block_bytes = block;
    options.threads = 3;
    const auto apart = read_kineto(path, options);
    ASSERT_TRUE(apart.ok());
    EXPECT_EQ(difference(*alone, *apart), "") << block;
  }
}

TEST(ParallelKinetoReader, EndsWhenItIsToldTo) {
  std::string text = R"({"traceEvents":[)";
  for (int i = 0; i < 2000; ++i) {
    text += fmt::format(R"({}{{"ph":"X","cat":"cpu_op","name":"op{}","pid":1,"tid":1,"ts":{},"dur":1,"args":{{}}}})",
                        i == 0 ? "" : ",", i, i);
  }
  text += "]}";
  std::stop_source stop;
  int told = 0;
  const WorkControl control{.progress = [&](const Progress&) { ++told; }, .stop = stop.get_token(), .budget = {}};
  Work work(control, "bytes");
  stop.request_stop();
  KinetoOptions options;
  options.block_bytes = 1000;
  options.threads = 3;
  options.work = &work;
  const auto trace = read_kineto_text(text, "stopped.json", options);
  ASSERT_FALSE(trace.ok());
  EXPECT_TRUE(trace.error().is_unfinished());
}

}  // namespace
}  // namespace forerun
