# Tests: every src/<stage>/*_test.cpp goes into <stage>_test, every tests/*_test.cpp becomes a program, README commands are
# run by tests/readme_test.py, the Slurm bridge by tests/slurm_test.py, *_fuzz.cpp replay their corpus
# (tests/corpus/<name>/), and PythonTests.cmake adds those of python/.
#
# A test program runs all of its cases in one process, or in as many as it has shards: starting one process a case takes
# longer than most cases, above all under the sanitizers. What each case did is written to cases/<name>.<shard>.xml in the
# build folder, where `./run test` counts. Labels: `sanitized` for what the sanitizers repeat, `threads` for what the
# thread sanitizer runs.

enable_testing()
if(FORERUN_TRAIN_ONLY AND EXISTS ${FORERUN_HEADERS}/googletest/CMakeLists.txt)
  set(INSTALL_GTEST OFF)
  set(BUILD_GMOCK OFF)
  add_subdirectory(${FORERUN_HEADERS}/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
elseif(FORERUN_TRAIN_ONLY)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    message(STATUS "GoogleTest not found: no tests in this build")
    return()
  endif()
else()
  find_package(GTest REQUIRED)
endif()
include(GoogleTest)

add_library(forerun_test_settings INTERFACE)
target_compile_definitions(forerun_test_settings INTERFACE
  FORERUN_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  FORERUN_DATA_DIR="${CMAKE_SOURCE_DIR}/data"
  FORERUN_STAGE_ORDER="${FORERUN_STAGE_ORDER}")
target_link_libraries(forerun_test_settings INTERFACE GTest::gtest GTest::gtest_main)
target_compile_options(forerun_test_settings INTERFACE -O0)  # the tests' own code: compiling it is what takes long

add_custom_target(sanitized_tests)
add_custom_target(threads_tests)

# Shards of the programs that take longest, so that two cores end at about the same time.
set(FORERUN_SHARDS_api_test 6)
set(FORERUN_SHARDS_cli_test 4)
set(FORERUN_SHARDS_cluster_test 2)
set(FORERUN_SHARDS_ingest_test 2)
set(FORERUN_SHARDS_learn_test 2)
set(FORERUN_SHARDS_zoo_test 2)

set(FORERUN_THREADED_TESTS base_test)
# Its cases start the program anew each: too slow under the sanitizers, some limit address space, which those need.
set(FORERUN_UNSANITIZED_TESTS cli_test)

# forerun_add_test(NAME LIBRARIES SOURCE...): a GoogleTest program.
function(forerun_add_test name libraries)
  add_executable(${name} ${ARGN})
  forerun_unity(${name})
  target_link_libraries(${name} PRIVATE ${libraries} forerun_test_settings)
  set(labels tests)
  if(NOT name IN_LIST FORERUN_UNSANITIZED_TESTS)
    set(labels sanitized)
    add_dependencies(sanitized_tests ${name})
  endif()
  if(name IN_LIST FORERUN_THREADED_TESTS)
    list(APPEND labels threads)
    add_dependencies(threads_tests ${name})
  endif()
  set(shards 1)
  if(DEFINED FORERUN_SHARDS_${name})
    set(shards ${FORERUN_SHARDS_${name}})
  endif()
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    set(case ${name}.${shard})
    add_test(NAME ${case} COMMAND ${name} --gtest_output=xml:${CMAKE_BINARY_DIR}/cases/${case}.xml)
    set_tests_properties(${case} PROPERTIES LABELS "${labels}" TIMEOUT 1500 COST ${shards}
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

foreach(stage ${FORERUN_STAGES} cli)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${stage}/*_test.cpp)
  if(stage STREQUAL learn AND NOT FORERUN_TORCH)
    forerun_learn_sources(tests plain _test)
  endif()
  if(tests AND (TARGET forerun_${stage} OR (stage STREQUAL cli AND TARGET forerun)))
    if(stage STREQUAL cli)
      forerun_add_test(${stage}_test "${left};forerun_without_torch" ${tests})
      target_compile_definitions(${stage}_test PRIVATE FORERUN_PROGRAM="$<TARGET_FILE:forerun>")
      add_dependencies(${stage}_test forerun)
    else()
      set(predictors forerun_without_torch)
      if(stage STREQUAL learn OR stage STREQUAL api)
        set(predictors ${FORERUN_PREDICTORS})
      endif()
      forerun_add_test(${stage}_test "forerun_${stage};${predictors}" ${tests})
      if(stage STREQUAL learn AND FORERUN_TORCH)
        forerun_precompile_torch(learn_test)
      endif()
    endif()
  endif()
endforeach()

if(NOT FORERUN_TRAIN_ONLY)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.cpp)
  foreach(test ${tests})
    get_filename_component(name ${test} NAME_WE)
    forerun_add_test(${name} "${left};forerun_without_torch" ${test})
  endforeach()

  file(GLOB_RECURSE fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*_fuzz.cpp)
  foreach(fuzzer ${fuzzers})
    get_filename_component(name ${fuzzer} NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" name ${name})
    string(REGEX REPLACE "^${CMAKE_SOURCE_DIR}/src/([a-z]+)/.*" "\\1" stage ${fuzzer})
    add_executable(${name}_replay ${fuzzer} ${CMAKE_SOURCE_DIR}/tests/replay_corpus.cpp)
    target_link_libraries(${name}_replay PRIVATE forerun_${stage})
    if(stage STREQUAL api)
      target_link_libraries(${name}_replay PRIVATE forerun_without_torch)
    endif()
    add_test(NAME ${name}_replay COMMAND ${name}_replay ${CMAKE_SOURCE_DIR}/tests/corpus/${name})
    set_tests_properties(${name}_replay PROPERTIES LABELS sanitized TIMEOUT 600)
    add_dependencies(sanitized_tests ${name}_replay)
  endforeach()

  # The verbs that have threads, as the thread sanitizer and the others run them.
  if(TARGET forerun)
    add_test(NAME threads.sweep COMMAND forerun sweep resnet18 --over batch=1,2,3,4 --threads 3)
    add_test(NAME threads.fit COMMAND forerun fit resnet18 --gpu t4)
    add_test(NAME threads.schedule COMMAND forerun schedule ${CMAKE_SOURCE_DIR}/examples/jobs.csv --gpus a100=4,v100=8
             --policy sjf --predictor error:8 --repeat 6 --threads 3)
    set_tests_properties(threads.sweep threads.fit threads.schedule PROPERTIES LABELS "threads;sanitized" TIMEOUT 600)
  endif()

  find_package(Python3 COMPONENTS Interpreter)
  if(Python3_FOUND AND TARGET forerun)
    add_test(NAME readme_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/readme_test.py $<TARGET_FILE:forerun>
                                      ${CMAKE_SOURCE_DIR})
    add_test(NAME readme_test.self_check COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/readme_test.py --self-check)
    set_tests_properties(readme_test readme_test.self_check PROPERTIES LABELS tests TIMEOUT 600 SKIP_RETURN_CODE 77)
  endif()

  if(Python3_FOUND AND TARGET forerun)
    add_test(NAME slurm_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/slurm_test.py $<TARGET_FILE:forerun>
                                     ${CMAKE_SOURCE_DIR})
    set_tests_properties(slurm_test PROPERTIES LABELS tests TIMEOUT 300 SKIP_RETURN_CODE 77)
  endif()

  include(PythonTests)
endif()
