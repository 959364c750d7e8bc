# SPDX-License-Identifier: Apache-2.0
# Tests of transport `ofi`: one binary, run over each provider that every machine has.
if(NOT LIBFABRIC_FOUND OR NOT TARGET halocline-run)
  return()
endif()
target_compile_definitions(comm_kill_test PRIVATE HALOCLINE_WITH_OFI)
add_executable(comm_ofi_channel_test ofi_channel_test.cpp)
target_include_directories(comm_ofi_channel_test PRIVATE ${PROJECT_SOURCE_DIR}/comm/src) # ofi_world is private
target_link_libraries(comm_ofi_channel_test PRIVATE halocline::comm halocline_test_support GTest::gtest halocline_warnings)
set_target_properties(comm_ofi_channel_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_dependencies(comm_ofi_channel_test halocline-run)
foreach(provider tcp shm)
  foreach(ranks 2 4)
    set(name comm.ofi_channel_test.${provider}.r${ranks})
    add_test(NAME ${name} COMMAND halocline-run -n ${ranks} -- $<TARGET_FILE:comm_ofi_channel_test> ${provider})
    set_tests_properties(${name} PROPERTIES LABELS ofi TIMEOUT 300 PROCESSORS ${ranks})
  endforeach()
endforeach()

# How memory is registered, with a domain that writes down the calls.
halocline_add_test(comm.ofi_registration_test SOURCES ofi_registration_test.cpp LINK halocline::comm LABELS ofi)
target_include_directories(comm_ofi_registration_test PRIVATE ${PROJECT_SOURCE_DIR}/comm/src)
target_include_directories(comm_ofi_registration_test SYSTEM PRIVATE ${LIBFABRIC_INCLUDE_DIRS})

halocline_add_test(comm.ofi_library_test SOURCES ofi_library_test.cpp LINK halocline::comm LABELS ofi)
target_include_directories(comm_ofi_library_test PRIVATE ${PROJECT_SOURCE_DIR}/comm/src)
