# Finds LibTorch and offers it as LibTorch::LibTorch. Looks in FORERUN_LIBTORCH, in the PyTorch of python3, and in the
# system (Debian's libtorch-dev).
#
# LibTorch's own TorchConfig.cmake is not used: it asks for a CUDA toolkit where PyTorch was built with CUDA, and for
# MKL and others besides, none of which a program needs that only links the shared libraries.

set(FORERUN_LIBTORCH "" CACHE PATH "LibTorch's folder (the one that holds include/ and lib/); empty: look for it")

set(torch_hints ${FORERUN_LIBTORCH})
if(NOT FORERUN_LIBTORCH)
  execute_process(COMMAND python3 -c "import torch, os; print(os.path.dirname(torch.__file__))"
                  OUTPUT_VARIABLE python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed EQUAL 0)
    list(APPEND torch_hints ${python_torch})
  endif()
endif()

find_path(LIBTORCH_INCLUDE torch/script.h HINTS ${torch_hints} PATH_SUFFIXES include)
find_path(LIBTORCH_API_INCLUDE torch/torch.h HINTS ${LIBTORCH_INCLUDE} ${torch_hints}
          PATH_SUFFIXES torch/csrc/api/include include/torch/csrc/api/include)
set(LIBTORCH_LIBRARIES "")
foreach(name torch torch_cpu c10)
  find_library(LIBTORCH_${name} ${name} HINTS ${torch_hints} PATH_SUFFIXES lib)
  mark_as_advanced(LIBTORCH_${name})
  list(APPEND LIBTORCH_LIBRARIES ${LIBTORCH_${name}})
endforeach()
foreach(name torch_cuda c10_cuda)  # only where PyTorch was built with CUDA
  find_library(LIBTORCH_${name} ${name} HINTS ${torch_hints} PATH_SUFFIXES lib)
  mark_as_advanced(LIBTORCH_${name})
  if(LIBTORCH_${name})
    list(APPEND LIBTORCH_LIBRARIES ${LIBTORCH_${name}})
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LIBTORCH_torch LIBTORCH_torch_cpu LIBTORCH_c10 LIBTORCH_INCLUDE
                                                         LIBTORCH_API_INCLUDE)
mark_as_advanced(LIBTORCH_INCLUDE LIBTORCH_API_INCLUDE)

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  # LibTorch's libraries use the shared C++ library. A program that has the static one inside gives strings and locales of
  # one to the other, and dies ("free(): invalid pointer") as soon as weights are read.
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.so OUTPUT_VARIABLE shared_libstdcxx
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(shared_libstdcxx STREQUAL "libstdc++.so")  # the name alone: it has none
    message(WARNING "${CMAKE_CXX_COMPILER} has the C++ library as a static one only: what is built with it cannot read "
                    "weights through LibTorch. Name another compiler, such as -DCMAKE_CXX_COMPILER=/usr/bin/g++")
  endif()
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  # IMPORTED: the compiler treats its headers as the system's, without our warnings.
  target_include_directories(LibTorch::LibTorch INTERFACE ${LIBTORCH_INCLUDE} ${LIBTORCH_API_INCLUDE})
  # Nothing names a symbol of torch_cuda; it registers itself when it is loaded, so the linker must keep it.
  target_link_libraries(LibTorch::LibTorch INTERFACE -Wl,--push-state,--no-as-needed ${LIBTORCH_LIBRARIES} -Wl,--pop-state)
endif()
