#include "base/line_writer.h"

#include <fmt/format.h>

#include <new>
#include <vector>

#if FORERUN_HAS_ZLIB
#include <zlib.h>
#endif
#if FORERUN_HAS_ZSTD
#include <zstd.h>
#endif

namespace forerun {

// What stands between the text and the file.
class LineWriter::Sink {
 public:
  Sink() = default;
  virtual ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual Status write(OutputFile& file, std::string_view text) = 0;
  virtual Status finish(OutputFile& file) = 0;
};

class LineWriter::PlainSink : public Sink {
 public:
  Status write(OutputFile& file, std::string_view text) override { return file.write(text); }
  Status finish(OutputFile& /*file*/) override { return {}; }
};

#if FORERUN_HAS_ZLIB
class LineWriter::GzipSink : public Sink {
 public:
  GzipSink() : buffer_(1U << 18) {
    // 15 + 16: the largest window, with a gzip header, which holds no time: the same lines give the same bytes.
    const int code = deflateInit2(&stream_, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    CHECK(code == Z_OK, "zlib refuses its own settings");
  }
  ~GzipSink() override { deflateEnd(&stream_); }
  GzipSink(const GzipSink&) = delete;
  GzipSink& operator=(const GzipSink&) = delete;

  Status write(OutputFile& file, std::string_view text) override {
    while (!text.empty()) {
      const std::string_view piece = text.substr(0, 1U << 30);
      text.remove_prefix(piece.size());
      if (Status status = push(file, piece, Z_NO_FLUSH); !status.ok()) return status;
    }
    return {};
  }
  Status finish(OutputFile& file) override { return push(file, "", Z_FINISH); }

 private:
  Status push(OutputFile& file, std::string_view piece, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&stream_, flush);
      if (Status status = file.write({buffer_.data(), buffer_.size() - stream_.avail_out}); !status.ok()) return status;
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
    if (stream_ == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_enableLongDistanceMatching, 1);
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_windowLog, 27);
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_checksumFlag, 1);
    // The bytes do not depend on how many threads there are. A libzstd without threads refuses, and works with one.
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_nbWorkers, 2);
  }

  Status write(OutputFile& file, std::string_view text) override { return push(file, text, ZSTD_e_continue); }
  Status finish(OutputFile& file) override { return push(file, "", ZSTD_e_end); }

 private:
  Status push(OutputFile& file, std::string_view text, ZSTD_EndDirective mode) {
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    while (true) {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const size_t left = ZSTD_compressStream2(stream_.get(), &out, &in, mode);
      if (ZSTD_isError(left) != 0) {
        return Error{fmt::format("cannot be compressed: {}", ZSTD_getErrorName(left)), file.path(),
                     "write a .gz file instead"};
      }
      if (Status status = file.write({buffer_.data(), out.pos}); !status.ok()) return status;
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

LineWriter::LineWriter(OutputFile file, std::unique_ptr<Sink> sink) : file_(std::move(file)), sink_(std::move(sink)) {}
LineWriter::LineWriter(LineWriter&&) noexcept = default;
LineWriter& LineWriter::operator=(LineWriter&&) noexcept = default;
LineWriter::~LineWriter() = default;

Result<LineWriter> LineWriter::create(const std::string& path, Options options) {
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
  Result<OutputFile> file = OutputFile::create(path, {.overwrite = options.overwrite});
  if (!file) return file.error();
  return LineWriter(std::move(*file), std::move(sink));
}

Status LineWriter::write(std::string_view line) {
  if (Status status = sink_->write(file_, line); !status.ok()) return status;
  return sink_->write(file_, "\n");
}

Status LineWriter::finish() {
  if (Status status = sink_->finish(file_); !status.ok()) return status;
  return file_.finish();
}

}  // namespace forerun
