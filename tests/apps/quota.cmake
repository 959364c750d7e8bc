# SPDX-License-Identifier: Apache-2.0
# Skipped where no control group with a CPU quota, or a limit on memory, can be made.
halocline_add_test(apps.quota_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/quota_test.cpp LINK halocline::comm LABELS namespaces)
target_compile_definitions(apps_quota_test PRIVATE HALOCLINE_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
set_tests_properties(apps.quota_test PROPERTIES RUN_SERIAL ON) # its jobs need processors that no other has
add_dependencies(apps_quota_test coarse_solve heat4d halocline-run halocline-info)
