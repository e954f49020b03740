"""A web page that shows messages as they arrive, with the browser's EventSource. `uvicorn examples.live_page:app`

The page and its events come from one origin: this program passes Tidemark's event stream on. A browser that lost its
connection asks again with the header Last-Event-ID, and misses no message.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, StreamingResponse

TIDEMARK = os.environ.get("TIDEMARK_QUERY_URL", "http://127.0.0.1:8080")
PAGE = """<!doctype html>
<title>Orders</title>
<h1>Orders</h1>
<ol id="orders"></ol>
<script>
const source = new EventSource("events");
source.onmessage = (event) => {
  const item = document.createElement("li");
  item.textContent = JSON.parse(event.data).body;  // as text: a message is not trusted
  document.getElementById("orders").append(item);
};
source.addEventListener("problem", () => source.close());
</script>
"""

app = FastAPI()


@app.get("/")
def page() -> HTMLResponse:
    """Return the page."""
    return HTMLResponse(PAGE)


@app.get("/events")
async def events(request: Request) -> StreamingResponse:
    """Pass on the messages of all queues of the topic `orders`, from the beginning or from the browser's last one."""
    headers = {"Accept": "text/event-stream"}
    if last := request.headers.get("last-event-id"):
        headers["Last-Event-ID"] = last

    async def body() -> AsyncIterator[bytes]:
        async with httpx.AsyncClient(base_url=TIDEMARK, timeout=None) as client:  # the answer has no end
            asked = client.stream("GET", "/v1/pull", params={"topic": "orders", "follow": "true"}, headers=headers)
            async with asked as answer:
                async for piece in answer.aiter_raw():
                    yield piece

    return StreamingResponse(body(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})
