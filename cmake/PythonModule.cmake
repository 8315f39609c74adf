# forerun._native, the native part of the Python package (python/forerun): in place, beside the package's own files, so that
# PYTHONPATH=python is enough; or, where scikit-build-core builds a wheel (SKBUILD, pyproject.toml), in the wheel, with the data
# that answers need and the libraries that other machines may not have.

find_package(Python 3.9 COMPONENTS Interpreter Development.Module REQUIRED)
find_package(pybind11 CONFIG REQUIRED)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/native/*.cpp)
pybind11_add_module(forerun_native NO_EXTRAS ${sources})  # LTO of three small files would link for long
set_target_properties(forerun_native PROPERTIES OUTPUT_NAME _native)
target_include_directories(forerun_native PRIVATE ${CMAKE_SOURCE_DIR}/python/native)
target_compile_definitions(forerun_native PRIVATE FORERUN_VERSION="${PROJECT_VERSION}")
target_link_libraries(forerun_native PRIVATE forerun_ask forerun_cli)
target_link_options(forerun_native PRIVATE -s -Wl,--exclude-libs,ALL)  # only the module's own entry is to be seen

if(NOT SKBUILD)
  set_target_properties(forerun_native PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_SOURCE_DIR}/python/forerun)
  return()
endif()

# Libraries of Debian that are there as .so alone go into the wheel, in forerun/libs. A plain RPATH, unlike a RUNPATH, holds for
# what they need in turn.
set_target_properties(forerun_native PROPERTIES INSTALL_RPATH "$ORIGIN/libs")
target_link_options(forerun_native PRIVATE -Wl,--disable-new-dtags)
install(TARGETS forerun_native LIBRARY DESTINATION forerun COMPONENT python)
install(CODE [[
  file(GET_RUNTIME_DEPENDENCIES
    LIBRARIES $<TARGET_FILE:forerun_native>
    RESOLVED_DEPENDENCIES_VAR found
    UNRESOLVED_DEPENDENCIES_VAR missing
    # What every Linux with Python has.
    PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s|z)\\.so" "^ld-linux" "^linux-vdso")
  if(missing)
    message(FATAL_ERROR "libraries that the module needs are not found: ${missing}")
  endif()
  foreach(library ${found})
    get_filename_component(name ${library} NAME)  # as it is asked for, and once: a wheel has no links
    file(REAL_PATH ${library} file)
    file(MAKE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/forerun/libs)
    file(COPY_FILE ${file} ${CMAKE_INSTALL_PREFIX}/forerun/libs/${name})
  endforeach()
]] COMPONENT python)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/data/ DESTINATION forerun/data COMPONENT python
        FILES_MATCHING PATTERN "*"
        PATTERN h200 EXCLUDE PATTERN weights EXCLUDE PATTERN captures EXCLUDE PATTERN resources EXCLUDE
        PATTERN papers EXCLUDE)
