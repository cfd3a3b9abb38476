"""The socket that `fineprint serve` listens on."""

from __future__ import annotations

import asyncio
import socket

from ui.serve import bind


def test_small_pieces_of_a_stream_are_sent_at_once() -> None:
    """With Nagle's algorithm on, a second small piece waits for the client's acknowledgement."""

    async def accepted_option() -> int:
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            told.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = bind("127.0.0.1", 0)
        server = await asyncio.start_server(accepted, sock=listener)
        async with server:
            _, writer = await asyncio.open_connection(*listener.getsockname())
            option = await told
            writer.close()
            await writer.wait_closed()
        return option

    assert asyncio.run(accepted_option()) != 0
