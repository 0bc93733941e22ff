# shellcheck shell=bash
#
# What the set-up commands share: short progress lines, one log, and installing what is missing on Debian.
# Source it, then call `begin NAME`; everything below writes its details to .build/NAME.log.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
log_file=/dev/null
python=

# What the build, the tests and the quickstart need from Debian.
packages=(
    ca-certificates git libmosquitto-dev libsqlite3-dev mosquitto mosquitto-dev openssl pkg-config procps python3-venv
    sqlite3
)

say() { printf '%s\n' "$*"; }

# Ends the command with a message that says what is wrong and what to do about it.
fail() {
    printf 'error: %s\n' "$1" >&2
    shift
    [ $# -eq 0 ] || printf '       %s\n' "$@" >&2
    exit 1
}

# begin NAME: opens the log of this command.
begin() {
    export LC_ALL=C.UTF-8
    # A build folder of another user (after one run through sudo) would fail later, and less clearly.
    mkdir -p "$root/.build" 2>/dev/null || fail "cannot make the folder $root/.build" "Is the clone another user's?"
    log_file=$root/.build/$1.log
    : 2>/dev/null >"$log_file" ||
        fail "cannot write $log_file" "It may belong to another user: remove $root/.build, or run the command as that user."
}

# run WHAT COMMAND…: one quiet step; if it fails, the end of its output and where the rest stands.
run() {
    local what=$1 start_line
    shift
    start_line=$(wc -l <"$log_file")
    printf '$ %s\n' "$*" >>"$log_file"
    "$@" >>"$log_file" 2>&1 </dev/null && return
    {
        tail -n "+$((start_line + 1))" "$log_file" | grep -E '(^|[^a-z])error:' | sort -u | head -n 20 || true
        say '…'
        tail -n "+$((start_line + 1))" "$log_file" | tail -n 30
    } >&2
    fail "$what failed; everything it said stands in $log_file"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# need_swift: the toolchain in PATH, 6.3 or newer. Behind sudo, which forgets PATH, it is looked for where it is usual.
need_swift() {
    local home version folder
    if ! command -v swift >/dev/null; then
        home=$(getent passwd "${SUDO_USER:-$(id -un)}" | cut -d: -f6)
        for folder in "$home/.local/share/swiftly/bin" /opt/swift/usr/bin /usr/local/swift/usr/bin /usr/libexec/swift/bin; do
            [ -x "$folder/swift" ] && PATH=$folder:$PATH && break
        done
    fi
    command -v swift >/dev/null ||
        fail "there is no Swift toolchain in PATH" "Swift 6.3 or newer is needed: https://www.swift.org/install/linux/"
    version=$(swift --version 2>/dev/null | sed -nE 's/.*Swift version ([0-9]+)\.([0-9]+).*/\1 \2/p' | head -n 1) || true
    [ -n "$version" ] || fail "'swift --version' does not work" "$(swift --version 2>&1 | tail -n 3)"
    # shellcheck disable=SC2086 # two words on purpose
    set -- $version
    [ "$1" -gt 6 ] || { [ "$1" -eq 6 ] && [ "$2" -ge 3 ]; } ||
        fail "Swift $1.$2 is too old: 6.3 or newer is needed" "found at $(command -v swift)"
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install_packages [NAME…]: what is missing of `packages` (or of NAME…), from Debian's archive; nothing when all is there.
install_packages() {
    local name missing=()
    drop_policy_left_behind
    [ $# -gt 0 ] || set -- "${packages[@]}"
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        fail "this is not Debian: the packages cannot be installed from here" "needed are: $*"
    fi
    for name in "$@"; do is_installed "$name" || missing+=("$name"); done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            fail "these packages are missing, and there is no sudo to install them: ${missing[*]}" \
                "As root: apt-get install ${missing[*]}"
        sudo -v || fail "sudo refused, and these packages are missing: ${missing[*]}"
    fi
    say "installing ${missing[*]}"
    keep_services_stopped "${missing[@]}"
    # The lists may be missing or old, so a first failure is no failure yet.
    apt_install "${missing[@]}" >>"$log_file" 2>&1 || {
        as_root apt-get -q update >>"$log_file" 2>&1 &&
            apt_install "${missing[@]}" >>"$log_file" 2>&1
    } || {
        allow_services
        tail -n 15 "$log_file" >&2
        fail "apt-get could not install ${missing[*]}" \
            "Is there a network, and does /etc/apt name a Debian archive? Details: $log_file"
    }
    allow_services
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
        -o DPkg::Lock::Timeout=300 install "$@" </dev/null
}

# Debian starts a broker as soon as it is installed. We bring our own configuration, so one that was not there before is
# neither started nor enabled; one that was there is left alone.
services_held=
new_broker=
policy_file=/usr/sbin/policy-rc.d
policy_mark='# by the set-up of fleetbus while it installs packages; process'

# What an installation that was killed has left would keep every service that is installed later from starting.
drop_policy_left_behind() {
    local process
    process=$(sed -n "s/^$policy_mark //p" "$policy_file" 2>/dev/null) || return 0
    [ -z "$process" ] || [ -e "/proc/$process" ] || as_root rm -f "$policy_file"
}

keep_services_stopped() {
    case " $* " in *" mosquitto "*) new_broker=yes ;; *) return 0 ;; esac
    [ -e "$policy_file" ] && return
    services_held=yes
    trap allow_services EXIT
    printf '#!/bin/sh\n%s %s\nexit 101\n' "$policy_mark" $$ | as_root tee "$policy_file" >/dev/null
    as_root chmod 755 "$policy_file"
}

allow_services() {
    if [ -n "$services_held" ]; then
        as_root rm -f "$policy_file"
        services_held=
        trap - EXIT
    fi
    if [ -n "$new_broker" ] && command -v systemctl >/dev/null; then
        as_root systemctl disable mosquitto.service >>"$log_file" 2>&1 || true
    fi
    new_broker=
}

# python_environment: a Python of our own with the validator that schemas/ is checked with, and with what the programs in
# Tests/EndToEndTests/foreign import; sets `python`.
python_environment() {
    local folder=$root/.build-python requirements=$root/schemas/requirements.txt base=python3
    [ -x /usr/bin/python3 ] && base=/usr/bin/python3
    python=$folder/bin/python
    if [ -x "$python" ] && cmp -s "$requirements" "$folder/requirements.txt"; then return; fi
    say "installing the JSON Schema validator and an MQTT client for Python"
    rm -rf "$folder"
    run "making a Python environment" "$base" -m venv "$folder"
    run "installing Python packages from PyPI (is there a network?)" \
        "$python" -m pip --quiet --disable-pip-version-check install -r "$requirements"
    cp "$requirements" "$folder/requirements.txt"
}
