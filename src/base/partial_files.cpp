#include "base/partial_files.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <memory>

namespace forerun {
namespace {

constexpr size_t kPartialFiles = 64;
std::array<std::atomic<char*>, kPartialFiles> partial_files;
std::atomic<bool> removing_partial_files = false;  // once true, no path is given back: a handler may be reading it

void end_without_partial_files(int number) {
  const int before = errno;
  remove_partial_files();
  errno = before;
  // The handler was reset (SA_RESETHAND): the signal, blocked until it returns, ends the program as if there were none.
  raise(number);
}

}  // namespace

PartialFile::PartialFile(const std::string& path) : slot_(kPartialFiles) {
  auto text = std::make_unique<char[]>(path.size() + 1);
  std::memcpy(text.get(), path.c_str(), path.size() + 1);
  for (size_t i = 0; i < kPartialFiles; ++i) {
    char* none = nullptr;
    if (!partial_files[i].compare_exchange_strong(none, text.get())) continue;
    text.release();  // NOLINT(bugprone-unused-return-value): the slot has it
    slot_ = i;
    return;
  }
}

PartialFile::~PartialFile() {
  if (slot_ == kPartialFiles) return;
  std::unique_ptr<char[]> text(partial_files[slot_].exchange(nullptr));
  if (removing_partial_files) text.release();  // NOLINT(bugprone-unused-return-value)
}

void remove_partial_files() noexcept {
  removing_partial_files = true;
  for (const std::atomic<char*>& file : partial_files) {
    if (const char* path = file) unlink(path);
  }
}

void remove_partial_files_on_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction before {};
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;  // nohup ignores SIGHUP
    struct sigaction action {};
    action.sa_handler = end_without_partial_files;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace forerun
