#include "base/byte_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#if FORERUN_HAS_ZLIB
#include <zlib.h>
#endif
#if FORERUN_HAS_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
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

[[maybe_unused]] Error short_of_memory(std::string_view form) {
  return {fmt::format("there is too little memory to unpack the {} data", form), "",
          "raise the memory limit (ulimit -v, the container's), or unpack the file first"};
}

[[maybe_unused]] Error ends_early(std::string_view form, int64_t at) {
  return {fmt::format("the {} data ends too early, at byte {}", form, at), "",
          "the file is truncated: copy or download it again"};
}

[[maybe_unused]] Error corrupt(std::string_view form, int64_t at, std::string_view why) {
  return {fmt::format("the {} data is corrupt near byte {} ({})", form, at, why), "",
          "copy or download the file again"};
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
    if (given_ == held_) {
      auto count = fetch(into, size);
      if (count) position_ += static_cast<int64_t>(*count);
      return count;
    }
    const size_t count = std::min(size, held_ - given_);
    std::memcpy(into, first_.data() + given_, count);
    given_ += count;
    position_ += static_cast<int64_t>(count);
    return count;
  }
  [[nodiscard]] int64_t position() const { return position_; }  // bytes that read() gave out

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
  int64_t position_ = 0;
};

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(InputFile file) : file_(std::move(file)) {}
  Result<size_t> read(char* into, size_t size) override { return file_.read(into, size); }

 private:
  InputFile file_;
};

#if FORERUN_HAS_ZLIB

// Members one after the other, as `cat a.gz b.gz` makes them. What follows the last member and is none is passed over,
// as gunzip does.
class GzipSource : public ByteSource {
 public:
  static Result<std::unique_ptr<ByteSource>> make(InputFile file) {
    auto source = std::unique_ptr<GzipSource>(new GzipSource(std::move(file)));
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&source->stream_, kGzipOnly) != Z_OK) return short_of_memory("gzip");
    source->begun_ = true;
    return std::unique_ptr<ByteSource>(std::move(source));
  }
  ~GzipSource() override {
    if (begun_) inflateEnd(&stream_);
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  Result<size_t> read(char* into, size_t size) override {
    const auto room = static_cast<unsigned>(std::min<size_t>(size, 1U << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(into);
    stream_.avail_out = room;
    while (stream_.avail_out == room && !ended_) {
      if (Status status = fill(); !status) return status.error();
      if (between_ && !next_member()) {
        ended_ = true;
        break;
      }
      if (stream_.avail_in == 0) return ends_early("gzip", file_.position());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_MEM_ERROR) return short_of_memory("gzip");
      between_ = code == Z_STREAM_END;
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
        return corrupt("gzip", file_.position() - stream_.avail_in, stream_.msg == nullptr ? "?" : stream_.msg);
      }
    }
    return room - stream_.avail_out;
  }

 private:
  explicit GzipSource(InputFile file) : file_(std::move(file)), buffer_(size_t{1} << 18) {}

  // At least two bytes, so that a member's mark can be seen; fewer at the end of the file.
  Status fill() {
    while (stream_.avail_in < 2 && !drained_) {
      if (stream_.avail_in > 0) std::memmove(buffer_.data(), stream_.next_in, stream_.avail_in);
      auto count = file_.read(buffer_.data() + stream_.avail_in, buffer_.size() - stream_.avail_in);
      if (!count) return count.error();
      drained_ = *count == 0;
      stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_in += static_cast<unsigned>(*count);
    }
    return {};
  }
  bool next_member() {
    if (stream_.avail_in < 2 || stream_.next_in[0] != 0x1f || stream_.next_in[1] != 0x8b) return false;
    between_ = false;
    return inflateReset(&stream_) == Z_OK;
  }

  InputFile file_;
  std::vector<char> buffer_;
  z_stream stream_{};
  bool begun_ = false;
  bool between_ = false;  // a member has ended
  bool drained_ = false;  // the file is read to its end
  bool ended_ = false;
};

#endif

#if FORERUN_HAS_ZSTD

class ZstdSource : public ByteSource {
 public:
  static constexpr int kLargestWindowLog = 27;

  static Result<std::unique_ptr<ByteSource>> make(InputFile file) {
    auto source = std::unique_ptr<ZstdSource>(new ZstdSource(std::move(file)));
    if (source->stream_ == nullptr) return short_of_memory("Zstandard");
    ZSTD_DCtx_setParameter(source->stream_.get(), ZSTD_d_windowLogMax, kLargestWindowLog);
    return std::unique_ptr<ByteSource>(std::move(source));
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
      if (drained_ && inside_ && out.pos == 0 && in_.pos == before) return ends_early("Zstandard", file_.position());
    }
    return out.pos;
  }

 private:
  explicit ZstdSource(InputFile file)
      : file_(std::move(file)), stream_(ZSTD_createDStream()), buffer_(ZSTD_DStreamInSize()) {}

  [[nodiscard]] Error broken(size_t code) const {
    const ZSTD_ErrorCode kind = ZSTD_getErrorCode(code);
    if (kind == ZSTD_error_memory_allocation) return short_of_memory("Zstandard");
    if (kind == ZSTD_error_frameParameter_windowTooLarge) {
      return {"the Zstandard data needs a window of more than 128 MiB", "", "compress it again with --long=27 or less"};
    }
    return corrupt("Zstandard", file_.position(), ZSTD_getErrorName(code));
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

// What no reader of this program takes, by its first bytes; empty where nothing is known.
std::string_view foreign_form(std::string_view start) {
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06")) return "zip";
  if (start.starts_with("BZh")) return "bzip2";
  if (start.starts_with("\xfd"
                        "7zX"))
    return "xz";
  if (start.starts_with("7z\xbc\xaf")) return "7z";
  return {};
}

// A file whose beginning was read, and maybe failed to be.
class BegunSource : public ByteSource {
 public:
  explicit BegunSource(std::unique_ptr<ByteSource> source) : source_(std::move(source)), beginning_(kLooked, '\0') {
    size_t held = 0;
    while (held < kLooked) {
      auto count = source_->read(beginning_.data() + held, kLooked - held);
      if (!count) failed_ = count.error();
      if (!count || *count == 0) break;
      held += *count;
    }
    beginning_.resize(held);
  }
  [[nodiscard]] bool is_tar() const { return beginning_.size() == kLooked && beginning_.ends_with("ustar"); }

  Result<size_t> read(char* into, size_t size) override {
    if (given_ < beginning_.size()) {
      const size_t count = std::min(size, beginning_.size() - given_);
      std::memcpy(into, beginning_.data() + given_, count);
      given_ += count;
      return count;
    }
    if (failed_) return *failed_;
    return source_->read(into, size);
  }

 private:
  static constexpr size_t kLooked = 262;  // up to the mark of a tar archive
  std::unique_ptr<ByteSource> source_;
  std::string beginning_;
  std::optional<Error> failed_;
  size_t given_ = 0;
};

// How many bytes in a row repeat the same few: 8 MiB of zeros, blanks, line ends or "{}" are no file of measurements but a
// damaged one, a device without end, or made to fill memory.
class Repetition {
 public:
  // True where that many do.
  bool read(const char* piece, size_t size) {
    const size_t shared = std::min(size, kPeriod);
    const bool goes_on = std::memcmp(piece, last_.data(), shared) == 0 &&
                         (size == shared || std::memcmp(piece, piece + kPeriod, size - kPeriod) == 0);
    repeated_ = goes_on ? repeated_ + size : 0;
    std::memmove(last_.data(), last_.data() + shared, kPeriod - shared);
    std::memcpy(last_.data() + kPeriod - shared, piece + size - shared, shared);
    return repeated_ >= kMost;
  }

 private:
  static constexpr size_t kPeriod = 120;  // whatever repeats every 1, 2, 3, 4, 5, 6, 8 or 10 bytes repeats every 120
  static constexpr size_t kMost = size_t{8} << 20;
  std::array<char, kPeriod> last_{};
  size_t repeated_ = 0;
};

// Names the file in what goes wrong, and ends where nothing comes any more.
class NamedSource : public ByteSource {
 public:
  NamedSource(std::unique_ptr<ByteSource> source, std::string path)
      : source_(std::move(source)), path_(std::move(path)) {}
  Result<size_t> read(char* into, size_t size) override {
    auto count = source_->read(into, size);
    if (!count) return count.error().within(path_);
    given_ += static_cast<int64_t>(*count);
    if (*count == 0 || !repetition_.read(into, *count)) return count;
    return Error{fmt::format("the same few bytes repeat for 8 MiB up to byte {} of what it holds", given_), path_,
                 "the file is damaged, or none of measurements: copy it again, or name another"};
  }

 private:
  std::unique_ptr<ByteSource> source_;
  std::string path_;
  Repetition repetition_;
  int64_t given_ = 0;
};

Result<std::unique_ptr<ByteSource>> unpacked(InputFile file, std::string_view start) {
  if (is_gzip(start)) {
#if FORERUN_HAS_ZLIB
    return GzipSource::make(std::move(file));
#else
    return Error{"is a gzip file, and this build has no zlib", "", "decompress it with gunzip"};
#endif
  }
  if (is_zstd(start)) {
#if FORERUN_HAS_ZSTD
    return ZstdSource::make(std::move(file));
#else
    return Error{"is a Zstandard file, and this build has no libzstd", "", "decompress it with unzstd"};
#endif
  }
  if (const std::string_view form = foreign_form(start); !form.empty()) {
    return Error{fmt::format("is a {} file, which is not read", form), "", "unpack it, and name what was in it"};
  }
  return std::unique_ptr<ByteSource>(std::make_unique<PlainSource>(std::move(file)));
}

}  // namespace

Result<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path, Archives archives) {
  errno = 0;
  File opened(std::fopen(path.c_str(), "rb"));
  if (opened == nullptr) return unopened(path, errno);
  InputFile file(std::move(opened));
  const auto start = file.look();
  if (!start) return start.error().within(path);
  const std::string first(*start);
  auto source = unpacked(std::move(file), first);
  if (!source) return source.error().within(path);
  auto begun = std::make_unique<BegunSource>(std::move(*source));
  if (archives == Archives::refused && begun->is_tar()) {
    return Error{"is a tar archive of files, not one file", path, "unpack it (tar -xf), and name the folder or files"};
  }
  return std::unique_ptr<ByteSource>(std::make_unique<NamedSource>(std::move(begun), path));
}

}  // namespace forerun
