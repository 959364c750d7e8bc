# SPDX-License-Identifier: Apache-2.0

# halocline_mpi_of(<compiler wrapper> <result>): "OPENMPI", "MPICH" or "", as the wrapper's own flags tell. Relatives of
# MPICH have its flags.
function(halocline_mpi_of wrapper result)
  set(${result} "" PARENT_SCOPE)
  execute_process(COMMAND ${wrapper} -showme:version OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND said MATCHES "Open MPI")
    set(${result} OPENMPI PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${wrapper} -compile-info OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(${result} MPICH PARENT_SCOPE)
  endif()
endfunction()

# Finds the wrappers HALOCLINE_MPICXX_OPENMPI and HALOCLINE_MPICXX_MPICH. Debian gives them names of their own;
# elsewhere, as after `module load openmpi`, there is one mpicxx.
function(halocline_find_mpi)
  find_program(HALOCLINE_MPICXX_OPENMPI NAMES mpicxx.openmpi)
  find_program(HALOCLINE_MPICXX_MPICH NAMES mpicxx.mpich)
  find_program(HALOCLINE_MPICXX NAMES mpicxx)
  if(NOT HALOCLINE_MPICXX)
    return()
  endif()
  halocline_mpi_of(${HALOCLINE_MPICXX} mpi)
  if(mpi AND NOT HALOCLINE_MPICXX_${mpi})
    set(HALOCLINE_MPICXX_${mpi} ${HALOCLINE_MPICXX} CACHE FILEPATH "Compiler wrapper of this MPI" FORCE)
  endif()
endfunction()
