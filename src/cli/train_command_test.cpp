// Options of `forerun train` and `forerun eval` that cannot be meant are refused before anything is read or trained.
#include <gtest/gtest.h>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

struct Refused {
  std::string arguments;
  int code;
  std::string says;
};

class RefusedOptions : public testing::TestWithParam<Refused> {};

TEST_P(RefusedOptions, AreNamed) {
  const Outcome outcome = forerun_outcome(GetParam().arguments);
  EXPECT_EQ(outcome.code, GetParam().code) << outcome.out;
  EXPECT_NE(outcome.out.find(GetParam().says), std::string::npos) << outcome.out;
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedOptions,
    testing::Values(Refused{"train ets --epochs -1", 1, "--epochs cannot be -1; give a whole number from 1"},
                    Refused{"train ets --epochs 0", 1, "--epochs cannot be 0"},
                    Refused{"train ets --batch 0", 1, "--batch cannot be 0"},
                    Refused{"train ets --rate nan", 1, "--rate cannot be nan"},
                    Refused{"train ets --rate -0.1", 1, "--rate cannot be -0.1"},
                    Refused{"train ets --patience -1", 1, "--patience cannot be -1"},
                    Refused{"train ets --validation 1", 1, "--validation cannot be 1"},
                    Refused{"train ets --seconds 0", 1, "--seconds cannot be 0"},
                    Refused{"train ets --minutes nan", 1, "--minutes cannot be nan"},
                    Refused{"train ets --minutes 1 --seconds 1", 2, "--minutes"},
                    Refused{"train ets --most -1", 2, "--most"},
                    Refused{"train ets --set cell=gru --set cell=lstm", 1, "'cell' is set twice"},
                    Refused{"train ets --resume", 1, "--checkpoint"},
                    Refused{"train driple --epochs -1", 1, "--epochs cannot be -1"},
                    Refused{"train driple --pretrain -1", 2, "--pretrain"},
                    Refused{"train driple --suite h200", 1, "does not read --suite"},
                    Refused{"train ets --without resnet", 1, "does not read --without"},
                    Refused{"train hybrid --epochs 5", 1, "`forerun train hybrid` does not read --epochs"},
                    Refused{"train host --folds 3", 1, "does not read --folds"},
                    Refused{"eval --folds 3", 1, "does not read --folds"},
                    Refused{"eval --folds -3 --leave-one-out", 2, "--folds"},
                    Refused{"eval --suite hkbu --weights x", 1, "`forerun eval --suite hkbu` does not read --weights"},
                    Refused{"eval --suite h20", 1, "h200"},
                    Refused{"eval --suite driple --setting x", 1, "--setting: 'x' is no setting"}));

// Reading the data of the suite would take a minute.
TEST(EvalCommand, SaysAtOnceThatWeightsAreNotThere) {
  const Outcome outcome = forerun_outcome("eval --suite h200 --weights /no/such");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("/no/such"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace forerun::cli
