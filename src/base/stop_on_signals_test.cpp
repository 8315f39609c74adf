#include "base/stop_on_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace forerun {
namespace {

bool comes_to_stop(const std::stop_token& token) {
  for (int i = 0; i < 5000 && !token.stop_requested(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return token.stop_requested();
}

TEST(StopOnSignals, TheFirstSignalAsksForAStop) {
  const StopOnSignals stop({SIGUSR1});
  EXPECT_FALSE(stop.token().stop_requested());
  raise(SIGUSR1);
  EXPECT_TRUE(comes_to_stop(stop.token()));
}

TEST(StopOnSignals, TheNextOneStartsAfresh) {
  for (int i = 0; i < 3; ++i) {
    const StopOnSignals stop({SIGUSR1, SIGUSR2});
    EXPECT_FALSE(stop.token().stop_requested());
    raise(i % 2 == 0 ? SIGUSR1 : SIGUSR2);
    EXPECT_TRUE(comes_to_stop(stop.token()));
  }
}

TEST(StopOnSignals, WhatIsIgnoredStaysIgnored) {
  std::signal(SIGUSR1, SIG_IGN);
  {
    const StopOnSignals stop({SIGUSR1});
    raise(SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(stop.token().stop_requested());
  }
  EXPECT_EQ(std::signal(SIGUSR1, SIG_DFL), SIG_IGN);
}

TEST(StopOnSignals, GivesTheHandlersBack) {
  { const StopOnSignals stop({SIGUSR1}); }
  EXPECT_EQ(std::signal(SIGUSR1, SIG_DFL), SIG_DFL);
}

TEST(StopOnSignalsDeathTest, TheSecondSignalEndsTheProgram) {
  EXPECT_EXIT(
      {
        const StopOnSignals stop({SIGUSR1});
        raise(SIGUSR1);
        raise(SIGUSR1);
      },
      testing::KilledBySignal(SIGUSR1), "");
}

}  // namespace
}  // namespace forerun
