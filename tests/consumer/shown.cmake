# SPDX-License-Identifier: Apache-2.0
# PAGE shows PROGRAM from its first #include on.
file(READ ${PAGE} page)
file(READ ${PROGRAM} program)
string(FIND "${program}" "#include" first)
string(SUBSTRING "${program}" ${first} -1 program)
string(FIND "${page}" "${program}" found)
if(first EQUAL -1 OR found EQUAL -1)
  message(FATAL_ERROR "${PAGE} does not show ${PROGRAM} as it is")
endif()
