"""`agent-channel doctor`: what works, by trying it. A file a subject; `examination.py` asks them in turn.

Each check yields findings. A pass says what was proved and how, never what is merely likely.
"""
