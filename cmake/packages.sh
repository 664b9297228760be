# The Debian and Ubuntu packages AutoHete needs, and how to get those that are missing. Sourced by quickstart and check.
# Each line is PACKAGE PROBE; a package is missing when its probe finds nothing: command:NAME, header:NAME or package (ask dpkg).

packages_build='
gcc              command:cc
g++              command:c++
libc6-dev        header:stdio.h
cmake            command:cmake
ninja-build      command:ninja
pkg-config       command:pkg-config
libdnnl-dev      header:dnnl.h
libcjson-dev     header:cjson/cJSON.h
libxxhash-dev    header:xxhash.h
zlib1g-dev       header:zlib.h
libzstd-dev      header:zstd.h
libonig-dev      header:oniguruma.h
libutf8proc-dev  header:utf8proc.h
libyaml-dev      header:yaml.h
coinor-libcbc-dev header:coin/Cbc_C_Interface.h
'
packages_test='
libcmocka-dev    header:setjmp.h,stdarg.h,stddef.h,stdint.h,cmocka.h
python3          command:python3
mandoc           command:mandoc
'
packages_full='
clang            command:clang
libomp-dev       package
libclang-rt-dev  package
clang-format-14  command:clang-format-14
clang-tidy-14    command:clang-tidy-14
'
# Several ranks: what they are trained with, and what starts them.
packages_mpi='
libmpich-dev     package
mpich            command:mpirun.mpich
libopenmpi-dev   package
openmpi-bin      command:mpirun.openmpi
iproute2         command:ip
'
packages_quickstart='
bible-kjv        command:bible
'

packages_has() {
    case $2 in
    command:*) command -v "${2#command:}" >/dev/null 2>&1 ;;
    header:*) printf '%s' "${2#header:}" | tr , '\n' | sed 's/.*/#include <&>/' | cc -E - >/dev/null 2>&1 ;;
    package) [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
    esac
}

# Prints the packages of the lists given that are missing.
packages_missing() {
    printf '%s\n' "$@" | while read -r package probe; do
        [ -z "$package" ] || packages_has "$package" "$probe" || printf ' %s' "$package"
    done
}

# Installs what is missing from the lists given; where that cannot be done, prints the line that does it and fails.
packages_install() {
    missing=$(packages_missing "$@")
    [ -n "$missing" ] || return 0
    line="apt-get install -y --no-install-recommends$missing"
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "These packages (named as in Debian) are missing:$missing" >&2
        return 1
    fi
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        as_root=sudo
    else
        echo "Packages are missing and only root may install them. Run: sudo $line" >&2
        return 1
    fi
    echo "Installing$missing"
    log=$(mktemp)
    # A stale list is no obstacle while the packages themselves can be had, so a failing update alone is forgiven.
    if { $as_root apt-get -qq update || true; $as_root env DEBIAN_FRONTEND=noninteractive $line; } </dev/null >"$log" 2>&1; then
        rm -f "$log"
        return 0
    fi
    tail -n 3 "$log" >&2
    rm -f "$log"
    echo "Installing failed. Try by hand: $line" >&2
    return 1
}
