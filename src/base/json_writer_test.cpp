// nlohmann::json is the plain twin: what it dumps is what the writer must print, byte for byte.
#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

std::string twin(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

template <class T>
std::string written(const T& value) {
  return JsonWriter().value(value).take();
}

// Bytes that make broken, overlong and sound sequences likely.
std::string random_text(std::mt19937_64& random) {
  constexpr unsigned char kBytes[] = {'a',  '"',  '\\', '\n', 0x00, 0x1F, 0x7F, 0x80, 0x8F, 0x90,
                                      0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xE2, 0xED, 0xEF,
                                      0xF0, 0xF1, 0xF4, 0xF5, 0xFF, '\t', 0xBB, '/'};
  std::string text;
  for (size_t i = random() % 12; i > 0; --i) text += static_cast<char>(kBytes[random() % sizeof kBytes]);
  return text;
}

double random_double(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0: return std::bit_cast<double>(random());
    case 1: return static_cast<double>(random() % 100000) / 1000;
    case 2: return static_cast<double>(static_cast<int64_t>(random()));
    default: return std::pow(10.0, static_cast<double>(random() % 40) - 20);
  }
}

// The same random tree to the twin and to the writer.
Json write_random(std::mt19937_64& random, JsonWriter& json, int depth) {
  switch (random() % (depth > 0 ? 8 : 6)) {
    case 0: {
      const std::string text = random_text(random);
      json.value(text);
      return text;
    }
    case 1: {
      const auto number = static_cast<int64_t>(random());
      json.value(number);
      return number;
    }
    case 2: {
      const uint64_t number = random();
      json.value(number);
      return number;
    }
    case 3: {
      const double number = random_double(random);
      json.value(number);
      return number;
    }
    case 4: {
      const bool flag = random() % 2 == 0;
      json.value(flag);
      return flag;
    }
    case 5: json.value(nullptr); return nullptr;
    case 6: {
      Json list = Json::array();
      json.begin_array();
      for (size_t i = random() % 4; i > 0; --i) list.push_back(write_random(random, json, depth - 1));
      json.end_array();
      return list;
    }
    default: {
      Json object = Json::object();
      json.begin_object();
      for (size_t i = random() % 4; i > 0; --i) {
        const std::string name = random_text(random) + std::to_string(i);
        json.key(name);
        object[name] = write_random(random, json, depth - 1);
      }
      json.end_object();
      return object;
    }
  }
}

TEST(JsonWriter, PrintsRandomTreesAsTheTwin) {
  std::mt19937_64 random(20240611);
  for (int i = 0; i < 3000; ++i) {
    const int indent = i % 3 == 0 ? 2 : i % 3 == 1 ? 1 : JsonWriter::kOneLine;
    JsonWriter json(indent);
    const Json same = write_random(random, json, 4);
    ASSERT_EQ(json.take(), twin(same, indent));
  }
}

TEST(JsonWriter, PrintsRandomTextAndDoublesAsTheTwin) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 10000; ++i) {
    const std::string text = random_text(random);
    ASSERT_EQ(written(text), twin(text, -1)) << i;
    ASSERT_EQ(json_quoted(text), twin(text, -1)) << i;
    const double number = random_double(random);
    ASSERT_EQ(written(number), twin(number, -1));
  }
}

TEST(JsonWriter, PrintsNumbersSoThatTheyReadBack) {
  EXPECT_EQ(written(1.0), "1.0");
  EXPECT_EQ(written(-0.0), "-0.0");
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(1e14), "100000000000000.0");
  EXPECT_EQ(written(1e15), "1e+15");
  EXPECT_EQ(written(1e16), "1e+16");
  EXPECT_EQ(written(1e-7), "1e-07");
  EXPECT_EQ(written(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(written(-std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(written(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(written(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(written(static_cast<uint8_t>(7)), "7");
}

TEST(JsonWriter, EscapesTextAndReplacesWhatIsNotUtf8) {
  EXPECT_EQ(written("say \"hi\"\\\n\x01\x7f/"), "\"say \\\"hi\\\"\\\\\\n\\u0001\x7f/\"");
  EXPECT_EQ(written("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\"");
  EXPECT_EQ(written("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(written("\xE2\x82"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(written("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"") << "half of a surrogate pair";
}

TEST(JsonWriter, WritesListsMapsAndWhatMayBeMissing) {
  EXPECT_EQ(written(std::vector<std::string>{"a", "b"}), R"(["a","b"])");
  EXPECT_EQ(written(std::vector<double>{}), "[]");
  EXPECT_EQ(written(std::map<std::string, int64_t>{{"b", 2}, {"a", 1}}), R"({"a":1,"b":2})");
  EXPECT_EQ(written(std::optional<double>()), "null");
  EXPECT_EQ(written(std::optional<double>(2)), "2.0");
  JsonWriter json(2);
  json.begin_object().field("none", std::vector<int>{}).key("some").begin_array().value(1).raw("{\"a\":2}");
  EXPECT_EQ(json.end_array().end_object().take(), "{\n  \"none\": [],\n  \"some\": [\n    1,\n    {\"a\":2}\n  ]\n}");
}

TEST(JsonWriterDeathTest, StopsWhereWhatIsWrittenIsNoJson) {
  EXPECT_DEATH(JsonWriter().begin_object().value(1), "needs a key");
  EXPECT_DEATH(JsonWriter().begin_array().key("a"), "stands in an object");
  EXPECT_DEATH(JsonWriter().begin_array().end_object(), "not begun");
  EXPECT_DEATH(JsonWriter().begin_object().key("a").end_object(), "not begun");
  EXPECT_DEATH(JsonWriter().value(1).value(2), "one value");
  EXPECT_DEATH((void)JsonWriter().begin_object().take(), "ends with");
}

}  // namespace
}  // namespace forerun
