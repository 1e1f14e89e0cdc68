"""Write down which lines of the product every process executes that Python starts with this folder on its path.

Python imports a module of this name when it starts, so subprocesses of tests are traced like the tests themselves. A
process appends `FILE:LINE` to the file that the variable `MUTANTS_LINES` names, once for each line, at once: it may
be killed. Nothing is traced where the variable is not set.
"""

import os
import sys
import threading
from types import FrameType
from typing import Any

VARIABLE = "MUTANTS_LINES"


class Lines:
    """The lines that this process has executed since it was told where to write them.

    Args:
        prefixes: beginnings of the paths of files whose lines count.
        path: the file to append to.
    """

    def __init__(self, prefixes: tuple[str, ...], path: str) -> None:
        self.prefixes, self.file = prefixes, os.open(os.devnull, os.O_WRONLY)
        self.write_to(path)

    def write_to(self, path: str) -> None:
        """Append to another file from now on, subprocesses too."""
        os.close(self.file)
        os.environ[VARIABLE] = os.pathsep.join([path, *self.prefixes])
        self.path, self.executed = path, set[tuple[str, int]]()
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        """Trace the lines of a function of the product; Python calls this for every function."""
        return self.line if frame.f_code.co_filename.startswith(self.prefixes) else None

    def line(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        """Write down the line that a frame is at."""
        line = frame.f_code.co_filename, frame.f_lineno
        if line not in self.executed:
            self.executed.add(line)
            os.write(self.file, f"{line[0]}:{line[1]}\n".encode())
        return self.line


def trace(prefixes: tuple[str, ...], path: str) -> Lines:
    """Trace this process, all threads that it will start included."""
    lines = Lines(prefixes, path)
    threading.settrace(lines.call)
    sys.settrace(lines.call)
    return lines


if VARIABLE in os.environ:
    trace(tuple(os.environ[VARIABLE].split(os.pathsep)[1:]), os.environ[VARIABLE].split(os.pathsep)[0])
