// Options of `forerun train` and `forerun eval` that cannot be meant are refused before anything is read or trained.
#include <gtest/gtest.h>

#include "cli/program_outcome.h"

namespace forerun::cli {
namespace {

struct RefusedTrainCall {
  std::string arguments;
  int code;
  std::string says;
};

class RefusedTraining : public testing::TestWithParam<RefusedTrainCall> {};

TEST_P(RefusedTraining, AreNamed) {
  const Outcome outcome = forerun_outcome(GetParam().arguments);
  EXPECT_EQ(outcome.code, GetParam().code) << outcome.out;
  EXPECT_NE(outcome.out.find(GetParam().says), std::string::npos) << outcome.out;
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedTraining,
    testing::Values(RefusedTrainCall{"train ets --epochs -1", 1, "--epochs cannot be -1; give a whole number from 1"},
                    RefusedTrainCall{"train ets --epochs 0", 1, "--epochs cannot be 0"},
                    RefusedTrainCall{"train ets --batch 0", 1, "--batch cannot be 0"},
                    RefusedTrainCall{"train ets --rate nan", 1, "--rate cannot be nan"},
                    RefusedTrainCall{"train ets --rate -0.1", 1, "--rate cannot be -0.1"},
                    RefusedTrainCall{"train ets --patience -1", 1, "--patience cannot be -1"},
                    RefusedTrainCall{"train ets --validation 1", 1, "--validation cannot be 1"},
                    RefusedTrainCall{"train ets --seconds 0", 1, "--seconds cannot be 0"},
                    RefusedTrainCall{"train ets --minutes nan", 1, "--minutes cannot be nan"},
                    RefusedTrainCall{"train ets --minutes 1 --seconds 1", 2, "--minutes"},
                    RefusedTrainCall{"train ets --most -1", 2, "--most"},
                    RefusedTrainCall{"train ets --set cell=gru --set cell=lstm", 1, "'cell' is set twice"},
                    RefusedTrainCall{"train ets --resume", 1, "--checkpoint"},
                    RefusedTrainCall{"train driple --epochs -1", 1, "--epochs cannot be -1"},
                    RefusedTrainCall{"train driple --pretrain -1", 2, "--pretrain"},
                    RefusedTrainCall{"train driple --suite h200", 1, "does not read --suite"},
                    RefusedTrainCall{"train ets --without resnet", 1, "does not read --without"},
                    RefusedTrainCall{"train hybrid --epochs 5", 1, "`forerun train hybrid` does not read --epochs"},
                    RefusedTrainCall{"train host --folds 3", 1, "does not read --folds"},
                    RefusedTrainCall{"eval --folds 3", 1, "does not read --folds"},
                    RefusedTrainCall{"eval --folds -3 --leave-one-out", 2, "--folds"},
                    RefusedTrainCall{"eval --suite hkbu --weights x", 1,
                                     "`forerun eval --suite hkbu` does not read --weights"},
                    RefusedTrainCall{"eval --suite h20", 1, "h200"},
                    RefusedTrainCall{"eval --suite driple --setting x", 1, "--setting: 'x' is no setting"}));

// Reading the data of the suite would take a minute.
TEST(EvalCommand, SaysAtOnceThatWeightsAreNotThere) {
  const Outcome outcome = forerun_outcome("eval --suite h200 --weights /no/such");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("/no/such"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace forerun::cli
