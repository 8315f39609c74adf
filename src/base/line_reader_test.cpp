#include "base/line_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#if __has_include(<zlib.h>) && __has_include(<zstd.h>)
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

namespace forerun {
namespace {

struct Reading {
  std::vector<std::string> lines;
  std::optional<Error> error;
};

Reading read_all(LineReader reader) {
  Reading reading;
  while (true) {
    auto line = reader.next();
    if (!line) {
      reading.error = line.error();
      auto after = reader.next();
      EXPECT_TRUE(after.ok() && !after->has_value()) << "an error ends the reading";
      return reading;
    }
    if (!line->has_value()) return reading;
    reading.lines.emplace_back(**line);
    EXPECT_EQ(reader.line_number(), static_cast<int64_t>(reading.lines.size()));
  }
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  // As a stream, whose length the frame does not state: its window is then as large as asked for.
  std::string out(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  EXPECT_EQ(ZSTD_isError(ZSTD_compressStream2(context, &to, &in, ZSTD_e_continue)), 0U);
  EXPECT_EQ(ZSTD_compressStream2(context, &to, &in, ZSTD_e_end), 0U);
  ZSTD_freeCCtx(context);
  out.resize(to.pos);
  return out;
}

class LineReaderFile : public ::testing::Test {
 protected:
  std::string write(const std::string& content) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    const auto path = std::filesystem::path(::testing::TempDir()) / (std::string("line_reader_") + test->name());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
};

TEST(LineReaderText, SplitsAtNewlinesOfBothKinds) {
  const auto reading = read_all(LineReader::from_text("a\r\n\nbc\n\rd", "text"));
  EXPECT_EQ(reading.lines, (std::vector<std::string>{"a", "", "bc", "\rd"}));
  EXPECT_FALSE(reading.error);
  EXPECT_TRUE(read_all(LineReader::from_text("", "text")).lines.empty());
  EXPECT_EQ(read_all(LineReader::from_text("\n", "text")).lines, (std::vector<std::string>{""}));
}

TEST(LineReaderText, RefusesALineBeyondTheLimit) {
  LineReader::Options options;
  options.longest_line = 4;
  const auto reading = read_all(LineReader::from_text("abcd\nabcde\nx\n", "text", options));
  EXPECT_EQ(reading.lines, (std::vector<std::string>{"abcd"}));
  ASSERT_TRUE(reading.error);
  EXPECT_EQ(reading.error->message(),
            "text: line 2 is longer than 4 bytes; split it into several lines, one record each");
}

// Random lines, through every buffer size that could split them badly, equal the lines that went in.
TEST_F(LineReaderFile, GivesTheSameLinesWhateverTheBufferAndTheCompression) {
  std::mt19937 random(7);
  std::vector<std::string> expected;
  std::string text;
  for (int i = 0; i < 500; ++i) {
    expected.emplace_back(random() % (i % 50 == 0 ? 5000 : 40), static_cast<char>('a' + i % 26));
    text += expected.back() + (i % 3 == 0 ? "\r\n" : "\n");
  }
  expected.emplace_back("no newline at the end");
  text += expected.back();
  const std::string passed_over("\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
  for (const std::string& content :
       {text, gzip(text), gzip(text.substr(0, 1000)) + gzip(text.substr(1000)), zstd(text), zstd(text, 27),
        zstd(text.substr(0, 1000)) + zstd(text.substr(1000)), passed_over + zstd(text)}) {
    const std::string path = write(content);
    for (const size_t size : {1, 2, 3, 17, 64, 4096, 1 << 20}) {
      LineReader::Options options;
      options.first_buffer = size;
      auto reader = LineReader::open(path, options);
      ASSERT_TRUE(reader.ok());
      const auto reading = read_all(std::move(*reader));
      EXPECT_FALSE(reading.error) << reading.error->message();
      EXPECT_EQ(reading.lines, expected) << "buffer of " << size;
    }
  }
}

TEST_F(LineReaderFile, LimitsLinesOfFiles) {
  LineReader::Options options;
  options.longest_line = 100;
  options.first_buffer = 16;
  const auto reading = read_all(*LineReader::open(write("short\n" + std::string(100000, 'x')), options));
  EXPECT_EQ(reading.lines.size(), 1U);
  ASSERT_TRUE(reading.error);
  EXPECT_NE(reading.error->what.find("line 2 is longer than 100 bytes"), std::string::npos);
}

TEST_F(LineReaderFile, TellsATruncatedGzip) {
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(random()) + "\n";
  const std::string whole = gzip(text);
  for (const size_t kept : {whole.size() - 1, whole.size() - 8, whole.size() / 2, size_t{12}, size_t{10}, size_t{4}}) {
    const std::string path = write(whole.substr(0, kept));
    const auto reading = read_all(*LineReader::open(path));
    ASSERT_TRUE(reading.error) << "kept " << kept << " of " << whole.size();
    EXPECT_EQ(reading.error->where, path);
    EXPECT_NE(reading.error->message().find("truncated"), std::string::npos) << reading.error->message();
  }
}

TEST_F(LineReaderFile, TellsATruncatedOrCorruptZstandard) {
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(random()) + "\n";
  const std::string whole = zstd(text);
  for (const size_t kept : {whole.size() - 1, whole.size() / 2, size_t{12}, size_t{5}}) {
    const std::string path = write(whole.substr(0, kept));
    const auto reading = read_all(*LineReader::open(path));
    ASSERT_TRUE(reading.error) << "kept " << kept << " of " << whole.size();
    EXPECT_EQ(reading.error->where, path);
    EXPECT_NE(reading.error->message().find("truncated"), std::string::npos) << reading.error->message();
  }
  std::string damaged = whole;
  for (size_t i = damaged.size() / 2; i < damaged.size() / 2 + 16; ++i) damaged[i] = '\xff';
  const auto reading = read_all(*LineReader::open(write(damaged)));
  ASSERT_TRUE(reading.error);
  EXPECT_NE(reading.error->message().find("corrupt"), std::string::npos) << reading.error->message();
}

TEST_F(LineReaderFile, RefusesAWindowBeyond128MiB) {
  const auto reading = read_all(*LineReader::open(write(zstd("a line\n", 28))));
  ASSERT_TRUE(reading.error);
  EXPECT_NE(reading.error->message().find("--long=27"), std::string::npos) << reading.error->message();
}

TEST_F(LineReaderFile, SaysWhereTheDataEndsEarly) {
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(random()) + "\n";
  for (const std::string& whole : {gzip(text), zstd(text)}) {
    const auto reading = read_all(*LineReader::open(write(whole.substr(0, 10000))));
    ASSERT_TRUE(reading.error);
    EXPECT_NE(reading.error->what.find("at byte 10000"), std::string::npos) << reading.error->message();
  }
}

TEST_F(LineReaderFile, WhatFollowsTheLastGzipMemberIsPassedOver) {
  const auto reading = read_all(*LineReader::open(write(gzip("a\n") + std::string(512, '\0'))));
  EXPECT_FALSE(reading.error);
  EXPECT_EQ(reading.lines, std::vector<std::string>{"a"});
}

TEST_F(LineReaderFile, ReadsCompressedPipes) {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i * 7919) + "\n";
  for (const std::string& content : {text, gzip(text), zstd(text)}) {
    const std::string path = write("") + ".fifo";
    std::filesystem::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    std::thread writer([&] { std::ofstream(path, std::ios::binary) << content; });
    const auto reading = read_all(*LineReader::open(path));
    writer.join();
    std::filesystem::remove(path);
    EXPECT_FALSE(reading.error) << reading.error->message();
    EXPECT_EQ(reading.lines.size(), 50000U);
  }
}

std::string tar_of(const std::string& text) {
  std::string header(512, '\0');
  header.replace(0, 6, "a.json");
  header.replace(257, 5, "ustar");
  return header + text + std::string(1024 - text.size() % 512, '\0');
}

TEST_F(LineReaderFile, RefusesArchives) {
  const std::string tar = tar_of("{}\n");
  for (const std::string& content : {tar, gzip(tar), zstd(tar)}) {
    const std::string path = write(content);
    const auto opened = LineReader::open(path);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().where, path);
    EXPECT_NE(opened.error().what.find("tar archive"), std::string::npos);
    EXPECT_TRUE(ByteSource::open(path, ByteSource::Archives::taken).ok());
  }
  for (const std::string& content : {std::string("PK\x03\x04zip"), std::string("BZh91AY"),
                                     std::string("\xfd"
                                                 "7zXZ")}) {
    const auto opened = LineReader::open(write(content));
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().remedy.find("unpack"), std::string::npos);
  }
  EXPECT_TRUE(LineReader::open(write("a text that ends in ustar")).ok());
}

TEST_F(LineReaderFile, PassesOverAByteOrderMark) {
  for (const size_t size : {1, 2, 3, 4096}) {
    for (const std::string& content : {std::string("\xEF\xBB\xBF{}\nb"), gzip("\xEF\xBB\xBF{}\nb")}) {
      LineReader::Options options;
      options.first_buffer = size;
      EXPECT_EQ(read_all(*LineReader::open(write(content), options)).lines, (std::vector<std::string>{"{}", "b"}));
    }
  }
  EXPECT_EQ(read_all(LineReader::from_text("\xEF\xBB\xBF{}\nb", "text")).lines, (std::vector<std::string>{"{}", "b"}));
  EXPECT_EQ(read_all(LineReader::from_text("\n\xEF\xBB\xBF", "text")).lines.at(1), "\xEF\xBB\xBF");
}

// Files of a few kilobytes that unpack to more than memory should hold.
TEST_F(LineReaderFile, RefusesWhatUnpacksWithoutEnd) {
  const std::string endless(size_t{9} << 20, 'x');
  std::string objects;
  while (objects.size() < size_t{9} << 20) objects += "{}\n";
  for (const std::string& content : {gzip("a line\n" + endless), zstd(endless), gzip(objects), objects}) {
    auto reader = LineReader::open(write(content));
    ASSERT_TRUE(reader.ok());
    std::optional<Error> error;
    while (!error) {
      const auto line = reader->next();
      if (!line) error = line.error();
      ASSERT_TRUE(!line.ok() || line->has_value()) << "read to its end";
    }
    EXPECT_NE(error->what.find("repeat for 8 MiB"), std::string::npos) << error->message();
  }
}

TEST_F(LineReaderFile, RefusesALongLineOfNulBytes) {
  const auto reading = read_all(*LineReader::open(write(std::string(size_t{5} << 20, '\0'))));
  ASSERT_TRUE(reading.error);
  EXPECT_NE(reading.error->what.find("line 1 holds NUL bytes"), std::string::npos) << reading.error->message();
}

TEST_F(LineReaderFile, SaysWhetherTheLastLineEnded) {
  auto reader = LineReader::from_text("a\nb", "text");
  EXPECT_EQ(**reader.next(), "a");
  EXPECT_TRUE(reader.line_ended());
  EXPECT_EQ(**reader.next(), "b");
  EXPECT_FALSE(reader.line_ended());
}

TEST_F(LineReaderFile, TellsACorruptGzip) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919) + "\n";
  std::string content = gzip(text);
  for (size_t i = content.size() / 2; i < content.size() / 2 + 16; ++i) content[i] = '\xff';
  const auto reading = read_all(*LineReader::open(write(content)));
  ASSERT_TRUE(reading.error);
  EXPECT_NE(reading.error->message().find("corrupt"), std::string::npos) << reading.error->message();
}

TEST_F(LineReaderFile, TellsWhatCannotBeOpened) {
  const auto missing = LineReader::open("/no/such/file.jsonl.gz");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().where, "/no/such/file.jsonl.gz");
  EXPECT_NE(missing.error().what.find("No such file"), std::string::npos);

  auto folder = LineReader::open(::testing::TempDir());
  if (folder.ok()) {
    EXPECT_TRUE(read_all(std::move(*folder)).error);
  }
}

}  // namespace
}  // namespace forerun
#endif
