"""What makes a shell complete our commands, in a real bash."""

import subprocess

from harness_adapters.composition import Channel
from tests.integration.person_terminal import SOON_S
from tests.integration.stuck_deliveries import Stuck, one_more_session


class TestCompletion:
    @staticmethod
    def completed(stuck: Stuck, *words: str) -> list[str]:
        script = (
            f'{stuck.done("completion", "bash")}\nCOMP_WORDS=(agent-channel "$@"); COMP_CWORD=$#\n'
            '_shtab_agent_channel\nprintf "%s\\n" "${COMPREPLY[@]}"'
        )
        run = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, timeout=SOON_S)
        return run.stdout.split()

    async def test_bash_completes_commands_their_options_and_their_choices(self, stuck: Stuck) -> None:
        assert self.completed(stuck, "hi") == ["history"]
        assert self.completed(stuck, "history", "hall", "--se") == ["--search"]
        assert self.completed(stuck, "deliveries", "res") == ["resend"]
        assert self.completed(stuck, "completion", "z") == ["zsh"]

    async def test_no_name_that_a_peer_chose_is_offered_for_bash_would_expand_it(
        self, stuck: Stuck, channel: Channel
    ) -> None:
        await channel.membership.join(one_more_session(channel), "$(touch${IFS}/tmp/x)", "guest", None)
        assert "touch" not in stuck.done("completion", "bash") + stuck.done("completion", "zsh")
        assert self.completed(stuck, "history", "$") == []

    async def test_zsh_gets_a_function_for_its_folder_of_completions(self, stuck: Stuck) -> None:
        assert stuck.done("completion", "zsh").startswith("#compdef agent-channel")
