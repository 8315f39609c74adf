# lab/: research, in stages as src/ is, and the program forerun-lab. Only lab/learn includes LibTorch; a build without it
# has without_torch.cpp in its place, which says what is missing. Loading LibTorch takes longer than most answers, so
# `forerun` goes without, and hands `train`, `calibrate` and `eval` to forerun-lab beside it.

set(left "")  # a stage of lab/ uses all before it, and all of src/
foreach(stage ${FORERUN_STAGES})
  list(PREPEND left forerun_${stage})
endforeach()
foreach(stage ${FORERUN_LAB_STAGES})
  forerun_sources(sources lab/${stage})
  if(stage STREQUAL learn AND FORERUN_TORCH)
    list(FILTER sources EXCLUDE REGEX "/without_torch\\.cpp$")
  elseif(stage STREQUAL learn)
    list(FILTER sources INCLUDE REGEX "/(without_torch|training_session|few_study)\\.cpp$")
  endif()
  forerun_add_stage(forerun_lab_${stage} "${left}" ${sources})
  target_include_directories(forerun_lab_${stage} PUBLIC ${CMAKE_SOURCE_DIR})
  list(PREPEND left forerun_lab_${stage})
endforeach()

# What computes for long is in lab/trees and lab/learn, and in src/.
foreach(stage papers dataset ask training_data accuracy calibrate eval)
  if(TARGET forerun_lab_${stage})
    forerun_cold(forerun_lab_${stage})
  endif()
endforeach()

if(TARGET XGBoost::xgboost AND TARGET forerun_lab_trees)
  target_link_libraries(forerun_lab_trees PRIVATE XGBoost::xgboost)
  target_compile_definitions(forerun_lab_trees PRIVATE FORERUN_HAS_XGBOOST=1)
endif()

# LibTorch's headers take longer to parse than the sources to compile; ccache would preprocess the precompiled header
# again for every source.
function(forerun_precompile_torch target)
  target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/lab/learn/torch.h)
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "")
endfunction()
if(FORERUN_TORCH)
  target_link_libraries(forerun_lab_learn PUBLIC LibTorch::LibTorch)
  forerun_precompile_torch(forerun_lab_learn)
  if(FORERUN_TRAIN_ONLY)
    add_executable(forerun-train lab/learn/train_main.cpp)
    target_link_libraries(forerun-train PRIVATE forerun_lab_learn)
  endif()
endif()

if(FORERUN_BUILD_CLI AND TARGET forerun_lab_eval)
  forerun_sources(lab_cli_sources lab/cli)
  add_library(forerun_lab_cli STATIC ${lab_cli_sources})
  forerun_compile_cli(forerun_lab_cli)
  target_precompile_headers(forerun_lab_cli PRIVATE <CLI/CLI.hpp>)
  target_link_libraries(forerun_lab_cli PUBLIC forerun_cli ${left})
  add_executable(forerun-lab lab/cli/main.cpp)
  forerun_compile_cli(forerun-lab)
  forerun_reuse_header(forerun-lab forerun_lab_cli)
  target_link_libraries(forerun-lab PRIVATE forerun_lab_cli)
endif()
