"""What a terminal shows."""

import re


def displayed(text: str) -> list[str]:
    """Return the lines that a terminal shows in the end: it goes up, erases lines, and writes over what was there."""
    lines, row = [""], 0
    for control, plain in re.findall(r"(\x1b\[[0-9;?]*[A-Za-z]|[\r\n])|([^\x1b\r\n]+)", text):
        if control == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif control.endswith("A"):
            row -= int(control[2:-1] or 1)
        elif control.endswith("K") or control == "\r":
            lines[row] = lines[row] if control == "\r" else ""
        elif plain:
            lines[row] = plain if not lines[row] or plain.startswith("bench:") else lines[row] + plain
    return [line.strip() for line in lines]
