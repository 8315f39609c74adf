#include "base/byte_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#if FORERUN_HAS_ZLIB
#include <zlib.h>
#endif
#if FORERUN_HAS_ZSTD
#include <zstd.h>
#endif

namespace forerun {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

Error unreadable(int code) { return {fmt::format("cannot be read: {}", std::strerror(code)), "", "check the path"}; }

Error unopened(const std::string& path, int code) {
  return {fmt::format("cannot be opened: {}", std::strerror(code == 0 ? ENOMEM : code)), path,
          "check the path and its permissions"};
}

// An open file whose first bytes were looked at; pipes cannot go back.
class InputFile {
 public:
  explicit InputFile(File file) : file_(std::move(file)) {}

  Result<std::string_view> look() {
    auto count = fetch(first_.data(), first_.size());
    if (!count) return count.error();
    held_ = *count;
    return std::string_view(first_.data(), held_);
  }
  Result<size_t> read(char* into, size_t size) {
    if (given_ == held_) return fetch(into, size);
    const size_t count = std::min(size, held_ - given_);
    std::memcpy(into, first_.data() + given_, count);
    given_ += count;
    return count;
  }

 private:
  Result<size_t> fetch(char* into, size_t size) {
    errno = 0;
    const size_t count = std::fread(into, 1, size, file_.get());
    if (count == 0 && std::ferror(file_.get()) != 0) return unreadable(errno);
    return count;
  }
  File file_;
  std::array<char, 4> first_{};
  size_t held_ = 0;
  size_t given_ = 0;
};

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(InputFile file) : file_(std::move(file)) {}
  Result<size_t> read(char* into, size_t size) override { return file_.read(into, size); }

 private:
  InputFile file_;
};

#if FORERUN_HAS_ZLIB

class GzipSource : public ByteSource {
 public:
  static Result<std::unique_ptr<ByteSource>> open(const std::string& path) {
    errno = 0;
    gzFile file = gzopen(path.c_str(), "rb");
    if (file == nullptr) return unopened(path, errno);
    gzbuffer(file, 1U << 20);
    return std::unique_ptr<ByteSource>(new GzipSource(file));
  }
  ~GzipSource() override { gzclose(file_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  Result<size_t> read(char* into, size_t size) override {
    errno = 0;
    const int count = gzread(file_, into, static_cast<unsigned>(std::min<size_t>(size, 1U << 30)));
    int code = Z_OK;
    const char* text = gzerror(file_, &code);
    if (count > 0 && code != Z_DATA_ERROR)
      return static_cast<size_t>(count);  // a truncated end is told at the next call
    if (code == Z_OK || code == Z_STREAM_END) return static_cast<size_t>(std::max(count, 0));
    if (code == Z_BUF_ERROR) {
      return Error{"the gzip data ends too early", "", "the file is truncated: copy or download it again"};
    }
    if (code == Z_ERRNO) return unreadable(errno);
    return Error{fmt::format("the gzip data is corrupt ({})", text), "", "copy or download the file again"};
  }

 private:
  explicit GzipSource(gzFile file) : file_(file) {}
  gzFile file_;
};

#endif

#if FORERUN_HAS_ZSTD

class ZstdSource : public ByteSource {
 public:
  static constexpr int kLargestWindowLog = 27;

  explicit ZstdSource(InputFile file)
      : file_(std::move(file)), stream_(ZSTD_createDStream()), buffer_(ZSTD_DStreamInSize()) {
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kLargestWindowLog);
  }

  Result<size_t> read(char* into, size_t size) override {
    ZSTD_outBuffer out{into, size, 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size && !drained_) {
        auto count = file_.read(buffer_.data(), buffer_.size());
        if (!count) return count.error();
        in_ = {buffer_.data(), *count, 0};
        drained_ = *count == 0;
      }
      if (drained_ && !inside_) return size_t{0};
      const size_t before = in_.pos;
      const size_t hint = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(hint) != 0) return broken(hint);
      inside_ = hint != 0;
      if (drained_ && inside_ && out.pos == 0 && in_.pos == before) {
        return Error{"the Zstandard data ends too early", "", "the file is truncated: copy or download it again"};
      }
    }
    return out.pos;
  }

 private:
  static Error broken(size_t code) {
    if (std::string_view(ZSTD_getErrorName(code)).find("memory") != std::string_view::npos) {
      return {"the Zstandard data needs a window of more than 128 MiB", "", "compress it again with --long=27 or less"};
    }
    return {fmt::format("the Zstandard data is corrupt ({})", ZSTD_getErrorName(code)), "",
            "copy or download the file again"};
  }
  struct FreeStream {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };

  InputFile file_;
  std::unique_ptr<ZSTD_DStream, FreeStream> stream_;
  std::vector<char> buffer_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool drained_ = false;  // the file is read to its end
  bool inside_ = false;   // a frame has begun and not ended
};

#endif

bool is_gzip(std::string_view start) { return start.starts_with("\x1f\x8b"); }

// A frame, or one of the frames that readers pass over (some writers begin with one).
bool is_zstd(std::string_view start) {
  if (start.starts_with("\x28\xb5\x2f\xfd")) return true;
  return start.size() == 4 && start.substr(1) == "\x2a\x4d\x18" && (static_cast<unsigned char>(start[0]) >> 4) == 5;
}

}  // namespace

Result<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path) {
  errno = 0;
  File opened(std::fopen(path.c_str(), "rb"));
  if (opened == nullptr) return unopened(path, errno);
  InputFile file(std::move(opened));
  const auto start = file.look();
  if (!start) return start.error().within(path);
  if (is_gzip(*start)) {
#if FORERUN_HAS_ZLIB
    return GzipSource::open(path);
#else
    return Error{"is a gzip file, and this build has no zlib", path, "decompress it with gunzip"};
#endif
  }
  if (is_zstd(*start)) {
#if FORERUN_HAS_ZSTD
    return std::unique_ptr<ByteSource>(std::make_unique<ZstdSource>(std::move(file)));
#else
    return Error{"is a Zstandard file, and this build has no libzstd", path, "decompress it with unzstd"};
#endif
  }
  return std::unique_ptr<ByteSource>(std::make_unique<PlainSource>(std::move(file)));
}

}  // namespace forerun
