"""The places at which a test may end a process do nothing where no test has set a hook."""

from pathlib import Path

from channel import fault_places
from channel.fault_places import Place, passing, written_at_once

ROOT = Path(__file__).parents[3]


def test_a_place_does_nothing_and_a_write_is_whole() -> None:
    data = memoryview(b"all of it")
    passing(Place.COMMITTED, "send")
    assert written_at_once(Place.IN_FLUSH, data) is data


def test_nothing_of_the_product_sets_a_hook() -> None:
    product = [path for folder in ("channel", "waiters", "harness_adapters") for path in (ROOT / folder).rglob("*.py")]
    setting = [path for path in product if "set_hook" in path.read_text()]
    assert setting == [Path(fault_places.__file__)]
