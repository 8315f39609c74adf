// Runs a fuzz target over stored inputs, without libFuzzer: each file of the folders named on the command line, and short
// prefixes of it (a truncated file is the commonest broken one). Passing means that nothing crashed.
//
// Left out: searching for new inputs, which `./run fuzz` does.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

size_t replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  size_t runs = 0;
  for (const size_t eighths : {8U, 7U, 4U, 1U, 0U}) {
    // A copy of the exact size, so that the address sanitizer sees a read past the end.
    const std::vector<uint8_t> input(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(bytes.size() * eighths / 8));
    LLVMFuzzerTestOneInput(input.data(), input.size());
    ++runs;
  }
  return runs;
}

}  // namespace

int main(int argc, char** argv) {
  size_t files = 0;
  size_t runs = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      std::fprintf(stderr, "%s: no such folder of inputs\n", argv[i]);
      return 1;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      runs += replay(entry.path());
      ++files;
    }
  }
  std::printf("%zu inputs from %zu files\n", runs, files);
  return files == 0 ? 1 : 0;
}
