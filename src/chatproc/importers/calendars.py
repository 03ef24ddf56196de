"""iCalendar (`text/calendar`) in words: what is to happen, when and where. Pure; never fails."""

from __future__ import annotations

import re

_LINE = re.compile(r"([A-Za-z-]+)((?:;[^:;=]+=(?:\"[^\"]*\"|[^:;]*))*):(.*)", re.DOTALL)
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)?(Z)?)?")
_ZONE = re.compile(r";TZID=\"?([^;:\"]+)", re.IGNORECASE)
_PERSON = re.compile(r";CN=(\"[^\"]*\"|[^;:]*)", re.IGNORECASE)
_SHOWN = {
    "SUMMARY": "",
    "DTSTART": "Start",
    "DTEND": "End",
    "DUE": "Due",
    "LOCATION": "Location",
    "ORGANIZER": "Organizer",
    "RRULE": "Repeats",
    "STATUS": "Status",
    "DESCRIPTION": "",
}
_KINDS = {"VEVENT": "[Calendar event]", "VTODO": "[Calendar task]"}
_MAX_LINES = 2000


def calendar_text(source: str) -> str:
    r"""The events and tasks of a calendar, one fact a line; `""` when there are none.

    Example:
        >>> calendar_text("BEGIN:VEVENT\nSUMMARY:组会\nDTSTART:20260703T060000Z\nEND:VEVENT\n")
        '[Calendar event] 组会\nStart: 2026-07-03 06:00 UTC'
    """
    unfolded = re.sub(r"\n[ \t]", "", source.replace("\r", ""))
    lines: list[str] = []
    is_open = ""
    for line in unfolded.split("\n")[:_MAX_LINES]:
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        name, parameters, value = match[1].upper(), match[2], _unescaped(match[3])
        if name in ("BEGIN", "END"):
            # Alarms and the like inside an event describe themselves, not the event.
            is_open = value.upper() if name == "BEGIN" else "VEVENT" if value.upper() == "VALARM" else ""
            lines += [_KINDS[is_open]] if name == "BEGIN" and is_open in _KINDS else []
        elif name == "METHOD" and value.upper() == "CANCEL":
            lines.append("[Calendar] cancelled")
        elif is_open in _KINDS and name in _SHOWN and value.strip():
            _add(lines, name, _worded(name, parameters, value))
    return "\n".join(lines)


def _add(lines: list[str], name: str, words: str) -> None:
    if name == "SUMMARY" and lines[-1] in _KINDS.values():
        lines[-1] += f" {words}"
    else:
        lines.append(f"{_SHOWN[name]}: {words}" if _SHOWN[name] else words)


def _worded(name: str, parameters: str, value: str) -> str:
    time = _TIME.fullmatch(value)
    if time is not None:
        zone = _ZONE.search(parameters)
        date = f"{time[1]}-{time[2]}-{time[3]}"
        clock = f" {time[4]}:{time[5]}" if time[4] else ""
        return date + clock + (" UTC" if time[7] else f" {zone[1]}" if zone and clock else "")
    if name == "ORGANIZER":
        person = _PERSON.search(parameters)
        address = value.removeprefix("mailto:").removeprefix("MAILTO:")
        return f"{person[1].strip(chr(34))} <{address}>" if person else address
    return value.strip()


def _unescaped(value: str) -> str:
    return re.sub(r"\\([\\;,nN])", lambda match: "\n" if match[1] in "nN" else match[1], value)
