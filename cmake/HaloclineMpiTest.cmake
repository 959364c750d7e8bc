# SPDX-License-Identifier: Apache-2.0
# halocline_add_mpi_test(<folder>.<name> TARGET <executable> RANKS 2 4 [ARGS ...] [LABELS ...]
#   [TIMEOUT s] [MPIS openmpi] [CONFIGURATIONS name])
#
# Runs an existing program under each MPI's own mpirun: `comm.mpi_test.openmpi.r2`. All use the same binary, because
# nothing is linked against an MPI. An MPI without module or launcher gets no test (see the configure summary).
find_program(HALOCLINE_MPIRUN_OPENMPI NAMES mpirun.openmpi)
find_program(HALOCLINE_MPIRUN_MPICH NAMES mpirun.mpich)

# Allows more ranks than cores, and root; this host only. hwloc's "gl", which Open MPI runs in MPI_Init, looks for X
# displays on "localhost": where nothing but a name server could know that name, it takes seconds. "pci" reads the names
# of all PCI devices in quadratic time, half a minute with the address sanitizer.
set(HALOCLINE_OPENMPI_ENVIRONMENT
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none HWLOC_COMPONENTS=-gl,-pci)
# Open MPI leaves thousands of allocations, most of them from plugins that are no longer loaded when leaks are reported.
# MPICH leaves none, so the tests under it look for ours, unless something is left to MPICH on purpose: windows
# (docs/decisions/0026), or what a job had when it ended before its time.
if(HALOCLINE_LSAN_OPTIONS)
  list(APPEND HALOCLINE_OPENMPI_ENVIRONMENT LSAN_OPTIONS=detect_leaks=0)
endif()

function(halocline_add_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TARGET;TIMEOUT" "RANKS;ARGS;LABELS;MPIS;CONFIGURATIONS")
  if(NOT arg_MPIS)
    set(arg_MPIS openmpi mpich)
  endif()
  halocline_test_timeout(timeout "${arg_TIMEOUT}")
  foreach(mpi IN LISTS arg_MPIS)
    string(TOUPPER ${mpi} upper)
    if(NOT TARGET halocline-mpi-${mpi} OR NOT HALOCLINE_MPIRUN_${upper})
      continue()
    endif()
    foreach(ranks IN LISTS arg_RANKS)
      set(test ${name}.${mpi}.r${ranks})
      add_test(NAME ${test} CONFIGURATIONS ${arg_CONFIGURATIONS}
               COMMAND ${HALOCLINE_MPIRUN_${upper}} -n ${ranks} $<TARGET_FILE:${arg_TARGET}> ${arg_ARGS})
      set_tests_properties(${test} PROPERTIES
        TIMEOUT ${timeout} LABELS "mpi;${arg_LABELS}" PROCESSORS ${ranks} SKIP_RETURN_CODE 77
        ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}")
      if(mpi STREQUAL "mpich" AND HALOCLINE_LSAN_OPTIONS AND NOT name MATCHES "mpi_one_sided|mpi_job_ends|mpi_forks")
        set_tests_properties(${test} PROPERTIES ENVIRONMENT_MODIFICATION LSAN_OPTIONS=set:${HALOCLINE_LSAN_OPTIONS})
      endif()
    endforeach()
  endforeach()
endfunction()

# halocline_add_linked_mpi_test(<folder>.<name> MPI openmpi SOURCES ... RANKS 1 2)
#
# A program that is itself linked with that MPI, <folder>_<name>_<mpi>, run under its mpirun. Without this MPI, or its
# launcher, there is neither.
function(halocline_add_linked_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MPI" "SOURCES;RANKS")
  string(TOUPPER ${arg_MPI} upper)
  if(NOT TARGET halocline_use_${arg_MPI} OR NOT HALOCLINE_MPIRUN_${upper})
    return()
  endif()
  string(REPLACE . _ program ${name}_${arg_MPI})
  add_executable(${program} ${arg_SOURCES})
  target_link_libraries(${program} PRIVATE halocline::halo halocline_use_${arg_MPI} halocline_test_support
                        halocline_warnings)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests CXX_EXTENSIONS OFF)
  foreach(ranks IN LISTS arg_RANKS)
    set(test ${name}.${arg_MPI}.r${ranks})
    add_test(NAME ${test} COMMAND ${HALOCLINE_MPIRUN_${upper}} -n ${ranks} $<TARGET_FILE:${program}>)
    set_tests_properties(${test} PROPERTIES TIMEOUT 300 LABELS mpi PROCESSORS ${ranks} SKIP_RETURN_CODE 77
      ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}")
  endforeach()
endfunction()
