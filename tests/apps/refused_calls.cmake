# SPDX-License-Identifier: Apache-2.0
halocline_add_test(apps.refused_calls_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/refused_calls_test.cpp
                   LINK nlohmann_json::nlohmann_json)
target_compile_definitions(apps_refused_calls_test PRIVATE HALOCLINE_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
  HALOCLINE_MESSENGER_TEST="$<TARGET_FILE:comm_messenger_test>"
  HALOCLINE_MESSENGER_STRESS_TEST="$<TARGET_FILE:comm_messenger_stress_test>")
add_dependencies(apps_refused_calls_test heat4d halocline-run comm_messenger_test comm_messenger_stress_test)
set_tests_properties(apps.refused_calls_test PROPERTIES PROCESSORS 2)
