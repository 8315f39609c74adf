#include "predict/setup_text.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(SetupWords, AreTheOptionsByAnotherSpelling) {
  SetupText text;
  const auto read = [&](const std::string& word, const std::string& value) {
    const Status status = read_setup_word(word, value, text);
    return status.ok() ? std::string() : status.error().message();
  };
  for (const auto& [word, value] : KeyValues{{"precision", "bf16"},
                                             {"optimizer", "lion"},
                                             {"checkpoint", "block"},
                                             {"lora", "8:q_proj,v_proj"},
                                             {"quantize", "nf4"},
                                             {"loop", "trainer"},
                                             {"attention", "flash"},
                                             {"compile", "default"},
                                             {"channels_last", "Yes"},
                                             {"ema", "true"},
                                             {"accumulate", "4"},
                                             {"freeze", "wte;;wpe"},
                                             {"clip_grad", "0"}}) {
    EXPECT_EQ(read(word, value), "") << word;
  }
  // Every word says something, and there is a word for every option.
  EXPECT_EQ(text.given().size(), setup_words().size());
  EXPECT_EQ(text.freeze, (std::vector<std::string>{"wte", "wpe"}));
  EXPECT_EQ(text.clip_norm, 0.0);
  EXPECT_TRUE(text.channels_last);
  EXPECT_EQ(read("ema", "no"), "");
  EXPECT_FALSE(text.ema);
  EXPECT_EQ(read("ema", ""), "");  // an empty cell says nothing
  EXPECT_NE(read("ema", "2").find("yes or no"), std::string::npos);
  for (const char* value : {"0", "1.5", "4097", "nan", "1e99", "four", "-1"}) {
    EXPECT_NE(read("accumulate", value).find("1 to 4096"), std::string::npos) << value;
  }
  EXPECT_NE(read("clip_grad", "inf").find("clip_grad"), std::string::npos);
  EXPECT_NE(read("clipgrad", "1").find("did you mean clip_grad"), std::string::npos);
}

}  // namespace
}  // namespace forerun
