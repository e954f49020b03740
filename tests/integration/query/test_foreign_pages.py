"""Pages of other sites in a browser that can reach the service, for example on the user's own machine."""

from __future__ import annotations

import httpx
import pytest

_OFFSET = "/v1/groups/billing/topics/orders/queues/0/offset"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_cross_site_page_changes_nothing(client: httpx.Client, site: str) -> None:
    """A form or a script may send such a request without being allowed to read the response."""
    headers = {"Sec-Fetch-Site": site, "Origin": "https://evil.example", "Content-Type": "text/plain"}
    for method, path, body in (
        ("PUT", _OFFSET, {"offset": 3}),
        ("POST", "/v1/topics", {"topic": "made-by-a-page"}),
        ("POST", "/v1/topics/orders/messages", {"messages": [{"body": "x"}]}),
        ("DELETE", "/v1/groups/billing/members/m", None),
    ):
        answer = client.request(method, path, json=body, headers=headers)
        assert (answer.status_code, answer.json()["reason"]) == (403, "FORBIDDEN"), path
    assert client.get(_OFFSET).status_code == 404


@pytest.mark.parametrize("headers", [{}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}])
def test_programs_and_the_console_can_change_offsets(client: httpx.Client, headers: dict[str, str]) -> None:
    """A program that is no browser does not send these headers."""
    assert client.put(_OFFSET, json={"offset": 3}, headers=headers).status_code == 200
