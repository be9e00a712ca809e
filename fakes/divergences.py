"""Where the fake app-server is known not to be the real one: data, each with its reason.

A difference that is not here is a defect of the fake. Tests read this file: the replay of the captures allows
what NEVER_TOLD names and nothing else, and every other row names the test that shows it.
"""

from dataclasses import dataclass

NEVER_TOLD = {
    "warning": "about model metadata and other things that depend on the model; a client has to skip it",
    "thread/goal/cleared": "goals are not played",
}
"""Notifications in the captures that the fake never sends."""


@dataclass(frozen=True)
class Divergence:
    """`shown_by` is the test in tests/unit/fakes/test_codex_app_server.py that holds the fake to it."""

    what: str
    reason: str
    shown_by: str


DIVERGENCES = (
    Divergence(
        "a method that Codex has and the fake does not play is refused with -32603 and says so",
        "192 methods, of which a client of the queue needs a dozen",
        "test_a_method_that_the_fake_does_not_play_says_so",
    ),
    Divergence(
        "params that are an array are called a sequence; the real one reads them as the fields in order",
        "no client sends them",
        "test_params_in_an_array_are_refused",
    ),
    Divergence(
        "of the mistakes in config.toml only an unclosed table header is noticed",
        "Python 3.10 has no TOML parser, and one mistake is enough to see how a client takes the warning",
        "test_of_a_broken_configuration_only_an_unclosed_table_is_noticed",
    ),
    Divergence(
        "there are no ephemeral threads: `ephemeral` is taken and ignored",
        "nothing can be delivered to one, and another process can't tell it from an unknown thread",
        "test_an_ephemeral_thread_is_an_ordinary_one",
    ),
    Divergence(
        "notifications of a resumed thread's token usage are not repeated at thread/resume",
        "a client of the queue never resumes",
        "test_resuming_tells_nothing_of_past_usage",
    ),
    Divergence(
        "a row is taken within a millisecond of the add where the owner itself adds, not within 15 to 100",
        "shorter gaps than the real ones find more races; a longer one is a fault, `row_taken:turn:delay=NAME`",
        "test_the_gap_between_row_and_item_is_held_open_by_a_fault",
    ),
    Divergence(
        "on a socket the fake ends on the first SIGTERM; the real one waits for running turns",
        "a test's server has to end",
        "test_a_listening_server_ends_on_the_first_sigterm",
    ),
)
