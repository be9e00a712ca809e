"""The page itself: files beside this module, as they are. No build, and nothing from elsewhere."""

from importlib.resources import files

from starlette.responses import Response
from starlette.routing import Route

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

_START = "index.html"


def page_routes() -> list[Route]:
    """A route for each file, read now; the first page at `/`."""
    return [_route(file.name, file.read_bytes()) for file in files(__package__).joinpath("page").iterdir()]


def _route(name: str, content: bytes) -> Route:
    media_type = _TYPES[name.rpartition(".")[2]]

    async def give(_request: object) -> Response:
        return Response(content, media_type=media_type)

    return Route("/" if name == _START else f"/{name}", give)
