#include "base/options_text.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

const OptionGrammar kPolicyGrammar{"--policy", "write NAME or NAME:OPTION=NUMBER"};

std::string refusal(std::string_view text) {
  const auto named = parse_named_options(text, kPolicyGrammar);
  return named ? "" : named.error().message();
}

TEST(OptionsText, NameAndOptionsArePartedInOrder) {
  const auto named = parse_named_options("allox:alpha=0.5,rule=a=b", kPolicyGrammar);
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->name, "allox");
  EXPECT_EQ(named->options, (KeyValues{{"alpha", "0.5"}, {"rule", "a=b"}}));
  EXPECT_TRUE(parse_named_options("fifo", kPolicyGrammar)->options.empty());
  EXPECT_EQ(parse_key_values("layers=2;width=64", {}, ';')->size(), 2U);
  EXPECT_TRUE(parse_key_values("", {})->empty());
}

TEST(OptionsText, RefusesWhatSaysNothingOrTheSameTwice) {
  EXPECT_EQ(refusal("fifo:"), "--policy fifo:: '' is not KEY=VALUE; write NAME or NAME:OPTION=NUMBER");
  EXPECT_NE(refusal("fifo:=3").find("'=3' is not KEY=VALUE"), std::string::npos);
  EXPECT_NE(refusal("fifo:q").find("'q' is not KEY=VALUE"), std::string::npos);
  EXPECT_NE(refusal("fifo:q=1,").find("'' is not KEY=VALUE"), std::string::npos);
  EXPECT_NE(refusal("fifo:q=").find("q has no value"), std::string::npos);
  EXPECT_NE(refusal("fifo:q=1,q=1").find("q is given twice"), std::string::npos);
}

TEST(OptionsText, ReadsNumbersInTheirRangesAndWordsOfAList) {
  const KeyValues options = {{"q", "0.5"}, {"n", "3"}, {"impl", "fused"}};
  OptionReader reader(options, kPolicyGrammar);
  EXPECT_EQ(reader.number("q", 9, 0, 1), 0.5);
  EXPECT_EQ(reader.whole("n", 1, 1, 10), 3);
  EXPECT_EQ(reader.word("impl", 0, {"forloop", "foreach", "fused"}), 2U);
  EXPECT_EQ(reader.number("absent", 7, 0, 1), 7);
  EXPECT_TRUE(reader.status().ok());
}

TEST(OptionsText, SaysWhichValueCannotBe) {
  struct Fault {
    KeyValue option;
    const char* says;
  };
  for (const Fault& fault :
       {Fault{{"q", "2"}, "q=2 is out of range: 0 to 1"}, Fault{{"q", "nan"}, "no number"},
        Fault{{"q", "1x"}, "q cannot be '1x'"}, Fault{{"n", "1.5"}, "no whole number"},
        Fault{{"impl", "fusd"}, "did you mean fused"}, Fault{{"qq", "1"}, "It takes q, n, impl"}}) {
    const KeyValues options = {fault.option};
    OptionReader reader(options, kPolicyGrammar);
    reader.number("q", 0, 0, 1);
    reader.whole("n", 1, 1, 10);
    reader.word("impl", 0, {"forloop", "foreach", "fused"});
    ASSERT_FALSE(reader.status().ok()) << fault.says;
    const std::string message = reader.status().error().message();
    EXPECT_NE(message.find(fault.says), std::string::npos) << message;
    EXPECT_NE(message.find("--policy"), std::string::npos) << message;
  }
}

TEST(OptionsText, SplitsAtAnyOfTheSeparators) {
  EXPECT_EQ(split_list("a,b+ c", ",+ "), (std::vector<std::string_view>{"a", "b", "", "c"}));
  EXPECT_EQ(split_list("", ","), std::vector<std::string_view>{""});
  EXPECT_FALSE(split_key_value("word").has_value());
  EXPECT_FALSE(number_in("1e999").has_value());
}

}  // namespace
}  // namespace forerun
