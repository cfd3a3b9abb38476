#!/bin/sh
# Installs the pinned torch, without its dependencies, for the Python named first.
#
#   sh scripts/install_torch.sh PYTHON [auto|cpu|gpu]
#
# On Linux PyPI's torch is the CUDA build, which brings several GB of libraries. A machine without an
# NVIDIA driver gets the CPU build: from the package sources pip is set up with (a local wheel, a
# mirror) or else from PyTorch's own index. Only if neither has it, PyPI's build is taken, and said so.
set -eu

python=$1
build=${2:-auto}
cd "$(dirname "$0")/.."

cpu_index=https://download.pytorch.org/whl/cpu
pin=$(sed -n 's/^torch==//p' constraints.txt)
if [ -z "$pin" ]; then
    echo "constraints.txt pins no torch" >&2
    exit 1
fi

installed=$("$python" -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || true)
if [ "${installed%+*}" = "$pin" ]; then
    exit 0
fi

if [ "$build" = auto ]; then
    build=cpu
    if [ "$(uname -s)" != Linux ] || [ -e /proc/driver/nvidia/version ]; then
        build=gpu
    fi
fi

pip_install() {
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps "$@"
}

case $build in
    cpu)
        if pip_install "torch==$pin+cpu" 2>/dev/null; then
            exit 0
        fi
        echo "fetching the CPU build of torch $pin from $cpu_index" >&2
        if pip_install --retries 1 --timeout 20 --index-url "$cpu_index" "torch==$pin+cpu"; then
            exit 0
        fi
        echo "no CPU build of torch $pin could be fetched: taking PyPI's build, which is larger" >&2
        pip_install "torch==$pin"
        ;;
    gpu)
        pip_install "torch==$pin"
        ;;
    *)
        echo "unknown build '$build': auto, cpu or gpu" >&2
        exit 2
        ;;
esac
