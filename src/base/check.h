// CHECK: our own faults. It prints the broken promise and aborts; the input's faults are Errors (base/result.h).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace forerun::internal {

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed: %s\n", file, line, condition, detail.c_str());
  std::abort();
}

}  // namespace forerun::internal

#define CHECK(condition, detail)                                                                 \
  do {                                                                                           \
    if (!(condition)) ::forerun::internal::check_failed(__FILE__, __LINE__, #condition, detail); \
  } while (false)
