# SPDX-License-Identifier: Apache-2.0
set(sources programs_test.cpp programs_launch_test.cpp programs_outputs_test.cpp programs_settings_test.cpp
    scripts_test.cpp scripts_bench_test.cpp)
list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
halocline_add_test_program(apps_programs_test SOURCES ${sources})
target_compile_definitions(apps_programs_test PRIVATE
  HALOCLINE_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" HALOCLINE_VERSION="${PROJECT_VERSION}"
  HALOCLINE_SOURCE="${PROJECT_SOURCE_DIR}")
if(LIBFABRIC_FOUND)
  target_compile_definitions(apps_programs_test PRIVATE HALOCLINE_WITH_OFI)
endif()
add_dependencies(apps_programs_test coarse_solve generate_gauge heat4d halo_c halocline-run halocline-info)
halocline_add_test(apps.programs_test TARGET apps_programs_test TIMEOUT 300 ARGS --gtest_filter=Programs.*)
halocline_add_test(apps.programs_test.small_disk TARGET apps_programs_test LABELS namespaces
                   ARGS --gtest_filter=SmallDisk.*)
halocline_add_test(apps.programs_test.scripts TARGET apps_programs_test ARGS --gtest_filter=Scripts.*:BenchScript.*)
halocline_add_test(apps.programs_test.containers TARGET apps_programs_test LABELS namespaces
                   ARGS --gtest_filter=Containers.*)
