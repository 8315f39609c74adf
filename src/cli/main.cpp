#include "cli/forerun_program.h"

int main(int argc, char** argv) { return forerun::cli::forerun_program(argc, argv); }
