import t from 'tap'
import { configMaps, pods, podsOfNode } from '../kit/cloud.ts'
import { onlineNodeWith } from '../kit/hub.ts'
import { dial, valuesOf } from '../kit/wire/wire.ts'

void t.test(
  'clients that send their bodies byte by byte starve no other, however many they are',
  async (t) => {
    const { cloud, hub } = await onlineNodeWith(t, { flags: ['--max-requests-in-flight=2'] }, 'a')
    const path = '/api/v1/namespaces/default/configmaps'
    const slow = []
    for (let i = 0; i < 6; i++) {
      const client = await dial(t, Number(new URL(hub.url).port))
      const fields = 'Content-Type: application/json\r\nContent-Length: 1000'
      const sent = cloud.sandbox.nextRequest(({ method }) => method === 'POST')
      slow.push(client.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n\r\n{`))
      await sent
    }
    // Two of them may go on; the others have made room, those that began first.
    for (const client of slow.slice(0, 4)) {
      const answer = await client.answer()
      t.equal(answer.status, 504)
      t.strictSame(valuesOf(answer, 'retry-after'), [], 'part of it has been sent')
    }
    t.equal(
      await hub.metric('nodehub_requests_rejected_total{reason="slow-body",priority_level="node"}'),
      4,
    )
    const kubelet = hub.as('kubelet')
    t.strictSame((await kubelet.list(podsOfNode)).names, ['default/a'])
    const created = await kubelet.send(path, {
      method: 'POST',
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'made' } },
    })
    t.equal(created.status, 201)
    t.ok(cloud.sandbox.get(configMaps, 'made', 'default'))
    t.ok(cloud.sandbox.get(pods, 'a', 'default'))
  },
)
