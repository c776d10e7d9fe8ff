#!/bin/sh
# Writes a header with the texts of Lua files in it, in their order: embed.sh TO FROM...
set -eu
to=$1
shift
{
  printf '#pragma once\n#include <string_view>\nnamespace sluice::lua {\nstruct LibraryPart {\n  const char* name;\n  std::string_view text;\n};\n'
  printf 'inline constexpr LibraryPart kRoutelib[] = {\n'
  for from in "$@"; do
    printf '{"=routelib/%s",\n' "$(basename "$from" .lua)"
    # In pieces: compilers limit the length of one literal.
    awk 'BEGIN { n = 0 } { if (n == 0) printf "R\"lua("; print; if (++n == 100) { printf ")lua\"\n"; n = 0 } } END { if (n > 0) printf ")lua\"" }' "$from"
    printf '},\n'
  done
  printf '};\n}\n'
} > "$to"
