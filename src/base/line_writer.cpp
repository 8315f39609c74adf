#include "base/line_writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#if FORERUN_HAS_ZLIB
#include <zlib.h>
#endif
#if FORERUN_HAS_ZSTD
#include <zstd.h>
#endif

namespace forerun {

// The file being written, under its temporary name.
struct LineWriter::File {
  std::string path;
  std::string partial;
  std::FILE* stream = nullptr;

  File(std::string final_path, std::FILE* opened)
      : path(std::move(final_path)), partial(path + ".partial"), stream(opened) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (stream == nullptr) return;
    std::fclose(stream);
    std::remove(partial.c_str());
  }

  [[nodiscard]] Error failed(const char* what) const {
    return {fmt::format("{}: {}", what, std::strerror(errno)), path, "check the free space and the permissions"};
  }
  Status put(const void* data, size_t size) const {
    if (std::fwrite(data, 1, size, stream) != size) return failed("cannot be written");
    return {};
  }
};

// What stands between the text and the file.
class LineWriter::Sink {
 public:
  Sink() = default;
  virtual ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual Status write(const File& file, std::string_view text) = 0;
  virtual Status finish(const File& file) = 0;
};

class LineWriter::PlainSink : public Sink {
 public:
  Status write(const File& file, std::string_view text) override { return file.put(text.data(), text.size()); }
  Status finish(const File& /*file*/) override { return {}; }
};

#if FORERUN_HAS_ZLIB
class LineWriter::GzipSink : public Sink {
 public:
  GzipSink() : buffer_(1U << 18) {
    // 15 + 16: the largest window, with a gzip header, which holds no time: the same lines give the same bytes.
    const int code = deflateInit2(&stream_, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
    CHECK(code == Z_OK, "zlib refuses its own settings");
  }
  ~GzipSink() override { deflateEnd(&stream_); }
  GzipSink(const GzipSink&) = delete;
  GzipSink& operator=(const GzipSink&) = delete;

  Status write(const File& file, std::string_view text) override {
    while (!text.empty()) {
      const std::string_view piece = text.substr(0, 1U << 30);
      text.remove_prefix(piece.size());
      if (Status status = push(file, piece, Z_NO_FLUSH); !status.ok()) return status;
    }
    return {};
  }
  Status finish(const File& file) override { return push(file, "", Z_FINISH); }

 private:
  Status push(const File& file, std::string_view piece, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&stream_, flush);
      if (Status status = file.put(buffer_.data(), buffer_.size() - stream_.avail_out); !status.ok()) return status;
    } while (stream_.avail_out == 0);
    return {};
  }
  z_stream stream_{};
  std::vector<char> buffer_;
};
#endif

#if FORERUN_HAS_ZSTD
class LineWriter::ZstdSink : public Sink {
 public:
  explicit ZstdSink(int level) : stream_(ZSTD_createCStream()), buffer_(ZSTD_CStreamOutSize()) {
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_enableLongDistanceMatching, 1);
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_windowLog, 27);
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_checksumFlag, 1);
    // The bytes do not depend on how many threads there are. A libzstd without threads refuses, and works with one.
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_nbWorkers, 2);
  }

  Status write(const File& file, std::string_view text) override { return push(file, text, ZSTD_e_continue); }
  Status finish(const File& file) override { return push(file, "", ZSTD_e_end); }

 private:
  Status push(const File& file, std::string_view text, ZSTD_EndDirective mode) {
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    while (true) {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const size_t left = ZSTD_compressStream2(stream_.get(), &out, &in, mode);
      if (ZSTD_isError(left) != 0) {
        return Error{fmt::format("cannot be compressed: {}", ZSTD_getErrorName(left)), file.path,
                     "write a .gz file instead"};
      }
      if (Status status = file.put(buffer_.data(), out.pos); !status.ok()) return status;
      if (mode == ZSTD_e_end ? left == 0 : in.pos == in.size) return {};
    }
  }
  struct FreeStream {
    void operator()(ZSTD_CStream* stream) const { ZSTD_freeCStream(stream); }
  };
  std::unique_ptr<ZSTD_CStream, FreeStream> stream_;
  std::vector<char> buffer_;
};
#endif

LineWriter::LineWriter(std::unique_ptr<File> file, std::unique_ptr<Sink> sink)
    : file_(std::move(file)), sink_(std::move(sink)) {}
LineWriter::LineWriter(LineWriter&&) noexcept = default;
LineWriter& LineWriter::operator=(LineWriter&&) noexcept = default;
LineWriter::~LineWriter() = default;

Result<LineWriter> LineWriter::create(const std::string& path, Options options) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return Error{"is a folder", path, "name a file"};
  if (!options.overwrite && std::filesystem::exists(path, code)) {
    return Error{"exists already", path, "choose another name, or overwrite it with --force"};
  }
  std::unique_ptr<Sink> sink = std::make_unique<PlainSink>();
  if (path.ends_with(".gz")) {
#if FORERUN_HAS_ZLIB
    sink = std::make_unique<GzipSink>();
#else
    return Error{"cannot be written: this build has no zlib", path, "name it without .gz"};
#endif
  } else if (path.ends_with(".zst")) {
#if FORERUN_HAS_ZSTD
    sink = std::make_unique<ZstdSink>(options.zstd_level);
#else
    return Error{"cannot be written: this build has no libzstd", path, "name it without .zst"};
#endif
  }
  auto file = std::make_unique<File>(path, nullptr);
  errno = 0;
  file->stream = std::fopen(file->partial.c_str(), "wb");
  if (file->stream == nullptr) return file->failed("cannot be created");
  return LineWriter(std::move(file), std::move(sink));
}

Status LineWriter::write(std::string_view line) {
  CHECK(file_ != nullptr && file_->stream != nullptr, "write() after finish()");
  if (Status status = sink_->write(*file_, line); !status.ok()) return status;
  return sink_->write(*file_, "\n");
}

Status LineWriter::finish() {
  CHECK(file_ != nullptr && file_->stream != nullptr, "finish() twice");
  if (Status status = sink_->finish(*file_); !status.ok()) return status;
  errno = 0;
  if (std::fflush(file_->stream) != 0) return file_->failed("cannot be written");
  std::fclose(file_->stream);
  file_->stream = nullptr;
  if (std::rename(file_->partial.c_str(), file_->path.c_str()) != 0) return file_->failed("cannot be put in its place");
  return {};
}

}  // namespace forerun
