"""python -m autohete: the command-line tool that came with the package, else the one on PATH."""
import os
import shutil
import sys

from ._library import HERE


def main():
    own = HERE / "bin" / "autohete"
    program = str(own) if own.exists() else shutil.which("autohete")
    if program is None or os.path.realpath(program) == os.path.realpath(sys.argv[0]):
        sys.exit("autohete: found no program in %s or on PATH" % own.parent)
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
