# SPDX-License-Identifier: Apache-2.0
# A few kills; scripts/kill-campaign.sh does many, over every transport.
add_executable(comm_kill_campaign kill_campaign.cpp)
target_link_libraries(comm_kill_campaign PRIVATE halocline::comm GTest::gtest halocline_warnings)
set_target_properties(comm_kill_campaign PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

function(halocline_add_kills name transport)
  add_test(NAME comm.kills.${name} COMMAND comm_kill_campaign ${transport} 4 ${ARGN})
  set_tests_properties(comm.kills.${name} PROPERTIES TIMEOUT 120 PROCESSORS 3)
endfunction()

if(TARGET halocline-run)
  halocline_add_kills(shm shm $<TARGET_FILE:halocline-run>)
  if(LIBFABRIC_FOUND)
    halocline_add_kills(ofi-tcp ofi-tcp $<TARGET_FILE:halocline-run>)
  endif()
endif()
