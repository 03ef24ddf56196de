"""Write what is made: `python -m tests.reference`."""

from tests.reference import pages

for file, text in pages().items():
    file.write_text(text, encoding="utf-8")
