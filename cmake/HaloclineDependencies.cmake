# SPDX-License-Identifier: Apache-2.0
# Finds all dependencies. A missing required one stops the configuration; a missing optional one disables a target and
# is named in the summary.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE) # only sources include it: users of an installation do without
find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto) # HMAC between nodes
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy) # Google Highway: SIMD with run-time dispatch
pkg_check_modules(TOMLPP REQUIRED tomlplusplus) # headers only
if(HALOCLINE_BUILD_APPS)
  find_package(CLI11 REQUIRED)
  find_package(nlohmann_json REQUIRED)
endif()

# libfabric's headers; the library itself is loaded at run time by jobs that use transport ofi.
pkg_check_modules(LIBFABRIC QUIET libfabric>=1.9)
if(LIBFABRIC_FOUND AND LIBFABRIC_VERSION VERSION_GREATER_EQUAL 1.16 AND LIBFABRIC_VERSION VERSION_LESS 1.18)
  set(LIBFABRIC_HAS_NET ON) # provider net, which is tcp since
endif()
# PMIx's headers; its library, too, is loaded at run time.
pkg_check_modules(PMIX QUIET pmix>=3)

# libibverbs' headers; the library is loaded at run time by jobs that use transport verbs.
pkg_check_modules(LIBIBVERBS QUIET libibverbs>=1.11) # _ibv_query_gid_ex

# Each installed MPI gets its own module; programs never link libmpi (docs/decisions/).
include(HaloclineMpiWrapper)
halocline_find_mpi()

set_property(GLOBAL PROPERTY HALOCLINE_SUMMARY "")
function(halocline_note line)
  set_property(GLOBAL APPEND PROPERTY HALOCLINE_SUMMARY "${line}")
endfunction()
function(halocline_print_summary)
  get_property(lines GLOBAL PROPERTY HALOCLINE_SUMMARY)
  message(STATUS "halocline ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}")
  foreach(line IN LISTS lines)
    message(STATUS "  ${line}")
  endforeach()
endfunction()
