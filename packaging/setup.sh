# shellcheck shell=bash
# Sourced by run and test: a suitable Python, .venv with everything installed, and what Qt and Inductor need
# from the system. Works with the bash 3.2 of macOS.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="$root/.venv"
case "$root" in
    *[[:space:]]*)
        # Inductor names torch's folder to the C++ compiler without quotes: no model would compile from such a path
        venv="${XDG_CACHE_HOME:-$HOME/.cache}/compilescope/venv-$(printf '%s' "$root" | cksum | cut -d ' ' -f 1)"
        ;;
esac
oldest_python=10 # the minor version, of Python 3

say() { printf '%s\n' "$*" >&2; }
fail() {
    say "$1"
    exit 1
}

# --- what the system brings ---------------------------------------------------------------------------------------

manager() {
    local name
    for name in apt-get dnf pacman; do
        if command -v "$name" > /dev/null; then
            echo "$name"
            return
        fi
    done
    echo none
}

# package_of NEED: what the package manager at hand calls it; the need itself where we do not know
package_of() {
    case "$(manager):$1" in
        apt-get:libEGL.so.1) echo libegl1 ;;
        apt-get:libGL.so.1 | apt-get:libGLX.so.0 | apt-get:libOpenGL.so.0) echo libgl1 libopengl0 ;;
        apt-get:libX11.so.6) echo libx11-6 ;;
        apt-get:libX11-xcb.so.1) echo libx11-xcb1 ;;
        apt-get:libdbus-1.so.3) echo libdbus-1-3 ;;
        apt-get:libfontconfig.so.1) echo libfontconfig1 ;;
        apt-get:libfreetype.so.6) echo libfreetype6 ;;
        apt-get:libglib-2.0.so.0 | apt-get:libgthread-2.0.so.0) echo libglib2.0-0 ;;
        apt-get:libxcb-render-util.so.0) echo libxcb-render-util0 ;;
        apt-get:libxcb-cursor.so.0) echo libxcb-cursor0 ;;
        apt-get:libxcb-icccm.so.4) echo libxcb-icccm4 ;;
        apt-get:libxcb-image.so.0) echo libxcb-image0 ;;
        apt-get:libxcb-keysyms.so.1) echo libxcb-keysyms1 ;;
        apt-get:libxcb-randr.so.0) echo libxcb-randr0 ;;
        apt-get:libxcb-render.so.0) echo libxcb-render0 ;;
        apt-get:libxcb-shape.so.0) echo libxcb-shape0 ;;
        apt-get:libxcb-shm.so.0) echo libxcb-shm0 ;;
        apt-get:libxcb-sync.so.1) echo libxcb-sync1 ;;
        apt-get:libxcb-util.so.1) echo libxcb-util1 ;;
        apt-get:libxcb-xfixes.so.0) echo libxcb-xfixes0 ;;
        apt-get:libxcb-xkb.so.1) echo libxcb-xkb1 ;;
        apt-get:libxcb.so.1) echo libxcb1 ;;
        apt-get:libxkbcommon-x11.so.0) echo libxkbcommon-x11-0 ;;
        apt-get:libxkbcommon.so.0) echo libxkbcommon0 ;;
        apt-get:fonts) echo fonts-dejavu-core ;;
        apt-get:compiler) echo g++ ;;
        apt-get:headers) echo python3-dev ;;
        apt-get:venv) echo python3-venv ;;
        apt-get:Xvfb) echo xvfb ;;
        apt-get:pdftotext) echo poppler-utils ;;

        dnf:libEGL.so.1) echo libglvnd-egl mesa-libEGL ;;
        dnf:libGL.so.1 | dnf:libGLX.so.0) echo libglvnd-glx mesa-libGL ;;
        dnf:libdbus-1.so.3) echo dbus-libs ;;
        dnf:libfontconfig.so.1) echo fontconfig ;;
        dnf:libxcb-cursor.so.0) echo xcb-util-cursor ;;
        dnf:libxcb-icccm.so.4) echo xcb-util-wm ;;
        dnf:libxcb-image.so.0) echo xcb-util-image ;;
        dnf:libxcb-keysyms.so.1) echo xcb-util-keysyms ;;
        dnf:libxcb-render-util.so.0) echo xcb-util-renderutil ;;
        dnf:libxcb*) echo libxcb ;;
        dnf:libX11*) echo libX11 ;;
        dnf:libxkbcommon-x11.so.0) echo libxkbcommon-x11 ;;
        dnf:libxkbcommon.so.0) echo libxkbcommon ;;
        dnf:fonts) echo dejavu-sans-fonts dejavu-sans-mono-fonts ;;
        dnf:compiler) echo gcc-c++ ;;
        dnf:headers) echo python3-devel ;;
        dnf:Xvfb) echo xorg-x11-server-Xvfb ;;
        dnf:pdftotext) echo poppler-utils ;;

        pacman:libEGL.so.1 | pacman:libGL.so.1 | pacman:libGLX.so.0) echo libglvnd mesa ;;
        pacman:libdbus-1.so.3) echo dbus ;;
        pacman:libfontconfig.so.1) echo fontconfig ;;
        pacman:libxcb-cursor.so.0) echo xcb-util-cursor ;;
        pacman:libxcb-icccm.so.4) echo xcb-util-wm ;;
        pacman:libxcb-image.so.0) echo xcb-util-image ;;
        pacman:libxcb-keysyms.so.1) echo xcb-util-keysyms ;;
        pacman:libxcb-render-util.so.0) echo xcb-util-renderutil ;;
        pacman:libxcb*) echo libxcb ;;
        pacman:libX11*) echo libx11 ;;
        pacman:libxkbcommon-x11.so.0) echo libxkbcommon-x11 ;;
        pacman:libxkbcommon.so.0) echo libxkbcommon ;;
        pacman:fonts) echo ttf-dejavu ;;
        pacman:compiler) echo gcc ;;
        pacman:Xvfb) echo xorg-server-xvfb ;;
        pacman:pdftotext) echo poppler ;;

        *) echo "$1" ;;
    esac
}

install_command() {
    case "$(manager)" in
        apt-get) echo "apt-get install" ;;
        dnf) echo "dnf install" ;;
        pacman) echo "pacman -S" ;;
        *) echo "your package manager:" ;;
    esac
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

may_install() {
    [ "$(manager)" = apt-get ] || return 1
    [ "$(id -u)" = 0 ] || sudo -n true 2> /dev/null
}

# system_install PURPOSE NEED…: installs what is missing, or names it in one sentence and returns 1
system_install() {
    local purpose="$1" packages="" need
    shift
    [ $# -gt 0 ] || return 0
    for need in "$@"; do packages="$packages $(package_of "$need")"; done
    # shellcheck disable=SC2086 # one word a package
    packages="$(printf '%s\n' $packages | sort -u | tr '\n' ' ')"
    packages="${packages% }"
    if may_install; then
        say "Installing for $purpose: $packages"
        # shellcheck disable=SC2086 # one word a package
        if as_root apt-get -qq update < /dev/null > /dev/null 2>&1 \
            && as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $packages \
                < /dev/null > /dev/null; then
            return 0
        fi
    fi
    say "Missing for $purpose: install them with \"$(install_command) $packages\"."
    return 1
}

libraries_that_qt_lacks() {
    [ "$(uname)" = Linux ] && command -v ldd > /dev/null || return 0
    local qt
    qt="$("$venv/bin/python" -c 'import importlib.util as u; print(u.find_spec("PySide6").submodule_search_locations[0])')/Qt"
    # the linker itself says what it cannot find
    ldd "$qt/plugins/platforms/libqxcb.so" "$qt/lib/libQt6Gui.so.6" "$qt/lib/libQt6Widgets.so.6" 2> /dev/null \
        | awk '/not found/ && $1 !~ /^libQt6/ { print $1 }' | sort -u || true
}

has_fonts() {
    [ "$(uname)" = Linux ] || return 0
    [ -n "$(find /usr/share/fonts /usr/local/share/fonts "${HOME:-/root}/.local/share/fonts" \
        \( -name '*.ttf' -o -name '*.otf' -o -name '*.ttc' \) -print 2> /dev/null | head -n 1)" ]
}

# what a window needs from the system, installed if that can be done
ensure_qt_libraries() {
    local lacks="" stamp="$venv/.qt-complete"
    [ ! -f "$stamp" ] || return 0
    lacks="$(libraries_that_qt_lacks)"
    has_fonts || lacks="$lacks fonts"
    # shellcheck disable=SC2086 # one word a library
    system_install "the window (Qt)" $lacks || return 1
    lacks="$(libraries_that_qt_lacks | tr '\n' ' ')"
    if [ -n "$lacks" ]; then
        say "Qt still lacks: ${lacks% }."
        return 1
    fi
    touch "$stamp"
}

has_compiler() {
    local name
    for name in "${CXX:-g++}" g++ clang++ c++; do
        if command -v "$name" > /dev/null; then return 0; fi
    done
    return 1
}

# what Inductor needs to compile for the CPU; without it the app still runs, and `compilescope doctor` says so
ensure_compiler() {
    local lacks=""
    [ "$(uname)" = Linux ] || return 0
    has_compiler || lacks="compiler"
    "$venv/bin/python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || lacks="$lacks headers"
    # shellcheck disable=SC2086 # one word a need
    system_install "compiling on the CPU" $lacks
}

# --- Python and what pip brings -----------------------------------------------------------------------------------

is_suitable() {
    "$1" -c "import sys; sys.exit(sys.version_info < (3, $oldest_python))" > /dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${COMPILESCOPE_PYTHON:+"$COMPILESCOPE_PYTHON"} python3 python3.13 python3.12 python3.11 python3.10 python; do
        if command -v "$candidate" > /dev/null && is_suitable "$candidate"; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
        if [ "$candidate" = "${COMPILESCOPE_PYTHON:-}" ]; then
            fail "COMPILESCOPE_PYTHON names $candidate, which is no Python 3.$oldest_python or newer."
        fi
    done
    fail "CompileScope needs Python 3.$oldest_python or newer, and found none: install it, or name one in COMPILESCOPE_PYTHON."
}

# torch_of PYTHON: version of the torch there that is new enough, or nothing; torch itself is not imported
torch_of() {
    "$1" - 2> /dev/null <<'PYTHON' || true
from importlib.metadata import version
major, minor = version("torch").split(".")[:2]
if (int(major), int(minor)) >= (2, 6):
    print(version("torch"))
PYTHON
}

make_venv() {
    local python outer in_venv flags=""
    python="$(find_python)" || exit 1
    if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
        system_install "a virtual environment" venv || exit 1
        "$python" -c 'import ensurepip, venv' 2> /dev/null || fail "$python has no venv module: install the package that brings it."
    fi
    outer="$(torch_of "$python")"
    in_venv="$("$python" -c 'import sys; print(int(sys.prefix != sys.base_prefix))')"
    if [ -n "$outer" ] && [ "$in_venv" = 0 ]; then flags="--system-site-packages"; fi
    say "Making .venv with $("$python" --version)${outer:+, which has torch $outer}"
    # shellcheck disable=SC2086 # no flags, or one
    "$python" -m venv --clear $flags "$venv" || fail "$python could not make $venv; its messages above say why."
    if [ "$venv" != "$root/.venv" ] && { [ -L "$root/.venv" ] || [ ! -e "$root/.venv" ]; }; then
        say "It lies in $venv, since white space in a path breaks C++ builds; .venv is a link to it"
        ln -sfn "$venv" "$root/.venv"
    fi
    if [ -n "$outer" ] && [ "$in_venv" = 1 ]; then
        # an environment of the user's: its packages come after our own
        "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
            > "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/outer-environment.pth"
    fi
}

has_nvidia_gpu() {
    [ -e /proc/driver/nvidia/version ] || [ -e /dev/nvidia0 ] || { command -v nvidia-smi && nvidia-smi -L; } > /dev/null 2>&1
}

# names what an installation depends on; the same text means that nothing is to be done
fingerprint() {
    printf '%s %s ' "$root" "$("$venv/bin/python" --version 2>&1)"
    cat "$root/pyproject.toml" "$root/packaging/constraints-cpu.txt" "$root/packaging/setup.sh" | cksum
}

# install_package EXTRA: the package itself, editable, with that extra ("" = none)
install_package() {
    local target="$root${1:+[$1]}" kept constraint=""
    kept="$(torch_of "$venv/bin/python")"
    if [ -n "$kept" ]; then
        say "Keeping torch $kept"
        printf 'torch==%s\n' "$kept" > "$venv/kept-torch.txt"
        constraint="$venv/kept-torch.txt"
    elif ! has_nvidia_gpu; then
        say "No NVIDIA GPU here: taking a CPU build of torch"
        constraint="$root/packaging/constraints-cpu.txt"
    fi
    say "Installing into .venv (some minutes the first time)"
    local started=$SECONDS
    # shellcheck disable=SC2086 # no constraint, or one; the paths of pip's own file may hold spaces
    "$venv/bin/python" -m pip install -q --no-input --disable-pip-version-check \
        ${constraint:+--constraint "$constraint"} --editable "$target" < /dev/null \
        || fail "pip could not install what CompileScope needs; its messages above say why."
    say "Installed in $((SECONDS - started)) s, torch $(torch_of "$venv/bin/python")"
}

# ensure_installed EXTRA: does nothing, quickly, when all is as the last time left it
ensure_installed() {
    local stamp="$venv/.installed${1:+-$1}"
    if [ -f "$stamp" ] && is_suitable "$venv/bin/python" && [ "$(fingerprint)" = "$(cat "$stamp")" ]; then
        return 0
    fi
    is_suitable "$venv/bin/python" || make_venv
    install_package "$1"
    ensure_compiler || say "Until then no model compiles for the CPU."
    fingerprint > "$stamp"
}
