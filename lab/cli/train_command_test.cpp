// Options of `forerun train`, `calibrate` and `eval` that cannot be meant are refused before anything is read or trained.
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
                    RefusedTrainCall{"train ets --set cell", 1, "'cell' is no setting"},
                    RefusedTrainCall{"train ets --resume", 1, "--checkpoint"},
                    RefusedTrainCall{"train ets --meta --inner-steps 0", 1, "--inner-steps cannot be 0"},
                    RefusedTrainCall{"train ets --meta --inner-rate 0", 1, "--inner-rate cannot be 0"},
                    RefusedTrainCall{"train ets --inner-steps 3", 2, "--meta"},
                    RefusedTrainCall{"train ets --meta --validate-on resnet", 1, "the last weights count"},
                    RefusedTrainCall{"train ets --meta --cache /no/such.bin", 1, "/no/such.bin"},
                    RefusedTrainCall{"train ets --start a --start b", 1, "training starts from one folder"},
                    RefusedTrainCall{"train ets --study many --start scratch", 1, "there is no study 'many'"},
                    RefusedTrainCall{"train ets --study few", 1, "--start"},
                    RefusedTrainCall{"train mlp-time --meta", 2, "does not take --meta"},
                    RefusedTrainCall{"train mlp-time --split randomly", 1, "'randomly' is no way to split data"},
                    RefusedTrainCall{"train --suite h200 --write-cache x --split random", 2, "does not take --split"},
                    RefusedTrainCall{"train hybrid --without-op-samples", 2, "--out"},
                    RefusedTrainCall{"eval --suite h200 --split random:x", 1, "'random:x' is no way to split data"},
                    RefusedTrainCall{"eval --suite h200 --split random --leave-one-out", 2, "--leave-one-out"},
                    RefusedTrainCall{"eval --suite h200 --split random --iterations-alone", 1, "--iterations-alone"},
                    RefusedTrainCall{"eval --suite h200 --keep", 2, "--iterations-alone"},
                    RefusedTrainCall{"train ets more", 2, "`forerun train ets` does not take 'more'"},
                    RefusedTrainCall{"train --epochs 3 ets", 2, "the name of a predictor comes first"},
                    RefusedTrainCall{"train --suite h200", 2, "--write-cache"},
                    RefusedTrainCall{"train driple --epochs -1", 1, "--epochs cannot be -1"},
                    RefusedTrainCall{"train driple --pretrain -1", 2, "--pretrain"},
                    RefusedTrainCall{"train driple --suite h200", 2, "`forerun train driple` does not take --suite"},
                    RefusedTrainCall{"train ets --without resnet", 2, "does not take --without"},
                    RefusedTrainCall{"train hybrid --epochs 5", 2, "`forerun train hybrid` does not take --epochs"},
                    RefusedTrainCall{"train hybird", 2, "did you mean hybrid"},
                    RefusedTrainCall{"train host", 2, "`forerun calibrate host`"},
                    RefusedTrainCall{"train testbed --out x", 2, "`forerun calibrate testbed`"},
                    RefusedTrainCall{"calibrate hybrid", 2, "`forerun train hybrid`"},
                    RefusedTrainCall{"calibrate hosts", 2, "host"},
                    RefusedTrainCall{"calibrate --out x", 2, "the name of a model comes first"},
                    RefusedTrainCall{"calibrate host --folds 3", 2, "`forerun calibrate host` does not take --folds"},
                    RefusedTrainCall{"calibrate intervals --folds 0", 2, "--folds"},
                    RefusedTrainCall{"calibrate host --data /no/such.jsonl", 1, "/no/such.jsonl"},
                    RefusedTrainCall{"eval --folds 3", 2, "--leave-one-out"},
                    RefusedTrainCall{"eval --folds -3 --leave-one-out", 2, "--folds"},
                    RefusedTrainCall{"eval --leave-one-out --weights x", 2, "--weights"},
                    RefusedTrainCall{"eval --suite ddl-benchmark --weights x", 2,
                                     "`forerun eval --suite ddl-benchmark` does not take --weights; it takes --data, "
                                     "--html, --json"},
                    RefusedTrainCall{"eval --suite hkbu --weights x", 2, "`forerun eval --suite ddl-benchmark`"},
                    RefusedTrainCall{"eval --suite papers --cache x", 2, "does not take --cache"},
                    RefusedTrainCall{"eval --suite", 2, "the name of the suite is missing"},
                    RefusedTrainCall{"eval --suite memory --suite whatif", 2, "two suites"},
                    RefusedTrainCall{"eval --suite h20", 2, "h200"},
                    RefusedTrainCall{"eval --suite memory --data ''", 2, "is empty"},
                    RefusedTrainCall{"eval --suite driple --setting x", 1, "--setting: 'x' is no setting"}));

// Reading the data of the suite would take a minute.
TEST(EvalCommand, SaysAtOnceThatWeightsAreNotThere) {
  const Outcome outcome = forerun_outcome("eval --suite h200 --weights /no/such");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("/no/such"), std::string::npos) << outcome.out;
}

TEST(EvalCommand, HelpIsThatOfTheSuite) {
  const Outcome suite = forerun_outcome("eval --suite memory --help");
  EXPECT_EQ(suite.code, 0);
  EXPECT_NE(suite.out.find("--write-intervals"), std::string::npos) << suite.out;
  EXPECT_EQ(suite.out.find("--weights"), std::string::npos) << suite.out;
  const Outcome verb = forerun_outcome("eval");
  EXPECT_EQ(verb.code, 0);
  EXPECT_NE(verb.out.find("ddl-benchmark"), std::string::npos) << verb.out;
}

// A suite whose data is in the clone, from the command line to its JSON.
TEST(EvalCommand, JsonBeginsWithItsSchema) {
  const Outcome outcome = forerun_outcome("eval --suite=megatron --json");
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_TRUE(outcome.out.starts_with(R"({"schema":"forerun.eval.megatron/1","suite":"megatron",)")) << outcome.out;
}

}  // namespace
}  // namespace forerun::cli
