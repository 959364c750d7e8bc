# SPDX-License-Identifier: Apache-2.0
# halocline_add_test(<folder>.<name> SOURCES ... LINK ... [SEES comm] [RANKS 1 2 4] [ARGS ...] [LABELS ...] [TIMEOUT s]
#   [CONFIGURATIONS name])
# halocline_add_test(<folder>.<name> TARGET <program> ...)    runs an existing program
#
# SEES names libraries whose private headers the test includes.
# One ctest entry per rank count: `halo.plan_test.r4`. Without RANKS the program is run once, directly; with
# RANKS halocline-run starts it (ranks as processes). Tests that make their own ranks (threads, forks) need no RANKS.
# Labels: `threads` ranks are threads (which the thread sanitizer can check), `reference-data` skipped where the data is
# missing, `mpi` needs an MPI.
find_package(GTest REQUIRED)

# The look for leaks leaves out those of foreign libraries (lsan.supp says which). But it must see objects of libfabric
# that we forget to close, so tests over a provider without such leaks run without that file.
set(HALOCLINE_WITHOUT_FOREIGN_LEAKS "[.]ofi-(tcp|shm)[.]|ofi_channel_test[.](tcp|shm)[.]")
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*address")
  set(HALOCLINE_LSAN_OPTIONS "suppressions='${PROJECT_SOURCE_DIR}/cmake/lsan.supp':print_suppressions=0")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/lsan.cmake
       CONTENT "set(ENV{LSAN_OPTIONS} \"${HALOCLINE_LSAN_OPTIONS}\")\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${PROJECT_BINARY_DIR}/lsan.cmake)
endif()

function(halocline_add_test_program target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK;SEES")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINK} halocline_test_support GTest::gtest halocline_warnings)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  foreach(library IN LISTS arg_SEES)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/${library}/src)
  endforeach()
endfunction()

# The time limit of a test, for what hangs: a loaded machine takes many times what a test needs.
function(halocline_test_timeout variable seconds)
  if(NOT seconds)
    set(seconds 300)
  endif()
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    math(EXPR seconds "5 * ${seconds}") # what a sanitizer costs
  endif()
  set(${variable} ${seconds} PARENT_SCOPE)
endfunction()

add_custom_target(threads_tests) # builds what label `threads` runs: `cmake --build --preset tsan --target threads_tests`

function(halocline_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TARGET;TIMEOUT" "SOURCES;LINK;SEES;RANKS;LABELS;ARGS;CONFIGURATIONS")
  if(NOT arg_TARGET)
    string(REPLACE "." "_" arg_TARGET ${name})
    halocline_add_test_program(${arg_TARGET} SOURCES ${arg_SOURCES} LINK ${arg_LINK} SEES ${arg_SEES})
  endif()
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(threads_tests ${arg_TARGET})
  endif()
  halocline_test_timeout(timeout "${arg_TIMEOUT}")
  if(NOT arg_RANKS)
    add_test(NAME ${name} CONFIGURATIONS ${arg_CONFIGURATIONS} COMMAND ${arg_TARGET} ${arg_ARGS})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77)
  else()
    add_dependencies(${arg_TARGET} halocline-run)
    foreach(ranks IN LISTS arg_RANKS)
      add_test(NAME ${name}.r${ranks} CONFIGURATIONS ${arg_CONFIGURATIONS}
               COMMAND halocline-run -n ${ranks} -- $<TARGET_FILE:${arg_TARGET}> ${arg_ARGS})
      set_tests_properties(${name}.r${ranks} PROPERTIES
        TIMEOUT ${timeout} LABELS "${arg_LABELS}" PROCESSORS ${ranks} SKIP_RETURN_CODE 77)
      if("${name}.r${ranks}" MATCHES "${HALOCLINE_WITHOUT_FOREIGN_LEAKS}")
        set_tests_properties(${name}.r${ranks} PROPERTIES ENVIRONMENT_MODIFICATION LSAN_OPTIONS=unset:)
      endif()
    endforeach()
  endif()
endfunction()
