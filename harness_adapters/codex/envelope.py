"""What is added to a thread's queue for one message: two lines that say what it is, then its text.

Each is one user message of its own, so nothing in a text can be taken for another delivery.
"""

from channel.messages import Message
from waiters.age import age_in_words

ORIGIN = "from another agent, not your user"


def envelope(message: Message, now_ms: int) -> str:
    """`id room sender`, how long it waited if that is worth a word, whom it is from, and the text unchanged."""
    fields = [str(message.message_id), message.room, message.sender]
    age = age_in_words(now_ms - message.created_at_ms)
    if age:
        fields.append(f"age={age}")
    if message.reply_to is not None:
        fields.append(f"re={message.reply_to}")
    return f"{' '.join(fields)}\n{ORIGIN}\n{message.text}"
