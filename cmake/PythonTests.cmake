# Tests of python/: each python/tests/test_*.py is a test of its own, and the whole is held to mypy and flake8.

set(FORERUN_TEST_PYTHON "" CACHE FILEPATH "The Python that runs the tests of python/: one that has torch, where there is one")

# forerun_python_with(VARIABLE MODULE): the first Python that has it: the one that was named, the one on the path, or the one
# that packages install into.
function(forerun_python_with variable module)
  set(${variable} "" PARENT_SCOPE)
  foreach(candidate ${FORERUN_TEST_PYTHON} ${Python3_EXECUTABLE} /usr/bin/python3)
    execute_process(COMMAND ${candidate} -m ${module} --version RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
    if(missing EQUAL 0)
      set(${variable} ${candidate} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
forerun_python_with(FORERUN_PYTEST pytest)
if(NOT FORERUN_PYTEST)
  message(STATUS "no Python with pytest: python/ is not tested in this build")
  return()
endif()

set(names "")
file(GLOB tests CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/python ${CMAKE_SOURCE_DIR}/python/tests/test_*.py)
foreach(test ${tests})
  get_filename_component(name ${test} NAME_WE)
  add_test(NAME python.${name} COMMAND ${FORERUN_PYTEST} -m pytest -rs -p no:cacheprovider ${test})
  # A file whose every test was skipped, for want of torch, counts as skipped.
  set_tests_properties(python.${name} PROPERTIES SKIP_REGULAR_EXPRESSION "=+ [0-9]+ skipped(, [0-9]+ warnings?)? in ")
  list(APPEND names python.${name})
endforeach()
foreach(checker mypy flake8)
  forerun_python_with(python ${checker})
  if(python)
    add_test(NAME python.${checker} COMMAND ${python} -m ${checker})
    list(APPEND names python.${checker})
  else()
    message(STATUS "no ${checker}: python/ is not held to it in this build")
  endif()
endforeach()

set(environment "MYPY_CACHE_DIR=${CMAKE_BINARY_DIR}/mypy")
if(TARGET forerun)
  list(APPEND environment "FORERUN_PROGRAM=$<TARGET_FILE:forerun>")
endif()
set_tests_properties(${names} PROPERTIES LABELS python TIMEOUT 600 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/python
  ENVIRONMENT "${environment}")
