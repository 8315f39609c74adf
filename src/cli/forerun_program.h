// The program forerun: its verbs, one file each. The executable is it, and so is the command of the Python package.
#pragma once

namespace forerun::cli {

// The whole of main; gives the exit code.
int forerun_program(int argc, char** argv);

}  // namespace forerun::cli
