// Runs a fuzz target over stored inputs, without libFuzzer: each file of a folder, and short prefixes of it (a truncated
// file is the commonest broken one). Passing means that nothing crashed. Usage: replay_corpus TARGET FOLDER
//
// All targets are in one program: cmake/Testing.cmake compiles X_fuzz.cpp with its function called replay_X, and lists the
// names as FUZZER(X) in the file that FORERUN_FUZZERS names.
//
// Left out: searching for new inputs, which `./run fuzz` does.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

using Target = int(const uint8_t* data, size_t size);
extern "C" {
#define FUZZER(name) Target replay_##name;
#include FORERUN_FUZZERS
#undef FUZZER
}

namespace {

struct Named {
  std::string_view name;
  Target* run;
};
constexpr Named kTargets[] = {
#define FUZZER(name) {#name, replay_##name},
#include FORERUN_FUZZERS
#undef FUZZER
};

size_t replay(Target* target, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  size_t runs = 0;
  for (const size_t eighths : {8U, 7U, 4U, 1U, 0U}) {
    // A copy of the exact size, so that the address sanitizer sees a read past the end.
    const std::vector<uint8_t> input(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(bytes.size() * eighths / 8));
    target(input.data(), input.size());
    ++runs;
  }
  return runs;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc == 3 ? argv[1] : "";
  const auto* target =
      std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Named& t) { return t.name == name; });
  if (target == std::end(kTargets) || !std::filesystem::is_directory(argv[2])) {
    std::fprintf(stderr, "usage: replay_corpus TARGET FOLDER, where X is the target of X_fuzz.cpp\n");
    return 1;
  }
  size_t files = 0;
  size_t runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[2])) {
    if (!entry.is_regular_file()) continue;
    runs += replay(target->run, entry.path());
    ++files;
  }
  std::printf("%zu inputs from %zu files\n", runs, files);
  return files == 0 ? 1 : 0;
}
