"""The model session: one batch of conversations goes out, proven tasks or plain reasons come back.

Import the submodules where they are used: `client`, `tools` and `session` load pydantic_ai and openai.
"""
