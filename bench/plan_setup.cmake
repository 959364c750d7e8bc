# SPDX-License-Identifier: Apache-2.0
# plan_setup: what does making a plan cost?
add_executable(bench_plan_setup plan_setup.cpp)
target_link_libraries(bench_plan_setup PRIVATE halocline::halo halocline_warnings)
set_target_properties(bench_plan_setup PROPERTIES CXX_EXTENSIONS OFF)
if(HALOCLINE_BUILD_TESTS)
  add_test(NAME bench.plan_setup COMMAND halocline-run -n 2 -- $<TARGET_FILE:bench_plan_setup>)
  set_tests_properties(bench.plan_setup PROPERTIES TIMEOUT 60 PROCESSORS 2 LABELS bench)
endif()
