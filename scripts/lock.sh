#!/bin/sh
# Writes constraints.txt: the exact version of everything that `make setup` installs, and of `ocr`.
#
#   sh scripts/lock.sh PYTHON
#
# Everything is resolved anew in a throw-away environment, but for torch and triton: those two are
# changed by hand, together, because torch's CUDA build demands one exact triton.
set -eu

python=$1
cd "$(dirname "$0")/.."

environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
held="$environment/held.txt"
grep -E '^(torch|triton)==' constraints.txt >"$held"

"$python" -m venv "$environment/venv"
venv="$environment/venv/bin/python"
"$venv" -m pip install --quiet --upgrade pip
sh scripts/install_torch.sh "$venv"
"$venv" -m pip install --quiet --constraint "$held" hatchling editables
"$venv" -m pip install --quiet --constraint "$held" --no-build-isolation --editable '.[dev,postgres,ocr]'

{
    echo '# The exact version of everything that `make setup` installs, and of the extra `ocr`. Written by `make lock`.'
    echo '# torch and triton are changed by hand, together: torch'"'"'s CUDA build demands this triton.'
    echo '# torch has no local label (+cpu), so that the pin fits the CPU and the CUDA build.'
    "$venv" -m pip freeze --all --exclude-editable | sed 's/^\(torch==[^+]*\)+.*/\1/'
} >"$environment/constraints.txt"
mv "$environment/constraints.txt" constraints.txt
