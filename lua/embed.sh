#!/bin/sh
# Writes a header with the text of a Lua file in it: embed.sh FROM TO NAME.
set -eu
{
  printf '#pragma once\n#include <string_view>\nnamespace sluice::lua {\ninline constexpr std::string_view %s =\n' "$3"
  # In pieces: compilers limit the length of one literal.
  awk 'BEGIN { n = 0 } { if (n == 0) printf "R\"lua("; print; if (++n == 100) { printf ")lua\"\n"; n = 0 } } END { if (n > 0) printf ")lua\"" }' "$1"
  printf ';\n}\n'
} > "$2"
