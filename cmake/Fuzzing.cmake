# Fuzzing: every src/**/X_fuzz.cpp defines LLVMFuzzerTestOneInput and becomes the program X_fuzz, linked with libFuzzer.
# The libraries themselves are built with FORERUN_SANITIZE (preset `fuzz`: coverage for the fuzzer, and the sanitizers).

file(GLOB_RECURSE fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*_fuzz.cpp)
add_custom_target(fuzzers)
foreach(fuzzer ${fuzzers})
  get_filename_component(name ${fuzzer} NAME_WE)
  string(REGEX REPLACE "^${CMAKE_SOURCE_DIR}/src/([a-z]+)/.*" "\\1" stage ${fuzzer})
  add_executable(${name} ${fuzzer})
  target_link_libraries(${name} PRIVATE forerun_${stage})
  if(stage STREQUAL api)
    target_link_libraries(${name} PRIVATE forerun_without_torch)
  endif()
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
endforeach()
