# SPDX-License-Identifier: Apache-2.0
# Jobs over several hosts; skipped where network namespaces can't be made.
if(LIBFABRIC_FOUND)
  halocline_add_test(apps.hosts_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/hosts_test.cpp
                     LINK nlohmann_json::nlohmann_json LABELS ofi namespaces
                     ARGS $<TARGET_FILE:comm_kill_test> --gtest_filter=Hosts.*)
  target_compile_definitions(apps_hosts_test PRIVATE HALOCLINE_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  add_dependencies(apps_hosts_test coarse_solve generate_gauge heat4d halocline-run comm_kill_test)
  set_tests_properties(apps.hosts_test PROPERTIES RUN_SERIAL ON)
  # Separate, because it may be skipped where the others are not.
  halocline_add_test(apps.hosts_test.WithLoss TARGET apps_hosts_test LABELS ofi namespaces
                     ARGS $<TARGET_FILE:comm_kill_test> --gtest_filter=HostsThatLosePackets.*)
  set_tests_properties(apps.hosts_test.WithLoss PROPERTIES RUN_SERIAL ON)
  if(LIBIBVERBS_FOUND) # where there are two RDMA devices: see tests/comm/verbs.cmake
    add_test(NAME apps.hosts_test.OverVerbs CONFIGURATIONS verbs
             COMMAND apps_hosts_test --gtest_filter=HostsOverVerbs.*)
    set_tests_properties(apps.hosts_test.OverVerbs PROPERTIES TIMEOUT 300 RUN_SERIAL ON LABELS verbs)
  endif()
endif()
