/* SPDX-License-Identifier: Apache-2.0 */
/* The version of these headers, for #if in C and C++. Where it is changed: CMake reads it from here. */
#ifndef HALOCLINE_BASE_VERSION_H
#define HALOCLINE_BASE_VERSION_H

#define HALOCLINE_VERSION_MAJOR 0
#define HALOCLINE_VERSION_MINOR 1
#define HALOCLINE_VERSION_PATCH 0

#define HALOCLINE_VERSION_TEXT(major, minor, patch) #major "." #minor "." #patch
#define HALOCLINE_VERSION_OF(major, minor, patch) HALOCLINE_VERSION_TEXT(major, minor, patch)
/* "0.1.0" */
#define HALOCLINE_VERSION                                                                                              \
    HALOCLINE_VERSION_OF(HALOCLINE_VERSION_MAJOR, HALOCLINE_VERSION_MINOR, HALOCLINE_VERSION_PATCH)

#endif
