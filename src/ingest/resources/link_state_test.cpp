// Sessions whose links change how they are shared: every window has the state of those around it that tell.
#include "ingest/resources/link_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace forerun {
namespace {

constexpr double kModelMegabytes = 40;

// A synchronous window in which worker 0 received at a share of the link, so much of the model in a burst.
ResourceRecord window_of(double share, double part = 1) {
  ResourceRecord record;
  record.setting = "P1w2-10G";
  record.mode = "sync";
  record.tcp = "reno";
  record.servers = 1;
  record.workers = 2;
  record.bits_per_second = 10e9;
  record.parameters = kModelMegabytes * 1e6 / 4;
  record.described.run.family = "resnet";
  BurstFigures& received = record.measured.metrics[3];
  received.amount = share * 1250;
  received.burst_ms = 1e3 * part * kModelMegabytes / received.amount;
  return record;
}

bool anyone(const std::string& /*family*/) { return true; }

std::string settings_of(std::vector<ResourceRecord> records,
                        const std::function<bool(const std::string&)>& may_tell = anyone) {
  mark_links(records, may_tell);
  std::string text;
  for (const ResourceRecord& record : records) text += divided_setting(record).substr(8) + ",";
  return text;
}

TEST(LinkState, StatesThatDifferHaveNames) {
  EXPECT_EQ(settings_of({window_of(0.5), window_of(0.52), window_of(0.82), window_of(0.8), window_of(0.85)}),
            "-even,-even,-first,-first,-first,");
  EXPECT_EQ(settings_of({window_of(0.5), window_of(0.5), window_of(0.5)}), ",,,");
  // Worker 0 receives most of the model after the other: little at first, then all in a shorter burst.
  EXPECT_EQ(settings_of({window_of(0.9, 0.3), window_of(0.9, 0.4), window_of(0.8), window_of(0.8), window_of(0.8)}),
            "-last,-last,-first,-first,-first,");
}

TEST(LinkState, OneStrangeWindowAmongOthersCountsAsThey) {
  EXPECT_EQ(settings_of({window_of(0.8), window_of(0.8), window_of(0.55), window_of(0.8), window_of(0.8)}), ",,,,,");
}

TEST(LinkState, OthersHaveTheStateAroundThem) {
  std::vector<ResourceRecord> records = {window_of(0.5), window_of(0.5), window_of(0.5), window_of(0.8),
                                         window_of(0.8), window_of(0.8), window_of(0.8)};
  records[1].mode = "async";
  records[1].measured.metrics[3].amount = 1200;
  records[5].described.run.family = "vgg";  // may not tell
  records[5].measured.metrics[3].amount = 600;
  records[6].parameters = 1e6;  // too small to tell
  const auto train = [](const std::string& family) { return family != "vgg"; };
  records.push_back(window_of(0.8));
  records.push_back(window_of(0.8));
  EXPECT_EQ(settings_of(records, train), "-even,-even,-even,-first,-first,-first,-first,-first,-first,");
}

TEST(LinkState, SessionsAreApart) {
  std::vector<ResourceRecord> records;
  for (int i = 0; i < 3; ++i) {
    records.push_back(window_of(0.8));
    records.push_back(window_of(0.5));
    records.back().repeat = 1;
  }
  records.push_back(window_of(0.8));
  EXPECT_EQ(settings_of(records), "-first,-even,-first,-even,-first,-even,-first,");
  for (ResourceRecord& record : records) record.tcp = "default";
  EXPECT_EQ(settings_of(records).substr(0, 18), "-default,-default,");
}

}  // namespace
}  // namespace forerun
