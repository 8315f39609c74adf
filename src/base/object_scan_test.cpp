#include "base/object_scan.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

using State = ObjectScan::State;

struct Scanned {
  State state;
  size_t bytes;
};

Scanned scanned(std::string_view text) {
  ObjectScan scan;
  const size_t bytes = scan.read(text);
  return {scan.state(), bytes};
}

TEST(ObjectScan, FindsTheEnd) {
  for (const std::string_view text :
       {R"({})", R"( {"a":1})", R"({"a":[{"ph":"X"}, {"ph":"Y"}],"b":{}})", R"({"a":"}, {\"ph\"","b":[]})",
        R"({"a":"\\","b":[[],[1,-2.5e+3,true,null,NaN]]})", "{\n\t\"a\" : \"\xff\x01\" , \"b\":[ ]\r}"}) {
    const Scanned whole = scanned(std::string(text) + ", {");
    EXPECT_EQ(whole.state, State::closed) << text;
    EXPECT_EQ(whole.bytes, text.size()) << text;
    for (size_t size = 0; size < text.size(); ++size) {
      EXPECT_EQ(scanned(text.substr(0, size)).state, State::open) << text.substr(0, size);
    }
    // In pieces, wherever they are cut.
    for (size_t cut = 0; cut < text.size(); ++cut) {
      ObjectScan scan;
      EXPECT_EQ(scan.read(text.substr(0, cut)), cut);
      EXPECT_EQ(scan.read(text.substr(cut)), text.size() - cut);
      EXPECT_EQ(scan.state(), State::closed) << text << " cut at " << cut;
    }
  }
}

TEST(ObjectScan, FindsOutWhatIsNoJson) {
  for (const std::string_view text :
       {"", "[", "1", R"({,})", R"({"a"})", R"({"a":})", R"({"a":1,})", R"({"a":[1,]})", R"({"a":[1}})", R"({"a":1 2})",
        R"({"a":1]})", R"({"say":"x"hi"})", R"({"a":1}})", R"({"a":1, {"b":2}})", R"({a:1})", R"({"a":"b" "c"})",
        R"({"a":[1:2]})", R"({"a":'b'})", "{\"a\":1\x01}"}) {
    const Scanned whole = scanned(text);
    const bool refused = whole.state == State::broken || (whole.state == State::open && text.empty()) ||
                         (whole.state == State::closed && whole.bytes < text.size());
    EXPECT_TRUE(refused) << text;
  }
  EXPECT_EQ(scanned(R"({"say":"x"hi"})").bytes, 10U);
  std::string deep = R"({"a":)" + std::string(1023, '[');
  EXPECT_EQ(scanned(deep).state, State::open);
  EXPECT_EQ(scanned(deep + "[").state, State::broken);
}

TEST(ObjectScan, OneObject) {
  EXPECT_TRUE(is_one_object(R"({"a":[{"ph":1}, {"ph":2}]} , )"));
  EXPECT_TRUE(is_one_object(R"({"a":1} ])"));
  EXPECT_FALSE(is_one_object(R"({"a":1}, {"ph":2})"));
  EXPECT_FALSE(is_one_object(R"({"a":[{"ph":1}, {"ph":2})"));
}

}  // namespace
}  // namespace forerun
