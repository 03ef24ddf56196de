"""What the style of an element of a web page does to its text: hide it, pale it, put a ground behind it.

Pure. Paper is white unless something says otherwise; what cannot be told counts as seen.
"""

from __future__ import annotations

import re
from typing import TypeAlias

_Color: TypeAlias = "tuple[int, int, int]"

_PALE = 0xE0
"""On white paper, a colour whose every part is at least so light does not show."""

_FAINT = 24
"""Of 255: two colours that are no further apart are one to the eye."""

_LEAST_ALPHA = 0.1

_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|mso-hide\s*:\s*all"
    r"|(?<![\w-])opacity\s*:\s*(?:0*(?:\.0\d*)?|0*\d(?:\.\d*)?%)\s*(?:[;!]|$)"
    r"|(?:opacity|scale[xy]?)\(\s*0*(?:\.0\d*)?%?\s*[,)]"
    r"|font-size\s*:\s*0*(?:[01](?:\.\d+)?|\.\d+)?\s*(?:px|pt|em|rem|%)?\s*(?:[;!]|$)"
    r"|(?:text-indent|(?<![\w-])left|(?<![\w-])top|margin-left|margin-top)\s*:\s*-\d{3,}"
    r"|clip\s*:\s*rect\(\s*0|clip-path\s*:\s*inset\(\s*(?:50|100)%",
    re.IGNORECASE,
)
_FOLDED = re.compile(r"(?:height|width)\s*:\s*0+(?:\.\d+)?(?:px|pt|em|rem|%)?\s*(?:[;!]|$)", re.IGNORECASE)
_CUT_OFF = re.compile(r"overflow(?:-[xy])?\s*:\s*(?:hidden|clip)", re.IGNORECASE)
_INK = re.compile(r"(?:^|;)\s*(?:-webkit-text-fill-)?color\s*:\s*([^;!]{1,60})", re.IGNORECASE)
_GROUND = re.compile(r"(?:^|;)\s*background(?:-color|-image)?\s*:\s*([^;!]{1,200})", re.IGNORECASE)
_NO_GROUND = frozenset({"none", "transparent", "inherit", "initial", "unset"})
_NUMBER = re.compile(r"(\d{1,3}(?:\.\d{0,6})?|\.\d{1,6})(%?)")
_PALE_NAMES = frozenset(
    {
        *(
            "white",
            "snow",
            "ivory",
            "ghostwhite",
            "whitesmoke",
            "floralwhite",
            "azure",
            "mintcream",
            "honeydew",
        ),
        *(
            "aliceblue",
            "seashell",
            "oldlace",
            "lavenderblush",
            "linen",
            "lightcyan",
            "lightyellow",
            "lavender",
        ),
    }
)
_WHITE: _Color = (255, 255, 255)
_NAMES: dict[str, _Color] = {**dict.fromkeys(_PALE_NAMES, _WHITE), "black": (0, 0, 0)}


def hides(style: str) -> bool:
    """Whether a style keeps its element from being shown."""
    return bool(_HIDING.search(style)) or bool(_FOLDED.search(style) and _CUT_OFF.search(style))


def is_lost(style: str) -> bool:
    """Whether the style gives its text a colour that does not show: on its own ground, or on white."""
    said = _INK.findall(style)
    if not said:
        return False
    if _is_transparent(said[-1]):
        return True
    ink = _color(said[-1])
    if ink is None:
        return False
    grounds = _grounds(style)
    if grounds:
        behind = _color(grounds[-1])
        return behind is not None and all(
            abs(one - other) < _FAINT for one, other in zip(ink, behind, strict=True)
        )
    return min(ink) >= _PALE


def is_lost_color(color: str) -> bool:
    """Whether the colour of a `<font>` does not show on white."""
    ink = _color(color) or _color(f"#{color}")
    return ink is not None and min(ink) >= _PALE


def has_ground(style: str) -> bool:
    """Whether the style puts something behind its text on which pale text may show."""
    return bool(_grounds(style))


def is_ground(color: str) -> bool:
    """Whether the colour of a `bgcolor` is one on which pale text may show."""
    return color.strip() != "" and not is_lost_color(color)


def _grounds(style: str) -> list[str]:
    """What it says of the ground, without what is none, or is as pale as paper."""
    said = [ground.strip() for ground in _GROUND.findall(style)]
    return [ground for ground in said if ground.lower() not in _NO_GROUND and not is_lost_color(ground)]


def _color(said: str) -> _Color | None:
    """A colour, `None` where it is not understood."""
    said = said.strip().lower()
    if said in _NAMES:
        return _NAMES[said]
    if said.startswith("#"):
        return _of_digits(said[1:])
    name, _, inside = said.partition("(")
    numbers = _NUMBER.findall(inside)
    if name in {"rgb", "rgba"} and len(numbers) >= 3:  # noqa: PLR2004 - its parts
        red, green, blue = (
            min(255, round(float(part) * (2.55 if sign else 1))) for part, sign in numbers[:3]
        )
        return red, green, blue
    if name in {"hsl", "hsla"} and len(numbers) >= 3:  # noqa: PLR2004 - its parts
        light = float(numbers[2][0])
        return _WHITE if light >= 100 * _PALE / 255 else (0, 0, 0) if light == 0 else None
    return None


def _of_digits(digits: str) -> _Color | None:
    if len(digits) in {3, 4}:
        digits = "".join(digit * 2 for digit in digits)
    if len(digits) not in {6, 8} or not re.fullmatch(r"[0-9a-f]+", digits):
        return None
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)


def _is_transparent(said: str) -> bool:
    said = said.strip().lower()
    if said == "transparent":
        return True
    if said.startswith("#") and len(said) in {5, 9}:
        digits = said[-1] * 2 if len(said) == 5 else said[-2:]  # noqa: PLR2004 - `#rgba`
        return re.fullmatch(r"[01][0-9a-f]", digits) is not None
    numbers = _NUMBER.findall(said.partition("(")[2])
    if len(numbers) < 4:  # noqa: PLR2004 - three parts and how much shows
        return False
    alpha, sign = numbers[3]
    return float(alpha) * (0.01 if sign else 1) < _LEAST_ALPHA
