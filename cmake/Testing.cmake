# Tests: every src/<stage>/*_test.cpp goes into <stage>_test, every lab/<stage>/*_test.cpp into lab_<stage>_test, every tests/*_test.cpp becomes a program, README commands are
# run by tests/readme_test.py, JSON answers are held to docs/schema by tests/schema_test.py, the Slurm bridge by tests/slurm_test.py, the server by tests/serve_test.py, shards by tests/shards_test.py and, on a real Slurm,
# tests/slurm_array_test.py, *_fuzz.cpp replay their corpus
# (tests/corpus/<name>/), and PythonTests.cmake adds those of python/.
#
# A test program runs all of its cases in one process, or in as many as it has shards: starting one process a case takes
# longer than most cases, above all under the sanitizers. What each case did is written to cases/<name>.<shard>.xml in the
# build folder, where `./run test` counts. Labels: `sanitized` for what the sanitizers repeat (programs in two halves,
# `sanitized_0` and `sanitized_1`, which `./run test` takes in turn), `threads` for what the thread sanitizer runs.

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
  FORERUN_STAGE_USES="${FORERUN_STAGE_USES}"
  FORERUN_LAB_STAGE_ORDER="${FORERUN_LAB_STAGE_ORDER}")
if(FORERUN_SANITIZE)
  target_compile_definitions(forerun_test_settings INTERFACE FORERUN_SANITIZED=1)
endif()
target_link_libraries(forerun_test_settings INTERFACE GTest::gtest GTest::gtest_main)
target_compile_options(forerun_test_settings INTERFACE -O0)  # the tests' own code: compiling it is what takes long

add_custom_target(sanitized_tests)
add_custom_target(sanitized_tests_0)
add_custom_target(sanitized_tests_1)
add_dependencies(sanitized_tests sanitized_tests_0 sanitized_tests_1)
set(FORERUN_SANITIZED_COUNT 0)
add_custom_target(threads_tests)

# Shards of the programs that take longest, so that two cores end at about the same time.
set(FORERUN_SHARDS_api_test 2)
set(FORERUN_SHARDS_predict_test 2)
set(FORERUN_SHARDS_lab_eval_test 2)
set(FORERUN_SHARDS_cli_test 4)
set(FORERUN_SHARDS_cluster_test 2)
set(FORERUN_SHARDS_ingest_test 2)
set(FORERUN_SHARDS_lab_learn_test 2)
set(FORERUN_SHARDS_zoo_test 2)

set(FORERUN_THREADED_TESTS base_test ingest_test)
# Its cases start the program anew each: too slow under the sanitizers, some limit address space, which those need.
set(FORERUN_UNSANITIZED_TESTS cli_test lab_cli_test)

# forerun_add_test(NAME LIBRARIES SOURCE...): a GoogleTest program.
function(forerun_add_test name libraries)
  add_executable(${name} ${ARGN})
  forerun_unity(${name})
  target_link_libraries(${name} PRIVATE ${libraries} forerun_test_settings)
  set(labels tests)
  if(NOT name IN_LIST FORERUN_UNSANITIZED_TESTS)
    math(EXPR half "${FORERUN_SANITIZED_COUNT} % 2")
    math(EXPR count "${FORERUN_SANITIZED_COUNT} + 1")
    set(FORERUN_SANITIZED_COUNT ${count} PARENT_SCOPE)
    set(labels sanitized sanitized_${half})
    add_dependencies(sanitized_tests_${half} ${name})
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

# forerun_add_stage_test(NAME FOLDER LIBRARIES): the tests that stand beside a stage's sources.
macro(forerun_add_stage_test name folder libraries)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*_test.cpp)
  if(tests)
    forerun_add_test(${name} "${libraries}" ${tests})
  endif()
endmacro()

# Tests of a stage may look at what report/ makes of its answers.
set(report "")
if(TARGET forerun_report)
  set(report forerun_report)
endif()
foreach(stage ${FORERUN_STAGES})
  get_target_property(part forerun_${stage} ALIASED_TARGET)
  if(NOT part)  # of a whole stage
    forerun_add_stage_test(${stage}_test src/${stage} "forerun_${stage};${report}")
  endif()
endforeach()
if(FORERUN_BUILD_LAB)
  foreach(stage ${FORERUN_LAB_STAGES})
    if(NOT stage STREQUAL learn OR FORERUN_TORCH)
      forerun_add_stage_test(lab_${stage}_test lab/${stage} "${left}")
    endif()
  endforeach()
  if(FORERUN_TORCH)
    forerun_precompile_torch(lab_learn_test)
  endif()
endif()
if(FORERUN_BUILD_CLI)
  forerun_add_stage_test(cli_test src/cli forerun_cli)
  target_compile_definitions(cli_test PRIVATE FORERUN_PROGRAM="$<TARGET_FILE:forerun>")
  add_dependencies(cli_test forerun)
  if(TARGET forerun-lab)
    forerun_add_stage_test(lab_cli_test lab/cli forerun_lab_cli)
    target_compile_definitions(lab_cli_test PRIVATE FORERUN_PROGRAM="$<TARGET_FILE:forerun>")
    add_dependencies(lab_cli_test forerun forerun-lab)
  endif()
endif()

if(NOT FORERUN_TRAIN_ONLY)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.cpp)
  foreach(test ${tests})
    get_filename_component(name ${test} NAME_WE)
    forerun_add_test(${name} forerun_report ${test})
  endforeach()

  include(Fuzzers)
  set(list "")
  add_executable(replay_corpus ${CMAKE_SOURCE_DIR}/tests/replay_corpus.cpp)
  foreach(fuzzer ${FORERUN_FUZZERS})
    forerun_fuzzer(${fuzzer})
    string(APPEND list "FUZZER(${name})\n")
    add_library(${name}_replay OBJECT ${fuzzer})
    target_compile_definitions(${name}_replay PRIVATE LLVMFuzzerTestOneInput=replay_${name})
    target_compile_options(${name}_replay PRIVATE -O0)
    target_link_libraries(${name}_replay PRIVATE ${libraries})
    target_link_libraries(replay_corpus PRIVATE ${name}_replay ${libraries})
    add_test(NAME replay.${name} COMMAND replay_corpus ${name} ${CMAKE_SOURCE_DIR}/tests/corpus/${name})
    set_tests_properties(replay.${name} PROPERTIES LABELS "sanitized;sanitized_0;sanitized_1" TIMEOUT 600)
  endforeach()
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/fuzzers.txt CONTENT "${list}")
  target_compile_definitions(replay_corpus PRIVATE FORERUN_FUZZERS="${CMAKE_BINARY_DIR}/fuzzers.txt")
  add_dependencies(sanitized_tests_0 replay_corpus)
  add_dependencies(sanitized_tests_1 replay_corpus)

  # The verbs that have threads, as the thread sanitizer and the others run them.
  if(TARGET forerun)
    add_test(NAME threads.sweep COMMAND forerun sweep resnet18 --over batch=1,2,3,4 --threads 3)
    add_test(NAME threads.fit COMMAND forerun fit resnet18 --gpu t4)
    add_test(NAME threads.schedule COMMAND forerun schedule ${CMAKE_SOURCE_DIR}/examples/jobs.csv --gpus a100=4,v100=8
             --policy sjf --predictor error:8 --repeat 6 --threads 3)
    add_test(NAME threads.trace COMMAND forerun trace ${CMAKE_SOURCE_DIR}/data/h200/whatif_traces/vgg19.base.trace.json.zst)
    set_tests_properties(threads.sweep threads.fit threads.schedule threads.trace
                         PROPERTIES LABELS "threads;sanitized;sanitized_0;sanitized_1" TIMEOUT 600)
  endif()

  find_package(Python3 COMPONENTS Interpreter)
  if(Python3_FOUND AND TARGET forerun)
    add_test(NAME readme_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/readme_test.py $<TARGET_FILE:forerun>
                                      ${CMAKE_SOURCE_DIR})
    add_test(NAME readme_test.self_check COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/readme_test.py --self-check)
    add_test(NAME schema_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/schema_test.py $<TARGET_FILE:forerun>
                                      ${CMAKE_SOURCE_DIR})
    add_test(NAME schema_test.self_check COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/schema_test.py --self-check)
    add_test(NAME alone.self_check COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/alone.py --self-check)
    add_test(NAME data_size_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/data_size_test.py ${CMAKE_SOURCE_DIR})
    set_tests_properties(readme_test readme_test.self_check schema_test schema_test.self_check alone.self_check data_size_test
                         PROPERTIES LABELS tests TIMEOUT 600 SKIP_RETURN_CODE 77)
  endif()

  # The page in a real browser, and whether the committed file is what its sources make; skipped where Node, Chromium or the packages of
  # web/package-lock.json are not there.
  find_program(NODE node)
  if(NODE AND TARGET forerun)
    foreach(name reports screens)
      add_test(NAME page.${name} COMMAND ${NODE} ${CMAKE_SOURCE_DIR}/web/tests/run.mjs $<TARGET_FILE:forerun> ${name})
    endforeach()
    add_test(NAME page.build COMMAND ${NODE} ${CMAKE_SOURCE_DIR}/web/tests/build_again.mjs)
    set_tests_properties(page.reports page.screens page.build PROPERTIES LABELS tests TIMEOUT 900 SKIP_RETURN_CODE 77)
  else()
    message(STATUS "no Node: the page is not tested in a browser in this build")
  endif()

  if(Python3_FOUND AND TARGET forerun)
    add_test(NAME own_policy_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/own_policy_test.py
                                          $<TARGET_FILE:forerun> ${CMAKE_SOURCE_DIR} ${CMAKE_CXX_COMPILER})
    set_tests_properties(own_policy_test PROPERTIES LABELS tests TIMEOUT 300)
  endif()

  if(Python3_FOUND AND TARGET forerun)
    add_test(NAME install_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/install_test.py ${CMAKE_BINARY_DIR})
    set_tests_properties(install_test PROPERTIES LABELS tests TIMEOUT 300)
  endif()

  if(Python3_FOUND AND TARGET forerun)
    add_test(NAME slurm_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/slurm_test.py $<TARGET_FILE:forerun>
                                     ${CMAKE_SOURCE_DIR})
    set_tests_properties(slurm_test PROPERTIES LABELS tests TIMEOUT 300 SKIP_RETURN_CODE 77)
  endif()

  if(Python3_FOUND AND TARGET forerun)
    add_test(NAME serve_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/serve_test.py $<TARGET_FILE:forerun>
                                     ${CMAKE_SOURCE_DIR})
    set_tests_properties(serve_test PROPERTIES LABELS tests TIMEOUT 600)
  endif()

  if(Python3_FOUND AND TARGET forerun)
    add_test(NAME shards_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/shards_test.py $<TARGET_FILE:forerun>)
    add_test(NAME slurm_array_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/slurm_array_test.py
                                           $<TARGET_FILE:forerun> ${CMAKE_SOURCE_DIR})
    set_tests_properties(shards_test slurm_array_test PROPERTIES LABELS tests TIMEOUT 600 SKIP_RETURN_CODE 77)
  endif()

  include(PythonTests)
endif()
