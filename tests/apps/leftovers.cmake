# SPDX-License-Identifier: Apache-2.0
halocline_add_test(apps.leftovers_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/leftovers_test.cpp)
target_compile_definitions(apps_leftovers_test PRIVATE HALOCLINE_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(apps_leftovers_test heat4d halocline-run)
set_tests_properties(apps.leftovers_test PROPERTIES RUN_SERIAL ON TIMEOUT 300)
