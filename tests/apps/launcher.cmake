# SPDX-License-Identifier: Apache-2.0
halocline_add_test(apps.launcher_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/launcher_test.cpp)
target_compile_definitions(apps_launcher_test PRIVATE HALOCLINE_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(apps_launcher_test halocline-run)
