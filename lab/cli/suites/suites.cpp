#include "lab/cli/suites/suites.h"

namespace forerun::cli {

const std::vector<Suite>& suites() {
  static const std::vector<Suite> list = {
      h200_suite(),            //
      ets_t4_suite(),          //
      ets_2080ti_suite(),      //
      papers_suite(),          //
      calibration_suite(),     //
      gpus_suite(),            //
      other_gpus_suite(),      //
      memory_suite(),          //
      compile_suite(),         //
      whatif_suite(),          //
      daydream_suite(),        //
      ddl_benchmark_suite(),   //
      vtrain_suite(),          //
      megatron_suite(),        //
      llm_foundry_suite(),     //
      published_runs_suite(),  //
      testbed_suite(),         //
      driple_suite(),          //
  };
  return list;
}

}  // namespace forerun::cli
