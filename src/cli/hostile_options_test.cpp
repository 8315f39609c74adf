// Options with numbers that are none, too large, negative or empty, and with text that is no UTF-8: every one is answered
// with a word and exit code 1 or 2, or taken; none ends the program by a signal.
#include <gtest/gtest.h>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

// {} stands for the hostile value. Verbs that answer soon whatever they are given.
constexpr const char* kCalls[] = {
    "predict {}",
    "predict resnet18 --batch {}",
    "predict resnet18 --set image={}",
    "predict resnet18 --set {}=8",
    "predict resnet18 --gpu {}",
    "predict resnet18 --precision {}",
    "predict resnet18 --optimizer {}",
    "predict resnet18 --optimizer sgd:lr={}",
    "predict resnet18 --zero 1 --gpus {}",
    "predict resnet18 --allocator max_split_size_mb:{}",
    "predict examples/onnx/small_cnn.onnx --batch {}",
    "predict examples/onnx/transformer_block.onnx --set length={}",
    "fit resnet18 --gpu t4 --brief --reserve {}",
    "fit resnet18 --gpu t4 --brief --reserve {}%",
    "fit resnet18 --gpu t4 --brief --margin {}%",
    "fit resnet18 --gpu t4 --brief --axis {}",
    "compare resnet18 --gpus {}",
    "compare resnet18 --gpus t4 --price t4={}",
    "compare resnet18 --gpus t4 --price {}=1",
    "compare resnet18 --gpus t4 --iterations {}",
    "compare resnet18 --gpus t4 --samples 5 --deadline {}",
    "compare resnet18 --gpus t4 --samples 5 --price t4=1 --budget {}",
    "compare resnet18 --gpus t4 --prices {}",
    "predict resnet18 --epochs {} --dataset-size 100",
    "predict resnet18 --epochs 2 --dataset-size {}",
    "fit resnet18 --gpu t4 --brief --samples {}",
    "predict gpt2_small --tokens {}",
    "compare resnet18 --gpus t4 --threads {}",
    "sweep resnet18 --over batch={}",
    "sweep resnet18 --over {}",
    "sweep resnet18 --over batch=1 --threads {}",
    "whatif resnet18 --set batch={} --apply amp",
    "whatif resnet18 --apply batch:factor={}",
    "whatif resnet18 --apply ddp:workers={}",
    "whatif resnet18 --apply {}",
    "scale resnet18 --gpus {}",
    "scale resnet18 --node {}",
    "scale resnet18 --micro-batch {}",
    "scale resnet18 --network {}",
    "scale gpt2_small --strategy tp={}",
    "scale resnet18 --testbed {}",
    "schedule examples/jobs.csv --policy fifo --gpus {}",
    "schedule examples/jobs.csv --policy fifo --gpus a100={}",
    "schedule examples/jobs.csv --policy {} --gpus 8",
    "schedule examples/jobs.csv --policy fifo --gpus 8 --predictor error:{}",
    "schedule examples/jobs.csv --policy fifo --gpus 8 --format {}",
    "schedule examples/jobs.csv --policy fifo --gpus 8 --from {}",
    "schedule examples/jobs.csv --policy fifo --gpus 8 --restart-cost {}",
    "schedule examples/jobs.csv --policy fifo --gpus 8 --gpus-per-node {}",
    "schedule examples/jobs.csv --policy fifo --gpus 8 --repeat {}",
    "schedule --policy fifo --synthetic jobs={},gpus=8",
    "slurm ask 'model=resnet18 iterations={}'",
    "slurm ask 'model=resnet18 iterations=10 gpus={}'",
    "slurm ask 'model=resnet18 iterations=10' --margin {}",
    "slurm ask 'model=resnet18 iterations=10' --startup {}",
    "trace tests/corpus/kineto/small.json --kernel-gap-us {}",
    "trace tests/corpus/kineto/small.json --top {}",
    "monitor --seconds 0.01 --hz {}",
    "monitor --seconds 0.01 --gpu {}",
    "data summary {}",
    "zoo {}",
    "devices --device-file {}",
    "predict resnet18 --batch 1 --machine {}",
    "data check {}",
};

constexpr const char* kValues[] = {
    "nan",  "inf",      "-1",        "0",  "1e999", "9223372036854775807", "99999999999999999999",
    "1e15", "$'\\xff'", "$'\\xc3('", "''", "',,,'"};

std::string with_value(std::string call, const std::string& value) {
  const size_t at = call.find("{}");
  // What stands within quotes takes its value bare, and so does what is a part of a word.
  return call.replace(at, 2,
                      call.find('\'') != std::string::npos && value.find('\'') != std::string::npos ? "?" : value);
}

class HostileOptions : public testing::TestWithParam<const char*> {};

TEST_P(HostileOptions, AreAnsweredWithAWord) {
  for (const char* value : kValues) {
    const std::string call = with_value(GetParam(), value);
    const std::string limited = std::string(FORERUN_PROGRAM) + " " + call + " 2>&1";
    const Outcome outcome =
        outcome_of("cd " FORERUN_SOURCE_DIR " && timeout -k 1 60 bash -c \"$(cat <<'END'\n" + limited + "\nEND\n)\"");
    EXPECT_TRUE(outcome.code >= 0 && outcome.code <= 3) << call << "\nexit code " << outcome.code << "\n"
                                                        << outcome.out;
    EXPECT_EQ(outcome.out.find("CHECK("), std::string::npos) << call << "\n" << outcome.out;
    if (outcome.code == 1 || outcome.code == 2) {
      EXPECT_FALSE(outcome.out.empty()) << call;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, HostileOptions, testing::ValuesIn(kCalls));

}  // namespace
}  // namespace forerun::cli
