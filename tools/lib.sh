# Shared by the scripts in tools/ and .ci/: what to install, how to build, how to run a suite and count it.
# To be sourced by bash from any folder; sets REPO and works from there.
set -u -o pipefail
REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$REPO" || exit 1
SCRIPT=${0##*/}

say() { printf '%s: %s\n' "$SCRIPT" "$*"; }
die() { printf '%s: failed: %s\n' "$SCRIPT" "$*" >&2; exit 1; }

PACKAGES_BUILD=(g++ meson ninja-build pkg-config perl
  libevent-dev libluajit-5.1-dev liblmdb-dev libxxhash-dev libsimdjson-dev libfmt-dev libspdlog-dev libcli11-dev
  lua-cjson-dev node-llhttp libssl-dev)
PACKAGES_TRY=(curl ca-certificates)
PACKAGES_TEST=(doctest-dev curl wrk openssl)
PACKAGES_CI=(clang libclang-rt-14-dev git)

# Runs a command as root: as it is, or through sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# need_packages PACKAGE...: installs those that are missing; asks apt only when one is.
need_packages() {
  command -v dpkg-query >/dev/null || die "this script installs with apt, on Debian 12; elsewhere see README.md for the packages"
  local missing=() package
  for package in "$@"; do
    # A tool of the same name from elsewhere serves as well; libraries have to be Debian's.
    case "$package" in
      g++|meson|perl|curl|clang|git|wrk|openssl) command -v "$package" >/dev/null && continue ;;
      ninja-build) command -v ninja >/dev/null && continue ;;
      pkg-config) command -v pkg-config >/dev/null && continue ;;
    esac
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
    die "these packages are missing: ${missing[*]}; run it as root, install sudo, or apt-get install them"
  local log
  log=$(mktemp)
  if ! { as_root env DEBIAN_FRONTEND=noninteractive apt-get update &&
         as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
       >"$log" 2>&1 </dev/null; then
    grep '^E:' "$log" >&2 || tail -n 5 "$log" >&2
    rm -f "$log"
    die "apt-get could not install ${missing[*]}"
  fi
  rm -f "$log"
}

# build FOLDER MESON-OPTION...: sets the folder up once and compiles. CC and CXX choose the compiler.
# The log of a failure stays in FOLDER.log; what it says first is printed.
build() {
  local folder=$1 jobs
  shift
  jobs=$(nproc)
  if [ -f "$folder/build.ninja" ]; then
    meson configure "$folder" "$@" >"$folder.log" 2>&1 || { tail -n 5 "$folder.log" >&2; return 1; }
  else
    rm -rf "$folder"
    meson setup "$folder" "$@" >"$folder.log" 2>&1 || { grep -E 'ERROR' "$folder.log" >&2 || tail -n 5 "$folder.log" >&2; return 1; }
  fi
  if ! ninja -C "$folder" -j "$jobs" >"$folder.log" 2>&1; then
    grep -E -m 3 'error:|FAILED:|undefined reference' "$folder.log" >&2
    return 1
  fi
}

PASSED=0
FAILED=0
SKIPPED=0

# run_suite FOLDER MESON-TEST-ARGUMENT...: runs tests, shows the failed ones and adds to the counts.
run_suite() {
  local folder=$1 log=$1.test.log ok
  shift
  if ! meson test -C "$folder" --no-rebuild --print-errorlogs "$@" >"$log" 2>&1; then ok=no; else ok=yes; fi
  local passed failed skipped
  passed=$(count_line "$log" 'Ok|Expected Fail')
  failed=$(count_line "$log" 'Fail|Unexpected Pass|Timeout')
  skipped=$(count_line "$log" 'Skipped')
  # A run that broke before it could count is a failure too.
  if [ "$ok" = no ] && [ "$failed" = 0 ]; then failed=1; fi
  if [ "$passed" = 0 ] && [ "$failed" = 0 ]; then failed=1; say "$folder: no test ran"; fi
  if [ "$failed" != 0 ]; then cat "$log"; fi
  say "$folder ${*:-all}: $passed passed, $failed failed, $skipped skipped"
  PASSED=$((PASSED + passed))
  FAILED=$((FAILED + failed))
  SKIPPED=$((SKIPPED + skipped))
}

# count_line LOG NAMES: the sum of the lines "NAME:   N" that close a log of `meson test`.
count_line() {
  awk -F: -v names="^($2)\$" '$1 ~ names && $2 ~ /^ *[0-9]+ *$/ { n += $2 } END { print n + 0 }' "$1"
}

# count_failure SENTENCE: for a step that is not a test of meson's.
count_failure() {
  say "FAILED: $1"
  FAILED=$((FAILED + 1))
}

finish() {
  [ "$SKIPPED" = 0 ] || say "$SKIPPED skipped"
  printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
  [ "$FAILED" = 0 ] && [ "$PASSED" -gt 0 ]
}
