/* SPDX-License-Identifier: Apache-2.0 */
/* A program that knows nothing of Halocline and opens the extension that it is given, as an interpreter does. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
    void* extension = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*sum_of_ones)(void) = NULL;
    if (extension != NULL) *(void**)&sum_of_ones = dlsym(extension, "sum_of_ones");
    if (sum_of_ones == NULL) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "no extension");
        return 1;
    }
    return sum_of_ones() ? 0 : 1;
}
