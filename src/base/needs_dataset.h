// For tests: NEEDS_DATASET(path, "hkbu/throughput.csv") declares the data set's path, or skips the test and says how to
// make it run. ASSERT-like: only in the body of a test.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/datasets.h"

#define NEEDS_DATASET(path, name)                                                                 \
  const auto path##_found = ::forerun::dataset(name);                                             \
  if (!path##_found) GTEST_SKIP() << "needs the data set " << (name) << ": set FORERUN_DATASETS"; \
  const std::string path = path##_found->string() /* NOLINT(bugprone-macro-parentheses) */
