// Options that say nothing, the same thing twice, or what cannot be: each is refused with a word, none is swallowed.
#include <gtest/gtest.h>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

struct RefusedCall {
  const char* arguments;
  int code;
  const char* says;
};

constexpr RefusedCall kRefusedCalls[] = {
    {"predict resnet50 --optimizer sgd:impl=fused,impl=foreach", 1, "twice"},
    {"predict resnet50 --optimizer sgd:", 1, "key=value"},
    {"predict resnet50 --optimizer sgd:lr=", 1, "lr"},
    {"whatif resnet50 --set batch=8 --set batch=4 --apply amp", 1, "twice"},
    {"scale resnet50 --set batch=4", 1, "--micro-batch"},
    {"scale gpt2 --strategy ''", 2, "--strategy"},
    {"scale gpt2 --strategy zero1,zero3", 1, "second time"},
    {"scale resnet50 --gpu h200=8,t4=8 --gpus 16", 2, "--gpus"},
    {"scale resnet50 --gpu h200=8,t4=8 --batches fast", 2, "by-speed"},
    {"scale resnet50 --gpu h200=8,t4=8 --global-batch 64 --micro-batch 4", 2, "one batch"},
    {"scale resnet50 --batches by-speed", 2, "several kinds"},
    {"scale resnet50 --testbed P1w2-10G --iterations 5", 2, "testbed"},
    {"predict resnet50 --iterations 5 --samples 5", 2, "excludes"},
    {"predict resnet50 --epochs 5", 2, "--dataset-size"},
    {"predict resnet50 --dataset-size 5", 2, "--epochs"},
    {"predict resnet50 --tokens 5M", 1, "reads no tokens"},
    {"scale resnet50 --gpus 2 --tokens 5M", 1, "reads no tokens"},
    {"predict resnet50 --bach 3", 2,
     "there is no option --bach here; did you mean --batch? `forerun predict --help` lists all"},
    {"schedule jobs.csv --cluster a100=4", 2, "there is no option --cluster here; `forerun schedule --help` lists all"},
    {"devices --gpu h100", 2, "there is no option --gpu here"},
    {"fit resnet50 --precison=bf16 --brief", 2, "did you mean --precision"},
    {"predict resnet50 --samples 1.5", 2, "--samples"},
    {"predict resnet50 --zero 3 --gpus 4 --samples 1M", 1, "forerun scale"},
    {"fit resnet18 --ddp --samples 1M --brief", 1, "forerun scale"},
    {"fit resnet18 --gpu t4 --epochs 5", 2, "--dataset-size"},
    {"fit resnet18 --gpu t4 --price t4=1", 1, "whole run"},
    {"fit resnet18 --gpu t4 --samples 5 --price h200=2", 1, "--price t4=PRICE"},
    {"fit resnet18 --gpu t4 --tokens 5M --brief", 1, "reads no tokens"},
    {"predict resnet50 --samples 5 --prices nothere.toml", 1, "examples/prices.toml"},
    {"scale resnet50 --gpus 2 --price h200=2", 1, "whole run"},
    {"scale resnet50 --gpu h200=8,t4=8 --price h200=2", 2, "one kind"},
    {"predict resnet50 --price h200=2", 1, "whole run"},
    {"predict resnet50 --machine nothere.json", 1, "nothere.json"},
    {"fit resnet50 --machine " FORERUN_DATA_DIR "/devices/l4.json", 1, "machine/1"},
    {"schedule --synthetic jobs=10,gpus=8 --policy fifo --machine nothere.json", 1, "nothere.json"},
    {"slurm ask 'model=resnet18 iterations=10' --machine nothere.json", 1, "nothere.json"},
    {"slurm ask 'model=resnet18 iterations=10' --socket nothere --machine none", 2, "excludes"},
    {"predict resnet50 --gpu t4 --samples 5 --price h200=2", 1, "--price t4=PRICE"},
    {"compare resnet18 --gpus t4 --by cost", 1, "give --prices"},
    {"compare resnet18 --gpus t4 --by speed", 2, "--by"},
    {"compare resnet18 --gpus t4 --deadline 12h", 1, "tell its length"},
    {"compare resnet18 --gpus t4 --samples 5 --deadline soon", 1, "write 12h"},
    {"compare resnet18 --gpus t4 --samples 5 --budget 3", 1, "give --prices"},
    {"compare resnet18 --gpus t4 --price h200=3", 1, "is not compared"},
    {"predict resnet50 --precision amp", 1, "amp_bf16 and amp_fp16"},
    {"predict resnet50 --precision int8", 1, "bf16"},
    {"predict resnet50 --precision bf16 --gpu v100", 1, "take amp_fp16"},
    {"predict resnet50 --precision amp_fp16 --gpu p100", 1, "tensor cores"},
    {"predict resnet50 --checkpoint all", 1, "none, block or selective"},
    {"predict vgg16 --checkpoint block", 1, "no blocks"},
    {"predict gpt2_small --lora 0", 1, "rank"},
    {"predict gpt2_small --lora 4:nothing", 1, "c_attn"},
    {"predict gpt2_small --lora 4:dropout=2", 1, "says nothing"},
    {"predict gpt2_small --accumulate 0", 2, "accumulate"},
    {"predict gpt2_small --freeze transformer", 1, "frozen"},
    {"scale llama2_7b --gpus 8 --lora 8", 1, "several GPUs"},
    {"scale llama2_7b --gpus 8 --quantize nf4", 1, "several GPUs"},
    {"predict gpt2_small --quantize nf4", 1, "add --lora RANK"},
    {"predict gpt2_small --quantize nf4 --freeze embed", 1, "would be trained"},
    {"predict gpt2_small --quantize 4bit --lora 4", 1, "nf4 or fp4"},
    {"predict gpt2_small --quantize int8:double --lora 4", 1, "one scale a row"},
    {"fit gpt2_small --quantize nf4:triple --lora 4", 1, "says nothing"},
    {"compare gpt2_small --gpus t4 --quantize nf4 --lora 4 --ema", 1, "moving average"},
    {"predict resnet18 --quantize nf4 --lora 4:fc", 1, "no linear layers beside its last"},
    {"sweep gpt2_small --over quantize=nf4,int8", 1, "add --lora RANK"},
    {"sweep resnet18 --over batch=2,4 --price h200=2", 1, "whole run"},
    {"sweep resnet18 --over gpu=h200,t4 --samples 5 --price h200=2", 1, "--price t4=PRICE"},
    {"sweep resnet18 --over batch=1,2 --shard 0/2", 2, "--out"},
    {"sweep resnet18 --over batch=1,2 --shard 2/2 --out x", 2, "0/2 to 1/2"},
    {"sweep resnet18 --over batch=1,2 --shard 1 --out x", 2, "I/N"},
    {"sweep resnet18 --over batch=1,2 --shard 0/2 --out x --csv", 2, "sweep merge"},
    {"sweep resnet18 --over batch=1,2 --out /dev/stdout", 1, "plain file"},
    {"sweep resnet18 --over batch=1,2 --slurm 2", 2, "--out"},
    {"sweep resnet18 --over batch=1,2 --slurm 2 --shard 0/2 --out x", 2, "--slurm"},
    {"sweep resnet18 --over batch=1,2 --slurm 3 --out x", 1, "2 cases for 3 shards"},
    {"sweep resnet18 --over batch=1,2 --slurm 2 --out x --slurm-option array=0-9", 1, "already"},
    {"sweep resnet18 --over batch=1,2 --slurm-dry-run", 2, "--slurm"},
    {"sweep resnet18 --over batch=1,2 --slurm-option time=5", 2, "--slurm"},
    {"sweep --over batch=1,2 merge x", 2, "not for merge"},
    {"sweep merge", 2, "PART"},
    {"sweep merge nothere.jsonl", 1, "nothere.jsonl"},
    {"sweep merge " FORERUN_SOURCE_DIR "/README.md", 1, "no part"},
    {"schedule jobs.csv --gpus 8 --policy sjf --shard 0/2", 2, "--out"},
    {"schedule jobs.csv --gpus 8 --policy sjf --shard 0/2 --out x --svg y", 2, "--svg"},
    {"schedule jobs.csv --gpus 8 --policy sjf --shard 0/2 --out x --json", 2, "schedule merge"},
    {"check nothere.toml", 1, "docs/check.md"},
    {"check nothere.toml --json --markdown", 2, "excludes"},
    {"check " FORERUN_SOURCE_DIR "/examples/prices.toml", 1, "there is no 'currency' here"},
    {"predict resnet50 --precision amp_bf16 --gpu v100", 1, "bfloat16"},
    {"fit resnet50 --precision amp_bf16 --gpu t4", 1, "bfloat16"},
    {"whatif resnet18 --gpu v100 --apply amp", 1, "amp_fp16"},
    {"whatif resnet18 --precision amp_bf16 --apply gpu:name=v100", 1, "V100"},
    {"whatif resnet18 --apply batch:factor=1e15", 1, "out of range"},
    {"whatif resnet18 --apply batch:factor=1e9", 1, "batch"},
    {"whatif resnet18 --apply batch:factor=0.001", 1, "samples"},
    {"whatif resnet18 --apply batch:factor=2,factor=3", 1, "twice"},
};

TEST(RefusedOptions, AreAnsweredWithAWord) {
  for (const RefusedCall& call : kRefusedCalls) expect_refused(call.arguments, call.code, call.says);
}

TEST(RefusedOptions, NothingIsAdvisedThatTheGpuCannotDo) {
  const Outcome older = forerun_outcome("fit resnet18 --gpu v100"), newer = forerun_outcome("fit resnet18 --gpu a100");
  EXPECT_EQ(older.code, 0) << older.out;
  EXPECT_EQ(older.out.find("amp_bf16"), std::string::npos) << older.out;
  EXPECT_NE(newer.out.find("amp_bf16"), std::string::npos) << newer.out;
}

}  // namespace
}  // namespace forerun::cli
