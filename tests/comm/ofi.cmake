# SPDX-License-Identifier: Apache-2.0
# Tests of transport `ofi`: one binary, run over each provider that exists on every machine.
if(NOT LIBFABRIC_FOUND)
  return()
endif()
foreach(program comm_kill_test comm_stall_test)
  target_compile_definitions(${program} PRIVATE HALOCLINE_WITH_OFI)
endforeach()
halocline_add_test_program(comm_ofi_channel_test SOURCES ofi_channel_test.cpp LINK halocline::comm SEES comm) # ofi_world
set(providers tcp shm)
if(LIBFABRIC_HAS_NET)
  target_compile_definitions(comm_kill_test PRIVATE HALOCLINE_WITH_NET)
  list(APPEND providers net)
endif()
foreach(provider IN LISTS providers)
  halocline_add_test(comm.ofi_channel_test.${provider} TARGET comm_ofi_channel_test RANKS 2 4 ARGS ofi-${provider}
                     LABELS ofi)
endforeach()

# How memory is registered, with a domain that records the calls.
halocline_add_test(comm.ofi_registration_test SOURCES ofi_registration_test.cpp LINK halocline::comm SEES comm LABELS ofi)
target_include_directories(comm_ofi_registration_test SYSTEM PRIVATE ${LIBFABRIC_INCLUDE_DIRS})

if(LIBFABRIC_HAS_NET)
  halocline_add_test(comm.ofi_world_test SOURCES ofi_world_test.cpp LINK halocline::comm SEES comm LABELS ofi)
  target_include_directories(comm_ofi_world_test SYSTEM PRIVATE ${LIBFABRIC_INCLUDE_DIRS})
  target_compile_options(comm_ofi_world_test PRIVATE -fno-access-control)
endif()

halocline_add_test(comm.ofi_library_test SOURCES ofi_library_test.cpp LINK halocline::comm SEES comm LABELS ofi)
target_include_directories(comm_ofi_library_test SYSTEM PRIVATE ${LIBFABRIC_INCLUDE_DIRS})
