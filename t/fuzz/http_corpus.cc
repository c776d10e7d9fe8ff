// The fuzz corpus as an ordinary test: each file is a stream as a client would send it, cut in many ways.
// Usage: http_corpus FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "t/fuzz/http_outcome.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: http_corpus FOLDER\n", stderr), 2;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::printf("%s\n", entry.path().filename().c_str());
    std::fflush(stdout);
    for (const char* cuts : {"\1", "\2", "\3\1", "\7", "\1\20", "\100\1\1", "\5\3\2\1"}) sluice::proxy::test::check_http(bytes, cuts);
    ++files;
  }
  std::printf("%d files\n", files);
  return files >= 20 ? 0 : 1;
}
