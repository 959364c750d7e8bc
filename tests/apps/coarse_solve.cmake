# SPDX-License-Identifier: Apache-2.0
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/coarse_solve/*.cpp)
halocline_add_test_program(apps_coarse_solve_test SOURCES ${sources}
  LINK halocline::dirac halocline_app_config nlohmann_json::nlohmann_json ZLIB::ZLIB)
target_include_directories(apps_coarse_solve_test PRIVATE ${PROJECT_SOURCE_DIR}/apps/coarse_solve)
target_compile_definitions(apps_coarse_solve_test PRIVATE
  HALOCLINE_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" HALOCLINE_SOURCE="${PROJECT_SOURCE_DIR}"
  HALOCLINE_VERSION="${PROJECT_VERSION}"
  $<$<BOOL:${LIBFABRIC_FOUND}>:HALOCLINE_WITH_OFI> $<$<BOOL:${LIBFABRIC_HAS_NET}>:HALOCLINE_WITH_NET>
  $<$<BOOL:${LIBIBVERBS_FOUND}>:HALOCLINE_WITH_VERBS>)
add_dependencies(apps_coarse_solve_test coarse_solve generate_gauge halocline-run halocline-info)

# One entry per question, so that a failure shows which. Those that measure times, or fill the memory, run alone.
function(halocline_add_coarse_solve_test suite)
  halocline_add_test(apps.coarse_solve_test.${suite} TARGET apps_coarse_solve_test ARGS --gtest_filter=${suite}.* ${ARGN})
  if(suite MATCHES "^(BadInput|Faults|Memory|OverVerbs)$")
    set_tests_properties(apps.coarse_solve_test.${suite} PROPERTIES RUN_SERIAL ON)
  else()
    set_tests_properties(apps.coarse_solve_test.${suite} PROPERTIES PROCESSORS 4)
  endif()
  if(HALOCLINE_LSAN_OPTIONS) # some start jobs under MPI, whose leaks are not ours (HaloclineMpiTest.cmake)
    set_tests_properties(apps.coarse_solve_test.${suite} PROPERTIES ENVIRONMENT LSAN_OPTIONS=detect_leaks=0)
  endif()
endfunction()
foreach(suite Demo Memory Solution RightHandSides Transports Bits BadInput Faults OddLattices Configs)
  halocline_add_coarse_solve_test(${suite} TIMEOUT 300)
endforeach()
halocline_add_coarse_solve_test(Reference TIMEOUT 300 LABELS reference-data)
if(LIBIBVERBS_FOUND) # where there is an RDMA device: see tests/comm/verbs.cmake
  halocline_add_coarse_solve_test(OverVerbs LABELS verbs CONFIGURATIONS verbs)
endif()
