"""Event Hubs' Kafka endpoint, as a fake: Kafka itself would refuse with words of its own.

It ends TLS, answers the two requests of SASL itself, and passes everything else to a real broker.
It checks a token's audience and expiry, and cuts a connection when its token expires, as the
service does.
"""

import asyncio
import base64
import json
import ssl
import struct
import time
from contextlib import suppress

from .threaded_server import ThreadedServer

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
SASL_AUTHENTICATION_FAILED = 58


def text(value):
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


class FakeKafkaEndpoint(ThreadedServer):
    """Serves in a thread. Set ``broker_port`` before a client connects."""

    def __init__(self, tls, audience):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(tls.certificate, tls.key)
        super().__init__(context)
        self._audience = audience
        self.broker_port = 0
        self.tokens = []
        """The claims of each token that it took."""

        self.refused = []

    async def serve(self, reader, writer):
        try:
            answers, broker = await asyncio.open_connection("127.0.0.1", self.broker_port)
        except OSError:  # it has stopped
            return
        with self.aborted_at_the_end(broker), suppress(OSError, asyncio.IncompleteReadError):
            copying = asyncio.create_task(self._copy(answers, writer))
            try:
                await self._requests(reader, writer, broker)
            finally:
                copying.cancel()

    async def _copy(self, reader, writer):
        with suppress(OSError):
            while content := await reader.read(65536):
                writer.write(content)

    async def _requests(self, reader, writer, broker_writer):
        cut = None
        try:
            while True:
                size = await reader.readexactly(4)
                frame = await reader.readexactly(struct.unpack(">i", size)[0])
                api, version, correlation, client_size = struct.unpack_from(">hhih", frame)
                body = frame[10 + max(0, client_size) :]
                if api == SASL_HANDSHAKE:
                    answer = struct.pack(">hi", 0, 1) + text("OAUTHBEARER")
                elif api == SASL_AUTHENTICATE:
                    answer, left_s = self._authenticate(body, version)
                    if left_s > 0:
                        if cut is not None:
                            cut.cancel()
                        cut = self.loop.call_later(left_s, writer.close)
                else:
                    broker_writer.write(size + frame)
                    continue
                writer.write(struct.pack(">ii", 4 + len(answer), correlation) + answer)
        finally:
            if cut is not None:
                cut.cancel()

    def _authenticate(self, body, version):
        token = body[4:].split(b"auth=Bearer ")[1].split(b"\x01")[0].decode()
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        left_s = claims["exp"] - time.time()
        lifetime = struct.pack(">q", max(0, int(left_s * 1000))) if version else b""
        if claims["aud"] == self._audience and left_s > 0:
            self.tokens.append(claims)
            return struct.pack(">hhi", 0, -1, 0) + lifetime, left_s
        self.refused.append(claims)
        refusal = struct.pack(">h", SASL_AUTHENTICATION_FAILED) + text("Unauthorized access")
        return refusal + struct.pack(">i", 0) + lifetime, 0
