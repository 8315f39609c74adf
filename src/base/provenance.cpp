#include "base/provenance.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <string_view>
#include <thread>

#include "base/data_dir.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

// FNV-1a, 64 bits.
class Fingerprint {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      value_ ^= static_cast<unsigned char>(byte);
      value_ *= 0x100000001b3U;
    }
  }
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  uint64_t value_ = 0xcbf29ce484222325U;
};

struct NamedFile {
  std::string name;  // as it counts
  fs::path path;
};

Result<std::vector<NamedFile>> files_below(const fs::path& path) {
  const std::string root = path.filename().string();
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return std::vector<NamedFile>{{root, path}};
  std::vector<NamedFile> files;
  for (auto entry = fs::recursive_directory_iterator(path, failed); !failed && entry != fs::end(entry);
       entry.increment(failed)) {
    if (!entry->is_regular_file(failed)) continue;
    files.push_back({root + "/" + entry->path().lexically_relative(path).generic_string(), entry->path()});
  }
  if (failed) return Error{"cannot be read: " + failed.message(), path.string(), "check the folder"};
  std::sort(files.begin(), files.end(), [](const NamedFile& a, const NamedFile& b) { return a.name < b.name; });
  return files;
}

Status add_file(const NamedFile& named, Fingerprint& all) {
  std::ifstream file(named.path, std::ios::binary);
  all.add(named.name);
  all.add(std::string_view("\0", 1));
  uint64_t size = 0;
  std::array<char, 1 << 16> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    all.add({block.data(), static_cast<size_t>(file.gcount())});
    size += static_cast<uint64_t>(file.gcount());
  }
  if (!file.eof()) return Error{"cannot be read", named.path.string(), "check that it is there and readable"};
  all.add(fmt::format("{};", size));
  return {};
}

}  // namespace

std::string today_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 16> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts)};
}

std::string this_machine() {
  utsname system{};
  uname(&system);
  std::string processor = static_cast<const char*>(system.machine);
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name") || line.find(": ") == std::string::npos) continue;
    processor = line.substr(line.find(": ") + 2);
    break;
  }
  const unsigned cores = std::thread::hardware_concurrency();
  return fmt::format("{}, {} core{}", processor, cores, cores == 1 ? "" : "s");
}

Result<std::string> fingerprint(const std::vector<fs::path>& paths) {
  Fingerprint all;
  for (const fs::path& path : paths) {
    const auto files = files_below(path);
    if (!files) return files.error();
    for (const NamedFile& file : *files) {
      if (const Status status = add_file(file, all); !status.ok()) return status.error();
    }
  }
  return all.text();
}

std::string text_fingerprint(std::string_view text) {
  Fingerprint all;
  all.add(text);
  return all.text();
}

Result<std::string> program_fingerprint() { return fingerprint({"/proc/self/exe"}); }

Result<std::string> data_fingerprint() {
  const Result<fs::path> folder = data_dir();
  if (!folder) return folder.error();
  std::vector<fs::path> paths;
  for (const char* part : {"cost", "devices", "evaluations", "host", "memory", "scale", "zoo"}) {
    std::error_code failed;
    if (fs::exists(*folder / part, failed)) paths.push_back(*folder / part);
  }
  return fingerprint(paths);
}

}  // namespace forerun
