# SPDX-License-Identifier: Apache-2.0
# Tests of transport and bootstrap `mpi`: one binary each, run under every installed MPI.
include(HaloclineMpiTest)

function(halocline_add_mpi_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  halocline_add_test_program(${name} SOURCES ${arg_SOURCES} LINK ${arg_LINK} SEES comm) # the modules' side of comm
endfunction()

halocline_add_mpi_program(comm_mpi_world_test SOURCES mpi_world_test.cpp LINK halocline::comm)
halocline_add_mpi_test(comm.mpi_world_test TARGET comm_mpi_world_test RANKS 2 4 ARGS --gtest_filter=-MpiWorldGivenUp.*:MpiWorldLeft.*)
halocline_add_mpi_program(comm_mpi_job_test SOURCES mpi_job_test.cpp LINK halocline::comm)
halocline_add_mpi_test(comm.mpi_job_test TARGET comm_mpi_job_test RANKS 2 4 ARGS --gtest_filter=-MpiJobGivenUp.*:MpiJobEnds.*)
# In pieces that MPI copies during its calls, not in one copy by the kernel.
halocline_add_mpi_test(comm.mpi_job_ends TARGET comm_mpi_job_test RANKS 2 ARGS --gtest_filter=MpiJobEnds.*)
get_property(tests DIRECTORY PROPERTY TESTS)
list(FILTER tests INCLUDE REGEX "mpi_job_ends")
if(tests)
  set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT
    OMPI_MCA_btl_vader_single_copy_mechanism=none UCX_TLS=posix,self)
endif()
# Ranks that end without MPI_Finalize, which launchers call a failure: what the ranks print counts. One rank alone ends
# where another has given up.
halocline_add_mpi_test(comm.mpi_world_given_up TARGET comm_mpi_world_test RANKS 2 ARGS --gtest_color=no --gtest_filter=MpiWorldGivenUp.*
                       TIMEOUT 100)
halocline_add_mpi_test(comm.mpi_world_left TARGET comm_mpi_world_test RANKS 2 ARGS --gtest_color=no --gtest_filter=MpiWorldLeft.*)
halocline_add_mpi_test(comm.mpi_job_given_up TARGET comm_mpi_job_test RANKS 2 ARGS --gtest_color=no --gtest_filter=MpiJobGivenUp.*
                       TIMEOUT 100)
get_property(tests DIRECTORY PROPERTY TESTS)
list(FILTER tests INCLUDE REGEX "mpi_(world|job)_(given_up|left)")
if(tests)
  set_tests_properties(${tests} PROPERTIES
    PASS_REGULAR_EXPRESSION "PASSED  . 1 test" FAIL_REGULAR_EXPRESSION "${HALOCLINE_TEST_FAULTS}")
endif()
list(FILTER tests INCLUDE REGEX "left.openmpi") # MPICH's launcher ends the second rank, the sender, with the first
if(tests)
  set_tests_properties(${tests} PROPERTIES PASS_REGULAR_EXPRESSION "PASSED  . 1 test.*PASSED  . 1 test")
endif()

# A rank of the kill tests that forks, started by the MPI launchers themselves.
halocline_add_mpi_test(comm.mpi_forks TARGET comm_kill_test RANKS 3 ARGS rank mpi-forks)

# A launcher may end a rank as soon as it sees that another has died, so its watchdog says at once who it is; what the
# rank does not do can only be said later. Open MPI's leaves it the time.
if(HALOCLINE_MPIRUN_OPENMPI)
  add_test(NAME comm.told_at_once.openmpi
    COMMAND ${HALOCLINE_MPIRUN_OPENMPI} --enable-recovery -n 2 $<TARGET_FILE:comm_kill_test> rank computing-beside-dead)
  set_tests_properties(comm.told_at_once.openmpi PROPERTIES TIMEOUT 60 LABELS mpi PROCESSORS 2
    ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT};HALOCLINE_COMM_TRANSPORTS=shm"
    PASS_REGULAR_EXPRESSION "rank 1 [(][^)]*[)] died\n.*died while this rank computed, or was")
endif()

# No program links an MPI.
add_test(NAME comm.mpi_is_not_linked COMMAND ldd $<TARGET_FILE:comm_mpi_world_test>)
set_tests_properties(comm.mpi_is_not_linked PROPERTIES FAIL_REGULAR_EXPRESSION "libmpi;libmpich;libopen-" LABELS mpi)

# What is left after MPI has failed: needs no MPI.
add_library(comm_failing_mpi MODULE failing_mpi.cpp)
target_include_directories(comm_failing_mpi PRIVATE ${PROJECT_SOURCE_DIR}/comm/src)
target_link_libraries(comm_failing_mpi PRIVATE halocline_warnings)
halocline_add_test(comm.failing_mpi_test SOURCES failing_mpi_test.cpp LINK halocline::comm SEES comm
                   ARGS $<TARGET_FILE:comm_failing_mpi>)
add_dependencies(comm_failing_mpi_test comm_failing_mpi)

# Where a program looks for modules: one in the folder of its build, and one elsewhere. Needs no MPI.
foreach(place in out_of)
  halocline_add_test(comm.mpi_library_test.${place}_build SOURCES mpi_library_test.cpp
                     ${PROJECT_SOURCE_DIR}/comm/src/mpi/library.cpp LINK halocline::base SEES comm)
  set(build $<IF:$<STREQUAL:${place},in>,${PROJECT_BINARY_DIR},/elsewhere>)
  target_compile_definitions(comm_mpi_library_test_${place}_build PRIVATE
    HALOCLINE_IS_IN_BUILD=$<STREQUAL:${place},in> HALOCLINE_BUILD_DIR="${build}"
    HALOCLINE_MODULE_DIR="/build/lib/halocline" HALOCLINE_MODULES_FROM_PROGRAMS="../lib/of-this-machine/halocline"
    HALOCLINE_MODULE_INSTALL_DIR="/configured/lib/of-this-machine/halocline")
endforeach()

# What each MPI's module refuses: no launcher, and the other MPI's launcher.
halocline_add_mpi_program(comm_mpi_pairing_test SOURCES mpi_pairing_test.cpp LINK halocline::comm)
if(TARGET halocline-mpi-openmpi OR TARGET halocline-mpi-mpich)
  add_test(NAME comm.mpi_pairing_test COMMAND comm_mpi_pairing_test --gtest_filter=MpiModules.*:MpiLaunch.*)
  set_tests_properties(comm.mpi_pairing_test PROPERTIES LABELS mpi TIMEOUT 300)
endif()
foreach(pair openmpi.mpich mpich.openmpi)
  string(REGEX MATCH "^[a-z]+" launcher ${pair})
  string(REGEX MATCH "[a-z]+$" module ${pair})
  string(TOUPPER ${launcher} upper)
  if(TARGET halocline-mpi-${module} AND HALOCLINE_MPIRUN_${upper})
    add_test(NAME comm.mpi_pairing_test.${launcher}_with_${module} COMMAND ${CMAKE_COMMAND} -E env
      HALOCLINE_MPI=${module} ${HALOCLINE_MPIRUN_${upper}} -n 2 $<TARGET_FILE:comm_mpi_pairing_test>
      --gtest_filter=MpiPairing.*)
    set_tests_properties(comm.mpi_pairing_test.${launcher}_with_${module} PROPERTIES
      LABELS mpi TIMEOUT 300 PROCESSORS 2 ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}")
  endif()
endforeach()

# Launchers that end a job at the first rank that fails: what all ranks have found is told once.
foreach(mpi openmpi mpich)
  string(TOUPPER ${mpi} upper)
  if(TARGET halocline-mpi-${mpi} AND HALOCLINE_MPIRUN_${upper})
    add_test(NAME comm.told_once.${mpi} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/told_once.sh "no grid of 3 ranks"
             ${HALOCLINE_MPIRUN_${upper}} -n 3 $<TARGET_FILE:comm_run_job_program> "all throw bad input")
    set_tests_properties(comm.told_once.${mpi} PROPERTIES
      TIMEOUT 300 LABELS mpi RUN_SERIAL ON ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}")
  endif()
endforeach()
