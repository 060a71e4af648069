"""An upstream in Python for hypercorn, which speaks HTTP/1.1, HTTP/2 and upgrades to h2c."""

import asyncio

seen = {}  # requests of each user to /limited


async def app(scope, receive, send):
    if scope["type"] != "http":
        return

    async def head(status, *fields):
        await send({"type": "http.response.start", "status": status, "headers": list(fields)})

    async def body(data, more=False):
        await send({"type": "http.response.body", "body": data, "more_body": more})

    path, headers = scope["path"], dict(scope["headers"])
    if path == "/limited":
        user = headers.get(b"x-user", b"")
        seen[user] = seen.get(user, 0) + 1
        if seen[user] > 3:
            await head(429, (b"retry-after", b"30"))
            await body(b"slow down\n")
        else:
            await head(200)
            await body(b"served\n")
    elif path == "/large":
        await head(200, (b"content-length", b"%d" % (32 << 20)))
        for _ in range(32):
            await body(b"x" * (1 << 20), True)
        await body(b"")
    elif path == "/stream":
        await head(200)
        for _ in range(3):
            await body(b"piece\n", True)
            await asyncio.sleep(0.5)
        await body(b"")
    elif path == "/cut":
        await head(200, (b"content-length", b"100000"))
        await body(b"half", True)
        raise ConnectionAbortedError
    elif scope["method"] == "PUT":
        total, more = 0, True
        while more:
            message = await receive()
            total += len(message.get("body", b""))
            more = message.get("more_body", False)
        await head(200)
        await body(b"%d\n" % total)
    else:
        await head(200)
        await body(b"hello\n")
