# Fuzzing: every X_fuzz.cpp becomes the program X_fuzz, linked with libFuzzer. The libraries themselves are built with
# FORERUN_SANITIZE (preset `fuzz`: coverage for the fuzzer, and the sanitizers).

include(Fuzzers)
add_custom_target(fuzzers)
foreach(fuzzer ${FORERUN_FUZZERS})
  forerun_fuzzer(${fuzzer})
  add_executable(${name}_fuzz ${fuzzer})
  target_link_libraries(${name}_fuzz PRIVATE ${libraries})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name}_fuzz)
endforeach()
