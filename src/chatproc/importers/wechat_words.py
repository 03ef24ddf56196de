"""What all sources of WeChat have in common: the words for its cards, and how it writes a mention."""

from __future__ import annotations

import re
from typing import Any

# WeChat ends a mention with a four-per-em space; without it an @ is only a character.
_MENTION = re.compile(r"@([^@\u2005\n]{1,64})\u2005")
_EVERYONE = frozenset({"所有人", "all", "All"})
# What stands for a card, by WeChat's number of its type.
APP_WORDS = {
    1: "链接",
    3: "音乐",
    4: "链接",
    5: "链接",
    6: "文件",
    8: "动画表情",
    19: "聊天记录",
    24: "笔记",
    33: "小程序",
    36: "小程序",
    51: "视频号",
    63: "视频号直播",
    87: "群公告",
    92: "音乐",
    2000: "转账",
    2001: "红包",
    2003: "红包",
}


def wechat_mentions(text: str) -> list[dict[str, Any]]:
    r"""Those whom a text mentions, by the name in it: WeChat's exports keep no ids of them.

    Example:
        >>> wechat_mentions("@所有人\u2005 @乙\u2005 @丙")
        [{'all': True}, {'id': None, 'name': '乙'}]
    """
    names = dict.fromkeys(name.strip() for name in _MENTION.findall(text))
    everyone: list[dict[str, Any]] = [{"all": True}] if _EVERYONE & set(names) else []
    return everyone + [{"id": None, "name": name} for name in names if name and name not in _EVERYONE]
