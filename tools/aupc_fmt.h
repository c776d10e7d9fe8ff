// aupc fmt: modules in their one layout.
#pragma once
#include <string>
#include <vector>

namespace sluice::tools {

// Rewrites the files that are laid out otherwise, each at once: whoever reads one meanwhile sees all of the old or all
// of the new. `-` is read from standard input and written to standard output. With `check` nothing is written but, on
// standard output, the names of the files that would be.
// Errors: a module that cannot be read stays as it is, and the others are laid out all the same.
int format_files(const std::vector<std::string>& paths, bool check);

}  // namespace sluice::tools
