"""What WhatsApp writes into an exported chat in place of something, in the languages of its users.

Words alone. A phrase that is missing here stays text, so that nothing is lost.
"""

from __future__ import annotations

import re

# A whole message in angle brackets: a file that was left out of the export.
MEDIA_OMITTED = frozenset(
    phrase.casefold()
    for phrase in (
        "Media omitted",
        "Medien ausgeschlossen",
        "Medien weggelassen",
        "Multimedia omitido",
        "Archivo omitido",
        "Médias omis",
        "Fichier omis",
        "Media omessi",
        "Media omesso",
        "Mídia oculta",
        "Arquivo de mídia oculto",
        "Ficheiro não revelado",
        "Media weggelaten",
        "Без медиафайлов",
        "Файл пропущен",
        "Медіа опущено",
        "Medya dahil edilmedi",
        "Media tidak disertakan",
        "Media disertakan",
        "pominięto multimedia",
        "تم استبعاد الوسائط",
        "המדיה לא נכללה",
        "省略多媒体文件",
        "媒体文件已省略",
        "略過多媒體檔案",
        "媒體檔案已略去",
        "已省略多媒體檔案",
        "メディアは含まれていません",
        "メディア省略",
        "미디어 파일 제외됨",
        "미디어 파일을 생략한 메시지",
        "मीडिया छोड़ा गया",
        "Media har utelämnats",
        "Media utesluten",
        "Media jätettiin pois",
        "Medier udeladt",
        "Media utelatt",
        "Média vynechána",
        "Hiányzó médiafájl",
        "Fișier media omis",
        "Τα μέσα εξαιρέθηκαν",
        "ไม่รวมสื่อ",
        "Đã bỏ qua tệp phương tiện",
    )
)

# After a mark of direction, at the end of a message: which kind of file was left out. On iPhones alone.
KIND_OMITTED = re.compile(
    "\u200e"
    r"(?P<kind>[^\n\u200e]{0,24}?)\s?"
    r"(?:omitted|weggelassen|ausgelassen|omitid[oa]s?|omise?|absente?|retiré|manquant|omess[oa]"
    r"|non inclus[oa]|ocultad[oa]|weggelaten|dahil edilmedi|пропущен[оа]?|отсутствует|опущено"
    r"|忽略|已忽略|省略|已省略|略過|已略去|생략됨|제외됨|은 생략"
    r"|utelämnad|udeladt|utelatt|pominięto|tidak disertakan)\s*$",
    re.IGNORECASE,
)

# After a file's name, on the first line of a message: the file is beside the chat. On Android.
_ATTACHED = (
    "file attached|Datei angehängt|archivo adjunto|fichier joint|file allegato|arquivo anexado"
    "|ficheiro anexado|bestand bijgevoegd|файл добавлен|файл додано|dosya ekli|file terlampir"
    "|الملف مرفق|קובץ מצורף|文件附件|附件文件|附件檔案|檔案已附加|添付ファイル|ファイル添付|파일 첨부됨"
    "|załączono plik|bifogad fil|vedhæftet fil|vedlagt fil|tiedosto liitteenä|फ़ाइल संलग्न|fișier atașat"
    "|soubor přiložen|fájl csatolva|ไฟล์แนบ|tệp đính kèm"
)
FILE_ATTACHED = re.compile(rf"\u200e?(?P<name>[^\n/]+\.\w{{1,8}}) \((?:{_ATTACHED})\)", re.IGNORECASE)

# At the end of a message, likewise; on iPhones.
FILE_MARKED = re.compile(
    "(?:\u200e<[^<>:：\n]{2,24}"
    "|<(?:attached|Anhang|adjunto|pièce jointe|allegato|anexado|bijgevoegd|прикреплено|eklendi"
    "|附件|添付ファイル))"
    r"\s?[:：]\s?(?P<name>[^<>\n/]+\.\w{1,8})>\s*$",
    re.IGNORECASE,
)

DELETED = frozenset(
    phrase.casefold()
    for phrase in (
        "This message was deleted",
        "You deleted this message",
        "Diese Nachricht wurde gelöscht",
        "Du hast diese Nachricht gelöscht",
        "Se eliminó este mensaje",
        "Este mensaje fue eliminado",
        "Eliminaste este mensaje",
        "Ce message a été supprimé",
        "Vous avez supprimé ce message",
        "Questo messaggio è stato eliminato",
        "Hai eliminato questo messaggio",
        "Esta mensagem foi apagada",
        "Esta mensagem foi eliminada",
        "Mensagem apagada",
        "Você apagou esta mensagem",
        "Dit bericht is verwijderd",
        "U hebt dit bericht verwijderd",
        "Je hebt dit bericht verwijderd",
        "Данное сообщение удалено",
        "Сообщение удалено",
        "Вы удалили данное сообщение",
        "Bu mesaj silindi",
        "Bu mesajı sildiniz",
        "Pesan ini telah dihapus",
        "Pesan ini dihapus",
        "Anda menghapus pesan ini",
        "Anda telah menghapus pesan ini",
        "تم حذف هذه الرسالة",
        "حذفت هذه الرسالة",
        "הודעה זו נמחקה",
        "מחקת הודעה זו",
        "此消息已删除",
        "此消息已被删除",
        "你删除了此消息",
        "您删除了此消息",
        "这条消息已删除",
        "此訊息已刪除",
        "這則訊息已刪除",
        "你已刪除此訊息",
        "您已刪除此訊息",
        "このメッセージは削除されました",
        "このメッセージを削除しました",
        "삭제된 메시지입니다",
        "이 메시지를 삭제했습니다",
        "यह मैसेज हटा दिया गया",
        "Ta wiadomość została usunięta",
        "Usunięto tę wiadomość",
        "Det här meddelandet raderades",
    )
)
DELETED_BY_ADMIN = re.compile(r"This message was deleted by admin\b.{0,80}", re.IGNORECASE)

_EDITED = (
    "This message was edited|Diese Nachricht wurde bearbeitet|Se editó este mensaje|Ce message a été modifié"
    "|Questo messaggio è stato modificato|Mensagem editada|Esta mensagem foi editada|Dit bericht is bewerkt"
    "|Данное сообщение изменено|Сообщение изменено|Bu mesaj düzenlendi|Pesan ini diedit|تم تعديل هذه الرسالة"
    "|ההודעה נערכה|此消息已编辑|这条消息已编辑|此訊息已編輯|這則訊息已編輯|このメッセージは編集されました"
    "|수정된 메시지입니다|यह मैसेज एडिट किया गया|Ta wiadomość została edytowana"
)
EDITED = re.compile(rf"[ \n]?\u200e?<(?:{_EDITED})\.?>\s*$", re.IGNORECASE)

# The counts beside the choices of a poll change with the day of the export.
VOTES = re.compile(r"^(\u200e[^\n:：]{2,24}[:：] .*?) \(\u200e?\d+ [^\W\d_]+\)$", re.MULTILINE)

# How the file of an exported chat is named; else its name, or its folder's, is the title.
TITLES = (
    re.compile(r"WhatsApp[ _-]Chat[ _](?:with|mit|met)[ _](.+)", re.IGNORECASE),
    re.compile(r"WhatsApp[ _]Chat[ _]-[ _](.+)", re.IGNORECASE),
    re.compile(r"Chat[ _](?:de[ _])?WhatsApp[ _]con[ _](.+)", re.IGNORECASE),
    re.compile(r"Conversa[ _](?:do|no)[ _]WhatsApp[ _]com[ _](.+)", re.IGNORECASE),
    re.compile(r"Discussion[ _]WhatsApp[ _]avec[ _](.+)", re.IGNORECASE),
    re.compile(r"Чат[ _]WhatsApp[ _]с(?:[ _]контактом)?[ _](.+)", re.IGNORECASE),
    re.compile(r"[与與]\s?(.+?)\s?的\s?WhatsApp\s?(?:聊天|對話)(?:记录|記錄)?"),
)
