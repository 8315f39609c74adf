#include "scale/plan.h"

#include <gtest/gtest.h>

#include "scale/stages.h"

namespace forerun::scale {
namespace {

Result<Plan> plan_from(const char* text, int64_t gpus, int64_t batch) {
  const auto request = parse_plan(text);
  if (!request) return request.error();
  return complete(*request, gpus, 8, batch, 0);
}

TEST(Plan, WhatIsOpenFollows) {
  const auto plan = plan_from("tp=8,pp=4,mb=2,checkpoint", 64, 512);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->data, 2);
  EXPECT_EQ(plan->micro_batches, 128);
  EXPECT_TRUE(plan->checkpoint);
  EXPECT_EQ(describe(*plan), "tp 8 dp 2 pp 4, mb 2 x 128, checkpoint");
}

TEST(Plan, OneWordIsAPlan) {
  EXPECT_EQ(plan_from("zero3", 16, 16)->zero, 3);
  EXPECT_EQ(plan_from("tp", 16, 16)->tensor, 8);
  EXPECT_EQ(plan_from("pp", 4, 16)->pipeline, 4);
  EXPECT_EQ(plan_from("ps,servers=3", 32, 32)->servers, 3);
  EXPECT_EQ(plan_from("mg-wfbp", 4, 16)->schedule, Schedule::merged);
  EXPECT_EQ(plan_from("ps-async", 4, 16)->exchange, Exchange::servers_async);
}

TEST(Plan, GroupsOfOtherKinds) {
  const auto plan = plan_from("tp=2,sp,cp=2,ep=4,pp=2,zero=1", 64, 64);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->data, 8);
  EXPECT_EQ(plan->gpus(), 64);
  EXPECT_EQ(plan->replicas(), 16);
  EXPECT_EQ(describe(*plan), "tp 2 sp cp 2 dp 8 ep 4 pp 2, mb 1 x 8, ZeRO 1");
  const auto hybrid = plan_from("fsdp,shard=8", 64, 64);
  ASSERT_TRUE(hybrid) << hybrid.error().message();
  EXPECT_EQ(hybrid->shards(), 8);
  EXPECT_EQ(describe(*hybrid), "tp 1 dp 64 pp 1, mb 1 x 1, ZeRO 3 in 8");
  EXPECT_EQ(plan_from("zero3", 64, 64)->shards(), 64);
  EXPECT_TRUE(plan_from("pp=4,zb", 4, 16)->zero_bubble);
  EXPECT_FALSE(plan_from("fsdp,no-reshard", 4, 16)->reshard);
}

TEST(Plan, HsdpShardsWithinNodes) {
  EXPECT_EQ(describe(*plan_from("hsdp", 64, 64)), describe(*plan_from("fsdp,shard=8", 64, 64)));
  EXPECT_EQ(plan_from("tp=2,hsdp", 64, 64)->shard, 4);  // of eight GPUs, four have the same weights
  EXPECT_EQ(plan_from("cp=2,hsdp", 64, 64)->shard, 8);  // context groups have the same
  EXPECT_EQ(plan_from("hsdp", 8, 8)->shards(), 8);      // one node: FSDP
  EXPECT_EQ(describe(*plan_from("hsdp", 8, 8)), describe(*plan_from("fsdp", 8, 8)));
  const auto problem = [](const char* text) {
    const auto plan = plan_from(text, 64, 64);
    return plan ? std::string() : plan.error().message();
  };
  for (const char* text : {"hsdp,zero=3", "fsdp,hsdp", "zero1,hsdp"}) {
    EXPECT_NE(problem(text).find("hsdp is ZeRO 3"), std::string::npos) << text << ": " << problem(text);
  }
  EXPECT_NE(problem("hsdp,shard=4").find("fsdp,shard=N"), std::string::npos) << problem("hsdp,shard=4");
  EXPECT_NE(problem("tp=8,hsdp").find("tensor groups of 8"), std::string::npos) << problem("tp=8,hsdp");
  EXPECT_NE(problem("hsdp,pp=2").find("pipeline"), std::string::npos) << problem("hsdp,pp=2");
  EXPECT_NE(problem("hsdp,ep=2").find("experts"), std::string::npos) << problem("hsdp,ep=2");
}

TEST(Plan, GroupsThatCannotBeAreNamed) {
  const auto problem = [](const char* text) {
    const auto plan = plan_from(text, 48, 48);
    return plan ? std::string() : plan.error().message();
  };
  // Groups of six or twelve would lie across nodes of eight.
  EXPECT_NE(problem("ep=5").find("ep=4 or ep=8"), std::string::npos) << problem("ep=5");
  EXPECT_NE(problem("zero3,shard=10").find("shard=8 or shard=16"), std::string::npos) << problem("zero3,shard=10");
  for (const char* text : {"shard=8", "zero=1,shard=8", "sp", "zb", "pp=2,chunks=2,zb", "no-reshard", "cp=2,ps",
                           "ep=2,wfbp", "checkpoint,selective", "zero3,shard=8,ep=2", "cp=5"}) {
    EXPECT_NE(problem(text), "") << text;
  }
}

// The nearest plan that can be is named; groups that exchange in every layer fill nodes, or lie within.
TEST(Plan, TheNearestPossibleIsNamed) {
  struct Case {
    const char* text;
    int64_t gpus, batch;
    const char* remedy;
  };
  for (const Case& c : {Case{"tp=6", 24, 24, "tp=4 or tp=8"}, Case{"tp=3", 24, 24, "tp=2 or tp=4"},
                        Case{"cp=3", 24, 24, "cp=2 or cp=4"}, Case{"tp=12", 24, 24, "tp=8 or tp=24"},
                        Case{"fsdp,shard=6", 24, 24, "shard=4 or shard=8"}, Case{"ep=6", 24, 24, "ep=4 or ep=8"},
                        Case{"tp=2,cp=6", 24, 24, "cp=4 or cp=12"}, Case{"tp=5", 8, 8, "tp=4 or tp=8"},
                        Case{"pp=5", 8, 8, "pp=4 or pp=8"}, Case{"cp=3", 8, 8, "cp=2 or cp=4"},
                        Case{"tp=2,pp=3", 8, 8, "pp=2 or pp=4"}, Case{"dp=3", 8, 8, "leave out dp="},
                        Case{"tp=16", 8, 8, "product is --gpus"}, Case{"mb=3", 8, 100, "choose 96 or 120"},
                        Case{"dp", 8, 4, "choose 8"}, Case{"ps,servers=50", 16, 16, "servers=2"}}) {
    const auto plan = plan_from(c.text, c.gpus, c.batch);
    ASSERT_FALSE(plan) << c.text;
    EXPECT_NE(plan.error().remedy.find(c.remedy), std::string::npos) << c.text << ": " << plan.error().message();
  }
  for (const char* text : {"tp=4", "tp=8", "cp=2", "tp=2,cp=4", "fsdp,shard=8", "pp=3", "tp=24", "pp=4"}) {
    const auto plan = plan_from(text, 24, 24);
    EXPECT_TRUE(plan) << text << ": " << plan.error().message();
  }
  EXPECT_TRUE(plan_from("tp=6", 6, 6));  // one node, whatever it could hold
}

TEST(Plan, WordsThatChangeNothingAreRefused) {
  for (const char* text : {"ps,bytescheduler", "ps,wfbp", "ps-async,bsp", "ps-async,mg-wfbp", "wfbp,no-overlap"}) {
    EXPECT_FALSE(plan_from(text, 16, 16)) << text;
  }
  for (const char* text : {"ps,bsp", "ps,mg-wfbp", "bsp,no-overlap", "bytescheduler"}) {
    EXPECT_TRUE(plan_from(text, 16, 16)) << text;
  }
}

TEST(Plan, ShardsOfAllAreNoShards) {
  EXPECT_EQ(plan_from("fsdp,shard=16", 16, 16)->shard, 0);
  EXPECT_EQ(describe(*plan_from("fsdp,shard=16", 16, 16)), describe(*plan_from("fsdp", 16, 16)));
  EXPECT_NE(describe(*plan_from("dp,no-overlap", 16, 16)).find("no overlap"), std::string::npos);
}

TEST(Plan, LayersAreNamedInAnyOrderAndManner) {
  for (const char* text : {"dp=4 tp=2", "tp=2 dp=4", "dp=4+tp=2", "pp", "mb=2,tp=1", "dp=2,pp=4,zb"}) {
    EXPECT_TRUE(parse_plan(text)->names_layers) << text;
  }
  for (const char* text : {"dp", "fsdp,shard=8", "ps", "cp=2"}) EXPECT_FALSE(parse_plan(text)->names_layers) << text;
}

// Of a global batch, the largest up to the usual one that each replica's share can be made of.
TEST(Plan, TheUsualMicroBatchDividesTheGlobalBatch) {
  const auto micro_batch = [](int64_t batch, int64_t asked, int64_t usual) {
    return complete(*parse_plan("dp"), 8, 8, batch, asked, usual)->micro_batch;
  };
  EXPECT_EQ(micro_batch(0, 0, 32), 32);
  EXPECT_EQ(micro_batch(1024, 0, 32), 32);
  EXPECT_EQ(micro_batch(8 * 24, 0, 32), 24);
  EXPECT_EQ(micro_batch(8 * 36, 0, 32), 18);
  EXPECT_EQ(micro_batch(8 * 37, 0, 32), 1);
  EXPECT_EQ(micro_batch(1024, 4, 32), 4);
}

TEST(Plan, ServersAreOneANodeUnlessTheyAreCounted) {
  EXPECT_EQ(plan_from("ps", 32, 32)->servers, 4);  // nodes of eight
  EXPECT_EQ(plan_from("ps-async", 4, 16)->servers, 1);
  EXPECT_EQ(describe(*plan_from("ps,servers=2", 32, 32)), "tp 1 dp 32 pp 1, mb 1 x 1, 2 servers");
}

TEST(Plan, NothingIsDecidedTwice) {
  for (const char* text : {"tp=2,tp=4", "zero1,zero3", "zero=1,zero3", "ps,ps-async", "bsp,wfbp", "dp,dp", "tp,tp=2",
                           "mb=1,mb=2", "checkpoint,checkpoint"}) {
    const auto plan = plan_from(text, 8, 8);
    ASSERT_FALSE(plan) << text;
    EXPECT_NE(plan.error().message().find("second time"), std::string::npos) << plan.error().message();
  }
  for (const char* text : {"", " ", ",", "servers=4", "dp,servers=4", "tp="})
    EXPECT_FALSE(plan_from(text, 8, 8)) << text;
}

TEST(Plan, FaultsAreNamed) {
  EXPECT_NE(plan_from("zer3", 8, 8).error().remedy.find("zero3"), std::string::npos);
  EXPECT_FALSE(plan_from("tp=x", 8, 8));
  EXPECT_FALSE(plan_from("tp=0", 8, 8));
  EXPECT_FALSE(plan_from("zero=4", 8, 8));
  EXPECT_FALSE(plan_from("pp=3", 8, 8));  // does not divide the GPUs
  EXPECT_FALSE(plan_from("mb=3", 8, 8));  // nor the batch
  EXPECT_FALSE(plan_from("zero=2,pp=2", 8, 8));
  EXPECT_FALSE(plan_from("wfbp,zero=1", 8, 8));
  EXPECT_FALSE(plan_from("chunks=2", 8, 8));
  EXPECT_FALSE(plan_from("chunks=2,pp=4", 4, 6));  // rounds of four
}

TEST(Stages, LayersAreDealtEvenly) {
  std::vector<Block> blocks(10);
  for (size_t i = 1; i < 9; ++i) blocks[i].layer = true;
  const auto stages = cut_into_stages(blocks, 4);
  ASSERT_TRUE(stages);
  EXPECT_EQ((*stages)[0].begin, 0);
  EXPECT_EQ((*stages)[0].end, 3);
  EXPECT_EQ((*stages)[3].begin, 7);
  EXPECT_EQ((*stages)[3].end, 10);
  const auto uneven = cut_into_stages(blocks, 3);
  ASSERT_TRUE(uneven);
  EXPECT_EQ(uneven->size(), 3U);
  EXPECT_EQ(uneven->back().end, 10U);
  const auto many = cut_into_stages(blocks, 11);
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message().find("pp=10"), std::string::npos);
}

TEST(Stages, OtherModelsAreCutSoThatTheSlowestIsFast) {
  std::vector<Block> blocks;
  for (const int64_t time : {5, 1, 1, 1, 6, 2, 2}) {
    Block block;
    block.forward = Nanoseconds(time);
    blocks.push_back(block);
  }
  const auto stages = cut_into_stages(blocks, 3);
  ASSERT_TRUE(stages);
  int64_t slowest = 0;
  for (const BlockRange& range : *stages) {
    int64_t sum = 0;
    for (size_t i = range.begin; i < range.end; ++i) sum += blocks[i].forward.value;
    slowest = std::max(slowest, sum);
  }
  EXPECT_EQ(slowest, 7);
  EXPECT_FALSE(cut_into_stages(blocks, 8));
  EXPECT_EQ(cut_into_stages(blocks, 7)->size(), 7);
}

}  // namespace
}  // namespace forerun::scale
