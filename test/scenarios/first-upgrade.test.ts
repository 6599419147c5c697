import t from 'tap'
import { nodeName } from '../kit/cloud.ts'
import { startCloud, startTestHub } from '../kit/hub.ts'
import { dial, valuesOf } from '../kit/wire/wire.ts'

const exec = '/api/v1/namespaces/default/pods/a/exec?command=cat&stdin=true&stdout=true'

/** How exec begins: by WebSocket with newer kubectls, by SPDY with older ones. */
const beginnings: Readonly<Record<string, readonly string[]>> = {
  WebSocket: [
    `GET ${exec} HTTP/1.1`,
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol: v5.channel.k8s.io',
  ],
  SPDY: [
    `POST ${exec} HTTP/1.1`,
    'Upgrade: SPDY/3.1',
    'X-Stream-Protocol-Version: v4.channel.k8s.io',
  ],
}

for (const [protocol, lines] of Object.entries(beginnings)) {
  for (const caller of ['jane', 'the node'] as const) {
    void t.test(
      `F21: a ${protocol} upgrade on the very first request, with the credentials of ${caller}`,
      async (t) => {
        const cloud = await startCloud(t, { tls: true })
        cloud.addPods('a')
        const hub = await startTestHub(t, { upstreams: [cloud] })
        const asked = cloud.sandbox.nextRequest(({ path }) => path.endsWith('/exec'))
        const client = await dial(t, Number(new URL(hub.url).port))
        const token =
          caller === 'jane' ? [`Authorization: Bearer ${cloud.sandbox.token('jane')}`] : []
        client.write(
          [...lines, 'Host: localhost', 'Connection: Upgrade', ...token, '', ''].join('\r\n'),
        )
        const answer = await client.head()
        t.equal(answer.line, 'HTTP/1.1 101 Switching Protocols')
        t.strictSame(
          valuesOf(answer, 'upgrade').map((name) => name.toLowerCase()),
          [lines[1]?.slice('Upgrade: '.length).toLowerCase()],
        )
        const { user, clientCertificate } = await asked
        t.equal(user?.name, caller === 'jane' ? 'jane' : `system:node:${nodeName}`)
        t.equal(
          clientCertificate,
          caller === 'jane' ? undefined : `system:node:${nodeName}`,
          'a token goes up without the certificate that would win over it',
        )
      },
    )
  }
}
