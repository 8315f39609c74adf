# The fuzzers of the build: every X_fuzz.cpp below src/ and lab/ defines LLVMFuzzerTestOneInput for one kind of input.

file(GLOB_RECURSE FORERUN_FUZZERS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*_fuzz.cpp)
if(FORERUN_BUILD_LAB)
  file(GLOB_RECURSE lab_fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lab/*_fuzz.cpp)
  foreach(fuzzer ${lab_fuzzers})
    string(REGEX REPLACE "^${CMAKE_SOURCE_DIR}/lab/([a-z_]+)/.*" "\\1" stage ${fuzzer})
    if(TARGET forerun_lab_${stage})  # the sanitizers build some of the stages
      list(APPEND FORERUN_FUZZERS ${fuzzer})
    endif()
  endforeach()
endif()

# forerun_fuzzer(SOURCE): sets `name`, X of X_fuzz.cpp, and `libraries`, what it links.
function(forerun_fuzzer source)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${name})
  set(name ${name} PARENT_SCOPE)
  if(source MATCHES "^${CMAKE_SOURCE_DIR}/lab/([a-z_]+)/")
    set(libraries forerun_lab_${CMAKE_MATCH_1} PARENT_SCOPE)
  elseif(source MATCHES "^${CMAKE_SOURCE_DIR}/src/serve/")
    set(libraries forerun_serve PARENT_SCOPE)
  else()
    set(libraries forerun_report PARENT_SCOPE)
  endif()
endfunction()
